"""Iceberg tables made by hand, file by file, in a folder: what no engine is needed for, and none would write."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro

LOCATION = "s3://elsewhere/warehouse/t"  # not where it lies: a table may have been moved

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "name", "type": "string", "required": False},
    ],
}


def avro(name: str, fields: Sequence[tuple[str, Any]], records: Sequence[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    schema = {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}
    fastavro.writer(out, schema, records, codec="deflate")
    return out.getvalue()


def _optional(kind: Any) -> list[Any]:
    return ["null", kind]


def _metric(name: str, value: str) -> list[Any]:
    pair = {
        "name": name,
        "type": "record",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": value}],
    }
    return _optional({"type": "array", "items": pair})


METRICS = (
    ("column_sizes", "long"),
    ("value_counts", "long"),
    ("null_value_counts", "long"),
    ("nan_value_counts", "long"),
    ("lower_bounds", "bytes"),
    ("upper_bounds", "bytes"),
)
PARTITION = [{"name": "name", "type": _optional("string")}, {"name": "day", "type": _optional("int")}]
V1 = [
    ("file_path", "string"),
    ("file_format", "string"),
    ("partition", {"type": "record", "name": "r102", "fields": PARTITION}),
    ("record_count", "long"),
    ("file_size_in_bytes", "long"),
    *((name, _metric(f"k{place}", kind)) for place, (name, kind) in enumerate(METRICS)),
    ("key_metadata", _optional("bytes")),
    ("sort_order_id", _optional("int")),
]
V2 = [("content", "int"), *V1, ("equality_ids", _optional({"type": "array", "items": "int"}))]
V3 = [
    *V2,
    ("first_row_id", _optional("long")),
    ("referenced_data_file", _optional("string")),
    ("content_offset", _optional("long")),
    ("content_size_in_bytes", _optional("long")),
]


def file(path: str, records: int, size: int = 0, content: int = 0, **more: Any) -> dict[str, Any]:
    """A manifest's `data_file`; `lower_bounds={1: b"…"}` and the like by field id."""
    told = {name: [{"key": k, "value": v} for k, v in more.pop(name).items()] for name, _ in METRICS if name in more}
    return {
        "content": content,
        "file_path": f"{LOCATION}/{path}",
        "file_format": path.rpartition(".")[2].upper(),
        "partition": {"name": None, "day": None},
        "record_count": records,
        "file_size_in_bytes": size,
        **told,
        **more,
    }


