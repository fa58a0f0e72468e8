"""Tables of one column per (encoding, type), as other writers store them: one data file each, read by all."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from lab.model import DataFile, Table
from lab.tables.files import ENCODES, HADOOP_LZ4, physical
from lab.values import Nanoseconds

NAMESPACE = "ENCODINGS"


def _point(x: float, y: float) -> bytes:
    """A point in well-known binary, little-endian."""
    return struct.pack("<BIdd", 1, 1, x, y)


# A word for each primitive type of Iceberg's v2, with two values: decimals as INT32, INT64 and FIXED_LEN_BYTE_ARRAY.
TYPES: Mapping[str, tuple[str, Any, Any]] = {
    "boolean": ("boolean", True, False),
    "int": ("int", 1, -(2**31)),
    "long": ("long", 1, 2**62),
    "float": ("float", 1.5, -0.25),
    "double": ("double", 1.5, -1e300),
    "decimal4": ("decimal(9, 2)", Decimal("1.50"), Decimal("-9999999.99")),
    "decimal8": ("decimal(18, 2)", Decimal("1.50"), Decimal("-9999999999999999.99")),
    "decimal16": ("decimal(38, 2)", Decimal("1.50"), Decimal("-999999999999999999999999999999999999.99")),
    "date": ("date", dt.date(2026, 7, 1), dt.date(1969, 12, 31)),
    "time": ("time", dt.time(9), dt.time(23, 59, 59, 999999)),
    "timestamp": ("timestamp", dt.datetime(2026, 7, 1, 9), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    "timestamptz": (
        "timestamptz",
        dt.datetime(2026, 7, 1, 9, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    ),
    "string": ("string", "keyboard", "Tastatur, groß"),
    "uuid": ("uuid", uuid.UUID(int=1), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
    "fixed": ("fixed[4]", b"\x00\x01\x02\x03", b"\xff\xfe\xfd\xfc"),
    "binary": ("binary", b"\x00", b"\xff\x00\xfe"),
}
# Those that v3 adds and files have: shapes are WKB, points here.
V3_TYPES: Mapping[str, tuple[str, Any, Any]] = {
    "timestamp-ns": (
        "timestamp_ns",
        Nanoseconds("2026-07-01T09:00:00.000000001"),
        Nanoseconds("1969-12-31T23:59:59.999999999"),
    ),
    "timestamptz-ns": (
        "timestamptz_ns",
        Nanoseconds("2026-07-01T09:00:00.000000001+00:00"),
        Nanoseconds("1969-12-31T23:59:59.999999999+00:00"),
    ),
    "geometry": ("geometry", _point(1, 2), _point(-0.5, 1e300)),
    "geography": ("geography", _point(1, 2), _point(-179.5, 89.5)),
}
# Parquet's name of an encoding → its word in ids and columns here.
WORDS: Mapping[str, str] = {
    "PLAIN": "plain",
    "RLE_DICTIONARY": "dictionary",
    "RLE": "rle",
    "DELTA_BINARY_PACKED": "delta-binary",
    "DELTA_LENGTH_BYTE_ARRAY": "delta-length",
    "DELTA_BYTE_ARRAY": "delta-byte-array",
    "BYTE_STREAM_SPLIT": "byte-stream-split",
}
Pair = tuple[str, str]  # (encoding, word of a type)


def _pairs(types: Mapping[str, tuple[str, Any, Any]]) -> tuple[Pair, ...]:
    return tuple(
        (encoding, word)
        for encoding, takes in ENCODES.items()
        for word, (kind, *_) in types.items()
        if physical(kind) in takes
    )


PAIRS = _pairs(TYPES)
V3_PAIRS = _pairs(V3_TYPES)
# An integer and a string column, in whichever encoding: over these the rest varies.
FEW: tuple[Pair, ...] = tuple(pair for pair in PAIRS if pair[1] in ("int", "string"))


def column(pair: Pair) -> str:
    """The column that holds a pair: `INT_DELTA_BINARY`."""
    encoding, word = pair
    return f"{word}_{WORDS[encoding]}".upper().replace("-", "_")


def _table(
    name: str, pairs: Iterable[Pair], nulls: str = "some", format_version: int = 2, page_version: int = 1
) -> Table:
    """Three rows or four: a value, a null, another value, the first again. nulls: some, none, all."""
    chosen = tuple(pairs)
    picks = {"some": (1, None, 2, 1), "none": (1, 2, 1), "all": (None, None, None)}[nulls]
    types = {**TYPES, **V3_TYPES}
    rows = tuple(tuple(None if pick is None else types[word][pick] for _, word in chosen) for pick in picks)
    stored = DataFile(encodings={column(pair): pair[0] for pair in chosen}, codec="snappy", page_version=page_version)
    columns = tuple((column(pair), types[pair[1]][0]) for pair in chosen)
    return Table(name, format_version, columns, rows, files=(stored,))


# Spark can't load a table that has a `time` column, whichever other column is asked for: so those stand apart.
GRID = _table("GRID", (pair for pair in PAIRS if pair[1] != "time"))
TIMES = _table("TIMES", (pair for pair in PAIRS if pair[1] == "time"))
PAGES_V2 = _table("PAGES_V2", FEW, page_version=2)
FORMAT_V3 = _table("FORMAT_V3", FEW, format_version=3)
# Each type by itself, as a reader that lacks one may load no table with it.
NANOSECONDS, NANOSECONDS_UTC, GEOMETRY, GEOGRAPHY = (
    _table(word.replace("-", "_").upper(), (pair for pair in V3_PAIRS if pair[1] == word), format_version=3)
    for word in V3_TYPES
)
UNKNOWN = Table(
    "UNKNOWN", 3, (("INT_PLAIN", "int"), ("NOTHING", "unknown")), ((1, None), (2, None)), files=(DataFile(),)
)
NO_NULLS = _table("NO_NULLS", FEW, nulls="none")
ALL_NULLS = _table("ALL_NULLS", FEW, nulls="all")

CODEC_WORDS = ("none", "snappy", "gzip", "zstd", "lz4")
CODECS = Table(
    "CODECS",
    2,
    tuple((f"{word}_{codec}".upper(), word) for codec in CODEC_WORDS for word in ("int", "string")),
    tuple(
        tuple(None if pick is None else TYPES[word][pick] for _ in CODEC_WORDS for word in ("int", "string"))
        for pick in (1, None, 2, 1)
    ),
    files=(DataFile(codec={f"{word}_{codec}".upper(): codec for codec in CODEC_WORDS for word in ("int", "string")}),),
)
HADOOP = Table(
    "HADOOP_LZ4",
    2,
    (("INT_LZ4", "int"), ("STRING_LZ4", "string")),
    tuple(tuple(None if pick is None else TYPES[word][pick] for word in ("int", "string")) for pick in (1, None, 2, 1)),
    files=(DataFile(codec=HADOOP_LZ4),),
)
