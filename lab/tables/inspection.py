"""A table's x-ray as one JSON-able document: what its metadata says, what lies in its files, and where the two differ.

Its shape is published in inspection.schema.json. Lists are in the order of the files they come from.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from lab.errors import LabError
from lab.tables import bounds, metadata, puffin
from lab.tables.metadata import Metadata, Part
from lab.tables.parquet import Chunk, footer
from lab.tables.rest import LoadedTable
from lab.tables.storage import Files, Ranged, Unreadable
from lab.tables.xray import ADDED, DELETED, EXISTING, Entry, Manifest, entries, manifests

SCHEMA = 1
KNOWN_VERSION = 3
FOOTERS = 100  # of so many files are footers opened where nobody says otherwise


@dataclass
class Contents:
    """What one snapshot holds: its manifests, the files that are live in it, and those that it took out."""

    snapshot: Mapping[str, Any]
    manifests: list[Manifest]
    live: list[Entry]
    removed: list[Entry]

    @property
    def data(self) -> list[Entry]:
        return [entry for entry in self.live if entry.file.kind == "data"]

    @property
    def deletes(self) -> list[Entry]:
        return [entry for entry in self.live if entry.file.kind != "data"]


def inspect(name: str, table: LoadedTable, files: Files, snapshot_id: int | None, footers: int = FOOTERS) -> Part:
    """The x-ray of a table at a snapshot, its current one where none is named; `name` is what people call the table.

    `footers`: of how many of the snapshot's files the footers are opened. What can't be read is told in `problems`.
    Raises LabError for an unknown snapshot, and for JSON that is no table metadata.
    """
    return guarded(table, lambda: _inspect(name, table, files, snapshot_id, footers))


def _inspect(name: str, table: LoadedTable, files: Files, snapshot_id: int | None, footers: int) -> Part:
    found = table.metadata
    problems = _of_metadata(found)
    document: Part = {
        "type": "xray",
        "schema": SCHEMA,
        "table": metadata.table(found, name, table.metadata_location),
        "schemas": metadata.schemas(found),
        "partition_specs": metadata.specs(found),
        "sort_orders": metadata.orders(found),
        "properties": {key: str(value) for key, value in (found.get("properties") or {}).items()},
        "refs": metadata.refs(found),
        "snapshots": metadata.snapshots(found),
        "statistics": metadata.statistics(found),
        **metadata.logs(found),
        "snapshot": None,
        "puffin": [],
        "parquet": [],
        "unopened": 0,
        "problems": problems,
    }
    wanted = metadata.current(found) if snapshot_id is None else snapshot_id
    if wanted is None or (snapshot_id is None and wanted not in _ids(found)):
        return document
    try:
        held = contents(files, choose(found, wanted))
    except Unreadable as error:
        problems.append(f"{error}; so the snapshot's files are not shown")
        return document
    described = describer(found)
    document["snapshot"] = {
        "id": wanted,
        "rows": rows(held),
        "manifests": [_manifest(manifest) for manifest in held.manifests],
        "data_files": [described(entry, wanted) for entry in held.data],
        "delete_files": [described(entry, wanted) for entry in held.deletes],
        "removed_files": [described(entry, wanted) for entry in held.removed],
    }
    problems += _of_contents(found, held)
    _open(document, found, held, files, footers)
    return document


def guarded(table: LoadedTable, work: Callable[[], Part]) -> Part:
    """What `work` makes of the table's metadata. Raises LabError where that is not shaped as the specification says."""
    try:
        return work()
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        raise LabError(
            f"{table.metadata_location} is JSON but no table metadata that makes sense ({said}); compare it with an "
            "earlier one beside it"
        ) from None


# ---------------------------------------------------------------- snapshots
def choose(found: Metadata, snapshot_id: int) -> Mapping[str, Any]:
    """The snapshot of metadata.json with this id. Raises LabError that lists those there are."""
    for snapshot in found.get("snapshots") or []:
        if snapshot["snapshot-id"] == snapshot_id:
            return dict(snapshot)
    ids = [str(identity) for identity in _ids(found)]
    if not ids:
        raise LabError(f"there is no snapshot {snapshot_id}: the table has none yet")
    near = difflib.get_close_matches(str(snapshot_id), ids, 3, 0.7)
    words = f"near: {', '.join(near)}" if near else f"the last ones are {', '.join(ids[-5:])}"
    raise LabError(f"there is no snapshot {snapshot_id} (it may have expired); {words}")


def _ids(found: Metadata) -> list[int]:
    return [snapshot["snapshot-id"] for snapshot in found.get("snapshots") or []]


