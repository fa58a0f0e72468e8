"""What changed in a table between two of its snapshots, as one JSON-able document.

Files are compared as they are live in each: what matters is what a reader of one meets and a reader of the other does
not. Schema, properties and the like are no part of a snapshot: they are compared as the table stood when each was
committed, which earlier metadata files tell as long as they are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lab.errors import LabError
from lab.tables import metadata
from lab.tables.inspection import SCHEMA, choose, contents, describer, guarded, rows
from lab.tables.metadata import Metadata, Part
from lab.tables.rest import LoadedTable
from lab.tables.storage import Files

_KEPT = ("name", "type", "required", "doc", "initial_default", "write_default")


def diff(name: str, table: LoadedTable, files: Files, first: int, second: int) -> Part:
    """From one snapshot of a table to another. Raises LabError for an unknown one, and for files that can't be read."""
    return guarded(table, lambda: _diff(name, table, files, first, second))


def _diff(name: str, table: LoadedTable, files: Files, first: int, second: int) -> Part:
    found = table.metadata
    before, after = (contents(files, choose(found, identity)) for identity in (first, second))
    stood = {identity: as_committed(files, table, identity) for identity in (first, second)}
    line = lineage(found, second)
    described = describer(found)
    document: Part = {
        "type": "diff",
        "schema": SCHEMA,
        "table": metadata.table(found, name, table.metadata_location),
        "from": metadata.snapshot(before.snapshot),
        "to": metadata.snapshot(after.snapshot),
        "ancestor": first in line,
        "between": [metadata.snapshot(choose(found, each)) for each in _between(line, first)],
        "rows": {"from": rows(before), "to": rows(after)},
        "changes": _changes(stood[first], stood[second]),
        # What the table's owner did after the last commit stands in no snapshot, and is looked for all the same.
        "since": _changes(stood[second], found) if second == metadata.current(found) else None,
    }
    for part, one, other in (
        ("data_files", before.data, after.data),
        ("delete_files", before.deletes, after.deletes),
    ):
        had, has = ({entry.file.identity: entry for entry in side} for side in (one, other))
        document[part] = {
            "added": [described(entry, second) for key, entry in has.items() if key not in had],
            "removed": [described(entry, second) for key, entry in had.items() if key not in has],
            "kept": len(had.keys() & has.keys()),
        }
    return document


def lineage(found: Metadata, snapshot_id: int) -> list[int]:
    """A snapshot and its ancestors as far as they are kept, youngest first."""
    parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in found.get("snapshots") or []}
    line: list[int] = []
    at: int | None = snapshot_id
    while at is not None and at in parents and at not in line:
        line.append(at)
        at = parents[at]
    return line


def _between(line: list[int], first: int) -> list[int]:
    """The commits after `first`, oldest first; none where it is no ancestor."""
    return line[: line.index(first)][::-1] if first in line else []


def as_committed(files: Files, table: LoadedTable, snapshot_id: int) -> Metadata | None:
    """The table's metadata as the commit of this snapshot left it; None if that file is gone.

    It is the earliest one that has the snapshot; nothing written before the snapshot need be read for that.
    """
    found = table.metadata
    since = choose(found, snapshot_id).get("timestamp-ms", 0)
    for place, entry in enumerate(found.get("metadata-log") or []):
        if entry.get("timestamp-ms", since) < since:
            continue
        try:
            earlier = metadata.parsed(files.read(entry["metadata-file"]), entry["metadata-file"])
        except LabError:
            return None  # a later one would show changes that were made after the commit
        if snapshot_id in (each["snapshot-id"] for each in earlier.get("snapshots") or []):
            forgotten = place == 0 and earlier.get("metadata-log")  # the log was cut: the commit's own may be gone
            return None if forgotten else earlier
    return found


def _changes(before: Metadata | None, after: Metadata | None) -> Part | None:
    """None where it can't be told any more."""
    if before is None or after is None:
        return None
    return {
        "format_version": _pair(before["format-version"], after["format-version"]),
        "location": _pair(before.get("location"), after.get("location")),
        "schema": list(_columns(metadata.current_schema(before), metadata.current_schema(after))),
        "partition_spec": _pair(*(_default(metadata.specs(m), m.get("default-spec-id", 0)) for m in (before, after))),
        "sort_order": _pair(
            *(_default(metadata.orders(m), m.get("default-sort-order-id", 0)) for m in (before, after))
        ),
        "properties": _mapping(before.get("properties") or {}, after.get("properties") or {}),
        "refs": _mapping(*({ref["name"]: ref["snapshot_id"] for ref in metadata.refs(m)} for m in (before, after))),
    }


def _pair(before: Any, after: Any) -> Part | None:
    return None if before == after else {"from": before, "to": after}


def _mapping(before: Mapping[str, Any], after: Mapping[str, Any]) -> Part:
    keys = [*before, *(key for key in after if key not in before)]
    return {key: {"from": before.get(key), "to": after.get(key)} for key in keys if before.get(key) != after.get(key)}


def _default(of: Iterable[Part], identity: int) -> list[Part] | None:
    """The fields of the one that is used for new files; a new id for the same ones is no change."""
    return next(([{**field, "id": None} for field in each["fields"]] for each in of if each["id"] == identity), None)


def _columns(before: Part, after: Part) -> Iterable[Part]:
    """Columns are the same by field id, whatever their names."""
    had, has = ({field["id"]: field for field in schema["fields"]} for schema in (before, after))
    new_ones = {field["name"] for identity, field in has.items() if identity not in had}
    old_ones = {field["name"] for identity, field in had.items() if identity not in has}
    for identity, field in had.items():
        if identity not in has and field["name"].rpartition(".")[0] not in old_ones:
            yield _column("dropped", identity, field["name"], field, None)
    for identity, field in has.items():
        if identity not in had:
            if field["name"].rpartition(".")[0] not in new_ones:  # what is in a new column is new as well
                yield _column("added", identity, field["name"], None, field)
            continue
        for what in _KEPT:
            old, new = had[identity][what], field[what]
            if old != new and not (what == "name" and old.rpartition(".")[2] == new.rpartition(".")[2]):
                change = {"name": "renamed"}.get(what, what)
                yield _column(change, identity, field["name"], old, new)
    order = [[identity for identity in side if identity in had and identity in has] for side in (had, has)]
    if order[0] != order[1]:
        names = [[has[identity]["name"] for identity in side] for side in order]
        yield _column("reordered", None, None, *names)


def _column(change: str, identity: int | None, name: str | None, old: Any, new: Any) -> Part:
    return {"change": change, "field_id": identity, "column": name, "from": old, "to": new}
