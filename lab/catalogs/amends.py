"""What a vendor changes without a word, in a request on its way to the catalog or in an answer on its way back.

A profile's `amend` names one of these functions, with `_` written `-`; keyword arguments are the rule's own words.
Each returns what it made of it, or None where it changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lab.catalogs.columns import columns
from lab.catalogs.proxy import Request, Response
from lab.catalogs.triggers import Asked


def properties(asked: Asked, body: dict[str, Any], given: Mapping[str, str]) -> bool:
    """a table that is created gets these properties, where the client names none of them"""
    if not asked.operation.names[0].startswith("CREATE_TABLE") or asked.operation.commits:
        return False
    told = body.get("properties") or {}
    body["properties"] = {**given, **told}
    return bool(body["properties"] != told)


def drop_defaults(asked: Asked, body: dict[str, Any], names: Sequence[str], created: bool) -> bool:
    """columns' defaults of these `names` are lost: of a table that is created, or of a new schema of one that exists"""
    creates = asked.operation.names[0].startswith("CREATE_TABLE")
    changed = False
    for field in _fields(body) if creates == created else ():
        for name in names:
            changed |= field.pop(name, None) is not None
    return changed


def last_snapshots(asked: Asked, table: dict[str, Any]) -> bool:
    """of a loaded table's snapshots the last `shown-commits` are shown"""
    assert asked.request.door is not None
    count = int(asked.request.door.settings["shown-commits"])
    metadata = table["metadata"]
    shown = metadata.get("snapshots", [])[-count:]
    if len(shown) == len(metadata.get("snapshots", [])):
        return False
    kept = {snapshot["snapshot-id"] for snapshot in shown}
    metadata["snapshots"] = shown
    metadata["snapshot-log"] = [one for one in metadata.get("snapshot-log", []) if one["snapshot-id"] in kept]
    return True


def lag(asked: Asked, table: dict[str, Any]) -> bool:
    """a loaded table is shown as it was `lag-seconds` ago, or as it was first if it is younger"""
    assert asked.request.door is not None
    before = (time.time() - asked.request.door.seconds("lag-seconds")) * 1000
    metadata = table["metadata"]
    if metadata["last-updated-ms"] <= before or not metadata.get("metadata-log"):
        return False
    log = metadata["metadata-log"]
    shown = next((one for one in reversed(log) if one["timestamp-ms"] <= before), log[0])["metadata-file"]
    table["metadata-location"], table["metadata"] = shown, json.loads(asked.content(shown))
    return True


REQUESTS: Mapping[str, Callable[..., bool]] = {"properties": properties, "drop-defaults": drop_defaults}
RESPONSES: Mapping[str, Callable[..., bool]] = {"last-snapshots": last_snapshots, "lag": lag}


def request(name: str, asked: Asked, sent: Request, **words: Any) -> Request | None:
    """The request as it goes on. What will be amended on its way back is asked for whole: a client may know it as it
    was amended before."""
    if name in RESPONSES and sent.header("if-none-match"):
        return replace(sent, headers=tuple(pair for pair in sent.headers if pair[0] != "if-none-match"))
    body = sent.json() if name in REQUESTS else None
    if not isinstance(body, dict) or not REQUESTS[name](asked, body, **words):
        return None
    return replace(sent, body=json.dumps(body).encode())


async def response(name: str, asked: Asked, came: Response, **words: Any) -> Response | None:
    """The answer as it goes on: a loaded table's."""
    if name not in RESPONSES or came.status != 200 or asked.operation.names != ("LOAD_TABLE",):
        return None
    table = came.json()
    if not await asyncio.to_thread(RESPONSES[name], asked, table, **words):
        return None
    kept = tuple((name, value) for name, value in came.headers if name != "etag")  # it is another answer's
    return replace(came, headers=kept).with_json(table)


def _fields(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    schemas = [body.get("schema") or {}]
    changes = body.get("table-changes") or [body]
    schemas += [update["schema"] for change in changes for update in change.get("updates", ()) if "schema" in update]
    for schema in schemas:
        yield from columns(schema)
