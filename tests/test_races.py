"""Races without engines: two fake writers at one table, one of which is wrong in each way, and what is said of it."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from rich.console import Console
from test_pairs import FakeCatalog, declared
from test_run import FakeLab

from lab import repro
from lab.asking import plain_read
from lab.behaviours import BEHAVIOURS
from lab.behaviours.pairs.race import SECOND, TRIES, Race
from lab.engines import GENERATIONS
from lab.model import (
    Access,
    Answer,
    Call,
    Cause,
    Change,
    ExpectationVerdict,
    Failure,
    Generation,
    Observation,
    Outcome,
    Rows,
    Statement,
    StepResult,
)
from lab.plan import FEATURES, Case, select, select_pairs
from lab.racing import Side, race
from lab.records.compare import compare
from lab.records.meeting import Meetings, left
from lab.records.record import Recorder, as_json, recorded, schema
from lab.records.redact import Redactor
from lab.records.verdict import PLAIN_READ, judge, meetings
from lab.report import matrix
from lab.report import pairs as report
from lab.report.line import failing, refusals
from lab.report.pairs import Result, result
from lab.run import COURSES, Run
from lab.runtime.places import EMBEDDED
from lab.tables.orders import NAMESPACE, ORDERS_V2

DUCKDB, PYICEBERG, TRINO = "duckdb-1.5.5", "pyiceberg-0.12.0", "trino-483"
RACES = [name for name, feature in FEATURES.items() if isinstance(feature, Race)]
UNREADABLE = Failure((Cause("OSError", "Not yet implemented: DecodeArrow of DictAccumulator for …"),))
CONFLICT = Failure((Cause("_duckdb.TransactionException", "branch main has changed (Conflict_409)"),))
BOOM = Failure((Cause("a.Boom", "no such luck"),))


def case(name: str, writer: str = DUCKDB, reader: str = TRINO, *, full: bool = False) -> Case:
    (found,) = select_pairs(name, writer, reader, full=full).cases(EMBEDDED)
    return found


class Table:
    """What two fake writers share: rows, one statement at a time."""

    def __init__(self, case: Case) -> None:
        self.rows = list(case.behaviour.table.rows)
        raced = [step for step in case.steps if step.change]
        self.changes = {key(step.statement("trino")): step.change for step in reversed(raced)}
        self.meet = threading.Barrier(2, timeout=10)  # however slow the machine, both are at it at the same time
        self.one = threading.Lock()

    def apply(self, change: Change) -> None:
        kept = [row for row in self.rows if row[0] not in change.deleted]
        more = dict(change.added)
        self.rows = [*((key, number + more.get(key, 0)) for key, number in kept), *change.inserted]


def key(statement: Statement | None) -> str:
    """A statement as all fake writers say it."""
    return str(statement).partition("VALUES")[2] if "INSERT" in str(statement) else str(statement)


def honest(table: Table, change: Change) -> Answer:
    table.apply(change)
    return Rows()


def losing(table: Table, change: Change) -> Answer:
    """Tells success and commits nothing."""
    return Rows()


def doubling(table: Table, change: Change) -> Answer:
    table.apply(change)
    if not change.deleted:  # nothing is deleted twice
        table.apply(change)
    else:
        table.rows.append(table.rows[0])
    return Rows()


def overwriting(table: Table, change: Change) -> Answer:
    """Takes a row of the other one's along."""
    table.apply(change)
    del table.rows[-1]
    table.rows.sort()
    return Rows()


def refusing(table: Table, change: Change) -> Answer:
    return CONFLICT


def lying(table: Table, change: Change) -> Answer:
    """Tells that it was refused, and has done it."""
    table.apply(change)
    return CONFLICT


Writer = Callable[[Table, Change], Answer]
WRONG = {"loses": losing, "doubles": doubling, "takes another's row along": overwriting, "does what it refused": lying}


