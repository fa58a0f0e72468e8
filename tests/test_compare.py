"""Two records of the same cells are equal only if the engines did the same in both."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.records.compare import compare, masked
from lab.records.record import read

RECORD = Path(__file__).parents[1] / "docs" / "record.jsonl"
LINES = [line for line in read(RECORD) if line["type"] == "cell" and line["cell"]["behaviour"].startswith("H-")]


def elsewhere(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**line, "cell": {**line["cell"], "runtime": "containers"}} for line in copy.deepcopy(lines)]


def first(lines: list[dict[str, Any]], has: str) -> dict[str, Any]:
    return next(step for line in lines for step in line["steps"] if step.get(has))


def test_the_same_elsewhere_is_equal_and_counted() -> None:
    found = compare(LINES, elsewhere(LINES))
    assert found.equal
    assert found.pairs == len(LINES)
    assert 0 < found.v3 < found.pairs
    assert 0 < found.narrowed < found.pairs


def _outcome(lines: list[dict[str, Any]]) -> None:
    lines[0]["outcome"] = "crash"


def _cause(lines: list[dict[str, Any]]) -> None:
    first(lines, "failure")["failure"][-1]["message"] = "another reason"


def _class(lines: list[dict[str, Any]]) -> None:
    first(lines, "failure")["failure"][0]["class"] = "java.lang.Another"


def _row(lines: list[dict[str, Any]]) -> None:
    next(s for line in lines for s in line["steps"] if s.get("truth") and s.get("rows"))["rows"].pop()


def _fact(lines: list[dict[str, Any]]) -> None:
    of = next(line for line in lines if line["cell"]["behaviour"] == "H-v3-delete" and "look" in str(line["steps"]))
    first([of], "look")["look"]["deletes"] = ["planted"]


@pytest.mark.parametrize("plant", [_outcome, _cause, _class, _row, _fact])
def test_a_planted_difference_is_found_with_both_lines(plant: Callable[[list[dict[str, Any]]], None]) -> None:
    other = elsewhere(LINES)
    plant(other)
    found = compare(LINES, other)
    assert not found.equal
    (difference,) = found.differences
    assert difference.what
    assert difference.left["cell"]["runtime"] == "embedded"
    assert difference.right["cell"]["runtime"] == "containers"


def test_a_cell_that_one_of_them_lacks_is_no_equality() -> None:
    found = compare(LINES, elsewhere(LINES[1:]))
    assert not found.equal
    assert found.left_only == (LINES[0],)
    assert not compare([], []).equal


def test_what_ran_nowhere_is_no_equality() -> None:
    idle = [{**line, "outcome": "not-run", "steps": []} for line in LINES]
    found = compare(idle, elsewhere(idle))
    assert (found.not_run, found.equal) == (len(LINES), False)
    assert compare([*idle[1:], LINES[0]], elsewhere([*idle[1:], LINES[0]])).equal


def test_only_what_no_two_runs_share_is_masked() -> None:
    ours = "Task 0 in stage 424.0 (TID 1452): s3://lab/H_X_CC2EC25F/f-0000-6597152539316752475.avro (Status Code: 403)"
    theirs = "Task 0 in stage 3.0 (TID 7): s3://lab/H_X_00AA11FF/f-0000-1597152539316752474.avro (Status Code: 403)"
    assert masked(ours) == masked(theirs)
    assert "Status Code: 403" in masked(ours)
    assert masked("version 3") != masked("version 2")
    assert masked("SparkCatalog@338b8e5e, t") == masked("SparkCatalog@7da9803, t")
