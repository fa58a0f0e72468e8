"""What a rule can see on the wire, one function each; a profile's `trigger` names it, with `_` written `-`.

Each answers why its rule holds for what is asked (words for the refusal's `{why}`), or None. Keyword arguments are
the words that a rule gives it. A trigger that has to read the table's metadata or a commit's manifests awaits them.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlsplit

import fastavro

from lab.catalogs.columns import columns
from lab.catalogs.operations import Commit, Operation, Table
from lab.catalogs.placing import locations
from lab.catalogs.proxy import Forward, Request
from lab.stores import StoreEndpoint, s3

_MAIN = "main"
_ADDED = 1  # a manifest entry's status
_DATA, _DELETES = 0, 1  # a manifest's content
_KINDS = {(1, False): "position-delete", (1, True): "deletion-vector", (2, False): "equality-delete"}


@dataclass(frozen=True)
class Asked:
    """A request behind a door, and what can be found out about it."""

    operation: Operation
    request: Request
    forward: Forward
    store: StoreEndpoint
    loaded: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)  # by path: once a request

    async def metadata(self, commit: Commit | None = None) -> Mapping[str, Any] | None:
        """The table's, as the catalog has it; None where there is no such table."""
        namespace = commit.namespace if commit else self.operation.namespace
        table = commit.table if commit else self.operation.table
        path = self.operation.at(namespace, table)
        if path not in self.loaded:
            answer = await self.forward(replace(self.request, method="GET", path=path, query="", body=b"", headers=()))
            self.loaded[path] = answer.json()["metadata"] if answer.status == 200 else None
        return self.loaded[path]

    async def added(self, commit: Commit) -> list[str]:
        """Kind of each file that the commit's snapshots add, read from their manifests: `data`, `position-delete`…"""
        return await asyncio.to_thread(lambda: [kind for s in commit.of("add-snapshot") for kind in self._of(s)])

    def _of(self, update: Mapping[str, Any]) -> Iterator[str]:
        snapshot = update["snapshot"]
        for manifest in self._records(snapshot["manifest-list"]):
            if manifest["added_snapshot_id"] != snapshot["snapshot-id"]:
                continue
            for entry in self._records(manifest["manifest_path"]):
                if entry["status"] == _ADDED:
                    file = entry["data_file"]
                    content, puffin = file.get("content", _DATA), str(file["file_format"]).upper() == "PUFFIN"
                    yield _KINDS.get((content, puffin), "data")

    def _records(self, location: str) -> list[Any]:
        return list(fastavro.reader(io.BytesIO(self.content(location))))

    def content(self, location: str) -> bytes:
        """An object of the store, read as its administrator; blocks."""
        place = urlsplit(location)
        answer = s3.client(self.store).get_object(place.netloc, place.path.lstrip("/"))
        try:
            return bytes(answer.read())
        finally:
            answer.close()
            answer.release_conn()


Why = str | None
Trigger = Callable[..., Awaitable[Why]]


async def operation(asked: Asked, names: Sequence[str]) -> Why:
    """one of these operations (see `operations.py`)"""
    return next((name for name in asked.operation.names if name in names), None)


async def created_with_data(asked: Asked) -> Why:
    """a table that is created and filled by one commit: what CREATE TABLE AS SELECT is on the wire. A staged create
    alone tells nothing: Trino and DuckDB stage a plain CREATE TABLE too."""
    for commit in asked.operation.commits:
        if commit.creates and "data" in await asked.added(commit):
            return "CREATE TABLE AS SELECT"
    return None


async def location(asked: Asked, ours: str) -> Why:
    """a location chosen by the client, of a table, on creation or later, or of the namespace that tables are placed by;
    but not that of a new table below its namespace's own, by the table's name and maybe `ours`, a regular expression:
    Trino sends such a one with a plain CREATE TABLE, and a commit that creates repeats what the catalog staged"""
    of = asked.operation
    for commit in of.commits:
        for update in commit.of("set-location"):
            chosen = str(update.get("location"))
            if not commit.creates or not re.fullmatch(await _owned(asked, commit.on, ours), chosen):
                return chosen
    for chosen in locations(of) if not of.commits else ():
        created = of.names[0].startswith("CREATE_TABLE")
        if not created or not re.fullmatch(await _owned(asked, (of.namespace, of.table), ours), chosen):
            return chosen
    return None


async def _owned(asked: Asked, table: Table, ours: str) -> str:
    """A regular expression of the locations that are a new table's own. Where the catalog does not tell where the
    namespace lies, the path ends in its levels: SeaweedFS parts them by dots."""
    namespace, name = table
    path = f"{asked.operation.base}namespaces/{quote(namespace, safe='')}"
    answer = await asked.forward(replace(asked.request, method="GET", path=path, query="", body=b"", headers=()))
    told = str(((answer.json() or {}).get("properties") or {}).get("location") or "").rstrip("/")
    levels = "[/.]".join(map(re.escape, namespace.split("\x1f")))
    return f"{re.escape(told) or f'[a-z0-9]+://.+/{levels}'}/{re.escape(name)}(?:{ours})?/?"


async def files(asked: Asked, kinds: Sequence[str]) -> Why:
    """files of these kinds that a commit adds, by its manifests: a summary may be silent or lie"""
    for commit in asked.operation.commits:
        if commit.of("add-snapshot"):
            for kind in await asked.added(commit):
                if kind in kinds:
                    return kind
    return None