class Session:
    def __init__(self, table: Table, writer: Writer, at: int = 1) -> None:
        """at: the round in which this writer does as `writer` does; in the others it is honest."""
        self.settings: dict[str, str] = {}
        self.table, self.writer, self.at = table, writer, at

    def execute(self, statement: Statement) -> Answer:
        said = key(statement).replace("lab.NS.t", "{table}")
        change = self.table.changes.get(said)
        if change is not None:
            self.table.meet.wait()
            time.sleep(0.02)  # longer than what passes between the lab's two readings of its clock
            with self.table.one:
                answer = (self.writer if change.round == self.at else honest)(self.table, change)
            self.table.meet.wait()
            return answer
        rows = ORDERS_V2.rows if "ORDERS" in said else tuple(self.table.rows)
        return Rows((), rows)

    def close(self) -> None: ...


def seen(case: Case, one: Writer = honest, other: Writer = honest) -> Observation:
    table = Table(case)
    # both in the words of SQL
    first, second = (Side(GENERATIONS[TRINO], Session(table, each), _noted) for each in (one, other))
    filling = {"table": "lab.NS.t", "namespace": "NS", "table_name": "t"}
    with ThreadPoolExecutor(1) as pool:
        steps = race(case.behaviour.table, case.steps, first, second, filling, pool.submit, _sound)
    # Which engine it is decides about refusals: here DuckDB's.
    steps = [StepResult(**{**vars(step), "by": case.cell.writer}) for step in steps]
    return Observation(case.cell, tuple(steps), {}, {}, DUCKDB, 1.0)


def _sound(session: Any, who: Generation) -> StepResult:
    return plain_read(session, who, NAMESPACE, ORDERS_V2)


def _noted(step: StepResult) -> StepResult:
    noted = {"rules": [], "amended": [], "narrowed": [], "tokens": 0, "statuses": [], "commits": [409, 200]}
    return StepResult(**{**vars(step), "asked": noted})


def failing_in(found: Observation, answer: Failure, steps: Sequence[StepResult], *more: StepResult) -> Observation:
    """The same with this answer in these steps, and what the lab asks after a failure."""
    told = (replace(step, answer=answer) if any(step is one for one in steps) else step for step in found.steps)
    return replace(found, steps=(*told, *more))


def line(found: Observation) -> dict[str, Any]:
    return as_json(found, judge(BEHAVIOURS[found.cell.behaviour], found), None)


@pytest.mark.parametrize("name", RACES)
def test_two_honest_writers_are_right(name: str) -> None:
    verdict = judge(FEATURES[name], seen(case(name)))
    assert (verdict.outcome, verdict.differences) == (Outcome.WORKS, ())


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", RACES)
def test_a_writer_that_is_wrong_once_is_found(name: str, wrong: str, second: bool) -> None:
    writers = (honest, WRONG[wrong]) if second else (WRONG[wrong], honest)
    found = seen(case(name), *writers)
    verdict = judge(FEATURES[name], found)
    assert verdict.outcome is Outcome.SILENTLY_WRONG
    assert verdict.expectation is ExpectationVerdict.UNEXPECTED
    assert result(line(found)) is Result.WRONG


@pytest.mark.parametrize("name", RACES)
def test_a_writer_that_is_refused_and_does_nothing_is_right(name: str) -> None:
    found = seen(case(name), refusing)
    verdict = judge(FEATURES[name], found)
    assert (verdict.outcome, verdict.differences) == (Outcome.WORKS, ())
    told = line(found)
    assert failing(told) is None
    assert [step["name"].partition("-")[2] for step, _ in refusals(told)] == ["1"]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(matrix.table([told], list(GENERATIONS), 200))
    assert "refused in a race (1 statement, duckdb-1.5.5)" in console.export_text()
    assert "refused 1 + 0" in report.markdown([told], [], list(GENERATIONS))


