"""An observation held against what the document claims and what we expect. Pure functions, no engine.

The outcome comes from what was seen alone; `not-supported` needs an error that is declared as such *and* a
plain v2 read that succeeded in the same session, so that a broken set-up never passes for a missing feature.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lab.model import (
    Behaviour,
    Cause,
    Cell,
    Chain,
    Claim,
    ClaimVerdict,
    Expect,
    ExpectationVerdict,
    Failure,
    Observation,
    Outcome,
    Refusal,
    Rows,
    Step,
    StepResult,
    Verdict,
    declared_name,
    matches_globs,
)
from lab.records.lineage import breaches
from lab.records.meeting import CONFLICT, Meetings, left, met, rounds, shared

_DEFAULTS = re.compile(r"DEFAULT ?\(?'(\w+)'")
_FEW = 8  # rows that are told in whole
_DENIED = re.compile("access.?denied", re.IGNORECASE)  # S3's code, as each of its clients spells it
PLAIN_READ = "plain-v2-read"  # the step that proves a session sound before "not-supported" is said


def judge(behaviour: Behaviour, seen: Observation) -> Verdict:
    """The verdict on one cell: outcome, claim, expectation, and in words why they differ."""
    if seen.missing is not None:
        return Verdict(Outcome.NOT_RUN, ClaimVerdict.NONE, None, (seen.missing,))
    seen, expected = _raced(behaviour, seen), behaviour.expectation(seen.cell)
    outcome = _outcome(seen, expected)
    failure = _failure(seen, expected)
    facts = facts_of(seen)

    claim, claim_differences = ClaimVerdict.NONE, []
    documented = behaviour.claim(seen.cell)
    if documented is not None:
        claim_differences = differences(documented, outcome, failure, facts)
        claim = ClaimVerdict.DIFFERS if claim_differences else ClaimVerdict.REPRODUCED

    if expected is None and seen.cell.own and outcome not in (Outcome.SILENTLY_WRONG, Outcome.CRASH):
        return Verdict(outcome, claim, None, (), tuple(claim_differences))  # told, and nothing of ours to hold it to
    if expected is None:
        lines = [f"{outcome}, and no expectation is declared for this cell{_told(failure)}"]
        return Verdict(outcome, claim, ExpectationVerdict.UNEXPECTED, tuple(lines), tuple(claim_differences))
    lines = differences(expected, outcome, failure, facts) + _wrong_rows(seen, expected)
    lines += _unproven(seen, expected) + _unsaid(behaviour, seen, failure) + _failed_besides(seen, expected)
    if claim is ClaimVerdict.DIFFERS and not (expected.cause and expected.control):
        lines.append("differs from the claim, but the expectation names no cause and no control")
    verdict = ExpectationVerdict.UNEXPECTED if lines else ExpectationVerdict.MET
    return Verdict(outcome, claim, verdict, tuple(lines), tuple(claim_differences), expected)


def turned(behaviour: Behaviour, cell: Cell, control: Observation) -> list[str]:
    """Whether the claim on `cell`, which the cell itself does not show, holds in its control.

    Empty: with the cause removed the outcome turns. Else why not, one line each.
    """
    documented = behaviour.claim(cell)
    if documented is None or control.missing is not None:
        return []  # nothing to turn to; a control that could not run proves nothing, and is not-run itself
    expected = behaviour.expectation(control.cell)
    return differences(documented, _outcome(control, expected), _failure(control, expected), facts_of(control))


def differences(
    declared: Expect | Claim, outcome: Outcome, failure: Failure | None, facts: Mapping[str, Any]
) -> list[str]:
    """What of a declared outcome, cause chain or facts was not seen, one line each."""
    wanted = declared.outcome if isinstance(declared.outcome, tuple) else (declared.outcome,)
    lines = []
    if outcome not in wanted:
        lines.append(f"{outcome} instead of {' or '.join(wanted)}{_told(failure)}")
    elif declared.failure is not None and not matches(declared.failure, failure):
        lines.append(f"another failure than declared: {_chain(declared.failure)}{_told(failure)}")
    elif outcome is Outcome.SILENTLY_WRONG and isinstance(declared, Expect) and failure and not declared.failure:
        lines.append(f"fails besides its wrong rows, which is not declared{_told(failure)}")
    for path, value in declared.facts.items():
        if path not in facts:
            lines.append(f"{path} was not seen; it is declared as {value!r}")
        elif facts[path] != value:
            lines.append(f"{path} is {facts[path]!r} instead of {value!r}")
    return lines


def matches(chain: Chain, failure: Failure | None) -> bool:
    """Whether a failure shows the declared causes in their order (and no others, if `whole`)."""
    if failure is None:
        return False
    if chain.whole and len(failure.causes) != len(chain.causes):
        return False
    seen = iter(failure.causes)
    return all(any(_is(cause, cls, text) for cause in seen) for cls, text in chain.causes)


def same_rows(got: Iterable[Sequence[Any]], truth: Iterable[Sequence[Any]], *, among: bool = False) -> bool:
    """Equal as multisets of rows, value by value and type by type (1 is not 1.0, nor true).

    `among`: every row of the truth was returned, and others may be too.
    """
    seen, wanted = Counter(map(_comparable, got)), Counter(map(_comparable, truth))
    return wanted <= seen if among else seen == wanted


def otherwise(got: Sequence[Any], wanted: Sequence[Any]) -> str:
    """How rows differ: both in whole, or of many those alone that are missing or too many."""
    if max(len(got), len(wanted)) <= _FEW:
        return f"returned {list(got)!r} instead of {list(wanted)!r}"
    here, there = Counter(map(repr, got)), Counter(map(repr, wanted))
    told = [
        f"{verb} {', '.join(sorted((one - other).elements()))}"
        for verb, one, other in (("lacks", there, here), ("has too much", here, there))
        if one - other
    ]
    return f"{' and '.join(told)} (of {len(wanted)} rows)"


def facts_of(seen: Observation) -> dict[str, Any]:
    """All that a declaration can refer to by a path: row counts, types of columns, the lab's own looks.

    `read.rows` → number of rows; `read.types.ORDERED_AT` → the engine's name of the type (columns in upper
    case, as some engines fold them); `show.defaults` → what stands behind each DEFAULT of a CREATE TABLE that is
    shown; `history.operations` → what `look` put under `operations`;
    `insert.rules` → the claims whose rules the gateway refused something by meanwhile (see `SignOn.asked`).
    """
    facts: dict[str, Any] = {}
    for step in seen.steps:
        if isinstance(step.answer, Rows):
            facts[f"{step.name}.rows"] = len(step.answer.rows)
            if [len(row) for row in step.answer.rows] == [1] and isinstance(step.answer.rows[0][0], str):
                facts[f"{step.name}.defaults"] = _DEFAULTS.findall(step.answer.rows[0][0])
            for column in step.answer.columns:
                facts[f"{step.name}.types.{column.name.upper()}"] = column.type
        if isinstance(step.look, Mapping):
            facts |= {f"{step.name}.{key}": value for key, value in step.look.items()}
        if step.asked is not None:
            facts |= {f"{step.name}.{key}": value for key, value in step.asked.items()}
    return facts


def _raced(behaviour: Behaviour, seen: Observation) -> Observation:
    """Of a race, what was to change by its declaration, and what its reads must return by what was acknowledged,
    whatever is noted beside them."""
    changes = {step.name: step.change for steps in _declared(behaviour, seen.cell) for step in steps}
    if not any(changes.values()):
        return seen
    seen = replace(seen, steps=tuple(replace(step, change=changes.get(step.name)) for step in seen.steps))
    truth = left(behaviour.table.rows, seen.steps)
    reads = tuple(
        step if step.truth is None or step.name == PLAIN_READ else replace(step, truth=truth) for step in seen.steps
    )
    return replace(seen, steps=reads)


def _outcome(seen: Observation, expected: Expect | None) -> Outcome:
    if any(wrong(step) for step in seen.steps if isinstance(step.answer, Rows) and step.name != PLAIN_READ):
        return Outcome.SILENTLY_WRONG  # the worst, whatever fails after it
    failure = _failure(seen, expected)
    if failure is not None:
        if failure.crash:
            return Outcome.CRASH
        if _by_rule(seen, failure):
            return Outcome.REFUSED_BY_RULE
        known = expected.failure if expected and expected.outcome is Outcome.NOT_SUPPORTED else None
        sound = any(s.name == PLAIN_READ and isinstance(s.answer, Rows) and not wrong(s) for s in seen.steps)
        return Outcome.NOT_SUPPORTED if known and matches(known, failure) and sound else Outcome.ERROR
    amiss = any(wrong(step) or broken(step, seen) for step in seen.steps)
    return Outcome.SILENTLY_WRONG if amiss else Outcome.WORKS


def _by_rule(seen: Observation, failure: Failure) -> bool:
    """Whether a vendor's rule made it fail, by the gateway's own note and whatever the engine made of it: a request
    was refused, or the store refused what keys can't that a rule had narrowed."""
    upto = seen.steps[: next(place for place, step in enumerate(seen.steps) if step.answer is failure) + 1]
    noted = [step.asked for step in upto if step.asked is not None]
    denied = any(_DENIED.search(cause.message) for cause in failure.causes)
    return bool(noted and (noted[-1]["rules"] or (denied and any(asked["narrowed"] for asked in noted))))


