"""Two run records held against each other: the same cells, seen in two places.

A cell is the same but for where it ran (runtime, catalog, store). Compared is what the engine did: the outcome, the
step that failed and its whole cause chain, the rows of each step that has a truth, and the facts that are declared
(others, as how many requests two racing tasks got to make, differ from run to run in one place too). Of a race of two
writers the outcome alone.
In messages, what no two runs share is masked: namespaces, file names, snapshot, request and task numbers, ports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.behaviours import BEHAVIOURS
from lab.model import Cell

Line = Mapping[str, Any]
PLACES = ("runtime", "catalog", "store")

_VOLATILE = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # UUIDs
    r"|_[0-9A-Fa-f]{8}(?=\b|_)"  # of namespaces
    r"|\b[0-9a-fA-F]{8,}\b"  # request ids, parts of file names
    r"|(?<=@)[0-9a-f]{1,7}\b"  # of Java's objects
    r"|\b[0-9]{8}_[0-9]{6}_[0-9]{5}_[a-z0-9]{5}\b"  # Trino's query ids
    r"|(?<=stage )[0-9.]+|(?<=[Tt]ask )[0-9.]+|(?<=TID )[0-9]+|(?<=RDD )[0-9]+|(?<=#)[0-9]+"
    r"|(?<=127\.0\.0\.1:)[0-9]+|\b[0-9]{5,}\b"
)
_SET = re.compile(r"\{([^{}]*)\}")  # Java prints a map in any order


@dataclass(frozen=True)
class Difference:
    """One cell that was not the same: what differs, and both lines whole."""

    what: tuple[str, ...]
    left: Line
    right: Line


@dataclass(frozen=True)
class Comparison:
    """How many cells were compared, those that differ, and those that only one record has."""

    pairs: int
    v3: int  # of the pairs, on format version 3
    narrowed: int  # of the pairs, under vended credentials that lack a right
    not_run: int  # of the pairs, that did not run in either place
    differences: tuple[Difference, ...]
    left_only: tuple[Line, ...]
    right_only: tuple[Line, ...]

    @property
    def equal(self) -> bool:
        """Whether something was run in both, nothing in one alone, and none of it is different."""
        return self.pairs > self.not_run and not (self.differences or self.left_only or self.right_only)


def compare(left: Iterable[Line], right: Iterable[Line]) -> Comparison:
    """Holds the cells of two records against each other."""
    here, there = _cells(left), _cells(right)
    both = [key for key in here if key in there]
    found = [
        Difference(tuple(what), here[key], there[key]) for key in both if (what := _differs(here[key], there[key]))
    ]
    return Comparison(
        pairs=len(both),
        v3=sum(here[key]["cell"]["format_version"] == 3 for key in both),
        narrowed=sum(here[key]["cell"]["profile"] != "none" for key in both),
        not_run=sum({here[key]["outcome"], there[key]["outcome"]} == {"not-run"} for key in both),
        differences=tuple(found),
        left_only=tuple(here[key] for key in here if key not in there),
        right_only=tuple(there[key] for key in there if key not in here),
    )


def _cells(lines: Iterable[Line]) -> dict[tuple[Any, ...], Line]:
    """By all that a cell is but its place; of two of the same cell the later one counts."""
    return {
        tuple(value for name, value in line["cell"].items() if name not in PLACES): line
        for line in lines
        if line["type"] == "cell"
    }


def _differs(left: Line, right: Line) -> list[str]:
    here, there = _seen(left), _seen(right)
    return [
        f"{what}: {json.dumps(here.get(what), ensure_ascii=False)} | {json.dumps(there.get(what), ensure_ascii=False)}"
        for what in dict.fromkeys([*here, *there])
        if here.get(what) != there.get(what)
    ]


def _seen(line: Line) -> dict[str, Any]:
    found: dict[str, Any] = {"outcome": line["outcome"], "missing": line["missing"]}
    behaviour = BEHAVIOURS.get(line["cell"]["behaviour"])
    declared = behaviour.expectation(Cell(**line["cell"])) if behaviour else None
    if any("change" in step for step in line["steps"]):
        return found  # who comes first in a race differs from run to run, and with it all else
    for step in line["steps"]:
        name = step["name"]
        if "failure" in step:
            found[f"{name} fails"] = [f"{cause['class']}: {masked(cause['message'])}" for cause in step["failure"]]
        elif step.get("truth") is not None:
            found[f"{name} returns"] = _rows(step)
        elif "look" in step and declared:
            found |= {
                f"{name}.{what}": value for what, value in step["look"].items() if f"{name}.{what}" in declared.facts
            }
    return found


def _rows(step: Mapping[str, Any]) -> object:
    """All rows; where others may stand among the right ones, only which of those are missing."""
    rows = sorted(json.dumps(row, sort_keys=True) for row in step.get("rows", []))
    if not step.get("among"):
        return rows
    return {"missing": [row for row in (json.dumps(row, sort_keys=True) for row in step["truth"]) if row not in rows]}


def masked(message: str) -> str:
    """A message without what no two runs share."""
    return _SET.sub(lambda m: "{" + ", ".join(sorted(m[1].split(", "))) + "}", _VOLATILE.sub("…", message))