def test_what_is_refused_in_other_words_is_unexpected_and_no_conflict() -> None:
    def failing_otherwise(table: Table, change: Change) -> Answer:
        return BOOM

    found = seen(case("race-update"), failing_otherwise)
    quiet = tuple(replace(step, asked={**(step.asked or {}), "commits": [200]}) for step in found.steps)
    assert line(replace(found, steps=quiet))["meetings"] == {"rounds": 3, "met": 3, "conflicts": 0}
    turned_away = seen(case("race-update"), refusing)
    unasked = tuple(replace(step, asked={**(step.asked or {}), "commits": []}) for step in turned_away.steps)
    assert line(replace(turned_away, steps=unasked))["meetings"] == {"rounds": 3, "met": 3, "conflicts": 1}
    verdict = judge(FEATURES["race-update"], found)
    assert verdict.outcome is Outcome.ERROR
    assert verdict.expectation is ExpectationVerdict.UNEXPECTED
    assert result(line(found)) is Result.STATEMENT_FAILS


def test_one_of_two_comes_first() -> None:
    verdict = judge(FEATURES["race-update"], seen(case("race-update"), refusing, refusing))
    assert verdict.expectation is ExpectationVerdict.UNEXPECTED
    assert "nobody was acknowledged in round 1" in verdict.differences[0]


def unmet(monkeypatch: pytest.MonkeyPatch, rounds: float) -> None:
    """In that many rounds the second writer begins an hour after the first one, by the clock that races are told by."""
    here, late = threading.get_ident(), [rounds]

    def clock() -> float:
        if threading.get_ident() == here or late[0] <= 0:
            return time.monotonic()
        late[0] -= 1
        return time.monotonic() + 3600

    monkeypatch.setattr("lab.racing.time", SimpleNamespace(monotonic=clock, sleep=time.sleep))


