"""Trino's JSON values as Python's, by the type signatures that come with them: nothing rounded, nothing guessed.

The client's own mapping rounds nanoseconds to microseconds and loses the names of a row's fields.
"""

from __future__ import annotations

import base64
import datetime as dt
import struct
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from lab.errors import LabError
from lab.values import Nanoseconds

Convert = Callable[[Any], Any]
_FLOAT = struct.Struct("f")


def rows(data: Sequence[Sequence[Any]], signatures: Sequence[dict[str, Any]]) -> tuple[tuple[Any, ...], ...]:
    """Rows of Python values (see `lab.values`); `signatures`: each column's `typeSignature`, as Trino sends it.

    A row is a dict (as a map's key its items), a `real` its exact value in double precision; a type without a
    counterpart stays the text that Trino made of it. Raises LabError for a value that has no Python one.
    """
    converts = [_convert(signature) for signature in signatures]
    try:
        return tuple(
            tuple(_apply(convert, value) for convert, value in zip(converts, row, strict=True)) for row in data
        )
    except (ValueError, OverflowError) as error:
        raise LabError(f"a value has no counterpart in Python ({error}); cast it to varchar") from None


def _apply(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _convert(signature: dict[str, Any]) -> Convert | None:
    """What turns a JSON value of this type into Python's; None: it is the same."""
    kind = signature["rawType"]
    nested = _NESTED.get(kind)
    return nested(signature) if nested else _SIMPLE.get(kind)


def _real(value: Any) -> float:
    (exact,) = _FLOAT.unpack(_FLOAT.pack(float(value)))
    return float(exact)


def _fraction(text: str) -> str:
    return text.partition(".")[2]


def _timestamp(text: str) -> dt.datetime | Nanoseconds:
    text = text.replace(" ", "T")
    if len(_fraction(text)) <= 6:
        return dt.datetime.fromisoformat(text)
    return Nanoseconds(f"{text:0<29}")


def _zoned(text: str) -> dt.datetime | Nanoseconds:
    text, _, zone = text.rpartition(" ")
    local = text.replace(" ", "T")
    if len(_fraction(local)) <= 6:
        moment = dt.datetime.fromisoformat(local).replace(tzinfo=_zone(zone))
        return moment.astimezone(dt.UTC)
    whole, _, fraction = local.partition(".")
    moment = dt.datetime.fromisoformat(whole).replace(tzinfo=_zone(zone)).astimezone(dt.UTC)
    return Nanoseconds(f"{moment:%Y-%m-%dT%H:%M:%S}.{fraction:0<9}+00:00")


def _zone(name: str) -> dt.tzinfo:
    if name == "UTC":
        return dt.UTC
    if name[0] in "+-":
        zone = dt.datetime.fromisoformat(f"2000-01-01T00:00{name}").tzinfo
        assert zone is not None
        return zone
    return ZoneInfo(name)


def _time(text: str) -> dt.time | str:
    return dt.time.fromisoformat(text) if len(_fraction(text)) <= 6 else text


_SIMPLE: dict[str, Convert] = {
    "real": _real,
    "double": float,
    "decimal": Decimal,
    "number": Decimal,
    "varbinary": base64.b64decode,
    "date": dt.date.fromisoformat,
    "time": _time,
    "timestamp": _timestamp,
    "timestamp with time zone": _zoned,
    "uuid": uuid.UUID,
}


def _array(signature: dict[str, Any]) -> Convert:
    element = _convert(signature["arguments"][0]["value"])
    return lambda value: [_apply(element, item) for item in value]


def _map(signature: dict[str, Any]) -> Convert:
    key, item = (_convert(argument["value"]) for argument in signature["arguments"])
    key = key or _KEYS.get(signature["arguments"][0]["value"]["rawType"])
    return lambda value: {_apply(key, k): _apply(item, v) for k, v in value.items()}


# JSON's keys are strings, whatever the map's are.
_KEYS: dict[str, Convert] = {
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), int),
    "boolean": lambda text: text == "true",
}


def _row(signature: dict[str, Any]) -> Convert:
    fields = []
    for place, argument in enumerate(signature["arguments"]):
        field = argument["value"]
        name = (field.get("fieldName") or {}).get("name") or f"field{place}"
        fields.append((name, _convert(field["typeSignature"])))
    return lambda value: {name: _apply(convert, item) for (name, convert), item in zip(fields, value, strict=True)}


_NESTED: dict[str, Callable[[dict[str, Any]], Convert]] = {"array": _array, "map": _map, "row": _row}
