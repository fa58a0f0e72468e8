"""`pytest lab/`: every selected cell is as expected, and where it differs from the claim its control turns."""

from __future__ import annotations

from lab.model import ExpectationVerdict
from lab.plan import Case
from lab.records.record import Recorded
from lab.run import Run


def test_cell(case: Case, recorded: Recorded, run: Run) -> None:
    verdict = recorded.verdict
    told = "\n".join(verdict.differences)
    assert verdict.expectation is not ExpectationVerdict.UNEXPECTED, told
    assert run.control(case) == [], "the outcome does not turn where the cause is removed"
