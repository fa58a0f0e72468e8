"""metadata.json in plain words: schemas, specs, orders, refs and snapshots of any format version, as JSON-able parts.

Names are the specification's with `_` for `-`; what a version does not have is None or empty, so that a program finds
every key in each table.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from lab.errors import LabError
from lab.tables.bounds import millis

Metadata = Mapping[str, Any]
Part = dict[str, Any]

# Columns that Iceberg itself keeps, by the ids that the specification reserves for them.
RESERVED: Mapping[int, tuple[str, str]] = {
    2147483540: ("_row_id", "long"),
    2147483539: ("_last_updated_sequence_number", "long"),
    2147483545: ("pos", "long"),
    2147483546: ("file_path", "string"),
}


def parsed(content: bytes, name: str) -> Metadata:
    """The content of a metadata.json, compressed or not. Raises LabError that names the file and what is off."""
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        found = json.loads(content)
    except (zlib.error, EOFError, OSError):
        raise LabError(f"{name} is cut short or damaged: it can't be unpacked; copy it anew") from None
    except RecursionError:
        raise LabError(f"{name} is no table metadata: it nests too deep") from None
    except ValueError as error:
        if not content.strip():
            raise LabError(f"{name} is empty; copy it anew, or take an earlier one beside it") from None
        place, end, whole = getattr(error, "pos", None), content.rstrip(), str(error).startswith("Extra data")
        if end.lstrip()[:1] == b"{" and not whole and (end[-1:] != b"}" or place == len(end)):
            raise LabError(
                f"{name} is cut short: its JSON ends in mid-air after {len(content)} bytes; copy it anew, or take an "
                "earlier one beside it"
            ) from None
        where = "" if place is None else f" ({error})"
        raise LabError(f"{name} is not JSON{where}; give the table's …metadata.json") from None
    if not isinstance(found, dict) or not isinstance(found.get("format-version"), int):
        version = json.dumps(found.get("format-version")) if isinstance(found, dict) else None
        told = "it has no format-version" if version == "null" else f"its format-version is {version}"
        what = told if version else "a manifest list or something else"
        raise LabError(f"{name} is JSON but no table metadata ({what}); give the table's …metadata.json")
    return found


def table(metadata: Metadata, name: str, location: str) -> Part:
    place = metadata.get("location", "")
    if not isinstance(place, str):
        raise TypeError(f"location is {json.dumps(place)}")
    return {
        "name": name,
        "metadata_location": location,
        "format_version": metadata["format-version"],
        "uuid": metadata.get("table-uuid"),
        "location": place,
        "last_updated": millis(metadata.get("last-updated-ms")),
        "last_sequence_number": metadata.get("last-sequence-number"),
        "last_column_id": metadata.get("last-column-id"),
        "last_partition_id": metadata.get("last-partition-id"),
        "next_row_id": metadata.get("next-row-id"),
        "current_schema_id": current_schema(metadata)["id"],
        "default_spec_id": metadata.get("default-spec-id", 0),
        "default_sort_order_id": metadata.get("default-sort-order-id", 0),
        "current_snapshot_id": current(metadata),
    }


def current(metadata: Metadata) -> int | None:
    """The current snapshot's id; old writers say -1 where there is none."""
    identity = metadata.get("current-snapshot-id")
    return None if identity in (None, -1) else identity


def schemas(metadata: Metadata) -> list[Part]:
    """Each schema, nested fields under their dotted path; v1 may have one alone."""
    found = metadata.get("schemas") or [metadata["schema"]]
    return [
        {
            "id": schema.get("schema-id", 0),
            "identifier_field_ids": list(schema.get("identifier-field-ids", [])),
            "fields": list(_fields(schema, ())),
        }
        for schema in found
    ]


def current_schema(metadata: Metadata) -> Part:
    every = schemas(metadata)
    return next((schema for schema in every if schema["id"] == metadata.get("current-schema-id", 0)), every[-1])


def columns(metadata: Metadata) -> dict[int, tuple[str, str]]:
    """(name, type) by field id of every column that the table has or had, the current name where it still has it."""
    found = dict(RESERVED)
    for schema in [*schemas(metadata), current_schema(metadata)]:
        found |= {field["id"]: (field["name"], field["type"]) for field in schema["fields"]}
    return found


def _fields(struct: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Part]:
    for field in struct["fields"]:
        yield from _field(field, (*path, field["name"]))


