"""The invariants of row lineage, each broken once by a fake, and found each time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lab.behaviours.t_lineage import LINEAGE_DML
from lab.model import Cell, Expect, ExpectationVerdict, Failure, Lineage, Observation, Outcome, Rows, StepResult
from lab.records.lineage import breaches, unique
from lab.records.record import as_json, recorded
from lab.records.verdict import judge
from lab.tables.row_ids import Range, moves, overlaps

# (key, row id, sequence number): of four rows one is updated, one deleted, one inserted
BEFORE = ((1, 0, 1), (2, 1, 1), (3, 2, 1), (4, 3, 1))
AFTER = ((1, 0, 1), (2, 1, 2), (4, 3, 1), (9, 7, 2))
DECLARED = Lineage("before", updated=(2,), inserted=(9,), deleted=(3,))


def _instead(key: int, *row: Any) -> tuple[tuple[Any, ...], ...]:
    kept = tuple(r for r in AFTER if r[0] != key)
    return (*kept, row) if row else kept


def test_lineage_that_is_kept_breaks_nothing() -> None:
    assert breaches(BEFORE, AFTER, DECLARED) == []
    assert breaches(BEFORE, AFTER[::-1], DECLARED) == []  # no order is promised


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (_instead(1), "row 1 is gone"),
        ((*AFTER, (3, 2, 1)), "row 3 should not be there"),
        ((*AFTER, (5, 8, 2)), "row 5 should not be there"),
        (_instead(1, 1, 8, 1), "untouched row 1 was (id 0, sequence number 1) and is (id 8, sequence number 1)"),
        (_instead(1, 1, 0, 2), "untouched row 1 was (id 0, sequence number 1) and is (id 0, sequence number 2)"),
        (_instead(1, 1, None, 1), "untouched row 1 was (id 0, sequence number 1) and is (id None, sequence number 1)"),
        (_instead(2, 2, 8, 2), "updated row 2 had id 1 and has id 8"),
        (_instead(2, 2, 1, 1), "updated row 2 has sequence number 1, and the commit a higher one than 1"),
        (_instead(2, 2, 1, None), "updated row 2 has sequence number None, and the commit a higher one than 1"),
        (_instead(9, 9, None, 2), "inserted row 9 has no id"),
        (_instead(9, 9, 2, 2), "inserted row 9 has id 2, and ids up to 3 were given before"),
        (_instead(9, 9, 7, 1), "inserted row 9 has sequence number 1, and the commit a higher one than 1"),
        (_instead(9, 9, 3, 2), "id 3 belongs to rows [4, 9]"),
    ],
)
def test_each_breach_of_lineage_is_told(after: tuple[tuple[Any, ...], ...], told: str) -> None:
    assert told in breaches(BEFORE, after, DECLARED)


def test_rows_without_an_id_do_not_share_one() -> None:
    assert unique([(1, None, 1), (2, None, 1)]) == []


def test_an_upgrade_gives_every_row_an_id_of_its_own() -> None:
    before = ((1, None, None), (2, None, None))
    declared = Lineage("before", inserted=(5,), upgraded=True)
    assert breaches(before, ((1, 1, 1), (2, 2, 1), (5, 0, 4)), declared) == []
    assert breaches(before, ((1, 1, 1), (2, None, 1), (5, 0, 4)), declared) == ["row 2 got no id"]
    assert "id 1 belongs to rows [1, 2]" in breaches(before, ((1, 1, 1), (2, 1, 1), (5, 0, 4)), declared)


# ---------------------------------------------------------------- next-row-id and the files' ranges
def _snapshot(first: int | None, added: int | None, operation: str = "append") -> dict[str, Any]:
    told: dict[str, Any] = {"summary": {"operation": operation}}
    return told if first is None else {**told, "first-row-id": first, "added-rows": added}


HISTORY = [_snapshot(None, None), _snapshot(0, 4), _snapshot(4, 1, "overwrite"), _snapshot(5, 0, "delete")]


def test_next_row_id_moves_as_the_specification_says() -> None:
    assert moves({"next-row-id": 5}, HISTORY) == []
    assert moves({}, HISTORY[:1]) == []  # v2
    assert moves({"next-row-id": 0}, []) == []


@pytest.mark.parametrize(
    ("following", "history", "told"),
    [
        (4, HISTORY, "next-row-id is 4, and the last snapshot ends before 5"),
        (6, HISTORY, "next-row-id is 6, and the last snapshot ends before 5"),
        (5, [_snapshot(0, 4), _snapshot(3, 2)], "snapshot 2 (append) begins at row id 3, and 4 is the next"),
        (7, [_snapshot(0, 4), _snapshot(5, 2)], "snapshot 2 (append) begins at row id 5, and 4 is the next"),
        (4, [_snapshot(0, 4), _snapshot(None, None)], "snapshot 2 (append) has no first-row-id, and those before it"),
    ],
)
def test_each_wrong_move_is_told(following: int, history: list[dict[str, Any]], told: str) -> None:
    assert any(line.startswith(told) for line in moves({"next-row-id": following}, history))


def test_no_id_is_handed_out_twice_and_none_beyond_the_next() -> None:
    assert overlaps([Range(0, 4), Range(4, 1), Range(None, 9)], 5) == []
    assert overlaps([Range(0, 4), Range(3, 1)], 5) == ["ids 3 to 3 of a file were handed out before"]
    assert overlaps([Range(0, 4), Range(4, 2)], 5) == ["ids 4 to 5 of a file are not below next-row-id 5"]


# ---------------------------------------------------------------- in a verdict
CELL = Cell("T", "default", "e", "e", "none", "reference", "seaweedfs", "embedded", 3)
KEPT = Expect(Outcome.WORKS, "kept")
PLAIN = replace(LINEAGE_DML, expect=(KEPT,), claims=())


def _observed(after: tuple[tuple[Any, ...], ...], *, told: tuple[str, ...] = ()) -> Observation:
    steps = (
        StepResult("before", "e", "SELECT", 0.1, Rows((), BEFORE)),
        StepResult("after", "e", "SELECT", 0.1, Rows((), after), lineage=DECLARED),
        StepResult("row-ids", "lab", "look", 0.1, look={"next": 9, "breaches": list(told)}),
    )
    return Observation(CELL, steps, {}, {}, "e", 0.3)


def test_a_breach_without_an_error_is_silently_wrong() -> None:
    assert judge(PLAIN, _observed(AFTER)).expectation is ExpectationVerdict.MET
    for seen in (_observed(_instead(2, 2, 8, 2)), _observed(AFTER, told=("snapshot 2 begins at row id 9",))):
        verdict = judge(PLAIN, seen)
        assert (verdict.outcome, verdict.expectation) == (Outcome.SILENTLY_WRONG, ExpectationVerdict.UNEXPECTED)
        assert any("had id 1 and has id 8" in line or "begins at row id 9" in line for line in verdict.differences)


def test_a_declared_breach_is_met_by_these_very_rows_alone() -> None:
    lost = _instead(2, 2, 8, 2)
    declared = replace(PLAIN, expect=(Expect(Outcome.SILENTLY_WRONG, "lost", rows={"after": lost}),))
    assert judge(declared, _observed(lost)).expectation is ExpectationVerdict.MET
    assert judge(declared, _observed(_instead(2, 2, 6, 2))).expectation is ExpectationVerdict.UNEXPECTED
    assert judge(declared, _observed(AFTER)).expectation is ExpectationVerdict.UNEXPECTED


def test_a_reading_without_the_one_before_it_proves_nothing() -> None:
    seen = _observed(AFTER)
    failed = replace(seen.steps[0], answer=Failure(()))
    assert judge(PLAIN, replace(seen, steps=(failed, *seen.steps[1:]))).outcome is not Outcome.WORKS
    assert judge(PLAIN, replace(seen, steps=seen.steps[1:])).outcome is Outcome.SILENTLY_WRONG


def test_lineage_is_kept_in_a_record() -> None:
    seen = _observed(AFTER)
    assert recorded(as_json(seen, judge(PLAIN, seen), None)).observation.steps[1].lineage == DECLARED
