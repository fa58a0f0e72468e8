"""Declared files: what can be declared at all, and how a catalog is told of them. Nothing is written here."""

from __future__ import annotations

import datetime as dt
import re
import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from lab.errors import LabError
from lab.model import DataFile, DeleteFile, Table, Truth
from lab.tables import puffin
from lab.tables.parquet import Chunk, Footer
from lab.tables.theta import BLOB, theta
from lab.values import Nanoseconds

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
    "timestamp_ns": "INT64",
    "timestamptz_ns": "INT64",
    "string": "BYTE_ARRAY",
    "binary": "BYTE_ARRAY",
    "geometry": "BYTE_ARRAY",
    "geography": "BYTE_ARRAY",
    "uuid": "FIXED_LEN_BYTE_ARRAY",
    "fixed": "FIXED_LEN_BYTE_ARRAY",
}
UNKNOWN = "unknown"  # a type whose columns are all null, and stand in no file
V3_TYPES = ("timestamp_ns", "timestamptz_ns", "geometry", "geography", UNKNOWN)
# (name, type, field id) of a position delete file's columns, reserved by the Iceberg specification
POSITION_COLUMNS = (("file_path", "string", 2147483546), ("pos", "long", 2147483545))


# What else a file made elsewhere may store a type as, so that Iceberg's readers still take it.
_PROMOTED = {
    "long": ("INT32",),
    "double": ("FLOAT",),
    "timestamp": ("INT96",),
    "timestamptz": ("INT96",),
    "decimal": ("INT32", "INT64", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
}
_PYTHON: Mapping[str, type] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "decimal": Decimal,
    "date": dt.date,
    "time": dt.time,
    "timestamp": dt.datetime,
    "timestamptz": dt.datetime,
    "timestamp_ns": Nanoseconds,
    "timestamptz_ns": Nanoseconds,
    "string": str,
    "binary": bytes,
    "geometry": bytes,  # WKB
    "geography": bytes,
    "uuid": uuid.UUID,
    "fixed": bytes,
}
_MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}"
_FORMS = {"decimal": r"decimal\((\d+), ?(\d+)\)", "fixed": r"fixed\[(\d+)\]"}


def parsed(kind: str) -> tuple[str, tuple[int, ...]]:
    """An Iceberg type's name and numbers: `decimal(9, 2)` → `("decimal", (9, 2))`. Raises LabError for no such type."""
    name = re.split(r"[(\[]", kind)[0]
    if name not in (*_PHYSICAL, "decimal", UNKNOWN):
        known = _list((*_PHYSICAL, "decimal", UNKNOWN))
        raise LabError(f"{kind} is no type that a data file can be declared with here; take {known}")
    form = re.fullmatch(_FORMS.get(name, re.escape(name)), kind)
    if form is None:
        wanted = {"decimal": "decimal(9, 2)", "fixed": "fixed[4]"}.get(name, name)
        other = " (a file of another reference system can't be written here)" if name.startswith("geo") else ""
        raise LabError(f"{kind!r} can't be declared; write it like {wanted}{other}")
    return name, tuple(map(int, form.groups()))


def physical(kind: str) -> str:
    """Parquet's type of an Iceberg type. Raises LabError for one that is not primitive, or in no file."""
    name, numbers = parsed(kind)
    if name == UNKNOWN:
        raise LabError("a column of type unknown stands in no data file; leave it out of encodings, codecs and bounds")
    if name == "decimal":
        return "INT32" if numbers[0] <= 9 else "INT64" if numbers[0] <= 18 else "FIXED_LEN_BYTE_ARRAY"
    return _PHYSICAL[name]


# ---------------------------------------------------------------- what can't be
def check(table: Table) -> None:
    """Raises LabError that names what can't be in a table's declaration (table, file, column), and what can."""
    with _at(table.name):
        types = dict(table.columns)
        for column, kind in table.columns:
            with _at(f"column {column}"):
                if parsed(kind)[0] in V3_TYPES and table.format_version < 3:
                    raise LabError(f"{kind} needs format version 3, not {table.format_version}")
        _known(table, {*table.defaults, *table.write_defaults})
        for column, value in (*table.defaults.items(), *table.write_defaults.items()):
            with _at(f"default of column {column}"):
                _check_value(types[column], value)
        _check_rows(table, table.rows)
        _check_whole(table)
    data = [file for file in table.files if isinstance(file, DataFile)]
    for number, file in enumerate(data):
        with _at(f"{table.name}, data file {number}"):
            _check_data(table, file)
    for number, delete in enumerate(file for file in table.files if isinstance(file, DeleteFile)):
        with _at(f"{table.name}, delete file {number}"):
            _check_delete(table, delete, len(data))