def failed(steps: Iterable[StepResult], expected: Expect | None) -> StepResult | None:
    """The first step that failed of the case itself.

    The plain read is a check of the session, and what a race refuses as declared is no failure.
    """
    failures = (step for step in steps if isinstance(step.answer, Failure) and step.name != PLAIN_READ)
    return next((step for step in failures if refusal(step, expected) is None), None)


def refusal(step: StepResult, expected: Expect | None) -> Refusal | None:
    """The declared refusal that a step of a race met."""
    if expected is None or not isinstance(step.answer, Failure):
        return None
    answer, by = step.answer, declared_name(step.by)
    if answer.crash:
        return None
    known = (each for each in expected.refusals if each.gap or step.change is not None)
    return next((each for each in known if matches_globs(each.generations, by) and matches(each.failure, answer)), None)


def meetings(seen: Observation, expected: Expect | None) -> Meetings | None:
    """How the rounds of a race went; None of what is no race."""
    said = rounds(seen.steps)
    together = [step for round in said.values() if met(round) for step in round]
    conflicts = {step.change.round for step in together if step.change and _second(step, expected)}
    return Meetings(len(said), len(together) // 2, len(conflicts)) if said else None


def _second(step: StepResult, expected: Expect | None) -> bool:
    """Whether a statement of a race came second: the catalog said so, or the engine."""
    refused = refusal(step, expected)
    return CONFLICT in (step.asked or {}).get("commits", ()) or (refused is not None and not refused.gap)


def _failure(seen: Observation, expected: Expect | None) -> Failure | None:
    step = failed(seen.steps, expected)
    return step.answer if step and isinstance(step.answer, Failure) else None


def broken(step: StepResult, seen: Observation) -> list[str]:
    """The invariants that a step shows to be broken, one line each: of row lineage, or of what the lab looked at."""
    if isinstance(step.look, Mapping):
        return list(step.look.get("breaches", ()))
    if step.lineage is None or not isinstance(step.answer, Rows):
        return []
    since = next((s.answer for s in seen.steps if s.name == step.lineage.since), None)
    if not isinstance(since, Rows):
        return [f"step {step.lineage.since!r}, taken before, has no rows"]
    return breaches(since.rows, step.answer.rows, step.lineage)


def wrong(step: StepResult) -> bool:
    """Whether what a step answered or showed is not its truth."""
    if step.truth is None:
        return False
    if isinstance(step.look, Mapping):
        return bool(_wrongly_seen(step))
    if not isinstance(step.answer, Rows):
        return False
    return not same_rows(step.answer.rows, step.truth, among=step.among)


def _wrongly_seen(step: StepResult) -> dict[str, tuple[Any, Any]]:
    """What a look shows other than its truth: name → (what it shows, what it must show)."""
    shown = {name: (step.look.get(name), value) for name, value in step.truth or ()}
    return {name: (seen, value) for name, (seen, value) in shown.items() if seen != value}


def _unproven(seen: Observation, expected: Expect) -> list[str]:
    """Why what was seen proves nothing: no check was made at all, or the failure came in another step than declared."""
    failing = failed(seen.steps, expected)
    if failing is not None:
        if matches_globs(expected.at, failing.name):
            return []
        return [f"failed in step {failing.name!r} instead of {expected.at!r}"]
    said = rounds(seen.steps)
    if nobody := [str(n) for n, round in said.items() if not any(isinstance(step.answer, Rows) for step in round)]:
        return [f"nobody was acknowledged in round {', '.join(nobody)}: one of two has to come first"]
    for kind in (False, True):
        alike = [round for round in said.values() if shared(round) is kind]
        if alike and not any(map(met, alike)):
            rows = "the same row" if kind else "rows of their own"
            return [f"no race: in none of {len(alike)} rounds on {rows} did both statements overlap in time"]
    reads = (step for step in seen.steps if step.truth is not None and step.name != PLAIN_READ)
    if said and not any(isinstance(step.answer, Rows) for step in reads):
        return ["nobody could read what the race left"]
    checked = expected.facts or any(s.truth is not None or s.lineage is not None for s in seen.steps)
    return [] if checked else ["nothing was checked: no step has a truth or a lineage, and no fact is declared"]


def _declared(behaviour: Behaviour, cell: Cell) -> list[tuple[Step, ...]]:
    """What is to be said in a cell, by each variant that has its name."""
    return [behaviour.steps_of(variant) for variant in behaviour.variants if variant.name == cell.variant]


def _unsaid(behaviour: Behaviour, seen: Observation, failure: Failure | None) -> list[str]:
    """What was declared and not said though nothing failed: of a race its rounds, else what is held against a truth."""
    said = {step.name for step in seen.steps}
    lacking = [
        [step.name for step in steps if _must(step) and step.name not in said]
        for steps in _declared(behaviour, seen.cell)
    ]
    if failure or not lacking or not all(lacking):
        return []
    fewest = min(lacking, key=len)
    return [f"never said: {', '.join(fewest)}"]


def _must(step: Step) -> bool:
    if step.change is not None:
        return not step.change.repeats
    return step.truth is not None and step.look is None and not step.optional


def _failed_besides(seen: Observation, expected: Expect) -> list[str]:
    """Of a race that a writer can't run, what failed in other words than declared: all is said, whatever fails."""
    if not rounds(seen.steps) or expected.failure is None:
        return []
    return [
        f"{step.name}: another failure than declared{_told(step.answer)}"
        for step in seen.steps
        if isinstance(step.answer, Failure) and step.name != PLAIN_READ and not matches(expected.failure, step.answer)
    ]


def _wrong_rows(seen: Observation, expected: Expect) -> list[str]:
    """Wrong rows, wrong looks and broken invariants, one line each, but for those that are declared as today's."""
    lines = []
    for step in seen.steps:
        if step.name not in expected.rows and f"{step.name}.breaches" not in expected.facts:
            lines += [f"{step.name}: {line}" for line in broken(step, seen)]
        if isinstance(step.look, Mapping):
            amiss = {f"{step.name}.{name}": values for name, values in _wrongly_seen(step).items()}
            undeclared = ((path, values) for path, values in amiss.items() if path not in expected.facts)
            lines += [f"{path} is {got!r} instead of {value!r}" for path, (got, value) in undeclared]
        elif isinstance(step.answer, Rows) and (wrong(step) or step.name in expected.rows):
            wanted = expected.rows.get(step.name, step.truth or ())
            if not same_rows(step.answer.rows, wanted):
                lines.append(f"{step.name} {otherwise(step.answer.rows, wanted)}")
    return lines


def _is(cause: Cause, cls: str, text: str) -> bool:
    return (cause.cls == cls or cause.cls.endswith(f".{cls}")) and text in cause.message


def _comparable(value: Any) -> Any:
    """A hashable stand-in that keeps the type apart.

    Zoned and zone-less timestamps are compared by their wall clock in UTC, the zone of every session here:
    an engine that has only one of the two types still shows the stored value, and which type it calls it
    is a fact of its own (`read.types.…`).
    """
    if isinstance(value, dt.datetime):
        return ("timestamp", value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value)
    if isinstance(value, Mapping):
        return ("map", frozenset((_comparable(k), _comparable(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    return (type(value).__name__, value)


def _chain(chain: Chain) -> str:
    return " ← ".join(f"{cls} “{text}”" for cls, text in chain.causes)


def _told(failure: Failure | None) -> str:
    if failure is None:
        return ""
    return "; seen: " + " ← ".join(f"{c.cls}: {c.message.strip()[:300]}" for c in failure.causes)
