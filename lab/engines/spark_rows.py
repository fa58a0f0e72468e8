"""How rows come over from a Spark of any generation: typed, whole, and in one piece.

`Dataset.collectToPython` is what PySpark's own `collect` calls: it runs the query as it is and serves the rows,
pickled in batches, on a loopback socket behind a secret. It has kept its shape from 3.2 to 4.1. The JVM itself reads
that socket for us, so that a Spark whose loopback is not ours, in a container, answers in the same way. The values
are Spark's internal ones (a date is a number of days), so the schema says what each of them is.
"""

from __future__ import annotations

import datetime as dt
import io
import pickle
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import IO, Any

from lab.errors import LabError

Convert = Callable[[Any], Any]
Variant = Callable[[bytes, bytes], str]  # a variant's value and metadata → its JSON text

_LENGTH = struct.Struct("!i")
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.UTC)
_MILLISECONDS = 60_000  # for one answer of a server that has its rows already


def fetch(jvm: Any, frame: Any) -> list[bytes]:
    """Runs a Dataset's query; its rows as pickled batches. Raises Py4JError, or OSError when the JVM is gone."""
    port, secret, server = frame.collectToPython()
    connection = jvm.java.net.Socket("127.0.0.1", int(port))
    try:
        connection.setSoTimeout(_MILLISECONDS)
        jvm.java.io.DataOutputStream(connection.getOutputStream()).write(_LENGTH.pack(len(secret)) + secret.encode())
        answer = jvm.java.io.DataInputStream(connection.getInputStream()).readAllBytes()
    finally:
        connection.close()
    greeting, *batches = _frames(io.BytesIO(answer))
    server.getResult()  # raises what the server failed of: to the socket that looks like the end
    if greeting != b"ok":
        raise ConnectionError("Spark refused the secret of its own rows")
    return batches


def _frames(stream: IO[bytes]) -> Iterator[bytes]:
    while header := stream.read(_LENGTH.size):
        (length,) = _LENGTH.unpack(header)
        content = stream.read(length)
        if len(content) < length:
            raise ConnectionError("Spark's rows end in the middle")
        yield content


def rows(batches: list[bytes], schema: dict[str, Any], variant: Variant) -> tuple[tuple[Any, ...], ...]:
    """Batches as rows of Python values (see `lab.values`); `schema` is the Dataset's, as Spark's own JSON.

    A struct is a dict (as a map's key its items), a variant its JSON text, a geometry or geography its WKB; a float
    is its exact value in double precision; an interval is an int (microseconds, or months). Raises LabError for a
    value that has no Python one.
    """
    converts = [_convert(field["type"], variant) for field in schema["fields"]]
    try:
        return tuple(
            tuple(_apply(convert, value) for convert, value in zip(converts, row, strict=True))
            for batch in batches
            for row in _Rows(io.BytesIO(batch)).load()
        )
    except OverflowError:
        raise LabError("a date or timestamp is beyond Python's years; cast it to a string") from None


class _Rows(pickle.Unpickler):
    """Reads what Spark pickles and nothing else: rows as plain tuples, without PySpark."""

    _KNOWN: dict[tuple[str, str], Any] = {
        ("pyspark.sql.types", "_parse_datatype_json_string"): str,
        ("pyspark.sql.types", "_create_row_inbound_converter"): lambda schema: lambda *values: values,
        ("decimal", "Decimal"): Decimal,
        ("__builtin__", "bytearray"): lambda text, encoding: text.encode(encoding),
        ("builtins", "bytes"): bytes,
    }

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._KNOWN[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"Spark sent a {module}.{name}, which this lab can't read") from None


def _apply(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _convert(kind: Any, variant: Variant) -> Convert | None:
    """What turns Spark's internal value of this type into Python's; None: it is the same."""
    if isinstance(kind, dict):
        return _NESTED[kind["type"]](kind, variant)
    if kind == "variant":
        return lambda value: variant(value["value"], value["metadata"])
    return _SIMPLE.get(kind.partition("(")[0])


def _calendar_interval(_: Any) -> Any:
    raise LabError("an interval of months, days and time comes over empty; cast it to a string")


_SIMPLE: dict[str, Convert] = {
    "date": lambda days: (_EPOCH + dt.timedelta(days=days)).date(),
    "timestamp": lambda micros: _EPOCH_UTC + dt.timedelta(microseconds=micros),
    "timestamp_ntz": lambda micros: _EPOCH + dt.timedelta(microseconds=micros),
    "time": lambda nanos: (_EPOCH + dt.timedelta(microseconds=nanos // 1000)).time(),
    "geometry": lambda value: value["bytes"],
    "geography": lambda value: value["bytes"],
    "interval": _calendar_interval,
}


def _array(kind: dict[str, Any], variant: Variant) -> Convert:
    element = _convert(kind["elementType"], variant)
    return lambda value: [_apply(element, item) for item in value]


def _map(kind: dict[str, Any], variant: Variant) -> Convert:
    key, item = _convert(kind["keyType"], variant), _convert(kind["valueType"], variant)
    return lambda value: {_hashable(_apply(key, k)): _apply(item, v) for k, v in value.items()}


def _hashable(key: Any) -> Any:
    return tuple(key.items()) if isinstance(key, dict) else key


def _struct(kind: dict[str, Any], variant: Variant) -> Convert:
    fields = [(field["name"], _convert(field["type"], variant)) for field in kind["fields"]]
    return lambda value: {name: _apply(convert, item) for (name, convert), item in zip(fields, value, strict=True)}


_NESTED: dict[str, Callable[[dict[str, Any], Variant], Convert]] = {
    "array": _array,
    "map": _map,
    "struct": _struct,
}
