"""The lab's own looks at a table, by name: facts that behaviours declare and documents claim. No engine is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lab.tables.rest import RestCatalog
from lab.tables.xray import history as snapshots
from lab.tables.xray import xray

Look = Callable[[RestCatalog, str, str], dict[str, Any]]


def history(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """metadata.json: the operation of each snapshot of the main branch, oldest first"""
    found = snapshots(rest.load_table(namespace, table))
    return {"operations": [s.get("summary", {}).get("operation") for s in found]}


def written(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """manifests of the last snapshot: data files added and removed, and each delete file added, by kind"""
    last = xray(rest, namespace, table)[-1]
    added = [file.kind for file in last.added]
    return {
        "operation": last.operation,
        "data_added": added.count("data"),
        "data_removed": sum(file.kind == "data" for file in last.removed),
        "deletes": sorted(kind for kind in added if kind != "data"),
    }


LOOKS: Mapping[str, Look] = {"history": history, "written": written}
