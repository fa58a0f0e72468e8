"""PyArrow in its worker, as a writer of Parquet files of a given make.

A statement is {"file", "columns": [{"name", "type", "id", "encoding", "codec"}…], "page_version", "rows"}: the file
to write on this machine, Iceberg's type and field id of each column, and Parquet's names of the rest.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lab.values import Nanoseconds


class _Shape(pa.ExtensionType):  # type: ignore[misc]  # untyped there
    """What PyArrow writes as Parquet's GEOMETRY or GEOGRAPHY: by its extension's name and, as JSON, its edges."""

    def __init__(self, edges: dict[str, str]) -> None:
        self._edges = edges
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps(self._edges).encode()


_DICTIONARY = "RLE_DICTIONARY"
_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"),
    "string": pa.string(),
    "uuid": pa.uuid(),
    "binary": pa.binary(),
    "geometry": _Shape({}),
    "geography": _Shape({"edges": "spherical"}),
}


def versions() -> dict[str, str]:
    return {"pyarrow": pa.__version__}


class Session:
    def __init__(self, catalog: dict[str, str], settings: dict[str, str]) -> None:
        """There is nothing to open: files are written on this machine."""

    def close(self) -> None:
        pass

    def execute(self, statement: dict[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        columns = statement["columns"]
        fields = [
            pa.field(column["name"], _arrow(column["type"]), metadata={"PARQUET:field_id": str(column["id"])})
            for column in columns
        ]
        arrays = [_array([row[place] for row in statement["rows"]], f.type) for place, f in enumerate(fields)]
        pq.write_table(
            pa.table(arrays, pa.schema(fields)),
            statement["file"],
            use_dictionary=[c["name"] for c in columns if c["encoding"] == _DICTIONARY],
            column_encoding={c["name"]: c["encoding"] for c in columns if c["encoding"] != _DICTIONARY},
            compression={c["name"]: c["codec"] for c in columns},
            data_page_version=f"{statement['page_version']}.0",
            store_decimal_as_integer=True,  # the Iceberg specification's INT32, INT64 for small precisions
            store_schema=False,  # Arrow's own schema beside Parquet's: no other writer has it
        )
        return [], []


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if isinstance(kind, _Shape):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array([v.since_1970() if isinstance(v, Nanoseconds) else v for v in values], kind)


def _arrow(kind: str) -> pa.DataType:
    numbers = [int(number) for number in re.findall(r"\d+", kind)]
    if kind.startswith("decimal"):
        return pa.decimal128(*numbers)
    if kind.startswith("fixed"):
        return pa.binary(*numbers)
    return _TYPES[kind]