def contents(files: Files, snapshot: Mapping[str, Any]) -> Contents:
    """Reads a snapshot's manifests. Raises Unreadable."""
    identity = snapshot["snapshot-id"]
    held = Contents(snapshot, list(manifests(files, snapshot)), [], [])
    for manifest in held.manifests:
        for entry in entries(files, manifest):
            if entry.status != DELETED:
                held.live.append(entry)
            elif entry.snapshot_id == identity:
                held.removed.append(entry)
    return held


def rows(held: Contents) -> Part:
    """How many rows a snapshot holds, as far as its metadata tells.

    A deletion vector names each row once and stands for all position deletes of its data file. Two position delete
    files may name the same row, or one that names several files rows of a file that is gone; what an equality delete
    takes away only a scan can tell. Then the number lies between two.
    """
    stored = sum(entry.file.records for entry in held.data)
    by = dict.fromkeys(("deletion-vector", "position-delete", "equality-delete"), 0)
    most, least = stored, stored
    aimed: dict[str | None, list[Entry]] = {}
    for entry in held.deletes:
        by[entry.file.kind] += entry.file.records
        if entry.file.kind != "equality-delete":
            aimed.setdefault(entry.file.target, []).append(entry)
    for entry in held.data:
        deletes = [each for each in aimed.get(entry.file.path, []) if _applies(each, entry)]
        vectors = [each for each in deletes if each.file.kind == "deletion-vector"]
        counts = [each.file.records for each in vectors or deletes]
        most -= max(counts, default=0)
        least -= min(sum(counts), entry.file.records)
    least -= sum(each.file.records for each in aimed.get(None, []))
    return {
        "stored": stored,
        "by_deletion_vectors": by["deletion-vector"],
        "by_position_deletes": by["position-delete"],
        "equality_deletes": by["equality-delete"],
        "live_at_least": 0 if by["equality-delete"] else max(0, least),
        "live_at_most": most,
    }


def _applies(delete: Entry, data: Entry) -> bool:
    """A delete by position counts for files of its own commit and of earlier ones."""
    return delete.sequence_number is None or (data.sequence_number or 0) <= delete.sequence_number


# ---------------------------------------------------------------- files
def describer(found: Metadata) -> Callable[[Entry, int], Part]:
    """How a file is told: its metrics by column, bounds and partition values readable."""
    names = metadata.columns(found)
    specs = {spec["id"]: spec["fields"] for spec in metadata.specs(found)}

    def partition(entry: Entry) -> Part:
        fields = specs.get(entry.spec_id, [])
        if len(fields) != len(entry.file.partition):
            return {str(place): bounds.plain(value) for place, value in enumerate(entry.file.partition)}
        return {
            field["name"]: bounds.partition(field["transform"], value)
            for field, value in zip(fields, entry.file.partition, strict=True)
        }

    def described(entry: Entry, snapshot_id: int) -> Part:
        file = entry.file
        ids = sorted({*file.column_sizes, *file.values, *file.nulls, *file.nans, *file.lower, *file.upper})
        return {
            "kind": file.kind,
            "path": file.path,
            "format": file.format,
            "status": _status(entry, snapshot_id),
            "snapshot_id": entry.snapshot_id,
            "sequence_number": entry.sequence_number,
            "file_sequence_number": entry.file_sequence_number,
            "records": file.records,
            "bytes": file.file_size,
            "spec_id": entry.spec_id,
            "partition": partition(entry),
            "sort_order_id": file.sort_order_id,
            "first_row_id": file.first_row_id,
            "key_metadata_bytes": file.key_metadata,
            "referenced_data_file": file.deletes_from,
            "target_data_file": file.target,
            "content_offset": file.offset,
            "content_size_in_bytes": file.size,
            "equality_ids": list(file.equality_ids),
            "equality_columns": [names[each][0] if each in names else None for each in file.equality_ids],
            "columns": [
                {
                    "field_id": identity,
                    "column": names[identity][0] if identity in names else None,
                    "bytes": file.column_sizes.get(identity),
                    "values": file.values.get(identity),
                    "nulls": file.nulls.get(identity),
                    "nans": file.nans.get(identity),
                    "lower": _bound(names, identity, file.lower.get(identity)),
                    "upper": _bound(names, identity, file.upper.get(identity)),
                }
                for identity in ids
            ],
            "manifest": entry.manifest,
        }

    return described


def _status(entry: Entry, snapshot_id: int) -> str:
    if entry.status == DELETED:
        return "removed"
    return "added" if entry.status == ADDED and entry.snapshot_id in (snapshot_id, None) else "existing"


def _bound(names: Mapping[int, tuple[str, str]], identity: int, content: bytes | None) -> Any:
    if content is None:
        return None
    return bounds.decoded(names[identity][1], content) if identity in names else bounds.raw(content)


