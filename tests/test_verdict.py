"""Verdicts hold or fall with what was seen: mutations of a real run's record must change them.

`docs/record.jsonl` is the record of a run on all generations; the README's matrix comes from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from jsonschema.validators import validator_for

from lab.behaviours import BEHAVIOURS
from lab.engines import GENERATIONS
from lab.model import (
    NOBODY,
    Behaviour,
    Cause,
    ClaimVerdict,
    ExpectationVerdict,
    Failure,
    Observation,
    Outcome,
    Rows,
    StepResult,
)
from lab.plan import cases, control_of, select
from lab.records.record import Recorded, read, recorded, schema
from lab.records.verdict import PLAIN_READ, judge, turned

RECORD = Path(__file__).parents[1] / "docs" / "record.jsonl"
LINES = [line for line in read(RECORD) if line["type"] == "cell"]
RECORDED = [recorded(line) for line in LINES]
CELLS = [found for found in RECORDED if found.verdict.outcome is not Outcome.NOT_RUN]
SEEN = {r.observation.cell: r.observation for r in RECORDED}
PLANNED = {case.cell: case for case in cases(select({"behaviours": "*"}))}


def behaviour(found: Recorded) -> Behaviour:
    return BEHAVIOURS[found.observation.cell.behaviour]


def mutated(seen: Observation, step: StepResult, **change: Any) -> Observation:
    return replace(seen, steps=tuple(replace(s, **change) if s is step else s for s in seen.steps))


def unexpected(found: Recorded, seen: Observation) -> bool:
    return judge(behaviour(found), seen).expectation is ExpectationVerdict.UNEXPECTED


def test_the_record_obeys_its_schema_and_has_every_cell_observed_as_expected() -> None:
    obeys = validator_for(schema())(schema())  # made once: jsonschema.validate checks the schema itself for each line
    for line in read(RECORD):
        obeys.validate(line)
    assert set(SEEN) == set(PLANNED)
    assert {cell.reader for cell in SEEN} == {*GENERATIONS, NOBODY.name}
    not_run = {c.observation.cell for c in RECORDED if c.verdict.outcome is Outcome.NOT_RUN}
    assert not_run == {cell for cell, case in PLANNED.items() if case.variant.missing}


def test_judging_the_record_anew_gives_the_same_verdicts() -> None:
    for found in CELLS:
        verdict = judge(behaviour(found), found.observation)
        same = (found.verdict.outcome, found.verdict.claim, found.verdict.expectation)
        assert (verdict.outcome, verdict.claim, verdict.expectation) == same, found.observation.cell
        assert verdict.expectation is ExpectationVerdict.MET, (found.observation.cell, verdict.differences)


def _row_mutations(rows: Rows) -> Iterator[Rows]:
    first, *others = rows.rows
    yield replace(rows, rows=tuple(others))
    yield replace(rows, rows=(first, first, *others))
    for place, value in enumerate(first):
        other = None if value is not None else "something"
        yield replace(rows, rows=((*first[:place], other, *first[place + 1 :]), *others))
    if isinstance(first[0], int):
        yield replace(rows, rows=((float(first[0]), *first[1:]), *others))


def test_one_row_dropped_doubled_or_altered_in_any_column_is_unexpected() -> None:
    tried = 0
    for found in CELLS:
        for step in found.observation.steps:
            if not isinstance(step.answer, Rows) or not step.answer.rows:
                continue  # none to alter: the truth is empty, or the expectation says that wrongly none come back
            if step.truth and not step.among and step.name != PLAIN_READ:
                for rows in _row_mutations(step.answer):
                    seen = mutated(found.observation, step, answer=rows)
                    assert unexpected(found, seen), (found.observation.cell, step.name, rows)
                    assert judge(behaviour(found), seen).outcome is not Outcome.WORKS
                    tried += 1
    assert tried > 1000


def test_a_row_that_must_be_among_others_is_missed() -> None:
    found = next(c for c in CELLS if any(s.among for s in c.observation.steps))
    step = next(s for s in found.observation.steps if s.among)
    assert unexpected(found, mutated(found.observation, step, answer=Rows()))
    assert isinstance(step.answer, Rows)
    more = replace(step.answer, rows=(*step.answer.rows, ("another",)))
    assert not unexpected(found, mutated(found.observation, step, answer=more))


def _other_message(cause: Cause, text: str) -> Cause:
    return Cause(cause.cls, cause.message.replace(text, ""))


def _other_class(cause: Cause, text: str) -> Cause:
    return Cause("x.Other", cause.message)


def test_every_declared_cause_of_a_chain_counts() -> None:
    tried = 0
    for found in CELLS:
        expected = behaviour(found).expectation(found.observation.cell)
        if expected is None or expected.failure is None:
            continue
        (step, *_) = (s for s in found.observation.steps if isinstance(s.answer, Failure))
        assert isinstance(step.answer, Failure)
        causes = step.answer.causes
        for cls, text in expected.failure.causes:
            for other in (
                lambda c, t=text: Cause(c.cls, c.message.replace(t, "")),
                lambda c: Cause("x.Other", c.message),
            ):
                changed = tuple(other(c) if c.cls.endswith(cls) and text in c.message else c for c in causes)
                assert changed != causes
                seen = mutated(found.observation, step, answer=Failure(changed))
                assert unexpected(found, seen), (found.observation.cell, cls, text)
                tried += 1
        if expected.failure.whole:
            longer = Failure((*causes, Cause("x.Another", "cause")))
            assert unexpected(found, mutated(found.observation, step, answer=longer))
    assert tried > 20


def test_a_failure_that_turns_into_success_and_back_is_unexpected() -> None:
    for found in CELLS:
        for step in found.observation.steps:
            if step.name == PLAIN_READ or step.answer is None:
                continue
            failed = isinstance(step.answer, Failure)
            other = Rows() if failed else Failure((Cause("x.Y", "boom"),))
            assert unexpected(found, mutated(found.observation, step, answer=other)), (
                found.observation.cell,
                step.name,
            )


def test_not_supported_needs_the_plain_read_in_the_same_session() -> None:
    unsupported = [c for c in CELLS if c.verdict.outcome is Outcome.NOT_SUPPORTED]
    assert unsupported
    for found in unsupported:
        without = replace(found.observation, steps=tuple(s for s in found.observation.steps if s.name != PLAIN_READ))
        assert judge(behaviour(found), without).outcome is Outcome.ERROR
        (plain,) = (s for s in found.observation.steps if s.name == PLAIN_READ)
        wrong = mutated(found.observation, plain, answer=Rows())
        assert judge(behaviour(found), wrong).outcome is Outcome.ERROR


def test_every_declared_fact_counts() -> None:
    tried = 0
    for found in CELLS:
        expected = behaviour(found).expectation(found.observation.cell)
        for path in expected.facts if expected else ():
            name, _, key = path.partition(".")
            (step,) = (s for s in found.observation.steps if s.name == name)
            if step.look is not None:
                seen = mutated(found.observation, step, look={**step.look, key: "something else"})
            elif step.asked is not None and key in step.asked:
                seen = mutated(found.observation, step, asked={**step.asked, key: "something else"})
            else:
                assert isinstance(step.answer, Rows)
                columns = tuple(replace(c, type="something else") for c in step.answer.columns)
                rows = step.answer.rows if key.startswith("types.") else ()
                seen = mutated(found.observation, step, answer=Rows(columns, rows))
            assert unexpected(found, seen), (found.observation.cell, path)
            tried += 1
    assert tried > 20


def test_a_claim_turned_around_turns_its_verdict() -> None:
    tried = 0
    for found in CELLS:
        declared = behaviour(found)
        claim = declared.claim(found.observation.cell)
        verdict = judge(declared, found.observation)
        assert (verdict.claim is ClaimVerdict.NONE) == (claim is None)
        if claim is None:
            continue
        opposite = replace(claim, outcome=Outcome.CRASH, failure=None, facts={})
        same = replace(claim, outcome=verdict.outcome, failure=None, facts={})
        assert judge(replace(declared, claims=(opposite,)), found.observation).claim is ClaimVerdict.DIFFERS
        assert judge(replace(declared, claims=(same,)), found.observation).claim is ClaimVerdict.REPRODUCED
        tried += 1
    assert tried > 20


def test_a_difference_from_the_claim_needs_a_cause_and_a_control() -> None:
    differing = [c for c in CELLS if c.verdict.claim is ClaimVerdict.DIFFERS]
    assert differing
    for found in differing:
        declared = behaviour(found)
        for lacking in ({"cause": None}, {"control": None}):
            bare = replace(declared, expect=tuple(replace(e, **lacking) for e in declared.expect))
            assert judge(bare, found.observation).expectation is ExpectationVerdict.UNEXPECTED


def test_in_every_control_the_outcome_turns_and_would_not_if_it_were_the_cell_itself() -> None:
    tried = 0
    for found in CELLS:
        cell = found.observation.cell
        control = control_of(PLANNED[cell])
        if control is None:
            continue
        assert turned(behaviour(found), cell, SEEN[control]) == [], cell
        assert turned(behaviour(found), cell, found.observation) != [], cell
        tried += 1
    assert tried >= 5


def test_a_declared_failure_in_another_step_is_unexpected() -> None:
    tried = 0
    for found in CELLS:
        expected = behaviour(found).expectation(found.observation.cell)
        if expected is None or expected.failure is None or expected.at == "*":
            continue
        (step, *_) = (s for s in found.observation.steps if isinstance(s.answer, Failure))
        assert unexpected(found, mutated(found.observation, step, name="another")), found.observation.cell
        tried += 1
    assert tried >= 10


def test_a_cell_in_which_nothing_is_checked_is_unexpected() -> None:
    for found in CELLS:
        if found.verdict.outcome is not Outcome.WORKS:
            continue
        bare = tuple(replace(s, truth=None, lineage=None) for s in found.observation.steps if s.look is None)
        assert unexpected(found, replace(found.observation, steps=bare)) or _has_facts(found), found.observation.cell
        assert unexpected(found, replace(found.observation, steps=()))


def _has_facts(found: Recorded) -> bool:
    expected = behaviour(found).expectation(found.observation.cell)
    return bool(expected and expected.facts)


def test_a_crash_is_no_error() -> None:
    found = next(c for c in CELLS if c.verdict.outcome is Outcome.ERROR)
    (step, *_) = (s for s in found.observation.steps if isinstance(s.answer, Failure))
    assert isinstance(step.answer, Failure)
    seen = mutated(found.observation, step, answer=replace(step.answer, crash=True))
    assert judge(behaviour(found), seen).outcome is Outcome.CRASH
