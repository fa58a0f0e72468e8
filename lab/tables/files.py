"""Declared files: what can be declared at all, and how a catalog is told of them. Nothing is written here."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from lab.errors import LabError
from lab.model import DataFile, DeleteFile, Table
from lab.tables import puffin
from lab.tables.parquet import Footer

HADOOP_LZ4 = "hadoop-lz4"
# what a declaration says → what a footer says
CODECS = {
    "none": "UNCOMPRESSED",
    "snappy": "SNAPPY",
    "gzip": "GZIP",
    "zstd": "ZSTD",
    "lz4": "LZ4_RAW",
    HADOOP_LZ4: "LZ4",
}
# Which physical types an encoding of Parquet takes.
ENCODES: Mapping[str, tuple[str, ...]] = {
    "PLAIN": ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
    "RLE_DICTIONARY": ("INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
    "RLE": ("BOOLEAN",),
    "DELTA_BINARY_PACKED": ("INT32", "INT64"),
    "DELTA_LENGTH_BYTE_ARRAY": ("BYTE_ARRAY",),
    "DELTA_BYTE_ARRAY": ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
    "BYTE_STREAM_SPLIT": ("INT32", "INT64", "FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY"),
}
_PHYSICAL = {
    "boolean": "BOOLEAN",
    "int": "INT32",
    "long": "INT64",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "INT32",
    "time": "INT64",
    "timestamp": "INT64",
    "timestamptz": "INT64",
    "string": "BYTE_ARRAY",
    "binary": "BYTE_ARRAY",
    "uuid": "FIXED_LEN_BYTE_ARRAY",
    "fixed": "FIXED_LEN_BYTE_ARRAY",
}
# (name, type, field id) of a position delete file's columns, reserved by the Iceberg specification
POSITION_COLUMNS = (("file_path", "string", 2147483546), ("pos", "long", 2147483545))


def physical(kind: str) -> str:
    """Parquet's type of an Iceberg type. Raises LabError for one that is not primitive."""
    name, *numbers = kind.replace("(", " ").replace("[", " ").split()
    if name == "decimal":
        precision = int(numbers[0].rstrip(","))
        return "INT32" if precision <= 9 else "INT64" if precision <= 18 else "FIXED_LEN_BYTE_ARRAY"
    if name not in _PHYSICAL:
        raise LabError(
            f"{kind} is no primitive type that a data file can be declared with; there are {_list(_PHYSICAL)}"
        )
    return _PHYSICAL[name]


def check(table: Table) -> None:
    """Raises LabError that names what can't be in a table's declaration, and what can."""
    types = dict(table.columns)
    data = [file for file in table.files if isinstance(file, DataFile)]
    for file in data:
        named = {*file.encodings, *file.without, *file.bounds, *file.nulls}
        named |= set() if isinstance(file.codec, str) else {*file.codec}
        if unknown := sorted(named - types.keys()):
            raise LabError(f"{table.name} has no column {_list(unknown)}; it has {_list(types)}")
        for column, kind in table.columns:
            _check_column(column, kind, file.encodings.get(column, "PLAIN"), codec_of(file, column))
        if file.page_version not in (1, 2):
            raise LabError(f"Parquet's data pages have version 1 or 2, not {file.page_version}")
    for delete in table.files:
        if isinstance(delete, DeleteFile):
            _check_delete(table, delete, len(data))


def _check_column(column: str, kind: str, encoding: str, codec: str) -> None:
    stored = physical(kind)
    if encoding not in ENCODES:
        raise LabError(f"column {column}: Parquet has no encoding {encoding!r}; there are {_list(ENCODES)}")
    if stored not in ENCODES[encoding]:
        fitting = [name for name, takes in ENCODES.items() if stored in takes]
        raise LabError(f"column {column}: {encoding} can't hold {kind}, stored as {stored}; take {_list(fitting)}")
    if codec not in CODECS:
        raise LabError(f"column {column}: there is no codec {codec!r} here; take {_list(CODECS)}")


def _check_delete(table: Table, file: DeleteFile, data: int) -> None:
    if file.kind == "equality-delete":
        if unknown := sorted({*file.columns} - {name for name, _ in table.columns}):
            raise LabError(f"{table.name} has no column {_list(unknown)} to delete by")
        if not file.columns or any(len(key) != len(file.columns) for key in file.keys):
            raise LabError("an equality delete names columns, and in each key a value for each of them")
    elif file.kind not in ("position-delete", "deletion-vector"):
        kinds = "position-delete, deletion-vector, equality-delete"
        raise LabError(f"there is no delete file of kind {file.kind!r}; take {kinds}")
    elif not (0 <= file.file < data):
        raise LabError(f"{table.name} has no data file number {file.file}; it has {data}, from 0")


def codec_of(file: DataFile, column: str) -> str:
    return file.codec if isinstance(file.codec, str) else file.codec.get(column, "zstd")


