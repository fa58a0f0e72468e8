"""An outcome that a rule made is the rule's: in the verdict, in the record, in the matrix; and each has its twin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lab.behaviours import BEHAVIOURS
from lab.catalogs import profiles
from lab.engines import GENERATIONS
from lab.model import Answer, Cause, Failure, Observation, Outcome, Rows, StepResult
from lab.plan import Case, cases, select
from lab.records.record import as_json, recorded, schema
from lab.records.verdict import PLAIN_READ, facts_of, judge
from lab.report import matrix
from lab.report.line import rule
from lab.repro import script

NOTHING: dict[str, Any] = {"rules": [], "amended": [], "narrowed": [], "tokens": 0, "statuses": []}
DENIED = Failure((Cause("SparkException", "Writing job aborted"), Cause("S3Exception", "Access Denied. (Service: S3)")))
REFUSED = Failure((Cause("org.apache.iceberg.exceptions.ForbiddenException", "Forbidden: no"),))
(CASE,) = cases(select({"behaviours": "W-policies", "generations": "spark-3.2*"}))[:1]
PLANNED = [case for case in cases(select({"behaviours": "*"})) if case.variant.access or case.variant.second_access]


def step(name: str, answer: Answer, **asked: Any) -> StepResult:
    return StepResult(name, CASE.cell.reader, name, 0.1, answer, asked={**NOTHING, **asked})


def seen(*steps: StepResult) -> Observation:
    return Observation(CASE.cell, steps, {}, {}, "duckdb-1.5.5", 0.1)


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ([step("insert", REFUSED, rules=["W-policies"], statuses=[403])], Outcome.REFUSED_BY_RULE),
        ([step("insert", REFUSED)], Outcome.ERROR),
        ([step("before", Rows(), rules=["H-token-expiry"]), step("insert", REFUSED)], Outcome.ERROR),
        ([step("before", Rows(), rules=["H-token-expiry"]), step("insert", Rows())], Outcome.WORKS),
        ([step("before", Rows(), narrowed=["H-privileges"]), step("insert", DENIED)], Outcome.REFUSED_BY_RULE),
        ([step("insert", DENIED, narrowed=["H-privileges"])], Outcome.REFUSED_BY_RULE),
        ([step("before", Rows(), narrowed=["H-privileges"]), step("insert", REFUSED)], Outcome.ERROR),
        ([step("insert", DENIED)], Outcome.ERROR),
        ([step("insert", Failure(REFUSED.causes, crash=True), rules=["W-policies"])], Outcome.CRASH),
        ([StepResult("insert", "x", "x", 0.1, REFUSED)], Outcome.ERROR),
        ([step("insert", REFUSED), step(PLAIN_READ, REFUSED, rules=["W-policies"])], Outcome.ERROR),
    ],
)
def test_a_rule_made_what_the_gateway_noted_and_nothing_else(steps: list[StepResult], outcome: Outcome) -> None:
    assert judge(CASE.behaviour, seen(*steps)).outcome is outcome


def test_an_expected_refusal_by_another_rule_is_unexpected() -> None:
    other = seen(step("insert", REFUSED, rules=["W-not-writable"]))
    verdict = judge(CASE.behaviour, other)
    assert verdict.outcome is Outcome.REFUSED_BY_RULE
    assert "insert.rules is ['W-not-writable'] instead of ['W-policies']" in verdict.differences


def test_the_record_and_the_matrix_say_so() -> None:
    observation = seen(step("insert", REFUSED, rules=["W-policies"], tokens=1, statuses=[403]))
    line = as_json(observation, judge(CASE.behaviour, observation), None)
    jsonschema.validate({**line, "run": "x", "time": "2026-11-30T00:00:00Z"}, schema())
    assert recorded(line).observation.steps == observation.steps
    assert facts_of(observation)["insert.rules"] == ["W-policies"]
    assert line["cell"]["profile"] == "horizon"
    assert matrix.Matrix.of([line]).squares[(CASE.behaviour.id, "rule", CASE.cell.reader)].text.startswith("refused")


def test_the_notes_name_the_rule_and_a_script_the_door() -> None:
    refused = step("insert", REFUSED, rules=["W-policies"], statuses=[403])
    observation = replace(seen(refused), cell=replace(CASE.cell, format_version=2))
    verdict = judge(CASE.behaviour, observation)
    line = {**as_json(observation, verdict, None), "expectation": "met", "reason": "a rule"}
    assert "refused by W-policies (1 cell, spark-3.2.1+iceberg-1.4.2)" in matrix.markdown([line])
    assert "-- told by: iceberg-lab door horizon --as owner --by credential" in script(line)
    narrowed = seen(step("before", Rows(), narrowed=["H-privileges"]), step("insert", DENIED))
    assert rule(as_json(narrowed, judge(CASE.behaviour, narrowed), None)) == "H-privileges"


# ---------------------------------------------------------------- declarations
def twin(case: Case) -> Iterator[Case]:
    """The planned cell beside a refused one, in which the claim is taken out of the same door."""
    for other in PLANNED:
        same = replace(other.cell, variant=case.cell.variant, profile=case.cell.profile) == case.cell
        if same and other.cell.profile.startswith(f"{case.cell.profile}~off="):
            yield other


def test_every_refused_cell_has_a_twin_with_only_that_rule_off_which_is_not_refused() -> None:
    refused = 0
    for case in PLANNED:
        told = case.behaviour.expectation(case.cell)
        made = told is not None and any(path.endswith(".amended") for path in told.facts)
        wrong = made and told is not None and told.outcome is Outcome.SILENTLY_WRONG
        if told is None or not (wrong or told.outcome is Outcome.REFUSED_BY_RULE):
            continue
        refused += 1
        twins = list(twin(case))
        if case.cell.variant == "copy-on-write":  # the same statement as in `rule`, whose twin it shares
            continue
        assert twins, case.cell
        by = (".rules", ".narrowed", ".amended")
        rules = {rule for path, rules in told.facts.items() if path.endswith(by) for rule in rules}
        for other in twins:
            assert other.cell.profile.removeprefix(f"{case.cell.profile}~off=") in rules, case.cell
            works = other.behaviour.expectation(other.cell)
            assert works is not None
            assert works.outcome in (Outcome.WORKS, Outcome.NOT_SUPPORTED), other.cell
    assert refused > 100


def test_every_door_of_a_behaviour_can_be_opened() -> None:
    for case in PLANNED:
        for access in (case.variant.access, case.variant.second_access):
            if access is not None:
                door = profiles.door(access.profile)
                assert access.principal in door.profile.principals, case.cell


def test_a_rule_of_a_behaviour_is_in_its_profile_and_every_rule_has_its_behaviour() -> None:
    for name, profile in profiles.known().items():
        for each in profile.rules:
            doors = {case.cell.profile.partition("~")[0] for case in PLANNED if case.cell.behaviour == each.id}
            assert doors, (name, each.id)


def test_whom_a_rule_refuses_more_than_its_claim_is_somebody() -> None:
    for profile in profiles.known().values():
        for each in profile.rules:
            for globs, why in each.beyond.items():
                assert any(name.startswith(globs.rstrip("*")) for name in GENERATIONS), each.id
                assert len(why) > 10


def test_the_readmes_profile_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    (shown,) = (block for block in text.split("```toml\n")[1:] if 'title = "A catalog that keeps' in block)
    (tmp_path / "archive.toml").write_text(shown.partition("```")[0])
    monkeypatch.setattr(profiles, "FILES", tmp_path)
    (profile,) = profiles.known.__wrapped__().values()
    assert [rule.id for rule in profile.rules] == ["X-no-expiry"]
    assert BEHAVIOURS["W-no-expiry"]
