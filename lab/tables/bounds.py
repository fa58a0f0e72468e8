"""Values as manifests store them, made readable: bounds, and the values of partitions.

Every value comes back as JSON's own: numbers and booleans as they are, everything else as text. What does not fit
its type is shown as bytes (`0x…`), never guessed.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from decimal import Decimal
from typing import Any

_EPOCH = dt.datetime(1970, 1, 1)


def decoded(kind: str, content: bytes) -> Any:
    """A value in the specification's binary single-value serialization; `kind` is a primitive Iceberg type.

    An old file's bound may have the type that a column was promoted from: 4 bytes for a long are an int.
    """
    try:
        return _decoded(kind.partition("(")[0].partition("[")[0].strip(), kind, content)
    except (ValueError, LookupError, ArithmeticError, struct.error):
        return raw(content)


def raw(content: bytes) -> str:
    return f"0x{content.hex()}"


def _decoded(name: str, kind: str, content: bytes) -> Any:
    number = int.from_bytes(content, "little", signed=True)
    match name, len(content):
        case "boolean", 1:
            return content != b"\x00"
        case (("int" | "long"), (4 | 8)):
            return number
        case (("float" | "double"), (4 | 8)):
            value: float = struct.unpack("<f" if len(content) == 4 else "<d", content)[0]
            return value if math.isfinite(value) else repr(value)
        case "date", 4:
            return date(number)
        case "time", 8:
            return (_EPOCH + dt.timedelta(microseconds=number)).time().isoformat()
        case (("timestamp" | "timestamptz"), (4 | 8)):
            return timestamp(number, 6, name) if len(content) == 8 else date(number)  # promoted from date
        case (("timestamp_ns" | "timestamptz_ns"), (4 | 8)):
            return timestamp(number, 9, name) if len(content) == 8 else date(number)
        case "string", _:
            return content.decode()
        case "uuid", 16:
            return str(uuid.UUID(bytes=content))
        case "decimal", _:
            scale = int(kind.rstrip(") ").split(",")[1])
            return f"{Decimal(int.from_bytes(content, 'big', signed=True)).scaleb(-scale):f}"
        case (("geometry" | "geography"), (16 | 24 | 32)):
            return f"({', '.join(repr(part) for part in struct.unpack(f'<{len(content) // 8}d', content))})"
    return raw(content)


def date(days: int) -> str:
    return (_EPOCH + dt.timedelta(days=days)).date().isoformat()


def timestamp(number: int, digits: int, kind: str) -> str:
    """ISO text of a count of units of 10^-digits seconds since 1970."""
    seconds, fraction = divmod(number, 10**digits)
    zone = "+00:00" if "tz" in kind else ""
    return f"{(_EPOCH + dt.timedelta(seconds=seconds)).isoformat()}.{fraction:0{digits}d}{zone}"


def millis(number: Any) -> str | None:
    """ISO text of metadata.json's milliseconds since 1970; None where there is none, or no such time."""
    try:
        return timestamp(number, 3, "tz")
    except (TypeError, ValueError, OverflowError):
        return None


def partition(transform: str, value: Any) -> Any:
    """A partition's value as Avro gives it, in the words of its transform: months since 1970 as `2026-07`."""
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            match transform:
                case "year":
                    return str(1970 + value)
                case "month":
                    return f"{1970 + value // 12}-{value % 12 + 1:02}"
                case "day":
                    return date(value)
                case "hour":
                    return f"{date(value // 24)}-{value % 24:02}"
        except OverflowError:
            return value
        return value
    return plain(value)


def plain(value: Any) -> Any:
    """Whatever Avro gives as JSON."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else repr(value)
        case bytes():
            return raw(value)
        case dt.date() | dt.time():
            return value.isoformat()
        case dict():
            return {str(key): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
    return str(value)