def compare(file: DataFile, found: Footer, ids: Mapping[str, int]) -> None:
    """Raises LabError where a file is not as it was declared: a writer may choose otherwise without a word."""
    for chunk in found.chunks:
        if chunk.field_id != ids.get(chunk.column):
            raise LabError(
                f"column {chunk.column} has field id {chunk.field_id} in the file and {ids.get(chunk.column)} in the "
                "table; without the table's ids a file can't be registered as it is"
            )
        if file.path is not None:
            continue
        codec = codec_of(file, chunk.column)
        wanted = (file.encodings.get(chunk.column, "PLAIN"), CODECS[codec], file.page_version)
        got = (chunk.encoding, chunk.codec, chunk.page_version)
        if codec == HADOOP_LZ4:  # its writer chooses the rest
            wanted, got = wanted[1:2], got[1:2]  # type: ignore[assignment]
        if wanted != got:
            asked, is_ = (", ".join(map(str, made)) for made in (wanted, got))
            raise LabError(f"column {chunk.column} was declared as {asked} and written as {is_}: declare what is")


# ---------------------------------------------------------------- what the catalog is told
def schema(table: Table) -> dict[str, Any]:
    """The table's schema as metadata.json has it; field ids count the columns from 1."""
    fields = []
    for number, (name, kind) in enumerate(table.columns, start=1):
        column: dict[str, Any] = {"id": number, "name": name, "type": kind, "required": False}
        if name in table.defaults:
            value = _single_value(table.defaults[name])
            column |= {"initial-default": value, "write-default": value}
        fields.append(column)
    return {"type": "struct", "schema-id": 0, "fields": fields}


def data_file(table: Table, file: DataFile, location: str, size: int, found: Footer) -> dict[str, Any]:
    """A ContentFile of the REST specification: counts as the footer has them, bounds as they are declared."""
    ids = field_ids(table)
    nulls = {ids[c.column]: c.nulls for c in found.chunks if c.nulls is not None}
    nulls |= {ids[name]: count for name, count in file.nulls.items()}
    types = dict(table.columns)
    bounds = [
        {ids[name]: serialized(types[name], pair[end]).hex().upper() for name, pair in file.bounds.items()}
        for end in (0, 1)
    ]
    return {
        "spec-id": 0,
        "content": "data",
        "file-path": location,
        "file-format": "parquet",
        "partition": [],
        "file-size-in-bytes": size,
        "record-count": found.rows,
        "column-sizes": _map({ids[c.column]: c.bytes for c in found.chunks}),
        "value-counts": _map({ids[c.column]: c.values for c in found.chunks}),
        "null-value-counts": _map(nulls),
        **({"lower-bounds": _map(bounds[0]), "upper-bounds": _map(bounds[1])} if file.bounds else {}),
    }


def delete_file(table: Table, file: DeleteFile, location: str, size: int, data: str) -> dict[str, Any]:
    """A ContentFile that takes rows away; `data` is the location of the data file that it names."""
    described: dict[str, Any] = {
        "spec-id": 0,
        "content": "equality-deletes" if file.kind == "equality-delete" else "position-deletes",
        "file-path": location,
        "file-format": "parquet",
        "partition": [],
        "file-size-in-bytes": size,
        "record-count": len(file.keys or file.positions),
    }
    if file.kind == "equality-delete":
        ids = field_ids(table)
        return {**described, "equality-ids": [ids[name] for name in file.columns]}
    described["referenced-data-file"] = data
    if file.kind == "deletion-vector":
        described |= {
            "file-format": "puffin",
            "content-offset": len(puffin.MAGIC),
            "content-size-in-bytes": len(puffin.vector(file.positions)),
        }
    return described


def field_ids(table: Table) -> dict[str, int]:
    return {name: number for number, (name, _) in enumerate(table.columns, start=1)}


def serialized(kind: str, value: Any) -> bytes:
    """A value in the Iceberg specification's binary single-value serialization."""
    match value:
        case bool():
            return b"\x01" if value else b"\x00"
        case int():
            return value.to_bytes(4 if kind == "int" else 8, "little", signed=True)
        case float():
            return struct.pack("<f" if kind == "float" else "<d", value)
        case Decimal():
            unscaled = int(value.scaleb(int(kind.rstrip(")").split(",")[1])))
            return unscaled.to_bytes(
                (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True
            )
        case str():
            return value.encode()
        case bytes():
            return value
        case uuid.UUID():
            return value.bytes
        case dt.datetime():
            utc = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return _micros(utc - dt.datetime(1970, 1, 1, tzinfo=dt.UTC))
        case dt.date():
            return (value - dt.date(1970, 1, 1)).days.to_bytes(4, "little", signed=True)
        case dt.time():
            return _micros(dt.datetime.combine(dt.date.min, value) - dt.datetime.min)
    raise LabError(f"no bound of type {type(value).__name__} can be declared for {kind}")


def _micros(since: dt.timedelta) -> bytes:
    return (since // dt.timedelta(microseconds=1)).to_bytes(8, "little", signed=True)


def _single_value(value: Any) -> Any:
    """A default in the specification's JSON single-value serialization."""
    if isinstance(value, bytes):
        return value.hex().upper()
    if value is None or isinstance(value, bool | int | float):
        return value
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def _map(values: Mapping[int, Any]) -> dict[str, list[Any]]:
    return {"keys": list(values), "values": list(values.values())}


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
