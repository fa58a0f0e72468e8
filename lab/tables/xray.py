"""What was really written: a table's history as its metadata and manifests tell it, without any engine.

Field names and numbers are those of the Iceberg specification, versions 1 to 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lab.tables.rest import LoadedTable, RestCatalog
from lab.tables.row_ids import Range
from lab.tables.storage import Files, Store, Unreadable

EXISTING, ADDED, DELETED = 0, 1, 2  # manifest entry status; 0 is a file carried over from an earlier snapshot
FILE_PATH = 2147483546  # field id of a position delete file's column, reserved
KINDS = ("data", "position-delete", "equality-delete")  # by the number in `content`


@dataclass(frozen=True)
class File:
    """A data or delete file as a manifest describes it.

    `kind`: data, position-delete, equality-delete or deletion-vector. `format` is in lower case. `records`:
    its rows, or the rows it deletes. Of a deletion vector: `offset` and `size` in bytes within its Puffin
    file. `deletes_from`: the one data file that it applies to, where it names one. `file_size`: of all of it, in bytes.
    `partition`: values as Avro has them, in the order of the partition spec's fields. `equality_ids`: of the columns
    that an equality delete compares. Metrics are by field id; `lower` and `upper` hold serialized values.
    `key_metadata`: length in bytes of what an encrypted file's key is found by, which may itself be a key.
    """

    kind: str
    path: str
    format: str
    records: int
    offset: int | None = None
    size: int | None = None
    deletes_from: str | None = None
    file_size: int | None = None
    partition: tuple[Any, ...] = ()
    equality_ids: tuple[int, ...] = ()
    sort_order_id: int | None = None
    first_row_id: int | None = None
    key_metadata: int | None = None
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    values: Mapping[int, int] = field(default_factory=dict)
    nulls: Mapping[int, int] = field(default_factory=dict)
    nans: Mapping[int, int] = field(default_factory=dict)
    lower: Mapping[int, bytes] = field(default_factory=dict)
    upper: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, int | None]:
        """What tells it from every other one: several deletion vectors may share a Puffin file."""
        return self.path, self.offset

    @property
    def target(self) -> str | None:
        """The one data file that a delete file applies to: named, or the only path between a v2 file's bounds."""
        lower, upper = self.lower.get(FILE_PATH), self.upper.get(FILE_PATH)
        if self.deletes_from is None and self.kind == "position-delete" and lower is not None and lower == upper:
            return lower.decode(errors="replace")
        return self.deletes_from


@dataclass(frozen=True)
class Manifest:
    """A line of a snapshot's manifest list. `content`: data or deletes. What a version does not tell is None;
    `files` and `rows` are counts by what became of them: added, existing, deleted."""

    path: str
    content: str = "data"
    length: int | None = None
    spec_id: int = 0
    sequence_number: int | None = None
    min_sequence_number: int | None = None
    added_snapshot_id: int | None = None
    files: Mapping[str, int | None] = field(default_factory=dict)
    rows: Mapping[str, int | None] = field(default_factory=dict)
    first_row_id: int | None = None
    key_metadata: int | None = None


@dataclass(frozen=True)
class Entry:
    """A file in a manifest, with what it inherits from that: `status` is EXISTING, ADDED or DELETED, by
    `snapshot_id`. `sequence_number` counts for which deletes apply, `file_sequence_number` is its own commit's."""

    status: int
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    spec_id: int
    manifest: str
    file: File


@dataclass(frozen=True)
class SnapshotXray:
    """A commit: what it says of itself (`operation`, `summary`) and the files it really added and removed."""

    snapshot_id: int
    parent_id: int | None
    sequence_number: int
    operation: str | None
    summary: Mapping[str, str] = field(default_factory=dict)
    added: tuple[File, ...] = ()
    removed: tuple[File, ...] = ()


def xray(rest: RestCatalog, namespace: str, table: str) -> list[SnapshotXray]:
    """The history of the table's main branch, oldest commit first. Raises as RestCatalog does."""
    loaded = rest.load_table(namespace, table)
    store = Store(loaded.credentials)
    return [_snapshot(store, snapshot) for snapshot in history(loaded)]


def history(table: LoadedTable) -> list[Mapping[str, Any]]:
    """The snapshots of metadata.json that led to the current one, oldest first; none that was rolled back."""
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in table.metadata.get("snapshots", [])}
    line = []
    at = snapshots.get(table.metadata.get("current-snapshot-id"))
    while at is not None:
        line.append(at)
        at = snapshots.get(at.get("parent-snapshot-id"))
    return line[::-1]


def row_ids(table: LoadedTable) -> list[Range]:
    """The row ids that the current snapshot's data files hand out."""
    store = Store(table.credentials)
    return [
        Range(file.first_row_id, file.records)
        for snapshot in history(table)[-1:]
        for file in live(store, snapshot)
        if file.kind == "data"
    ]


def referenced(table: LoadedTable, store: Files) -> set[str]:
    """The location of every file that the table's metadata refers to, whichever snapshot it belongs to."""
    metadata = table.metadata
    found = {table.metadata_location, *(entry["metadata-file"] for entry in metadata.get("metadata-log", []))}
    for kind in ("statistics", "partition-statistics"):
        found |= {file["statistics-path"] for file in metadata.get(kind, [])}
    listed: dict[str, Manifest] = {}
    for snapshot in metadata.get("snapshots", []):
        found |= {snapshot["manifest-list"]} if "manifest-list" in snapshot else set()
        listed |= {manifest.path: manifest for manifest in manifests(store, snapshot)}
    for manifest in listed.values():
        found |= {entry.file.path for entry in entries(store, manifest) if entry.status != DELETED}
    return found | listed.keys()


