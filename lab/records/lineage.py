"""Row lineage as the Iceberg specification has it (format v3, "Row Lineage"): what no operation may break.

Pure functions over rows (key, _row_id, _last_updated_sequence_number) as an engine shows them. A breach is told in
one line, with what was before and what is now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lab.model import Lineage

Row = Sequence[Any]
Known = Mapping[Any, tuple[Any, Any]]  # key → (row id, sequence number)


def breaches(before: Sequence[Row], after: Sequence[Row], declared: Lineage) -> list[str]:
    """What the operation between two readings broke; empty where lineage was kept."""
    old, new = _known(before), _known(after)
    changed = {*declared.updated, *declared.inserted, *declared.deleted}
    untouched = [key for key in old if key not in changed]
    return [
        *_rows(old, new, declared),
        *unique(after),
        *(_assigned(new, untouched) if declared.upgraded else _kept(old, new, untouched)),
        *_updated(old, new, declared),
        *_inserted(old, new, declared),
    ]


def unique(rows: Sequence[Row]) -> list[str]:
    """No two rows share an id."""
    twice = [i for i, count in Counter(row[1] for row in rows if row[1] is not None).items() if count > 1]
    return [f"id {i} belongs to rows {sorted(row[0] for row in rows if row[1] == i)}" for i in sorted(twice)]


def _known(rows: Sequence[Row]) -> dict[Any, tuple[Any, Any]]:
    return {row[0]: (row[1], row[2]) for row in rows}


def _rows(old: Known, new: Known, declared: Lineage) -> Iterator[str]:
    """The rows are those that the operation should leave."""
    wanted = {*old, *declared.inserted} - {*declared.deleted}
    for key in sorted(wanted - set(new)):
        yield f"row {key} is gone"
    for key in sorted(set(new) - wanted):
        yield f"row {key} should not be there"


def _kept(old: Known, new: Known, untouched: Sequence[Any]) -> Iterator[str]:
    """An untouched row keeps its id and its sequence number."""
    for key in untouched:
        if key in new and new[key] != old[key]:
            yield f"untouched row {key} was {_said(old[key])} and is {_said(new[key])}"


def _assigned(new: Known, untouched: Sequence[Any]) -> Iterator[str]:
    """After an upgrade, the first commit in v3 gives every row an id."""
    for key in untouched:
        if key in new and new[key][0] is None:
            yield f"row {key} got no id"


def _updated(old: Known, new: Known, declared: Lineage) -> Iterator[str]:
    """An updated row keeps its id and takes the commit's sequence number, which is higher than all before."""
    highest = _highest(old, 1)
    for key in declared.updated:
        if key not in new or key not in old:
            continue
        if old[key][0] != new[key][0]:
            yield f"updated row {key} had id {old[key][0]} and has id {new[key][0]}"
        if new[key][1] is None or new[key][1] <= highest:
            yield f"updated row {key} has sequence number {new[key][1]}, and the commit a higher one than {highest}"


def _inserted(old: Known, new: Known, declared: Lineage) -> Iterator[str]:
    """An inserted row's id is higher than all that were given before, and its sequence number the commit's."""
    ids, numbers = _highest(old, 0), _highest(old, 1)
    for key in declared.inserted:
        if key not in new:
            continue
        if new[key][0] is None:
            yield f"inserted row {key} has no id"
        elif not declared.upgraded and new[key][0] <= ids:
            yield f"inserted row {key} has id {new[key][0]}, and ids up to {ids} were given before"
        if new[key][1] is None or new[key][1] <= numbers:
            yield f"inserted row {key} has sequence number {new[key][1]}, and the commit a higher one than {numbers}"


def _highest(known: Known, place: int) -> int:
    return max((pair[place] for pair in known.values() if pair[place] is not None), default=-1)


def _said(pair: tuple[Any, Any]) -> str:
    return f"(id {pair[0]}, sequence number {pair[1]})"