@pytest.mark.parametrize("name", RACES)
def test_two_that_never_meet_are_no_race(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unmet(monkeypatch, float("inf"))
    found = seen(case(name))
    verdict = judge(FEATURES[name], found)
    assert verdict.expectation is ExpectationVerdict.UNEXPECTED
    assert verdict.differences[0].startswith("no race: in none of ")
    assert meetings(found, BEHAVIOURS[found.cell.behaviour].expectation(found.cell)) == Meetings(9, 0, 0)
    told = line(found)
    assert told["meetings"] == {"rounds": 9, "met": 0, "conflicts": 0}
    jsonschema.validate({"run": "r", "time": "2026-11-30T00:00:00Z", **told}, schema())
    choices = report.choices([told], [DUCKDB], [TRINO], {})
    assert "0 of 9 rounds met" in report.markdown([told], choices, list(GENERATIONS))


def test_a_round_in_which_they_did_not_meet_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    unmet(monkeypatch, 2)  # the first round, and its first repetition
    found = seen(case("race-update"))
    assert [s.change.round for s in found.steps if s.change][::2] == [1, 4, 7, 2, 3]
    assert meetings(found, BEHAVIOURS[found.cell.behaviour].expectation(found.cell)) == Meetings(5, 3, 3)
    assert judge(FEATURES["race-update"], found).differences == ()


def test_rows_of_their_own_are_no_race_for_the_same_row() -> None:
    found = seen(case("race-update"))
    apart = [
        replace(step, began=step.began + 3600)
        if step.change and step.began is not None and step.name in ("update-2-second", "update-3-second")
        else step
        for step in found.steps
    ]
    verdict = judge(FEATURES["race-update"], replace(found, steps=tuple(apart)))
    assert verdict.differences == ("no race: in none of 2 rounds on the same row did both statements overlap in time",)


def test_one_of_two_can_read_what_is_left() -> None:
    found = seen(case("race-update", PYICEBERG, PYICEBERG))
    sound = _sound(SimpleNamespace(execute=lambda statement: Rows((), ORDERS_V2.rows)), GENERATIONS[PYICEBERG])
    reads = [step for step in found.steps if step.name.startswith("whole")]
    assert len(reads) == 2
    for failing_reads, lines in ((reads[:1], ()), (reads, ("nobody could read what the race left",))):
        verdict = judge(FEATURES["race-update"], failing_in(found, UNREADABLE, failing_reads, sound))
        assert verdict.differences == lines
    assert meetings(found, verdict.expected) == Meetings(3, 3, 3)


def test_what_can_not_be_read_is_no_conflict() -> None:
    found = seen(case("race-update", PYICEBERG, PYICEBERG))
    quiet = tuple(replace(step, asked={**(step.asked or {}), "commits": []}) for step in found.steps)
    raced = [step for step in quiet if step.change and not step.name.endswith(SECOND)]
    told = line(failing_in(replace(found, steps=quiet), UNREADABLE, raced))
    assert told["meetings"] == {"rounds": 3, "met": 3, "conflicts": 0}
    unread = line(failing_in(found, UNREADABLE, found.steps[-1:]))
    assert "one can't read what is left" in report.markdown([unread], [], list(GENERATIONS))


def test_a_crash_or_a_read_is_not_refused() -> None:
    found = seen(case("race-update"), refusing)
    refused = [step for step in found.steps if step.answer == CONFLICT]
    read = [step for step in found.steps if step.name == "whole-second"]
    for answer, steps, outcome in (
        (replace(CONFLICT, crash=True), refused, Outcome.CRASH),
        (CONFLICT, read, Outcome.ERROR),
    ):
        verdict = judge(FEATURES["race-update"], failing_in(found, answer, steps))
        assert (verdict.outcome, verdict.expectation) == (outcome, ExpectationVerdict.UNEXPECTED)


def test_a_round_that_was_not_run_is_missed() -> None:
    found = seen(case("race-update"))
    steps = tuple(step for step in found.steps if not step.name.startswith("update-2"))
    verdict = judge(FEATURES["race-update"], replace(found, steps=steps))
    assert "never said: update-2, update-2-second" in verdict.differences


def test_what_a_statement_was_to_change_is_what_is_declared() -> None:
    found = seen(case("race-insert"), losing)
    nothing = tuple(
        replace(step, change=replace(step.change, inserted=())) if step.change else step for step in found.steps
    )
    for steps in (nothing, tuple(replace(step, change=None) for step in found.steps)):
        assert judge(FEATURES["race-insert"], replace(found, steps=steps)).outcome is Outcome.SILENTLY_WRONG


def test_each_statement_of_who_can_not_write_fails_as_declared() -> None:
    declared = Failure(
        (Cause("java.lang.IllegalArgumentException", "Must use DVs for position deletes in V3: s3://a"),)
    )
    chain = Failure((Cause("GENERIC_INTERNAL_ERROR", declared.causes[0].message), *declared.causes))
    found = seen(case("race-update-v3", "trino-476", "trino-476"))
    raced = [step for step in found.steps if step.change]
    sound = _sound(SimpleNamespace(execute=lambda statement: Rows((), ORDERS_V2.rows)), GENERATIONS["trino-476"])
    refused = failing_in(found, chain, raced, sound)
    quiet = [
        replace(step, answer=Rows((), FEATURES["race-update-v3"].table.rows))
        if step.truth and step is not sound
        else step
        for step in refused.steps
    ]
    assert judge(FEATURES["race-update-v3"], replace(refused, steps=tuple(quiet))).differences == ()
    gone = failing_in(replace(refused, steps=tuple(quiet)), replace(BOOM, crash=True), [quiet[3]])
    (line,) = judge(FEATURES["race-update-v3"], gone).differences
    assert line.startswith("update-2-second: another failure than declared")


def test_a_record_of_a_race_is_judged_alike() -> None:
    found = seen(case("race-insert"), lying)
    again = recorded(line(found)).observation
    assert [(step.change, step.answer, step.truth) for step in again.steps] == [
        (step.change, step.answer, step.truth) for step in found.steps
    ]
    assert judge(FEATURES["race-insert"], again).outcome is Outcome.SILENTLY_WRONG


def test_records_of_a_race_are_compared_by_outcome() -> None:
    one, other = (line(seen(case("race-insert"), writer)) for writer in (honest, refusing))
    assert compare([one], [other]).equal
    assert not compare([one], [line(seen(case("race-insert"), losing))]).equal


def test_what_must_stand_there_is_what_was_acknowledged() -> None:
    rows = ((0, 10), (1, 10), (2, 10))
    changes = [Change(1, added=((0, 1),)), Change(1, added=((0, 100),)), Change(2, ((7, 1),)), Change(2, (), (2,))]
    said = [StepResult("change", DUCKDB, "", 0.0, Rows(), change=change) for change in changes]
    refused = [replace(step, answer=CONFLICT) for step in said]
    assert set(left(rows, said)) == {(0, 111), (1, 10), (7, 1)}
    assert left(rows, refused) == left(rows, ()) == rows


def test_what_must_stand_there_follows_from_the_answers_whatever_a_record_says_of_it() -> None:
    found = seen(case("race-insert"))
    (refused, *_) = (step for step in found.steps if step.change)
    steps = tuple(replace(step, answer=CONFLICT) if step is refused else step for step in found.steps)
    assert judge(FEATURES["race-insert"], replace(found, steps=steps)).outcome is Outcome.SILENTLY_WRONG


def test_both_writers_change_rows_of_their_own_and_two_of_three_times_the_same() -> None:
    steps = case("race-update", full=True).steps
    keys = [[key for key, _ in step.change.added] for step in steps if step.change]
    assert sum(key == [0] for key in keys) == 2 * TRIES * 6
    own = [key for key in keys if key != [0]]
    assert len(own) == len({key for (key,) in own})


def test_a_race_is_one_cell_of_two_in_either_order_and_one_of_a_writer_with_itself() -> None:
    wanted = select_pairs("race-insert", None, None, full=False).cases(EMBEDDED)
    two = [frozenset((c.cell.writer, c.cell.reader)) for c in wanted]
    assert len(two) == len(set(two)) == 45
    assert case("race-insert", TRINO, DUCKDB).cell == case("race-insert", DUCKDB, TRINO).cell
    assert case("race-insert", DUCKDB, DUCKDB).cell.reader == DUCKDB


def test_who_cannot_write_v3_races_nobody_else() -> None:
    for writer, reader in ((PYICEBERG, TRINO), (TRINO, PYICEBERG)):
        cells = [c.cell for c in select_pairs("race-insert-v3", writer, reader, full=False).cases(EMBEDDED)]
        assert [(cell.writer, cell.reader) for cell in cells] == [(PYICEBERG, PYICEBERG)]


def test_the_chooser_counts_races_in_either_order() -> None:
    wanted = select_pairs("race-*", DUCKDB, TRINO, full=False)
    lines = [line(seen(c, losing if c.cell.behaviour == "P-race-delete" else honest)) for c in wanted.cases(EMBEDDED)]
    for writer, reader in ((DUCKDB, TRINO), (TRINO, DUCKDB)):
        (choice,) = report.choices(lines, [writer], [reader], wanted.wordless)
        assert str(choice) == (
            f"{writer} → {reader}: races 5 of 6 (18 of 18 rounds met, 18 of them with a conflict); "
            "SILENTLY WRONG on race-delete"
        )


def test_the_report_says_who_retried() -> None:
    text = report.markdown([line(seen(case("race-insert")))], [], list(GENERATIONS))
    assert "| duckdb-1.5.5 | 6 of 6 done, 6 of them after a 409 |" in text


def test_who_cannot_write_is_in_no_race() -> None:
    lines = [line(seen(case("race-insert-v3"))), line(unable(case("race-insert-v3", PYICEBERG, PYICEBERG)))]
    assert [result(told) for told in lines] == [Result.RIGHT, Result.WRITER_CANNOT]
    assert lines[1]["meetings"]["rounds"] == 1
    text = report.markdown(lines, [], list(GENERATIONS))
    assert "at the same moment: 1 races; rows lost, doubled, or there though their statement was refused in 0" in text
    assert "3 of 3 rounds met" in text


def unable(case: Case) -> Observation:
    """The case as it goes where its writer fails at once, as declared."""
    step = case.steps[0]
    failed = StepResult(step.name, case.writer.name, "append()", 0.1, declared(case), change=step.change)
    plain = StepResult(PLAIN_READ, case.writer.name, "SELECT 1", 0.1, Rows())
    return Observation(case.cell, (failed, plain), {}, {}, DUCKDB, 0.2)


def test_a_refusal_is_told_in_the_words_by_which_it_is_known() -> None:
    message = f"Failed to commit:{' and so on' * 50} (Conflict_409) {'of something ' * 50}"
    conflict = Failure((Cause("a.Outer", "Writing job aborted"), Cause("_duckdb.TransactionException", message)))
    told = line(seen(case("race-insert"), lambda table, change: conflict))
    shown = report.markdown([told], [], list(GENERATIONS))
    (words,) = re.findall("`(_duckdb.TransactionException: .*)`", shown)
    assert "(Conflict_409)" in words
    assert "Writing job aborted" not in shown
    assert len(words) < 300


def test_a_script_has_the_lost_round_alone_and_says_that_it_is_of_two_at_once() -> None:
    told = repro.script(line(seen(case("race-insert"), losing))).splitlines()
    said = [one for one in told if one.startswith("INSERT INTO lab.NS")]
    assert said == ["INSERT INTO lab.NS.t VALUES (1002, 1);", "INSERT INTO lab.NS.t VALUES (1001, 1);"]
    assert "-- insert-1, at the same moment as the other one of its round: acknowledged" in told
    assert told[-2].startswith("-- returned ") and told[-1].startswith("-- instead of ")


# ---------------------------------------------------------------- as a run has them
class SignedOn:
    """A gateway that has seen nothing."""

    def __init__(self, record: Path) -> None:
        self.record = str(record)
        record.touch()

    def entry(self, access: Access, uri: str, tag: str) -> Any:
        return SimpleNamespace(secrets=set())

    def asked(self, entry: Any, offset: int) -> tuple[dict[str, Any], int]:
        return _noted(StepResult("it", "lab", "", 0.0)).asked, offset


@pytest.mark.parametrize(("writer", "outcome"), [(honest, Outcome.WORKS), (losing, Outcome.SILENTLY_WRONG)])
def test_a_run_has_two_writers_on_connections_of_their_own(
    writer: Writer, outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [case(name, DUCKDB, DUCKDB) for name in ("race-insert", "race-update", "race-delete-v3")]
    tables = {c.cell.behaviour.removeprefix("P-").replace("-", "_"): Table(c) for c in cases}
    made: list[object] = []

    class Said(Session):
        def execute(self, statement: Statement) -> Answer:
            found = re.search(r"lab\.P_[0-9A-F]{8}\.t_(\w+)", str(statement))
            if found is None or str(statement).startswith("CREATE") or str(statement).count("(") > 9:
                return Rows((), ORDERS_V2.rows)  # the seeds
            self.table = tables[found[1]]
            return super().execute(str(statement).replace(found[0], "lab.NS.t"))

    def Engine(*_: Any) -> Any:
        made.append(engine := SimpleNamespace(versions=dict, close=lambda: None))
        engine.session = lambda settings={}, entry=None: Said(tables["race_insert"], writer)
        return engine

    lab = FakeLab()
    lab.sign_on = lambda: SignedOn(tmp_path / "access.jsonl")  # type: ignore[attr-defined]
    monkeypatch.setattr(FakeLab, "catalog", lambda self: SimpleNamespace(uri="http://127.0.0.1:9"))
    monkeypatch.setattr("lab.run.adapter", lambda kind: SimpleNamespace(Engine=Engine))
    monkeypatch.setattr("lab.run.catalog", lambda lab: FakeCatalog())
    run = Run(cases, select({"generations": DUCKDB}), lab, Recorder(tmp_path / "r", "run", Redactor()))
    run.start()
    found = run.wait()
    run.close()
    assert [r.verdict.outcome for r in found] == [outcome] * 3
    assert len(made) == 2 + 2 * COURSES  # who makes the tables, DuckDB's own lane, and the two of each course
    assert {step.asked is not None for r in found for step in r.observation.steps if step.change} == {True}


def test_every_race_has_words_for_every_kind() -> None:
    for name in RACES:
        for step in FEATURES[name].steps:
            assert isinstance(step.statement("pyiceberg"), Call)
            assert all(isinstance(step.statement(kind), str) for kind in ("duckdb", "spark", "trino"))
