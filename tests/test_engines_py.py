"""Workers of Python engines, with an engine made here: what disturbs, breaks or ends one."""

from __future__ import annotations

import ast
import datetime as dt
import decimal
import json
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from lab import values
from lab.catalogs import CatalogEndpoint
from lab.engines import duckdb, pyiceberg
from lab.engines.worker import WORKERS, WorkerEngine
from lab.errors import LabError, UsageError
from lab.model import Call, Cause, Column, Failure, Generation, Rows, Statement
from lab.runtime import folder
from lab.runtime.host import Host
from lab.values import Nanoseconds

FAKE = textwrap.dedent(
    """
    import ctypes, os, subprocess, sys, time
    import only_here

    print("noise while importing")

    def versions():
        print("noise", flush=True)
        return {"fake": only_here.VERSION}

    class Session:
        def __init__(self, catalog, settings):
            if settings.get("open") == "fail":
                raise OSError("no such catalog: " + catalog["uri"])
            if settings.get("open") == "crash":
                os.abort()

        def execute(self, statement):
            match statement["op"]:
                case "echo":
                    return [("a", "any")], [(value,) for value in statement["args"]["values"]]
                case "noise":
                    print("noise", flush=True)
                    os.write(1, b'{"rows": "a lie"}\\n')
                    subprocess.run(["/bin/echo", "noise"])
                    return [("read", "string")], [(sys.stdin.read(),)]
                case "abort":
                    os.abort()
                case "leave":
                    os._exit(3)
                case "exit":
                    sys.exit("enough")
                case "native":
                    ctypes.CDLL(None).sleep(60)
                case "env":
                    return [("name", "string"), ("value", "string")], list(os.environ.items())
                case "import":
                    __import__(statement["args"]["name"])
                case "unknown":
                    return [("a", "any")], [(object(),)]
                case "cause":
                    try:
                        raise KeyError("inner")
                    except KeyError as inner:
                        raise ValueError("outer") from inner
                case "context":
                    try:
                        raise only_here.Special("first")
                    except only_here.Special:
                        raise ValueError("second")
                case "suppressed":
                    try:
                        raise KeyError("hidden")
                    except KeyError:
                        raise ValueError("alone") from None
            return [], []

        def close(self):
            pass
    """
)
CATALOG = CatalogEndpoint("http://127.0.0.1:1", "w", "http://127.0.0.1:2", "r")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """An engine's file and its packages."""
    (tmp_path / "fake.py").write_text(FAKE)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "only_here.py").write_text("VERSION = '7'\nclass Special(Exception): pass\n")
    return tmp_path


@pytest.fixture
def engine(files: Path) -> Iterator[WorkerEngine]:
    class Fake(WorkerEngine):
        engine_file = files / "fake.py"
        defaults = {"kept": "default", "changed": "default", "removed": "default"}

        @staticmethod
        def worded(statement: Statement) -> object:
            assert isinstance(statement, Call)
            return {"op": statement.op, "args": statement.args}

    run = files / "run"
    folder.claim(run)
    host = Host(cast(Any, SimpleNamespace(environment=lambda name: files / "site")), run)
    generation = Generation("fake-7", "fake", {}, (), settings={"changed": "generation"})
    yield Fake(host, generation, CATALOG, {})
    host.stop()


def test_noise_never_gets_into_an_answer(engine: WorkerEngine, files: Path) -> None:
    assert engine.versions() == {"fake": "7"}
    session = engine.session()
    assert session.execute(Call("noise")) == Rows((Column("read", "string"),), (("",),))
    assert session.execute(Call("nothing")) == Rows()
    log = (files / "run" / "logs" / "fake-7.log").read_text()
    assert log.count("noise") >= 4
    assert "a lie" in log


