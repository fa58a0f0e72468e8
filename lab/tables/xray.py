"""What was really written: a table's history as its metadata and manifests tell it, without any engine.

Field names and numbers are those of the Iceberg specification, versions 1 to 3.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, cast
from urllib.parse import urlsplit

import fastavro
from minio import Minio

from lab.tables.rest import LoadedTable, RestCatalog

ADDED, DELETED = 1, 2  # manifest entry status; 0 is a file carried over from an earlier snapshot
KINDS = ("data", "position-delete", "equality-delete")  # by the number in `content`


@dataclass(frozen=True)
class File:
    """A file that a snapshot added or removed.

    `kind`: data, position-delete, equality-delete or deletion-vector. `format` is in lower case. `records`:
    its rows, or the rows it deletes. Of a deletion vector: `offset` and `size` in bytes within its Puffin
    file. `deletes_from`: the one data file that it applies to, where it names one. By field id, as far as the
    manifest tells: `nulls` counts, `lowest` and `highest` are bounds in single-value serialization.
    """

    kind: str
    path: str
    format: str
    records: int
    offset: int | None = None
    size: int | None = None
    deletes_from: str | None = None
    nulls: Mapping[int, int] = field(default_factory=dict)
    lowest: Mapping[int, bytes] = field(default_factory=dict)
    highest: Mapping[int, bytes] = field(default_factory=dict)


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


class Store:
    """Reads and writes objects with the credentials that came with a table. Locations are s3://bucket/key."""

    def __init__(self, credentials: Mapping[str, str]) -> None:
        endpoint = urlsplit(credentials["s3.endpoint"])
        self._client = Minio(
            endpoint.netloc,
            access_key=credentials["s3.access-key-id"],
            secret_key=credentials["s3.secret-access-key"],
            session_token=credentials.get("s3.session-token"),
            secure=endpoint.scheme == "https",
            region=credentials.get("s3.region") or credentials.get("client.region"),
        )

    def read(self, location: str) -> bytes:
        """A whole object."""
        path = urlsplit(location)
        answer = self._client.get_object(path.netloc, path.path.lstrip("/"))
        try:
            content: bytes = answer.read()
            return content
        finally:
            answer.close()
            answer.release_conn()

    def write(self, location: str, content: bytes) -> None:
        path = urlsplit(location)
        self._client.put_object(path.netloc, path.path.lstrip("/"), io.BytesIO(content), len(content))

    def records(self, location: str) -> Iterator[dict[str, Any]]:
        """The records of an Avro object, one in memory at a time."""
        path = urlsplit(location)
        answer = self._client.get_object(path.netloc, path.path.lstrip("/"))
        try:
            for record in fastavro.reader(cast(IO[bytes], answer)):
                assert isinstance(record, dict)
                yield record
        finally:
            answer.close()
            answer.release_conn()


def referenced(table: LoadedTable, store: Store) -> set[str]:
    """The location of every file that the table's metadata refers to, whichever snapshot it belongs to."""
    metadata = table.metadata
    found = {table.metadata_location, *(entry["metadata-file"] for entry in metadata.get("metadata-log", []))}
    for kind in ("statistics", "partition-statistics"):
        found |= {file["statistics-path"] for file in metadata.get(kind, [])}
    manifests: set[str] = set()
    for snapshot in metadata.get("snapshots", []):
        if "manifest-list" in snapshot:
            found.add(snapshot["manifest-list"])
            manifests |= {manifest["manifest_path"] for manifest in store.records(snapshot["manifest-list"])}
        else:  # v1
            manifests |= set(snapshot["manifests"])
    for manifest in manifests:
        entries = (entry for entry in store.records(manifest) if entry["status"] != DELETED)
        found |= {entry["data_file"]["file_path"] for entry in entries}
    return found | manifests


def _snapshot(store: Store, snapshot: Mapping[str, Any]) -> SnapshotXray:
    identity = snapshot["snapshot-id"]
    added, removed = [], []
    for manifest in _manifests(store, snapshot):
        for entry in store.records(manifest["manifest_path"]):
            writer = entry["snapshot_id"]
            if (manifest["added_snapshot_id"] if writer is None else writer) != identity:
                continue  # another snapshot's entry, kept in a rewritten manifest
            if entry["status"] == ADDED:
                added.append(_file(entry["data_file"]))
            elif entry["status"] == DELETED:
                removed.append(_file(entry["data_file"]))
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


def _manifests(store: Store, snapshot: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The manifests that this snapshot wrote: no other one can hold entries of its own."""
    identity = snapshot["snapshot-id"]
    if "manifest-list" in snapshot:
        for manifest in store.records(snapshot["manifest-list"]):
            if manifest["added_snapshot_id"] == identity:
                yield manifest
    else:  # v1 may list them in metadata.json, without a word on who added them
        for path in snapshot["manifests"]:
            yield {"manifest_path": path, "added_snapshot_id": None}


def _file(entry: Mapping[str, Any]) -> File:
    kind = KINDS[entry.get("content") or 0]  # v1 has no such field: all is data
    form = entry["file_format"].lower()
    return File(
        "deletion-vector" if kind == "position-delete" and form == "puffin" else kind,
        entry["file_path"],
        form,
        entry["record_count"],
        entry.get("content_offset"),
        entry.get("content_size_in_bytes"),
        entry.get("referenced_data_file"),
        *(
            {pair["key"]: pair["value"] for pair in entry.get(name) or ()}
            for name in ("null_value_counts", "lower_bounds", "upper_bounds")
        ),
    )