class OnDisk:
    """A table in `folder`; what is written is referred to below LOCATION."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder, self.version = folder, version
        self.metadata: dict[str, Any] = {
            "format-version": version,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": LOCATION,
            "last-updated-ms": 1_782_900_000_000,
            "last-sequence-number": 0,
            "last-column-id": 2,
            "current-schema-id": 0,
            "schemas": [SCHEMA],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {},
            "current-snapshot-id": None,
            "snapshots": [],
        }
        self._manifests = 0

    def put(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return f"{LOCATION}/{name}"

    def manifest(
        self, snapshot: int, entries: Sequence[tuple[int, dict[str, Any]]], *, content: int = 0, **more: Any
    ) -> dict[str, Any]:
        """Entries are (status, data_file): their snapshot and sequence number are inherited."""
        fields = {1: V1, 2: V2, 3: V3}[self.version]
        empty = {name: None for name, kind in fields if isinstance(kind, list)}
        names = {name for name, _ in fields}
        records = [
            {
                "status": status,
                "snapshot_id": None,
                "sequence_number": None if status == 1 else 1,
                "file_sequence_number": None if status == 1 else 1,
                "data_file": {k: v for k, v in {**empty, **told}.items() if k in names},
            }
            for status, told in entries
        ]
        described = {"type": "record", "name": "r2", "fields": [{"name": n, "type": t} for n, t in fields]}
        columns = [
            ("status", "int"),
            ("snapshot_id", _optional("long")),
            ("sequence_number", _optional("long")),
            ("file_sequence_number", _optional("long")),
            ("data_file", described),
        ]
        self._manifests += 1
        name = f"metadata/m-{self._manifests}.avro"
        written = avro("manifest_entry", columns, records)
        counts = {f"{what}_files_count": [s for s, _ in entries].count(n) for n, what in enumerate(STATUS)}
        return {
            "manifest_path": self.put(name, written),
            "manifest_length": len(written),
            "partition_spec_id": 0,
            "content": content,
            "sequence_number": snapshot,
            "min_sequence_number": snapshot,
            "added_snapshot_id": snapshot,
            **counts,
            **{f"{what}_rows_count": 0 for what in STATUS},
            "first_row_id": None,
            "key_metadata": None,
            **more,
        }

    def commit(
        self, snapshot: int, manifests: Sequence[dict[str, Any]], operation: str = "append", **more: Any
    ) -> None:
        """A snapshot whose id is its sequence number, on top of the current one, listing these manifests."""
        columns: list[tuple[str, Any]] = [
            ("manifest_path", "string"),
            ("manifest_length", "long"),
            ("partition_spec_id", "int"),
            ("content", "int"),
            ("sequence_number", "long"),
            ("min_sequence_number", "long"),
            ("added_snapshot_id", "long"),
            *((f"{what}_{unit}_count", "int") for unit in ("files", "rows") for what in STATUS),
            ("first_row_id", _optional("long")),
            ("key_metadata", _optional("bytes")),
        ]
        listed = self.put(f"metadata/snap-{snapshot}.avro", avro("manifest_file", columns, list(manifests)))
        current = self.metadata["current-snapshot-id"]
        self.metadata["snapshots"].append(
            {
                "snapshot-id": snapshot,
                **({"parent-snapshot-id": current} if current else {}),
                "sequence-number": snapshot,
                "timestamp-ms": 1_782_900_000_000 + snapshot,
                "manifest-list": listed,
                "summary": {"operation": operation, **more.pop("summary", {})},
                "schema-id": self.metadata["current-schema-id"],
                **more,
            }
        )
        self.metadata |= {"current-snapshot-id": snapshot, "last-sequence-number": snapshot}

    def save(self, name: str = "v1.metadata.json") -> Path:
        """Writes metadata.json and notes it in the next one's log."""
        location = self.put(f"metadata/{name}", json.dumps(self.metadata).encode())
        log = [*self.metadata.get("metadata-log", [])]
        stamp = max((s["timestamp-ms"] for s in self.metadata["snapshots"]), default=0)
        self.metadata["metadata-log"] = [*log, {"timestamp-ms": stamp, "metadata-file": location}]
        return self.folder / "metadata" / name


STATUS = ("existing", "added", "deleted")  # by their numbers


# ---------------------------------------------------------------- Parquet, as little of it as a footer needs
def parquet(rows: int, columns: Sequence[tuple[str, int, int, bytes, bytes]], bloom: bool = False) -> bytes:
    """A file with one empty page for each column: (name, field id, physical type, minimum, maximum)."""
    body, chunks = b"PAR1", []
    for name, _, kind, low, high in columns:
        at = len(body)
        body += thrift({1: 0, 2: 0, 3: 0, 5: {1: rows, 2: 0, 3: 3, 4: 3}})
        meta = {1: kind, 2: [0, 3], 3: [name], 4: 6, 5: rows, 6: 9, 7: 9, 9: at, 12: {3: 0, 5: high, 6: low}}
        chunks.append({2: at, 3: {**meta, 14: 1} if bloom else meta})
    schema = [{4: "root", 5: len(columns)}, *({1: kind, 4: name, 9: number} for name, number, kind, *_ in columns)]
    footer = thrift({1: 2, 2: schema, 3: rows, 4: [{1: chunks, 2: 9, 3: rows}], 6: "by hand"})
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def thrift(fields: dict[int, Any]) -> bytes:
    """A struct in Thrift's compact protocol; each field's number is written in full."""
    return b"".join(bytes([_kind(v)]) + _varint(n << 1) + _value(v) for n, v in fields.items()) + b"\x00"


def _kind(value: Any) -> int:
    return {int: 6, bytes: 8, str: 8, list: 9, dict: 12}[type(value)]


def _value(value: Any) -> bytes:
    match value:
        case int():
            return _varint(value << 1)  # no negative ones here
        case str():
            return _value(value.encode())
        case bytes():
            return _varint(len(value)) + value
        case list():
            return bytes([0xF0 | _kind(value[0])]) + _varint(len(value)) + b"".join(map(_value, value))
    return thrift(value)


def _varint(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])
