"""The pair matrix without engines: its declarations, a reader that is wrong in each way, the chooser's lines."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from test_run import FakeLab

import lab.run
from lab import plan, repro
from lab.asking import earlier
from lab.behaviours.pairs.feature import Feature
from lab.behaviours.pairs.filters import OPERATORS, Filter, every
from lab.behaviours.pairs.race import Race
from lab.cli import main
from lab.engines import GENERATIONS
from lab.errors import LabError, UsageError
from lab.model import (
    ENGINES,
    Answer,
    Call,
    Cause,
    Column,
    ExpectationVerdict,
    Failure,
    Observation,
    Outcome,
    Rows,
    StepResult,
    Truth,
)
from lab.plan import FEATURES, Case, select, select_pairs
from lab.records.record import Recorded, Recorder, as_json
from lab.records.redact import Redactor
from lab.records.verdict import PLAIN_READ, judge
from lab.report import pairs as report
from lab.report.pairs import Result, result
from lab.run import Run
from lab.runtime.places import EMBEDDED
from lab.tables.rest import RestError

DUCKDB, PYICEBERG, TRINO, SPARK = "duckdb-1.5.5", "pyiceberg-0.12.0", "trino-483", "spark-4.1.1+iceberg-1.12.0"
BOOM = Failure((Cause("a.Boom", "no such luck"),))


# ---------------------------------------------------------------- a fake reader
def dropped(rows: Truth) -> Truth:
    return rows[1:]


def doubled(rows: Truth) -> Truth:
    return (*rows, rows[0])


def altered(rows: Truth) -> Truth:
    first, *others = rows
    return ((*first[:-1], "something else"), *others)


FAULTS: dict[str, Callable[[Truth], Truth]] = {"drops": dropped, "doubles": doubled, "alters": altered}


def ignoring(case: Case, name: str) -> Truth:
    """What the filters return where one of them lets every row pass."""
    whole = next(step for step in case.steps if step.name == "whole").truth_for(case.reader.kind) or ()
    filters = next(step for step in case.steps if step.name == "filters").truth or ()
    assert isinstance(filters, tuple)
    ids = [name for name, _ in case.behaviour.table.columns].index("id")
    return (*(row for row in filters if row[0] != name), *((name, row[ids]) for row in whole))


def seen(case: Case, answers: dict[str, Answer]) -> Observation:
    """The case as it goes where every step is answered with its truth, but for these."""
    steps = []
    for step in case.steps:
        by = case.reader if step.second else case.writer
        truth = step.truth_for(by.kind)
        answer = answers.get(step.name, Rows((Column("it", "it"),), truth or ()))
        steps.append(StepResult(step.name, by.name, str(step.statement(by.kind)), 0.1, answer, truth=truth))
        if isinstance(answer, Failure):
            steps.append(StepResult(PLAIN_READ, by.name, "SELECT 1", 0.1, Rows()))
            break
    return Observation(case.cell, tuple(steps), {}, {}, DUCKDB, 0.1)


def line(case: Case, answers: dict[str, Answer]) -> dict[str, Any]:
    found = seen(case, answers)
    return as_json(found, judge(case.behaviour, found), None)


def declared(case: Case) -> Failure:
    """How the case is expected to fail."""
    expected = case.behaviour.expectation(case.cell)
    assert expected
    assert expected.failure
    return Failure(tuple(Cause(cls, text) for cls, text in expected.failure.causes))


def case(feature: str, writer: str = DUCKDB, reader: str = TRINO) -> Case:
    return next(c for c in select_pairs(feature, writer, reader, full=False).cases(EMBEDDED) if c.cell.reader == reader)


READ = [name for name, feature in FEATURES.items() if not isinstance(feature, Race)]  # races: tests/test_races.py
ALL = [case(name, "*", next(n for n, g in GENERATIONS.items() if g.kind == "trino")) for name in READ]


@pytest.mark.parametrize("case", ALL, ids=[str(c.cell) for c in ALL])
def test_a_reader_that_drops_doubles_or_alters_one_row_is_silently_wrong(case: Case) -> None:
    read = [step for step in case.steps if step.second and step.truth_for(case.reader.kind)]
    assert read
    for step in read:
        for change in FAULTS.values():
            found = seen(case, {step.name: Rows((), change(step.truth_for(case.reader.kind) or ()))})
            verdict = judge(case.behaviour, found)
            assert verdict.outcome is Outcome.SILENTLY_WRONG
            assert verdict.expectation is ExpectationVerdict.UNEXPECTED


def filtered() -> Iterator[Any]:
    for case in ALL:
        for step in case.steps:
            if step.name == "filters":
                sql = str(step.statement("trino"))
                names = [one[len("SELECT '") : one.index("' AS ")] for one in sql.split(repro.ALL)]
                yield from (pytest.param(case, name, id=f"{case.behaviour.id}: {name}") for name in names)


@pytest.mark.parametrize(("case", "name"), list(filtered()))
def test_a_reader_that_ignores_one_filter_is_silently_wrong(case: Case, name: str) -> None:
    found = seen(case, {"filters": Rows((), ignoring(case, name))})
    assert judge(case.behaviour, found).outcome is Outcome.SILENTLY_WRONG


def test_a_wrong_row_counts_more_than_what_fails_after_it() -> None:
    plain = case("plain")
    whole = next(step.truth for step in plain.steps if step.name == "whole")
    assert isinstance(whole, tuple)
    found = seen(plain, {"whole": Rows((), whole[1:]), "filters": BOOM})
    assert judge(plain.behaviour, found).outcome is Outcome.SILENTLY_WRONG


class FakeEngine:
    """Answers every read of a case with its truth, and what `wrong` says otherwise."""

    def __init__(self, cases: list[Case], wrong: dict[str, Answer]) -> None:
        self.said: list[tuple[str, str]] = []
        self._truth = {
            str(step.statement(case.reader.kind)).split("FROM")[0]: (step.name, step.truth_for(case.reader.kind))
            for case in cases
            for step in case.steps
            if step.second
        }
        self._wrong = wrong

    def Engine(self, host: Any, generation: Any, catalog: Any, endpoint: Any) -> Any:
        def execute(statement: Any) -> Answer:
            self.said.append((generation.name, str(statement)))
            name, truth = self._truth.get(str(statement).split("FROM")[0], ("", None))
            return self._wrong.get(name, Rows((), truth or ()))

        session = SimpleNamespace(settings={}, execute=execute, close=lambda: None)
        return SimpleNamespace(session=lambda settings={}, entry=None: session, versions=dict, close=lambda: None)


def run(cases: list[Case], fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Recorded]:
    monkeypatch.setattr(lab.run, "adapter", lambda kind: fake)
    monkeypatch.setattr(lab.run, "catalog", lambda lab: FakeCatalog())
    selection = select({"generations": f"{DUCKDB},{TRINO}"})
    run = Run(cases, selection, FakeLab(), Recorder(tmp_path / "r", "run", Redactor()))
    run.start()
    found = run.wait()
    run.close()
    return found


class FakeCatalog:
    def create_namespace(self, namespace: str) -> None: ...

    def load_table(self, *_: str) -> None:
        raise RestError(404, "NoSuchTableException", "not there")


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_a_writer_writes_once_for_all_readers_and_a_wrong_one_is_found(
    fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = select_pairs("default-string", DUCKDB, "duckdb*,trino-483,spark-4.1*", full=False).cases(EMBEDDED)
    truth = next(step.truth for step in cases[0].steps if step.name == "whole")
    assert isinstance(truth, tuple)
    fake = FakeEngine(cases, {"whole": Rows((), FAULTS[fault](truth))} if fault else {})
    found = run(cases, fake, tmp_path, monkeypatch)
    assert sum("ADD COLUMN" in sql for _, sql in fake.said) == 1
    assert {r.verdict.outcome for r in found} == {Outcome.SILENTLY_WRONG if fault else Outcome.WORKS}


# ---------------------------------------------------------------- what becomes of a pair
def test_what_cannot_be_loaded_is_told_apart_from_a_column_and_from_a_filter() -> None:
    found = {step: result(line(case("default-string"), {step: BOOM})) for step in ("others", "whole", "filters", "add")}
    assert found == {
        "others": Result.NOT_LOADED,
        "whole": Result.COLUMN_FAILS,
        "filters": Result.FILTER_FAILS,
        "add": Result.STATEMENT_FAILS,  # DuckDB is not expected to fail there
    }
    assert result(line(case("plain"), {"whole": BOOM})) is Result.NOT_READ
    assert result(line(case("plain"), {"whole": replace(BOOM, crash=True)})) is Result.CRASH
    assert result(line(case("plain"), {})) is Result.RIGHT


def test_the_chooser_counts_what_is_read_and_names_what_is_not_and_who_wrote_instead() -> None:
    wanted = select_pairs("plain,default-string,default-number,equality-deletes", SPARK, TRINO, full=False)
    answers: dict[str, dict[str, Answer]] = {
        "P-default-string": {"filters": Rows((), ())},
        "P-equality-deletes": {"whole": BOOM},
    }
    lines = [line(c, answers.get(c.cell.behaviour, {})) for c in wanted.cases(EMBEDDED)]
    (choice,) = report.choices(lines, wanted.writers, wanted.readers, wanted.wordless)
    assert str(choice) == (
        "spark-4.1.1+iceberg-1.12.0 → trino-483: reads 2 of 4; SILENTLY WRONG on default-string (by duckdb-1.5.5); "
        "not read: equality-deletes (by iceberg-java-1.11.0); read as written by duckdb-1.5.5: default-number"
    )


def test_a_stand_in_is_one_whose_table_the_reader_reads_right() -> None:
    every_writer = select_pairs("partition-evolution-deletes", None, SPARK, full=False).cases(EMBEDDED)
    (alone,) = select_pairs("partition-evolution-deletes", PYICEBERG, SPARK, full=False).cases(EMBEDDED)
    assert every_writer[0].writer.name == DUCKDB
    assert alone == every_writer[1], "what DuckDB makes of it nobody reads right"
    lines = [line(c, {"whole": Rows((), ())} if c.writer.name == DUCKDB else {}) for c in every_writer]
    told = f"{PYICEBERG} → {SPARK}: reads 1 of 1; read as written by {alone.writer.name}: partition-evolution-deletes"
    assert str(report.choices(lines, [PYICEBERG], [SPARK], {})[0]) == told
    (own,) = report.choices(lines, [DUCKDB], [SPARK], {})
    assert str(own).endswith("SILENTLY WRONG on partition-evolution-deletes")


def test_what_a_reader_has_no_words_for_is_named() -> None:
    wanted = select_pairs("plain,view", "spark-4.1*1.12*", f"{PYICEBERG},{TRINO}", full=False)
    lines = [line(c, {}) for c in wanted.cases(EMBEDDED)]
    choices = report.choices(lines, wanted.writers, wanted.readers, wanted.wordless)
    told = f"{SPARK} → {PYICEBERG}: reads 1 of 1; has no words for view"
    assert [str(choice) for choice in choices if choice.reader == PYICEBERG] == [told]
    view = report.markdown(lines, choices, list(GENERATIONS)).partition("## P-view")[2]
    assert f"| {SPARK} | no words | right ! |" in view


def test_who_cannot_write_is_asked_once_and_is_no_gap_of_the_readers() -> None:
    wanted = select_pairs("default-number", "spark-4.1*1.12*,duckdb*", "*", full=False)
    cells = [c.cell for c in wanted.cases(EMBEDDED)]
    spark = [cell for cell in cells if cell.writer.startswith("spark")]
    assert [cell.reader for cell in spark] == [cell.writer for cell in spark]
    assert {cell.reader for cell in cells if cell.writer == DUCKDB} == set(wanted.readers)
    lines = [line(c, {"add": declared(c)} if c.writer.kind == "spark" else {}) for c in wanted.cases(EMBEDDED)]
    choices = report.choices(lines, wanted.writers, wanted.readers, wanted.wordless)
    assert all(list(choice.results.values()) == [Result.RIGHT] for choice in choices)
    assert "| spark-4.1.1+iceberg-1.12.0 | writer cannot" in report.markdown(lines, choices, list(GENERATIONS))


@pytest.mark.parametrize(
    ("answer", "shown"),
    [(replace(BOOM, crash=True), "**CRASH** !"), (BOOM, "statement fails !"), (None, "writer cannot")],
)
def test_a_writer_that_cannot_is_one_that_fails_as_declared(answer: Failure | None, shown: str) -> None:
    cases = select_pairs("default-number", SPARK, SPARK, full=False).cases(EMBEDDED)
    (one,) = (case for case in cases if case.cell.writer == SPARK)
    text = report.markdown([line(one, {"add": answer or declared(one)})], [], list(GENERATIONS))
    assert f"| {SPARK} | {shown} |" in text


def test_the_silently_wrong_stand_first_in_the_report() -> None:
    wrong = case("plain")
    text = report.markdown([line(wrong, {"filters": Rows((), ())})], [], list(GENERATIONS))
    assert text.index("P-plain by duckdb-1.5.5 → trino-483") < text.index("## P-plain")
    assert "**WRONG** !" in text


def test_a_script_has_the_wrong_filter_alone_and_what_it_returned() -> None:
    wrong = line(case("plain"), {"filters": Rows((), ())})
    told = repro.script(wrong).splitlines()
    assert told[-3:] == [
        "SELECT 'n = 30' AS filtered, id FROM {table} WHERE n = 30;",
        "-- returned []",
        "-- instead of [('n = 30', 3)]",
    ]
    assert not any("SELECT *" in statement for statement in told)


def test_a_script_asks_pyiceberg_the_wrong_filter_alone_as_its_users_do() -> None:
    told = repro.script(line(case("plain", DUCKDB, PYICEBERG), {"filters": Rows((), ())})).splitlines()
    assert told[-3:] == [
        "catalog.load_table('{namespace}.{table_name}').scan(row_filter='n = 30', selected_fields=('id',)).to_arrow();",
        "-- returned []",
        "-- instead of [(3,)]",
    ]


MOST_STATEMENTS = 12


@pytest.mark.parametrize("full", [False, True])
def test_each_wrong_and_each_crashing_pair_that_is_declared_has_a_script_of_few_statements(full: bool) -> None:
    told: dict[tuple[int, str, str], Case] = {}
    for one in select_pairs(None, None, None, full=full).cases(EMBEDDED):
        expected = one.behaviour.expectation(one.cell)
        if expected is not None and expected.outcome in (Outcome.SILENTLY_WRONG, Outcome.CRASH):
            told.setdefault((id(expected), one.writer.kind, one.reader.kind), one)
    assert len(told) > 40
    for one in told.values():
        expected = one.behaviour.expectation(one.cell)
        assert expected is not None
        assert expected.trap, (one.cell, "which page explains it?")
        answers: dict[str, Answer] = {step: Rows((), rows) for step, rows in expected.rows.items()}
        if expected.outcome is Outcome.CRASH:
            answers[expected.at] = Failure(BOOM.causes, crash=True)
        shown = repro.script(line(one, answers)).splitlines()
        statements = [said for said in shown if not said.startswith("--")]
        assert 1 <= len(statements) <= MOST_STATEMENTS, one.cell
        if expected.outcome is Outcome.SILENTLY_WRONG:
            assert statements[-1] == shown[-3], one.cell
            assert shown[-2].startswith("-- returned ") and shown[-1].startswith("-- instead of "), one.cell
            assert shown[-2].partition("[")[2] != shown[-1].partition("[")[2], one.cell


# ---------------------------------------------------------------- declarations
def test_features_are_many_and_each_engine_may_be_asked() -> None:
    assert len(FEATURES) >= 38
    for name, feature in FEATURES.items():
        assert feature.id == f"P-{name}"
        assert feature.table.files or any(feature.makes(g) for g in GENERATIONS.values()), name
        assert sum(feature.takes(g) for g in GENERATIONS.values() if g.kind in ENGINES) >= 7, name


def test_a_plan_has_each_cell_once() -> None:
    for full in (False, True):
        cells = [c.cell for c in select_pairs(None, None, None, full=full).cases(EMBEDDED)]
        assert len(cells) == len(set(cells)) > 2000


def test_the_suite_runs_few_pairs() -> None:
    daily = [c for c in plan.cases(select({"behaviours": "*"})) if isinstance(c.behaviour, Feature)]
    assert {c.cell.variant for c in daily} == {"default"}
    assert 0 < len(daily) <= 20


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("partition-bukket", None, None), "--feature: .*partition-bucket"),
        ((None, "trino-477", None), "--writer: .*trino-476"),
        ((None, None, "spark-3.6*"), "--reader: .*spark-3.5.6"),
        ((None, None, "iceberg-java*"), "--reader: "),
    ],
)
def test_a_wrong_name_is_answered_with_near_ones(words: tuple[str | None, ...], near: str) -> None:
    with pytest.raises(UsageError, match=near):
        select_pairs(*words, full=False)


@pytest.mark.parametrize(
    "words",
    [
        ("--feature", "partition-bukket"),
        ("--feature", "race-insrt"),
        ("--writer", "trino-477"),
        ("--reader", "spark-3.6*"),
        ("--feature", ""),
        ("--runtime", "embeded"),
    ],
)
def test_a_wrong_word_is_answered_in_one_line(words: tuple[str, str]) -> None:
    told = CliRunner().invoke(main, ["pairs", *words])
    assert (told.exit_code, len(told.stderr.splitlines())) == (2, 1)
    assert told.stderr.startswith(f"usage: {words[0]}")


def test_a_record_is_shown_without_running_anything(tmp_path: Path) -> None:
    wanted = select_pairs("plain", DUCKDB, TRINO, full=False)
    recorder = Recorder(tmp_path / "r.jsonl", "run", Redactor())
    (one,) = wanted.cases(EMBEDDED)
    found = seen(one, {"filters": Rows((), ())})
    recorder.cell(found, judge(one.behaviour, found), None)
    recorder.close()
    args = ["pairs", "--record", str(tmp_path / "r.jsonl"), "--feature", "plain", "--writer", DUCKDB, "--reader", TRINO]
    shown = CliRunner().invoke(main, [*args, "--format", "json"])
    assert shown.exit_code == 1  # what is silently wrong here is expected nowhere
    assert json.loads(shown.stdout)["choices"][0]["results"] == {"plain": "silently wrong"}
    assert "reads 0 of 1; SILENTLY WRONG on plain" in CliRunner().invoke(main, args).stdout
    assert "-- instead of" in CliRunner().invoke(main, [*args, "--script"]).stdout


# ---------------------------------------------------------------- time travel
def snapshot(number: int, rows: int, at: int) -> dict[str, Any]:
    return {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": at,
        "summary": {"total-records": str(rows)},
    }


def test_the_table_as_its_first_rows_left_it_is_told_by_id_and_by_a_moment_before_the_next() -> None:
    metadata = {"snapshots": [snapshot(3, 4, 5000), snapshot(1, 0, 1000), snapshot(2, 2, 2000)]}
    assert earlier(metadata) == {"filled": "2", "filled_at": "1970-01-01 00:00:04.999"}
    with pytest.raises(LabError, match="have the writer make two"):
        earlier({"snapshots": [snapshot(1, 2, 1000)]})


# ---------------------------------------------------------------- filters
ROWS: Truth = ((1, 10, "apple"), (2, None, None), (3, 30, "banana"))
NAMES = ("id", "n", "v")


@pytest.mark.parametrize(
    ("filter", "keys"),
    [
        (Filter("n", "=", 10), [1]),
        (Filter("n", "<", 30), [1]),
        (Filter("n", ">", 10), [3]),
        (Filter("n", "in", (10, 5)), [1]),
        (Filter("n", "not in", (10, 5)), [3]),
        (Filter("n", "null"), [2]),
        (Filter("n", "not null"), [1, 3]),
        (Filter("n", "not", 10), [3]),
        (Filter("v", "like", "ap"), [1]),
        (Filter("v", "not like", "ap"), [3]),
    ],
    ids=str,
)
def test_a_filters_truth_is_that_of_sql(filter: Filter, keys: list[int]) -> None:
    records = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    assert [row["id"] for row in records if filter.keeps(row)] == keys
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (id, n, v)")
    database.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
    assert [key for (key,) in database.execute(f"SELECT id FROM t WHERE {filter.said('duckdb')}")] == keys


def test_full_asks_every_operator() -> None:
    asked = list(every((("id", "int"), ("n", "int"), ("v", "string")), ROWS))
    assert {filter.op for filter in asked if filter.column == "v"} == set(OPERATORS)


def test_a_structs_field_is_null_where_the_struct_is() -> None:
    assert Filter("s.y", "null").keeps({"s": None})
    assert Filter("s.y", "=", 7).keeps({"s": {"y": 7}})


def test_filters_are_one_statement_in_every_dialect() -> None:
    for feature in FEATURES.values():
        for step in feature.steps:
            if step.name == "filters":
                call = step.statement("pyiceberg")
                assert isinstance(call, Call)
                assert 1 <= len(call.args["filters"]) <= 6
                for kind in ("duckdb", "spark", "trino"):
                    assert str(step.statement(kind)).count("SELECT") == len(call.args["filters"])