def manifests(files: Files, snapshot: Mapping[str, Any]) -> Iterator[Manifest]:
    """All manifests of a snapshot of metadata.json, its own and those it took over."""
    if "manifest-list" in snapshot:
        for line in files.records(snapshot["manifest-list"]):
            yield _manifest(line, snapshot["manifest-list"])
    else:  # v1 may list them in metadata.json, without a word on who added them
        for path in snapshot.get("manifests", []):
            yield Manifest(path)


def entries(files: Files, manifest: Manifest) -> Iterator[Entry]:
    """What a manifest lists, removed files included."""
    row_id = manifest.first_row_id
    for record in files.records(manifest.path):
        try:
            entry = _entry(record, manifest)
        except (LookupError, TypeError, AttributeError) as error:
            raise Unreadable(f"{manifest.path} is no manifest: an entry lacks or garbles {error}") from None
        counts = manifest.content == "data" and entry.status != DELETED and entry.file.first_row_id is None
        if row_id is not None and counts:  # inherited: the manifest's, counted on over such files before it
            entry = replace(entry, file=replace(entry.file, first_row_id=row_id))
            row_id += entry.file.records
        yield entry


def live(files: Files, snapshot: Mapping[str, Any]) -> Iterator[File]:
    """The files that a snapshot of metadata.json holds, of every kind."""
    for manifest in manifests(files, snapshot):
        yield from (entry.file for entry in entries(files, manifest) if entry.status != DELETED)


def _snapshot(store: Files, snapshot: Mapping[str, Any]) -> SnapshotXray:
    identity = snapshot["snapshot-id"]
    added, removed = [], []
    for manifest in manifests(store, snapshot):
        if manifest.added_snapshot_id not in (identity, None):
            continue  # no other one can hold entries of its own
        for entry in entries(store, manifest):
            if entry.snapshot_id != identity:
                continue  # another snapshot's entry, kept in a rewritten manifest
            if entry.status == ADDED:
                added.append(entry.file)
            elif entry.status == DELETED:
                removed.append(entry.file)
    summary = dict(snapshot.get("summary", {}))
    return SnapshotXray(
        identity,
        snapshot.get("parent-snapshot-id"),
        snapshot.get("sequence-number", 0),  # v1 has none
        summary.pop("operation", None),
        summary,
        tuple(added),
        tuple(removed),
    )


def _manifest(line: Mapping[str, Any], where: str) -> Manifest:
    try:
        return Manifest(
            path=line["manifest_path"],
            content="deletes" if line.get("content") else "data",
            length=line.get("manifest_length"),
            spec_id=line.get("partition_spec_id") or 0,
            sequence_number=line.get("sequence_number"),
            min_sequence_number=line.get("min_sequence_number"),
            added_snapshot_id=line["added_snapshot_id"],
            files={
                what: line.get(f"{what}_files_count", line.get(f"{what}_data_files_count"))  # the older name
                for what in ("added", "existing", "deleted")
            },
            rows={what: line.get(f"{what}_rows_count") for what in ("added", "existing", "deleted")},
            first_row_id=line.get("first_row_id"),
            key_metadata=_length(line.get("key_metadata")),
        )
    except LookupError as error:
        raise Unreadable(f"{where} is no manifest list: a line lacks {error}") from None


def _entry(record: Mapping[str, Any], manifest: Manifest) -> Entry:
    status, writer = record["status"], record.get("snapshot_id")
    inherits = manifest.sequence_number if status == ADDED else None
    sequence, own = record.get("sequence_number"), record.get("file_sequence_number")
    return Entry(
        status,
        manifest.added_snapshot_id if writer is None else writer,
        inherits if sequence is None else sequence,
        inherits if own is None else own,
        manifest.spec_id,
        manifest.path,
        _file(record["data_file"]),
    )


def _file(entry: Mapping[str, Any]) -> File:
    kind = KINDS[entry.get("content") or 0]  # v1 has no such field: all is data
    form = entry["file_format"].lower()
    partition = entry.get("partition")
    return File(
        "deletion-vector" if kind == "position-delete" and form == "puffin" else kind,
        entry["file_path"],
        form,
        entry["record_count"],
        entry.get("content_offset"),
        entry.get("content_size_in_bytes"),
        entry.get("referenced_data_file"),
        entry.get("file_size_in_bytes"),
        tuple(partition.values()) if isinstance(partition, Mapping) else (),
        tuple(entry.get("equality_ids") or ()),
        entry.get("sort_order_id"),
        entry.get("first_row_id"),
        _length(entry.get("key_metadata")),
        *(
            _by_id(entry.get(metric))
            for metric in (
                "column_sizes",
                "value_counts",
                "null_value_counts",
                "nan_value_counts",
                "lower_bounds",
                "upper_bounds",
            )
        ),
    )


def _by_id(metric: Any) -> dict[int, Any]:
    """A map whose keys are no strings, which Avro has not: an array of pairs."""
    return {pair["key"]: pair["value"] for pair in metric or []}


def _length(secret: Any) -> int | None:
    return None if secret is None else len(secret)