def _manifest(manifest: Manifest) -> Part:
    return {
        "path": manifest.path,
        "content": manifest.content,
        "bytes": manifest.length,
        "spec_id": manifest.spec_id,
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "snapshot_id": manifest.added_snapshot_id,
        **{
            f"{what}_{unit}": counts.get(what)
            for unit, counts in (("files", manifest.files), ("rows", manifest.rows))
            for what in ("added", "existing", "deleted")
        },
        "first_row_id": manifest.first_row_id,
        "key_metadata_bytes": manifest.key_metadata,
    }


# ---------------------------------------------------------------- footers
def _open(document: Part, found: Metadata, held: Contents, files: Files, most: int) -> None:
    """Adds what footers say of the snapshot's files and its statistics, and where manifests say otherwise."""
    problems = document["problems"]
    names = metadata.columns(found)
    by_path: dict[str, list[Entry]] = {}
    for entry in [*held.data, *held.deletes]:
        by_path.setdefault(entry.file.path, []).append(entry)
    opened = list(by_path.items())[:most]
    document["unopened"] = len(by_path) - len(opened)
    for path, of in opened:
        form = of[0].file.format
        try:
            if form == "parquet":
                document["parquet"].append(_parquet(files, of[0], names, problems))
            elif form == "puffin":
                document["puffin"].append(_vectors(files, path, of, problems))
        except Unreadable as error:
            problems.append(str(error))
    for file in document["statistics"]:
        if file["kind"] == "columns" and most:
            try:
                document["puffin"].append(_puffin(Ranged(files, file["path"]), file["path"]))
            except Unreadable as error:
                problems.append(str(error))


def _parquet(files: Files, entry: Entry, names: Mapping[int, tuple[str, str]], problems: list[str]) -> Part:
    path, content = entry.file.path, Ranged(files, entry.file.path)
    told = footer(content, path)
    if told.rows != entry.file.records:
        problems.append(f"{path} holds {told.rows} rows and its manifest says {entry.file.records}")
    if entry.file.file_size not in (None, len(content)):
        problems.append(f"{path} is {len(content)} bytes long and its manifest says {entry.file.file_size}")
    return {
        "path": path,
        "rows": told.rows,
        "created_by": told.created_by,
        "row_groups": list(told.row_groups),
        "metadata_keys": list(told.keys),
        "columns": [
            {
                "row_group": chunk.row_group,
                "column": chunk.column,
                "field_id": chunk.field_id,
                "type": chunk.type,
                "codec": chunk.codec,
                "encoding": chunk.encoding,
                "encodings": list(chunk.encodings),
                "page_version": chunk.page_version,
                "values": chunk.values,
                "nulls": chunk.nulls,
                "bytes": chunk.bytes,
                "statistics": list(chunk.statistics),
                "min": _statistic(chunk, chunk.minimum, names),
                "max": _statistic(chunk, chunk.maximum, names),
                "bloom_filter": chunk.bloom_filter,
                "page_index": chunk.page_index,
            }
            for chunk in told.chunks
        ],
    }


def _statistic(chunk: Chunk, content: bytes | None, names: Mapping[int, tuple[str, str]]) -> Any:
    """Parquet's PLAIN values are Iceberg's serialization, but for decimals in integers."""
    _, kind = names.get(chunk.field_id or 0, ("", ""))
    if content is None:
        return None
    if kind.startswith("decimal") and chunk.type in ("INT32", "INT64"):
        unscaled = int.from_bytes(content, "little", signed=True)
        return f"{Decimal(unscaled).scaleb(-int(kind.rstrip(') ').split(',')[1])):f}"
    return bounds.decoded(kind, content)


def _puffin(content: Ranged, path: str) -> Part:
    told = puffin.footer(content, path)
    return {
        "path": path,
        "bytes": len(content),
        "properties": dict(told.get("properties") or {}),
        "blobs": [
            {
                "type": blob["type"],
                "fields": list(blob.get("fields") or []),
                "snapshot_id": blob.get("snapshot-id"),
                "sequence_number": blob.get("sequence-number"),
                "offset": blob["offset"],
                "length": blob["length"],
                "compression": blob.get("compression-codec"),
                "properties": dict(blob.get("properties") or {}),
                "cardinality": None,  # counted in a deletion vector of this snapshot
            }
            for blob in told["blobs"]
        ],
    }


def _vectors(files: Files, path: str, of: Sequence[Entry], problems: list[str]) -> Part:
    content = Ranged(files, path)
    found = _puffin(content, path)
    blobs = {blob["offset"]: blob for blob in found["blobs"]}
    for file in (entry.file for entry in of):
        where = f"{path} at {file.offset}"
        blob = blobs.get(file.offset)
        if file.offset is None or file.size is None or blob is None:
            problems.append(f"{where}: the manifest names a deletion vector there and the Puffin footer does not")
            continue
        if blob["length"] != file.size:
            problems.append(f"{where}: {blob['length']} bytes by the Puffin footer, {file.size} by the manifest")
        if blob["properties"].get("referenced-data-file") != file.deletes_from:
            problems.append(f"{where}: Puffin footer and manifest name two different data files")
        if not 0 < file.size <= len(content):
            continue
        try:
            blob["cardinality"] = puffin.cardinality(content[file.offset : file.offset + file.size])
        except ValueError as error:
            problems.append(f"{where}: the deletion vector is damaged: {error}")
            continue
        said = {str(file.records), blob["properties"].get("cardinality", str(file.records)), str(blob["cardinality"])}
        if len(said) > 1:
            problems.append(
                f"{where}: the deletion vector holds {blob['cardinality']} rows, its Puffin footer says "
                f"{blob['properties'].get('cardinality')}, its manifest {file.records}"
            )
    return found