def any_value(dice: random.Random, depth: int = 0) -> Any:
    kinds = [
        lambda: None,
        lambda: dice.random() < 0.5,
        lambda: dice.randint(-(2 ** dice.randint(1, 130)), 2 ** dice.randint(1, 130)),
        lambda: dice.choice([0.1, -0.0, 1e308, float("inf"), float("-inf"), dice.random()]),
        lambda: "".join(chr(dice.choice([10, 34, 92, 0x20AC, 0x1F600, 0x2028, 65])) for _ in range(5)),
        lambda: decimal.Decimal(dice.randint(-(10**37), 10**37)).scaleb(-dice.randint(0, 37)),
        lambda: dt.datetime(1, 1, 1) + dt.timedelta(microseconds=dice.randint(0, 3 * 10**17)),
        lambda: dt.datetime(2026, 7, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=dice.randint(0, 10**15)),
        lambda: Nanoseconds(f"2026-07-01T09:00:00.{dice.randint(0, 10**9 - 1):09}"),
        lambda: dt.date.fromordinal(dice.randint(1, 3_000_000)),
        lambda: dt.time(dice.randint(0, 23), 1, 2, dice.randint(0, 999_999)),
        lambda: uuid.UUID(int=dice.getrandbits(128)),
        lambda: dice.randbytes(dice.randint(0, 9)),
    ]
    nested = [
        lambda: tuple(any_value(dice, depth + 1) for _ in range(dice.randint(0, 3))),
        lambda: {f"k{i}": any_value(dice, depth + 1) for i in range(dice.randint(0, 3))},
        lambda: {dice.randint(0, 2**60): any_value(dice, depth + 1)},
    ]
    return dice.choice(kinds + nested if depth < 3 else kinds)()