def _field(field: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Part]:
    kind = field["type"]
    yield {
        "id": field["id"],
        "name": ".".join(path),
        "type": kind if isinstance(kind, str) else kind["type"],
        "required": bool(field.get("required", False)),
        "doc": field.get("doc"),
        "initial_default": field.get("initial-default"),
        "write_default": field.get("write-default"),
    }
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        yield from _fields(kind, path)
    parts = {"list": ("element",), "map": ("key", "value")}.get(kind["type"], ())
    for part in parts:
        inner = {
            "id": kind[f"{part}-id"],
            "type": kind[part],
            "required": part == "key" or kind.get(f"{part}-required"),
        }
        yield from _field(inner, (*path, part))


def specs(metadata: Metadata) -> list[Part]:
    """Each partition spec; a field of v3 may be computed of several columns."""
    names = columns(metadata)
    found = metadata.get("partition-specs") or [{"spec-id": 0, "fields": metadata.get("partition-spec", [])}]
    return [
        {
            "id": spec["spec-id"],
            "fields": [
                {"id": field.get("field-id"), "name": field["name"], **_source(field, names)}
                for field in spec["fields"]
            ],
        }
        for spec in found
    ]


def orders(metadata: Metadata) -> list[Part]:
    names = columns(metadata)
    return [
        {
            "id": order["order-id"],
            "fields": [
                {**_source(field, names), "direction": field["direction"], "null_order": field["null-order"]}
                for field in order["fields"]
            ],
        }
        for order in metadata.get("sort-orders", [])
    ]


def _source(field: Mapping[str, Any], names: Mapping[int, tuple[str, str]]) -> Part:
    ids = field.get("source-ids") or [field["source-id"]]
    return {
        "source_ids": list(ids),
        "source": [names[identity][0] if identity in names else None for identity in ids],
        "transform": field["transform"],
    }


def refs(metadata: Metadata) -> list[Part]:
    """Branches and tags; v1 has but the current snapshot, which is its main branch."""
    found = metadata.get("refs")
    if not found and current(metadata) is not None:
        found = {"main": {"snapshot-id": current(metadata), "type": "branch"}}
    return [
        {
            "name": name,
            "type": ref["type"],
            "snapshot_id": ref["snapshot-id"],
            "max_ref_age_ms": ref.get("max-ref-age-ms"),
            "max_snapshot_age_ms": ref.get("max-snapshot-age-ms"),
            "min_snapshots_to_keep": ref.get("min-snapshots-to-keep"),
        }
        for name, ref in (found or {}).items()
    ]


def snapshot(found: Mapping[str, Any]) -> Part:
    summary = {key: str(value) for key, value in (found.get("summary") or {}).items()}
    return {
        "id": found["snapshot-id"],
        "parent_id": found.get("parent-snapshot-id"),
        "sequence_number": found.get("sequence-number", 0),
        "timestamp": millis(found.get("timestamp-ms")),
        "operation": summary.pop("operation", None),
        "summary": summary,
        "schema_id": found.get("schema-id"),
        "manifest_list": found.get("manifest-list"),
        "first_row_id": found.get("first-row-id"),
        "added_rows": found.get("added-rows"),
        "key_id": found.get("key-id"),
    }


def snapshots(metadata: Metadata) -> list[Part]:
    """All that are kept, of all branches, in the order of their commits."""
    found = [snapshot(each) for each in metadata.get("snapshots") or []]
    return sorted(found, key=lambda each: (each["sequence_number"], each["timestamp"] or ""))


def statistics(metadata: Metadata) -> list[Part]:
    """Files of statistics: of columns (Puffin), and of partitions."""
    return [
        {
            "kind": kind,
            "path": file["statistics-path"],
            "snapshot_id": file["snapshot-id"],
            "bytes": file.get("file-size-in-bytes"),
            "blobs": [
                {
                    "type": blob["type"],
                    "fields": list(blob["fields"]),
                    "snapshot_id": blob.get("snapshot-id"),
                    "sequence_number": blob.get("sequence-number"),
                    "properties": dict(blob.get("properties", {})),
                }
                for blob in file.get("blob-metadata", [])
            ],
        }
        for kind, key in (("columns", "statistics"), ("partitions", "partition-statistics"))
        for file in metadata.get(key, [])
    ]


def logs(metadata: Metadata) -> Part:
    """Where the table stood before: earlier metadata files, and which snapshot was current since when."""
    return {
        "metadata_log": [
            {"timestamp": millis(entry.get("timestamp-ms")), "metadata_file": entry["metadata-file"]}
            for entry in metadata.get("metadata-log", [])
        ],
        "snapshot_log": [
            {"timestamp": millis(entry.get("timestamp-ms")), "snapshot_id": entry["snapshot-id"]}
            for entry in metadata.get("snapshot-log", [])
        ],
        "keys": [  # never what the key is wrapped in
            {"key_id": key.get("key-id"), "encrypted_by_id": key.get("encrypted-by-id")}
            for key in metadata.get("encryption-keys", [])
        ],
    }