# ---------------------------------------------------------------- what does not add up
def _of_metadata(found: Metadata) -> list[str]:
    problems = []
    if not 1 <= found["format-version"] <= KNOWN_VERSION:
        problems.append(
            f"format version {found['format-version']} is none that this x-ray knows (1 to {KNOWN_VERSION}): what it "
            "adds is not shown"
        )
    following, given = found.get("next-row-id"), 0
    for snapshot in metadata.snapshots(found):
        first, count = snapshot["first_row_id"], snapshot["added_rows"]
        if first is None:
            continue
        if first < given:
            problems.append(f"snapshot {snapshot['id']} gives row ids from {first} on, earlier ones up to {given - 1}")
        given = max(given, first + (count or 0))
    if isinstance(following, int) and following < given:
        problems.append(f"next-row-id is {following} and row ids up to {given - 1} are given")
    ids, current = set(_ids(found)), metadata.current(found)
    if current is not None and current not in ids:
        problems.append(f"the current snapshot {current} is not among the table's snapshots")
    for ref in metadata.refs(found):
        if ref["snapshot_id"] not in ids:
            problems.append(f"{ref['type']} {ref['name']} names snapshot {ref['snapshot_id']}, which is not there")
        if ref["name"] == "main" and ref["snapshot_id"] != current:
            problems.append(f"main is at snapshot {ref['snapshot_id']} and the current one is {current}")
    return problems


def _of_contents(found: Metadata, held: Contents) -> list[str]:
    problems = []
    summary = held.snapshot.get("summary") or {}
    totals = {
        "total-data-files": len(held.data),
        "total-delete-files": len(held.deletes),
        "total-records": sum(entry.file.records for entry in held.data),
    }
    for key, counted in totals.items():
        if key in summary and str(summary[key]) != str(counted):
            problems.append(f"the summary says {key}={summary[key]}, the manifests hold {counted}")
    counted_in = Counter((entry.manifest, entry.status) for entry in held.live)
    for manifest in held.manifests:
        for what, status in (("added", ADDED), ("existing", EXISTING)):
            said, counted = manifest.files.get(what), counted_in[manifest.path, status]
            if said not in (None, counted):
                problems.append(f"{manifest.path}: its list says {said} {what} files, it has {counted}")
    vectors = Counter(e.file.deletes_from for e in held.deletes if e.file.kind == "deletion-vector")
    problems += [f"{path} has {count} deletion vectors; one is allowed" for path, count in vectors.items() if count > 1]
    paths = Counter(entry.file.identity for entry in held.live)
    problems += [f"{path} is listed {count} times" for (path, _), count in paths.items() if count > 1]
    if found["format-version"] >= 3 and held.snapshot.get("first-row-id") is not None:
        problems += _of_lineage(found, held)
    return problems


def _of_lineage(found: Metadata, held: Contents) -> list[str]:
    """Row ids of v3: each live file has its own range, below the next id to be given."""
    identity = held.snapshot["snapshot-id"]
    problems = [
        f"{entry.file.path}: a position delete file written in v3, which allows deletion vectors alone"
        for entry in held.deletes
        if entry.file.kind == "position-delete" and entry.status == ADDED and entry.snapshot_id == identity
    ]
    problems += [
        f"{manifest.path}: a list of deletes has a first row id, which the specification gives to data alone"
        for manifest in held.manifests
        if manifest.content == "deletes" and manifest.first_row_id is not None
    ]
    ranges = sorted(
        (entry.file.first_row_id, entry.file.first_row_id + entry.file.records, entry.file.path)
        for entry in held.data
        if entry.file.first_row_id is not None
    )
    problems += [
        f"{entry.file.path} has no first row id: its rows have no ids"
        for entry in held.data
        if entry.file.first_row_id is None
    ]
    for (_, end, one), (start, _, other) in pairwise(ranges):
        if start < end:
            problems.append(f"row ids from {start} on are given twice: to {one} and to {other}")
    following = found.get("next-row-id")
    if ranges and isinstance(following, int) and (end := max(each[1] for each in ranges)) > following:
        problems.append(f"row ids up to {end - 1} are given and the table's next-row-id is {following}")
    return problems