@pytest.mark.parametrize("seed", range(3))
def test_values_come_back_as_they_went(engine: WorkerEngine, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - to be repeated
    sent = tuple(any_value(dice) for _ in range(300))
    answer = engine.session().execute(Call("echo", {"values": sent}))
    assert isinstance(answer, Rows)
    assert [repr(row[0]) for row in answer.rows] == [repr(value) for value in sent]  # types too: 1 is not True


@pytest.mark.parametrize(
    ("op", "cause"),
    [
        ("abort", Cause("SIGABRT", "the engine's process was ended by SIGABRT")),
        ("leave", Cause("exit", "the engine's process ended with exit code 3")),
    ],
)
def test_a_crash_is_a_failure_and_the_next_session_lives(engine: WorkerEngine, op: str, cause: Cause) -> None:
    broken = engine.session()
    crash = Failure((cause,), crash=True)
    assert broken.execute(Call(op)) == crash
    assert broken.execute(Call("echo", {"values": [1]})) == crash  # its session died with it
    broken.close()
    assert engine.session().execute(Call("nothing")) == Rows()


def test_sys_exit_ends_nothing(engine: WorkerEngine) -> None:
    session = engine.session()
    assert session.execute(Call("exit")) == Failure((Cause("SystemExit", "enough"),))
    assert session.execute(Call("nothing")) == Rows()


@pytest.mark.parametrize(
    ("op", "causes"),
    [
        ("cause", (("ValueError", "outer"), ("KeyError", "'inner'"))),
        ("context", (("ValueError", "second"), ("only_here.Special", "first"))),
        ("suppressed", (("ValueError", "alone"),)),
    ],
)
def test_the_chain_is_the_one_that_python_shows(
    engine: WorkerEngine, op: str, causes: tuple[tuple[str, str], ...]
) -> None:
    assert engine.session().execute(Call(op)) == Failure(tuple(Cause(*cause) for cause in causes))


def test_a_session_that_does_not_open_answers_why(engine: WorkerEngine) -> None:
    session = engine.session({"open": "fail"})
    why = Failure((Cause("OSError", "no such catalog: http://127.0.0.1:1"),))
    assert session.execute(Call("nothing")) == session.execute(Call("echo")) == why
    session.close()
    crashed = engine.session({"open": "crash"}).execute(Call("nothing"))
    assert isinstance(crashed, Failure)
    assert crashed.crash


def test_a_value_without_encoding_is_not_the_engines_failure(engine: WorkerEngine) -> None:
    session = engine.session()
    with pytest.raises(LabError, match=r"^no encoding for a value of type object; cast it"):
        session.execute(Call("unknown"))
    assert session.execute(Call("nothing")) == Rows()


def test_a_worker_sees_its_own_packages_and_no_variable_of_the_host(
    engine: WorkerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    session = engine.session()
    for name in ("pytest", "psutil", "lab", "lab.model"):
        answer = session.execute(Call("import", {"name": name}))
        assert isinstance(answer, Failure), name
        assert answer.causes[0].cls == "ModuleNotFoundError"
    seen = session.execute(Call("env"))
    assert isinstance(seen, Rows)
    variables = dict(seen.rows)
    assert variables["TZ"] == "UTC"
    assert not {"AWS_SECRET_ACCESS_KEY", "PYTHONPATH"} & set(variables)


def test_settings_last_one_wins_and_none_removes(engine: WorkerEngine) -> None:
    assert engine.settings() == {"kept": "default", "changed": "generation", "removed": "default"}
    session = engine.session({"removed": None, "changed": "session"})
    assert session.settings == {"kept": "default", "changed": "session"}


def test_close_ends_the_worker_amid_a_native_call(engine: WorkerEngine) -> None:
    engine.versions()
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    engine.close()
    gone(before, 5)
    engine.close()


def test_end_of_input_ends_a_worker_amid_a_native_call(files: Path) -> None:
    serve = [
        sys.executable,
        "-I",
        "-S",
        WORKERS / "serve.py",
        files / "fake.py",
        values.__file__,
        files / "site",
    ]
    worker = subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert worker.stdin is not None
    assert worker.stdout is not None
    for question in (
        {"do": "open", "session": 1, "catalog": {}, "settings": {}},
        {"do": "execute", "session": 1, "statement": values.encode({"op": "native"})},
    ):
        worker.stdin.write(json.dumps(question).encode() + b"\n")
    worker.stdin.flush()
    assert worker.stdout.readline() == b"{}\n"
    time.sleep(0.2)  # into the call
    worker.stdin.close()
    assert worker.wait(5) == 0
    worker.stdout.close()


def gone(pids: set[int], seconds: float) -> None:
    """Fails unless all processes end in time."""
    end = time.monotonic() + seconds
    while left := {pid for pid in pids if psutil.pid_exists(pid)}:
        assert time.monotonic() < end, f"still alive: {left}"
        time.sleep(0.05)


LAB = """
import sys; sys.path[:0] = sys.argv[2:]
import test_engines_py as tests
from pathlib import Path
files = Path(sys.argv[1])
engine = next(tests.engine.__wrapped__(files))
session = engine.session()
print("ready", flush=True)
session.execute(tests.Call("native"))
"""


def test_a_killed_lab_takes_its_worker_along(files: Path) -> None:
    here = Path(__file__).parent
    lab = subprocess.Popen([sys.executable, "-c", LAB, files, here, here.parent], stdout=subprocess.PIPE)
    assert lab.stdout is not None
    assert lab.stdout.readline() == b"ready\n"
    family = {child.pid for child in psutil.Process(lab.pid).children(recursive=True)}
    assert family
    os.kill(lab.pid, signal.SIGKILL)
    lab.wait()
    lab.stdout.close()
    gone(family, 10)


# ---------------------------------------------------------------- the two engines' own words
def test_duckdb_takes_sql_and_pyiceberg_calls() -> None:
    assert duckdb.Engine.worded("SELECT 1") == "SELECT 1"
    with pytest.raises(LabError, match=r"^DuckDB takes SQL"):
        duckdb.Engine.worded(Call("scan"))
    call = Call("scan", {"namespace": "N", "columns": ["A"], "filter": "A = 'x'"})
    assert pyiceberg.Engine.worded(call) == pyiceberg.Engine.worded(str(call))


@pytest.mark.parametrize("text", ["SELECT 1", "scan('N')", "scan(table=open('x'))", "x.scan()", "scan(**{'a': 1})", ""])
def test_text_that_is_no_call_is_the_users_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"write a call with named literals, such as scan\("):
        pyiceberg.Engine.worded(text)


def test_the_described_operations_are_those_that_exist() -> None:
    worker = ast.parse((WORKERS / "pyiceberg.py").read_text())
    (table,) = (node for node in worker.body if ast.unparse(node).startswith("OPERATIONS = "))
    offered = {node.id for node in ast.walk(table) if isinstance(node, ast.Name)}
    functions = [node for node in worker.body if isinstance(node, ast.FunctionDef) and node.name in offered]
    existing = {f"{f.name}({', '.join(argument.arg for argument in f.args.args[1:])})" for f in functions}
    assert pyiceberg.__doc__ is not None
    described = re.findall(r"^ {4}(\w+\(.*?\))", pyiceberg.__doc__, re.MULTILINE)
    assert len(existing) > 10
    assert sorted(described) == sorted(existing)