def _check_whole(table: Table) -> None:
    if table.partition is not None:
        _known(table, [table.partition])
        if any(isinstance(file, DeleteFile) for file in table.files):
            raise LabError("delete files of a partitioned table are not declared here; leave out `partition`")
    if table.statistics is None:
        return
    _known(table, table.statistics.distinct)
    if not any(isinstance(file, DataFile) for file in table.files):
        raise LabError("statistics are told of a snapshot; declare a data file")
    if table.statistics.partitions and table.partition is None:
        raise LabError("partition statistics need a partitioned table; name a column in `partition`")
    for column, number in table.statistics.distinct.items():
        if type(number) is not int or number < 0:
            raise LabError(f"column {column}: {number!r} is no count of values; give a whole number, 0 or more")
        with _at(f"column {column}"):
            theta(_distinct(table, column))


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Says of an error within where in the declaration it is."""
    try:
        yield
    except LabError as error:
        raise LabError(f"{place}: {error}") from None


def _check_data(table: Table, file: DataFile) -> None:
    _known(table, {*file.encodings, *file.without, *file.bounds, *file.nulls})
    _known(table, () if isinstance(file.codec, str) else file.codec)
    types = dict(table.columns)
    if not places(table, file):
        raise LabError("a data file has one column at least; leave one out of `without`")
    for column, kind in table.columns:
        told = {*file.encodings, *file.bounds, *([] if isinstance(file.codec, str) else file.codec)}
        if kind == UNKNOWN and column not in told:
            continue
        with _at(f"column {column}"):
            _check_column(kind, file.encodings.get(column, "PLAIN"), codec_of(file, column))
    codecs = {column: codec_of(file, column) for column, _ in (table.columns[place] for place in places(table, file))}
    if HADOOP_LZ4 in codecs.values() and len({*codecs.values()}) > 1:
        alone = _list(column for column, codec in codecs.items() if codec == HADOOP_LZ4)
        raise LabError(f"column {alone}: {HADOOP_LZ4} is a whole file's codec; take it for every column or for none")
    if file.page_version not in (1, 2):
        raise LabError(f"Parquet's data pages have version 1 or 2, not {file.page_version}")
    if (
        table.partition is not None
        and len({row[place_of(table, table.partition)] for row in rows_of(table, file)}) != 1
    ):
        raise LabError(f"column {table.partition}: the table is partitioned by it; give one value in each data file")
    for column, pair in file.bounds.items():
        with _at(f"bounds of column {column}"):
            if not isinstance(pair, tuple) or len(pair) != 2 or None in pair:
                raise LabError(f"{pair!r} is no pair of values; give (lowest, highest)")
            if types[column] in ("geometry", "geography"):
                raise LabError("bounds of shapes are corners and no values, and not declared here; leave them out")
            for value in pair:
                _check_value(types[column], value)
    for column, count in file.nulls.items():
        if type(count) is not int or count < 0:
            raise LabError(f"column {column}: {count!r} is no count of nulls; give a whole number, 0 or more")
    _check_rows(table, file.rows or ())


def _known(table: Table, columns: Iterable[str]) -> None:
    types = dict(table.columns)
    if unknown := sorted({*columns} - types.keys()):
        raise LabError(f"there is no column {_list(unknown)}; take {_list(types)}")


def _check_rows(table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
    for number, row in enumerate(rows):
        if len(row) != len(table.columns):
            raise LabError(f"row {number} has {len(row)} values; give one for each of {len(table.columns)} columns")
        for (column, kind), value in zip(table.columns, row, strict=True):
            with _at(f"row {number}, column {column}"):
                _check_value(kind, value)


def _check_value(kind: str, value: Any) -> None:
    """Raises LabError for a value that a column of this type can't hold. None is no value, and fits all."""
    if value is None:
        return
    name, numbers = parsed(kind)
    if name == UNKNOWN:
        raise LabError(f"{value!r} can't be in a column of type unknown; give None")
    wanted, given = _PYTHON[name], type(value)
    if given is not wanted:  # not isinstance: True is no int here, nor a datetime a date
        raise LabError(f"{value!r} is no value of {kind}; give a Python {wanted.__name__}")
    if name in ("int", "long"):
        bits = 31 if name == "int" else 63
        if not -(1 << bits) <= value < 1 << bits:
            raise LabError(f"{value} is beyond {kind}; give a whole number from -2**{bits} to 2**{bits} - 1")
    elif isinstance(value, Decimal):
        precision, scale = numbers
        shifted = _unscaled(value, scale)
        if shifted is None or abs(shifted) >= 10**precision:
            raise LabError(f"{value} does not fit {kind}; give one of {scale} decimals and {precision} digits at most")
    elif isinstance(value, Nanoseconds):
        if not re.fullmatch(_MOMENT + (r"\+00:00" if name == "timestamptz_ns" else ""), value.text):
            wanted_text = "2026-07-01T09:00:00.000000001" + ("+00:00" if name == "timestamptz_ns" else "")
            raise LabError(f"{value} is no value of {kind}; give a text like {wanted_text}")
    elif isinstance(value, dt.datetime) and (value.tzinfo is None) is (name == "timestamptz"):
        raise LabError(f"{value} is no value of {kind}; give one with{'' if name == 'timestamptz' else 'out'} a zone")
    elif name == "fixed" and len(value) != numbers[0]:
        raise LabError(f"{value!r} has {len(value)} bytes; give the {numbers[0]} of {kind}")


