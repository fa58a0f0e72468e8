"""Row ids as metadata.json and the manifests hand them out, by the rules of the Iceberg specification (v3).

Pure functions: a breach is told in one line. A snapshot is named by its place in the history, from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Range:
    """The row ids that a data file of the current snapshot hands out: `first` and as many as it has records."""

    first: int | None
    records: int


def moves(metadata: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with next-row-id: each snapshot of v3 begins where the one before it ended.

    A snapshot's first-row-id is the table's next-row-id of that moment, which the commit then raises by added-rows.
    """
    told = []
    following = 0
    tracked = False
    for place, snapshot in enumerate(history, start=1):
        name = f"snapshot {place} ({snapshot.get('summary', {}).get('operation')})"
        first, added = snapshot.get("first-row-id"), snapshot.get("added-rows")
        if first is None or added is None:
            if tracked:
                told.append(f"{name} has no first-row-id, and those before it have one")
            continue
        if first != following:
            told.append(f"{name} begins at row id {first}, and {following} is the next")
        tracked = True
        following = first + added
    if tracked and metadata.get("next-row-id") != following:
        told.append(f"next-row-id is {metadata.get('next-row-id')}, and the last snapshot ends before {following}")
    return told


def overlaps(ranges: Iterable[Range], next_row_id: int) -> list[str]:
    """What is wrong with the files' ranges: no id is handed out twice, none beyond next-row-id."""
    told = []
    before = 0
    for each in sorted((r for r in ranges if r.first is not None), key=lambda r: (r.first, r.records)):
        assert each.first is not None
        end = each.first + each.records
        if each.first < before:
            told.append(f"ids {each.first} to {end - 1} of a file were handed out before")
        if end > next_row_id:
            told.append(f"ids {each.first} to {end - 1} of a file are not below next-row-id {next_row_id}")
        before = max(before, end)
    return told