async def refs(asked: Asked) -> Why:
    """a branch or tag other than main that is made, moved or removed"""
    named = (
        str(update.get("ref-name"))
        for commit in asked.operation.commits
        for action in ("set-snapshot-ref", "remove-snapshot-ref")
        for update in commit.of(action)
    )
    return next((name for name in named if name != _MAIN), None)


async def rollback(asked: Asked) -> Why:
    """main set to a snapshot that the same commit does not add"""
    for commit in asked.operation.commits:
        added = {update["snapshot"]["snapshot-id"] for update in commit.of("add-snapshot")}
        for update in commit.of("set-snapshot-ref"):
            if update.get("ref-name") == _MAIN and update.get("snapshot-id") not in added:
                return f"snapshot {update.get('snapshot-id')}"
    return None


async def upgrade(asked: Asked) -> Why:
    """a table that exists, set to a higher format version"""
    for commit in asked.operation.commits:
        for update in [] if commit.creates else commit.of("upgrade-format-version"):
            present = await asked.metadata(commit)
            if present and present["format-version"] < update["format-version"]:
                return f"{present['format-version']} to {update['format-version']}"
    return None


async def format_version(asked: Asked, version: int, reads: bool = False) -> Why:
    """a table of this format version or newer that is written, made or upgraded to; with `reads`, loaded too"""
    body = asked.operation.body
    if asked.operation.names[0].startswith("CREATE_TABLE") and not asked.operation.commits:
        return _version(int(body.get("properties", {}).get("format-version", 0)), version)
    if reads and asked.operation.names[0].startswith(("LOAD_TABLE", "TABLE_EXISTS")):
        present = await asked.metadata()
        return _version(present["format-version"], version) if present else None
    for commit in asked.operation.commits:
        wanted = [int(update["format-version"]) for update in commit.of("upgrade-format-version")]
        present = None if commit.creates else await asked.metadata(commit)
        if why := _version(max([*wanted, present["format-version"] if present else 0]), version):
            return why
    return None


async def types(asked: Asked, names: Sequence[str]) -> Why:
    """a table with a column of one of these types that is loaded"""
    if not asked.operation.names[0].startswith("LOAD_TABLE"):
        return None
    present = await asked.metadata() or {}
    found = (str(field["type"]) for schema in present.get("schemas", ()) for field in columns(schema))
    return next((kind for kind in found if kind.partition("(")[0] in names), None)


async def properties(asked: Asked, names: Sequence[str]) -> Why:
    """a table property of one of these names that is set"""
    given = [asked.operation.body.get("properties", {})] if asked.operation.names[0].startswith("CREATE_TABLE") else []
    given += [update.get("updates", {}) for c in asked.operation.commits for update in c.of("set-properties")]
    return next((name for one in given for name in one if name in names), None)


async def transforms(asked: Asked, allowed: Sequence[str] = ("identity", "void")) -> Why:
    """a partition transform other than the allowed ones"""
    specs = [asked.operation.body.get("partition-spec") or {}]
    specs += [update.get("spec", {}) for c in asked.operation.commits for update in c.of("add-spec")]
    used = (str(field["transform"]) for spec in specs for field in spec.get("fields", ()))
    return next((transform for transform in used if transform not in allowed), None)


async def changed_type(asked: Asked, of: str) -> Why:
    """a column of type `of` that becomes one of another type"""
    async for before, after in _changed(asked):
        if before.get("type") == of != after["type"]:
            return f"{after['name']} from {of} to {after['type']}"
    return None


async def changed_default(asked: Asked) -> Why:
    """a column that exists and gets another default for new rows"""
    async for before, after in _changed(asked):
        if before.get("write-default") != after.get("write-default"):
            return str(after["name"])
    return None


async def delegated(asked: Asked, marked: str) -> Why:
    """vended credentials asked for a table that has the property `marked`: what its vendor knows of it, told to us"""
    if not asked.operation.delegated or not asked.operation.names[0].startswith("LOAD_TABLE"):
        return None
    return await _marked(asked, marked)


async def loaded(asked: Asked, marked: str) -> Why:
    """a table that has the property `marked`, loaded with keys or without"""
    return await _marked(asked, marked) if asked.operation.names[0].startswith("LOAD_TABLE") else None


async def written(asked: Asked, marked: str = "") -> Why:
    """any commit to a table, of one with the property `marked` where that is given"""
    if not asked.operation.commits:
        return None
    return await _marked(asked, marked) if marked else asked.operation.names[0]


async def _marked(asked: Asked, marked: str) -> Why:
    commit = next(iter(asked.operation.commits), None)
    present = await asked.metadata(commit) if commit is None or not commit.creates else None
    value = (present or {}).get("properties", {}).get(marked)
    return None if value is None else str(value)


async def _changed(asked: Asked) -> Any:
    """(before, after) of each column of a new schema that the table has already."""
    for commit in asked.operation.commits:
        if commit.creates or not commit.of("add-schema"):
            continue
        present = await asked.metadata(commit)
        if present is None:
            continue
        current = {s["schema-id"]: s for s in present["schemas"]}[present["current-schema-id"]]
        known = {column["id"]: column for column in columns(current)}
        for update in commit.of("add-schema"):
            for column in columns(update["schema"]):
                if column["id"] in known:
                    yield known[column["id"]], column


def _version(found: int, least: int) -> Why:
    return f"format version {found}" if found >= least else None


TRIGGERS: Mapping[str, Trigger] = {
    trigger.__name__.replace("_", "-"): trigger
    for trigger in (
        *(operation, created_with_data, location, files, refs, rollback, upgrade, format_version, types, properties),
        *(transforms, changed_type, changed_default, delegated, loaded, written),
    )
}