def _check_column(kind: str, encoding: str, codec: str) -> None:
    stored = physical(kind)
    if encoding not in ENCODES:
        raise LabError(f"Parquet has no encoding {encoding!r}; there are {_list(ENCODES)}")
    if stored not in ENCODES[encoding]:
        fitting = [name for name, takes in ENCODES.items() if stored in takes]
        raise LabError(f"{encoding} can't hold {kind}, stored as {stored}; take {_list(fitting)}")
    if codec not in CODECS:
        raise LabError(f"there is no codec {codec!r} here; take {_list(CODECS)}")


def _check_delete(table: Table, file: DeleteFile, data: int) -> None:
    if file.kind == "equality-delete":
        _known(table, file.columns)
        if not {*file.equal} <= {*file.columns}:
            raise LabError(f"{_list(file.equal)}: an equality delete goes by columns that its file has")
        if not file.columns or any(len(key) != len(file.columns) for key in file.keys):
            raise LabError("an equality delete names columns, and in each key a value for each of them")
        types = dict(table.columns)
        for key in file.keys:
            for column, value in zip(file.columns, key, strict=True):
                with _at(f"column {column}"):
                    _check_value(types[column], value)
        return
    if file.kind not in ("position-delete", "deletion-vector"):
        kinds = "position-delete, deletion-vector, equality-delete"
        raise LabError(f"there is no delete file of kind {file.kind!r}; take {kinds}")
    if not (0 <= file.file < data):
        raise LabError(f"there is no data file {file.file} to delete from; there are {data}, counted from 0")
    for position in file.positions:
        if type(position) is not int or position < 0:
            raise LabError(f"{position!r} is no position of a row; give whole numbers, counted from 0")
    if file.kind == "deletion-vector":
        puffin.vector(file.positions)


def codec_of(file: DataFile, column: str) -> str:
    return file.codec if isinstance(file.codec, str) else file.codec.get(column, "zstd")


def compare(table: Table, file: DataFile, found: Footer) -> None:
    """Raises LabError where a file is not as it was declared: a writer may choose otherwise without a word."""
    ids, types = field_ids(table), dict(table.columns)
    wanted = {table.columns[place][0] for place in places(table, file)}
    missing = sorted(wanted - {chunk.column for chunk in found.chunks})
    if missing and found.chunks:  # a file without rows has no row group, hence no chunk
        raise LabError(f"{table.name}: the file has no column {_list(missing)}; name it in `without` if it may lack it")
    for chunk in found.chunks:
        with _at(f"{table.name}, column {chunk.column}"):
            if chunk.column not in wanted:
                raise LabError("the file has it and its declaration does not; declare it, or take it out of the file")
            if chunk.field_id != ids[chunk.column]:
                raise LabError(
                    f"has field id {chunk.field_id} in the file and {ids[chunk.column]} in the table; without the "
                    "table's ids a file can't be registered as it is: write it anew with them"
                )
            _compare_chunk(types[chunk.column], file, chunk)


def _compare_chunk(kind: str, file: DataFile, chunk: Chunk) -> None:
    stored = (physical(kind), *(_PROMOTED.get(parsed(kind)[0], ()) if file.path is not None else ()))
    if chunk.type not in stored:
        raise LabError(
            f"is stored as {chunk.type}, which is no {kind}; write it as {' or '.join(dict.fromkeys(stored))}"
        )
    if file.path is not None:
        return
    codec = codec_of(file, chunk.column)
    wanted = (file.encodings.get(chunk.column, "PLAIN"), CODECS[codec], file.page_version)
    got = (chunk.encoding, chunk.codec, chunk.page_version)
    if codec == HADOOP_LZ4:  # its writer chooses the rest
        wanted, got = wanted[1:2], got[1:2]  # type: ignore[assignment]
    if wanted != got:
        asked, is_ = (", ".join(map(str, made)) for made in (wanted, got))
        raise LabError(f"was declared as {asked} and written as {is_}: declare what is")


