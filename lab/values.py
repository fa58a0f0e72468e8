"""Typed values as JSON and back: one encoding for workers, records and truth.

JSON's own null, booleans, strings and safe integers stand for themselves; everything else is an object of
one key that names its type, so that nothing is guessed when it is read back (large integers as strings,
bytes as hex). Standard library only: a Python engine's worker loads this file in its own environment.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import math
import uuid
from collections.abc import Callable, Mapping
from typing import Any

SAFE_INTEGER = 2**53


def encode(value: Any) -> Any:
    """A value as JSON: `Decimal("4500.00")` → `{"decimal": "4500.00"}`. Raises TypeError for an unknown type."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) < SAFE_INTEGER else {"int": str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, decimal.Decimal):
        return {"decimal": str(value)}
    if isinstance(value, Nanoseconds):
        return {"timestamp_ns": value.text}
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            return {"timestamp": value.isoformat()}
        return {"timestamptz": value.astimezone(dt.UTC).isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    if isinstance(value, dt.time):
        return {"time": value.isoformat()}
    if isinstance(value, uuid.UUID):
        return {"uuid": str(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"binary": bytes(value).hex()}
    if isinstance(value, Mapping):
        return {"map": [[encode(k), encode(v)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [encode(v) for v in value]}
    raise TypeError(f"no encoding for a value of type {type(value).__name__}")


@functools.total_ordering
class Nanoseconds:
    """A timestamp finer than Python's microseconds, as its ISO text of nine digits; comparable within one zone."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def of(cls, since_1970: int, zone: str = "") -> Nanoseconds:
        """Of a number of nanoseconds; `zone` is "" or "+00:00"."""
        seconds, fraction = divmod(since_1970, 10**9)
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
        return cls(f"{moment.isoformat()}.{fraction:09}{zone}")

    def since_1970(self) -> int:
        """As a number of nanoseconds."""
        moment = dt.datetime.fromisoformat(self.text[:19])
        return (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1) * 10**9 + int(self.text[20:29])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nanoseconds) and self.text == other.text

    def __lt__(self, other: Nanoseconds) -> bool:
        return self.text < other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "decimal": decimal.Decimal,
    "timestamp": dt.datetime.fromisoformat,
    "timestamptz": dt.datetime.fromisoformat,
    "timestamp_ns": Nanoseconds,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "uuid": uuid.UUID,
    "binary": bytes.fromhex,
}


def decode(value: Any) -> Any:
    """The inverse of `encode`; a list comes back as a tuple, a map or struct as a dict."""
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "list":
        return tuple(decode(v) for v in inner)
    if kind == "map":
        return {decode(k): decode(v) for k, v in inner}
    return _DECODERS[kind](inner)
