"""The run over fake engines: who is asked what, in which order, and what becomes of failures."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lab.run
from lab.errors import LabError
from lab.model import Access, Answer, Cause, Column, ExpectationVerdict, Failure, Outcome, Rows, Step
from lab.plan import cases, select
from lab.provision import NotProvided
from lab.records.record import Recorder, read
from lab.records.redact import Redactor
from lab.run import Run, _Gate
from lab.tables.orders import ORDERS_V2, ORDERS_V3, order
from lab.tables.rest import RestError

BOOM = Failure((Cause("a.Boom", "no such luck"),))


class Engines:
    """Fake engines that keep tables as lists of rows; `wrong` may answer a statement instead."""

    def __init__(self) -> None:
        self.tables: dict[str, list[tuple[Any, ...]]] = {}
        self.said: list[tuple[str, str]] = []
        self.connected: list[str] = []
        self.wrong: Callable[[str, str], Answer | None] = lambda who, sql: None

    def Engine(self, host: Any, generation: Any, catalog: Any, endpoint: Any) -> Any:
        self.connected.append(generation.name)
        return SimpleNamespace(
            session=lambda settings={}, entry=None: SimpleNamespace(
                settings=dict(settings), execute=lambda sql: self._answer(generation.name, str(sql)), close=lambda: None
            ),
            versions=lambda: {"engine": "1"},
            close=lambda: None,
        )

    def _answer(self, who: str, sql: str) -> Answer:
        self.said.append((who, sql))
        if (answer := self.wrong(who, sql)) is not None:
            return answer
        name = next(iter(re.findall(r"lab\.\w+\.\w+", sql)), "")
        if sql.startswith("CREATE TABLE"):
            self.tables[name] = []
        elif sql.startswith("INSERT") and "'desk-mat'" in sql:
            self.tables[name].append(order(111, "desk-mat", 1, "2200.00", "2026-07-02 11:10", who))
        elif sql.startswith("INSERT"):
            self.tables[name] += (ORDERS_V3 if "V3" in name else ORDERS_V2).rows
        elif sql.startswith("SELECT * FROM"):
            return Rows(tuple(Column(n, t) for n, t in ORDERS_V2.columns), tuple(self.tables[name]))
        return Rows()


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    fake = Engines()

    def missing(*_: str) -> None:
        raise RestError(404, "NoSuchTableException", "not there")

    monkeypatch.setattr(lab.run, "adapter", lambda kind: fake)
    monkeypatch.setattr(lab.run, "catalog", lambda lab: SimpleNamespace(load_table=missing))
    return fake


class FakeLab:
    def __init__(self, refuse: Mapping[str, LabError] | None = None) -> None:
        self.host: Any = None
        self.refuse = refuse or {}
        self.starts = 1

    def store(self) -> Any:
        return None

    def catalog(self) -> Any:
        return None

    @contextmanager
    def using(self, generation: Any) -> Iterator[dict[str, Any]]:
        if generation.name in self.refuse:
            raise self.refuse[generation.name]
        yield {"started": self.starts}

    def stop(self) -> None: ...


def ran(tmp_path: Path, behaviours: str, generations: str, fake: FakeLab | None = None) -> Run:
    selection = select({"behaviours": behaviours, "generations": generations})
    run = Run(cases(selection), selection, fake or FakeLab(), Recorder(tmp_path / "r", "run", Redactor()))
    run.start()
    run.wait()
    run.close()
    return run


def outcomes(run: Run) -> dict[str, Outcome]:
    return {str(cell): future.result().verdict.outcome for cell, future in run.results.items()}


def test_a_case_that_returns_the_truth_works_and_is_recorded(engines: Engines, tmp_path: Path) -> None:
    run = ran(tmp_path, "H-v3-insert", "trino-483,spark-4.0*")
    assert set(outcomes(run).values()) == {Outcome.WORKS}
    cells = [line for line in read(run.recorder.path) if line["type"] == "cell"]
    assert {line["cell"]["reader"] for line in cells} == {"trino-483", "spark-4.0.1+iceberg-1.10.0"}
    assert [step["name"] for step in cells[0]["steps"]] == ["insert", "read"]


def test_a_cell_is_told_before_the_next_case_of_its_engine_starts(engines: Engines, tmp_path: Path) -> None:
    selection = select({"behaviours": "H-v3-read,H-v3-insert", "generations": "trino-483"})
    told: list[int] = []  # how many statements the engine had heard when each cell was told
    run = Run(
        cases(selection),
        selection,
        FakeLab(),
        Recorder(tmp_path / "r", "run", Redactor()),
        lambda case, recorded: told.append(sum(who == "trino-483" for who, _ in engines.said)),
    )
    run.start()
    run.wait()
    run.close()
    assert told == [1, 3]  # SELECT | INSERT, SELECT


def test_every_case_has_a_namespace_of_its_own(engines: Engines, tmp_path: Path) -> None:
    ran(tmp_path, "H-v3-insert,H-v3-read", "trino-*")
    made = [sql for _, sql in engines.said if sql.startswith("CREATE TABLE") and "ANALYTICS" not in sql]
    assert len(made) == len(set(made)) == 4


@pytest.mark.parametrize("change", ["drop", "alter", "double"])
def test_one_row_dropped_altered_or_doubled_is_silently_wrong(change: str, engines: Engines, tmp_path: Path) -> None:
    def wrong(who: str, sql: str) -> Answer | None:
        if who != "trino-483" or not sql.startswith("SELECT * FROM lab.H_"):
            return None
        first, *others = ORDERS_V3.rows
        altered = (*first[:2], first[2] + 1, *first[3:])
        rows = {"drop": others, "alter": [altered, *others], "double": [first, first, *others]}[change]
        return Rows((Column("x", "y"),), tuple(rows))

    engines.wrong = wrong
    run = ran(tmp_path, "H-v3-read", "trino-483")
    (recorded,) = [f.result() for f in run.results.values()]
    assert recorded.verdict.outcome is Outcome.SILENTLY_WRONG
    assert recorded.verdict.expectation is ExpectationVerdict.UNEXPECTED


def test_a_failure_stops_the_case_and_a_plain_read_follows(engines: Engines, tmp_path: Path) -> None:
    engines.wrong = lambda who, sql: BOOM if who == "trino-483" and "desk-mat" in sql else None
    run = ran(tmp_path, "H-v3-insert", "trino-483")
    (recorded,) = [f.result() for f in run.results.values()]
    assert [s.name for s in recorded.observation.steps] == ["insert", "plain-v2-read"]
    assert recorded.verdict.outcome is Outcome.ERROR
    assert "no such luck" in recorded.verdict.differences[0]


def test_only_a_look_that_is_always_taken_follows_a_failure(
    engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab.run, "looks", lambda store, beside: defaultdict(lambda: lambda *_: {"seen": 1}))
    engines.wrong = lambda who, sql: BOOM if who == "trino-483" and sql.startswith("UPDATE") else None
    run = ran(tmp_path, "H-delete-403-shuffle,H-one-history", "trino-483")
    steps = {str(c): [s.name for s in f.result().observation.steps] for c, f in run.results.items()}
    assert steps["H-delete-403-shuffle/no-such-setting[trino-483]"][2:] == [
        *("plain-v2-read", "history", "deletes", "orphans"),
    ]
    assert steps["H-one-history/one-engine[trino-483]"] == ["insert", "update", "plain-v2-read"]


def test_a_crash_is_told_and_the_next_case_connects_anew(engines: Engines, tmp_path: Path) -> None:
    crash = Failure((Cause("SIGSEGV", "gone"),), crash=True)
    fake = FakeLab()

    def wrong(who: str, sql: str) -> Answer | None:
        if who == "trino-483" and "H_V3_READ" in sql:
            fake.starts += 1  # a runtime starts the engine again for whoever asks next
            return crash
        return None

    engines.wrong = wrong
    run = ran(tmp_path, "H-v3-insert,H-v3-read", "trino-483", fake)  # the read comes first
    assert sorted(outcomes(run).values()) == [Outcome.CRASH, Outcome.WORKS]
    assert engines.connected.count("trino-483") == 2


def test_what_is_missing_is_not_run_and_no_fault(engines: Engines, tmp_path: Path) -> None:
    lacking = FakeLab({"trino-483": NotProvided("no JDK; install one")})
    run = ran(tmp_path, "H-v3-read", "trino-*", lacking)
    assert sorted(outcomes(run).values()) == [Outcome.NOT_RUN, Outcome.WORKS]
    assert run.broken == set()


def test_what_nobody_can_run_is_told_and_nothing_is_started_for_it(engines: Engines, tmp_path: Path) -> None:
    run = ran(tmp_path, "D-runtime-v3,D-no-shallow-clone", "trino-483", FakeLab({"trino-483": LabError("started")}))
    assert outcomes(run) == dict.fromkeys(
        ("D-runtime-v3/vendor[nobody]", "D-no-shallow-clone/vendor[nobody]"), Outcome.NOT_RUN
    )
    assert engines.connected == []
    assert run.broken == set()
    (told, _) = (line for line in read(run.recorder.path) if line["type"] == "cell")
    assert told["missing"].startswith("D-runtime-v3/vendor: a Databricks workspace")


def test_an_engine_that_does_not_start_is_told_as_broken(engines: Engines, tmp_path: Path) -> None:
    run = ran(tmp_path, "H-v3-read", "trino-483", FakeLab({"trino-483": LabError("read its log")}))
    assert list(outcomes(run).values()) == [Outcome.NOT_RUN]
    assert run.broken == {"trino-483: read its log"}


def test_a_reader_sees_what_each_writer_wrote(engines: Engines, tmp_path: Path) -> None:
    engines.wrong = lambda who, sql: Rows() if sql.startswith(("UPDATE", "DELETE", "SELECT")) else None
    run = ran(tmp_path, "H-dml-v2-new", "trino-*")
    writes = [who for who, sql in engines.said if sql.startswith("UPDATE")]
    reads = [who for who, sql in engines.said if sql.startswith("SELECT * FROM lab.H_")]
    assert sorted(writes) == ["trino-476", "trino-483"]
    assert sorted(reads) == ["trino-476", "trino-476", "trino-483", "trino-483"]
    assert set(outcomes(run).values()) == {Outcome.SILENTLY_WRONG}


def test_a_fault_of_the_lab_itself_is_told_for_its_cell_and_the_others_go_on(engines: Engines, tmp_path: Path) -> None:
    def broken(who: str, sql: str) -> Answer | None:
        if who == "trino-483" and sql.startswith("SELECT"):
            raise RuntimeError("a bug")
        return None

    engines.wrong = broken
    lab = FakeLab()
    lab.host = SimpleNamespace(log=lambda name: tmp_path / f"{name}.log")
    run = ran(tmp_path, "H-v3-read", "trino-*", lab)
    assert sorted(outcomes(run).values()) == [Outcome.NOT_RUN, Outcome.WORKS]
    (why,) = run.broken
    assert why.startswith("trino-483: the lab failed with RuntimeError: a bug; read ")
    assert "Traceback" in (tmp_path / "lab.log").read_text()


def test_a_step_without_words_for_an_engine_is_a_fault_of_the_declaration(engines: Engines, tmp_path: Path) -> None:
    (case,) = cases(select({"behaviours": "H-v3-read", "generations": "pyiceberg*"}))
    wordless = replace(case.behaviour, steps=(Step("count", "SELECT count(*) FROM {table}", truth=((2,),)),))
    selection = select({"generations": "pyiceberg*"})
    recorder = Recorder(tmp_path / "r", "run", Redactor())
    run = Run([replace(case, behaviour=wordless)], selection, FakeLab(), recorder)
    run.start()
    run.wait()
    run.close()
    assert list(outcomes(run).values()) == [Outcome.NOT_RUN]
    assert any("give it a call" in why for why in run.broken)


def test_tables_that_cannot_be_made_are_told(engines: Engines, tmp_path: Path) -> None:
    engines.wrong = lambda who, sql: BOOM if sql.startswith("CREATE TABLE") else None
    run = ran(tmp_path, "H-v3-read", "trino-483")
    (recorded,) = [f.result() for f in run.results.values()]
    assert recorded.verdict.outcome is Outcome.NOT_RUN
    assert "no such luck" in (recorded.observation.missing or "")
    assert recorded.observation.missing in run.broken


def test_keys_that_the_store_can_not_give_are_missing_and_no_failure() -> None:
    access, lab = Access("horizon~vended-seconds=10"), SimpleNamespace()
    with pytest.raises(
        NotProvided, match="minio gives keys of 900 seconds at least, not of 10; take --store seaweedfs"
    ):
        _Gate(lab, "minio", access, Redactor())  # type: ignore[arg-type]