# ---------------------------------------------------------------- what the catalog is told
def schema(table: Table) -> dict[str, Any]:
    """The table's schema as metadata.json has it; field ids count the columns from 1."""
    fields = []
    for number, (name, kind) in enumerate(table.columns, start=1):
        column: dict[str, Any] = {"id": number, "name": name, "type": kind, "required": False}
        if name in table.defaults:
            column["initial-default"] = column["write-default"] = _single_value(table.defaults[name])
        if name in table.write_defaults:
            column["write-default"] = _single_value(table.write_defaults[name])
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
        "partition": []
        if table.partition is None
        else [_single_value(rows_of(table, file)[0][place_of(table, table.partition)])],
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
        return {**described, "equality-ids": [ids[name] for name in file.equal or file.columns]}
    described["referenced-data-file"] = data
    if file.kind == "deletion-vector":
        described |= {
            "file-format": "puffin",
            "content-offset": len(puffin.MAGIC),
            "content-size-in-bytes": len(puffin.vector(file.positions)),
        }
    return described


def blobs(table: Table, distinct: Mapping[str, int]) -> list[dict[str, Any]]:
    """What `set_statistics` takes: a sketch of each column's values, and beside it the number that is told of them."""
    return [
        {
            "type": BLOB,
            "fields": [field_ids(table)[column]],
            "properties": {"ndv": str(number)},
            "content": theta(_distinct(table, column)),
        }
        for column, number in distinct.items()
    ]


def _distinct(table: Table, column: str) -> set[bytes]:
    """The values that the data files have in a column, serialized."""
    place, kind = place_of(table, column), dict(table.columns)[column]
    rows = [row for file in table.files if isinstance(file, DataFile) for row in rows_of(table, file)]
    return {serialized(kind, row[place]) for row in rows if row[place] is not None}


def rows_of(table: Table, file: DataFile) -> Truth:
    """A data file's rows."""
    return table.rows if file.rows is None else file.rows


def places(table: Table, file: DataFile) -> list[int]:
    """Which of the table's columns stand in a data file, counted from 0."""
    return [n for n, (name, kind) in enumerate(table.columns) if name not in file.without and kind != UNKNOWN]


def place_of(table: Table, column: str) -> int:
    return [name for name, _ in table.columns].index(column)


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
            unscaled = _unscaled(value, parsed(kind)[1][1])
            assert unscaled is not None, "values are checked"
            return unscaled.to_bytes(
                (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True
            )
        case str():
            return value.encode()
        case bytes():
            return value
        case uuid.UUID():
            return value.bytes
        case Nanoseconds():
            return value.since_1970().to_bytes(8, "little", signed=True)
        case dt.datetime():
            utc = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return _micros(utc - dt.datetime(1970, 1, 1, tzinfo=dt.UTC))
        case dt.date():
            return (value - dt.date(1970, 1, 1)).days.to_bytes(4, "little", signed=True)
        case dt.time():
            return _micros(dt.datetime.combine(dt.date.min, value) - dt.datetime.min)
    raise LabError(f"no bound of type {type(value).__name__} can be declared for {kind}")


def deserialized(kind: str, content: bytes) -> Any:
    """The inverse of `serialized`."""
    name, numbers = parsed(kind)
    match name:
        case "boolean":
            return content != b"\x00"
        case "float" | "double":
            return struct.unpack("<f" if name == "float" else "<d", content)[0]
        case "decimal":
            return Decimal(f"{int.from_bytes(content, 'big', signed=True)}e-{numbers[1]}")
        case "string":
            return content.decode()
        case "binary" | "fixed":
            return content
        case "uuid":
            return uuid.UUID(bytes=content)
    number = int.from_bytes(content, "little", signed=True)
    if name in ("int", "long"):
        return number
    if name in ("timestamp_ns", "timestamptz_ns"):
        return Nanoseconds.of(number, "+00:00" if name == "timestamptz_ns" else "")
    if name == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(number)
    since = dt.datetime(1970, 1, 1, tzinfo=dt.UTC if name == "timestamptz" else None) + dt.timedelta(
        microseconds=number
    )
    return since.time() if name == "time" else since


def _unscaled(value: Decimal, scale: int) -> int | None:
    """The integer that a decimal of this scale stores; None where it would lose digits. No context rounds it."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return None
    whole, power = int("".join(map(str, digits))), exponent + scale
    if power < 0 and whole % 10**-power:
        return None
    shifted: int = whole * 10**power if power >= 0 else whole // 10**-power
    return -shifted if sign else shifted


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
