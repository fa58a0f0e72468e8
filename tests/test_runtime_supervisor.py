"""The lab that stays: one at a time, joined without being stopped, ended by `down` or by nobody's use."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from fake_embedded import STORE, generation

import lab
from lab.errors import LabError
from lab.provision import NotProvided
from lab.runtime import folder as folders
from lab.runtime import supervisor
from lab.runtime.places import Places
from lab.runtime.supervisor import Joined

TESTS = str(Path(__file__).parent)
COMMAND = ("-c", f"import sys; sys.path.insert(0, {TESTS!r}); import fake_embedded; fake_embedded.serve()")


@pytest.fixture
def states(tmp_path: Path) -> Iterator[Path]:
    states = tmp_path / "state"
    yield states
    supervisor.down(states)


def _up(states: Path, idle: float = 60.0) -> bool:
    return supervisor.start(states, idle=idle, command=COMMAND)


def _join(states: Path, name: str = "run") -> Joined:
    joined = supervisor.join(states, cast(Any, None), states / "runs" / name, Places())
    assert joined is not None
    return joined


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE  # one that its parent has not reaped yet
    except psutil.NoSuchProcess:
        return False


def test_up_status_join_down(states: Path) -> None:
    assert supervisor.status(states) is None
    assert supervisor.join(states, cast(Any, None), states / "runs" / "x", Places()) is None
    assert not supervisor.down(states)

    assert _up(states)
    assert not _up(states), "a second one says that there is one"
    assert (states / "supervisor.json").stat().st_mode & 0o077 == 0

    with _join(states, "one") as one, _join(states, "two") as two:
        endpoint = one.engine(generation("a"))
        assert two.engine(generation("a")) == endpoint
        assert one.store() == STORE
        assert one.catalog().warehouse == "s3://lab/warehouse"
        own, _ = one.host.process("worker", ["sleep", "900"])
        with pytest.raises(NotProvided, match="install one"):
            two.engine(generation("absent"))
    assert not _lives(own.pid), "what a run started itself ends with it"
    assert _lives(endpoint["pid"]), "what it joined does not"

    status = supervisor.status(states)
    assert status is not None
    assert {p["name"] for p in status["processes"]} == {"store", "catalog", "gateway", "a"}
    text = json.dumps(status)
    assert "secret" not in text
    assert folders.read(states / "supervisor.json")["key"] not in text

    pids = [status["pid"], *(p["pid"] for p in status["processes"])]
    assert supervisor.down(states)
    assert not any(map(_lives, pids))
    assert supervisor.status(states) is None


def test_it_ends_when_nobody_uses_it(states: Path) -> None:
    assert _up(states, idle=1.5)
    state = supervisor.running(states)
    assert state is not None
    with _join(states):
        time.sleep(2)
        assert supervisor.status(states) is not None, "a run that joined uses it, be it silent"
    asked = time.monotonic()
    assert _within(8, lambda: supervisor.status(states) is None), "asking how it is does not keep it up"
    assert time.monotonic() - asked > 1
    assert _within(5, lambda: not folders.alive(state))
    assert not (Path(state["folder"]) / "data").exists()


def test_a_lab_of_other_code_is_not_joined_and_what_other_labs_are_told_is_no_matter(
    states: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _up(states)
    for variable in ("ICEBERG_LAB_CATALOG", "ICEBERG_LAB_POLARIS", "ICEBERG_LAB_MINIO", "ICEBERG_LAB_MINIO_IMAGE"):
        monkeypatch.setenv(variable, "another")
    with _join(states):
        pass
    with monkeypatch.context() as other:
        other.setattr("lab.runtime.places._CODE", ("catalogs",))
        with pytest.raises(LabError, match=r"other code, images or programs .* iceberg-lab down"):
            _join(states)
    root = Path(
        shutil.copytree(Path(lab.__file__).parent, states / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    )
    before = Places().configuration()
    monkeypatch.setattr(lab, "__file__", str(root / "__init__.py"))
    assert Places().configuration() == before
    (root / "behaviours" / "h_v2.py").write_text("# a behaviour is no part of the lab that is up")
    assert Places().configuration() == before
    (root / "engines" / "generations" / "trino-483.toml").write_text("[settings]")
    assert Places().configuration() != before


@pytest.mark.parametrize(
    ("places", "variable"),
    [
        (Places("embedded", "remote", "remote"), "ICEBERG_LAB_CATALOG"),
        (Places("embedded", "polaris"), "ICEBERG_LAB_POLARIS"),
        (Places("embedded", "polaris"), "ICEBERG_LAB_POLARIS_URL"),
        (Places("containers", "polaris"), "ICEBERG_LAB_POLARIS_IMAGE"),
        (Places("embedded", "reference", "minio"), "ICEBERG_LAB_MINIO"),
        (Places("containers", "reference", "minio"), "ICEBERG_LAB_MINIO_IMAGE"),
    ],
)
def test_a_lab_of_another_program_is_another(places: Places, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, reference = places.configuration(), Places().configuration()
    monkeypatch.setenv(variable, "/another")
    assert places.configuration() != before
    assert Places().configuration() == reference


def test_a_request_to_the_gateway_is_use(tmp_path: Path) -> None:
    class Held:
        class host:
            folder = tmp_path

    tended = supervisor.Supervisor(cast(Any, Held), tmp_path, 60.0)
    tended._used -= 1000
    assert tended.idle() > 900
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "catalog-access.jsonl").touch()
    assert tended.idle() < 5


def test_a_dead_supervisors_state_is_noticed(states: Path) -> None:
    assert _up(states)
    with _join(states) as joined:
        endpoint = joined.engine(generation("a"))
        state = supervisor.running(states)
        assert state is not None
        psutil.Process(state["pid"]).kill()
        assert _within(10, lambda: not _lives(endpoint["pid"])), "its engines end with it"
        with pytest.raises(LabError, match=r"iceberg-lab (up|down)"):
            joined.engine(generation("b"))
    assert supervisor.status(states) is None
    assert not (states / "supervisor.json").exists()
    assert not (Path(state["folder"]) / "data").exists()
    assert _up(states), "and another one may come up"


def test_a_state_whose_pid_went_to_a_stranger_is_stale(states: Path) -> None:
    states.mkdir()
    stranger = {**folders.identity(psutil.Process().pid), "started": 1.0, "port": 1, "key": "00", "folder": str(states)}
    folders.write_private(states / "supervisor.json", json.dumps(stranger))
    assert supervisor.running(states) is None
    assert not supervisor.down(states)


def test_one_without_the_key_is_not_answered(states: Path) -> None:
    assert _up(states)
    state = supervisor.running(states)
    assert state is not None
    with pytest.raises(LabError, match="does not answer"):
        supervisor._connect({**state, "key": "00" * 32})
    with socket.create_connection(("127.0.0.1", state["port"])):
        assert supervisor.status(states) is not None, "one who says nothing keeps nobody out"


def test_an_engine_that_a_run_uses_is_leased_until_the_run_ends(states: Path) -> None:
    assert supervisor.start(states, memory=0, command=COMMAND)
    with _join(states) as joined, joined.using(generation("used")) as used:
        joined.engine(generation("other"))
        joined.engine(generation("third"))
        assert joined.engine(generation("used")) == used
    with _join(states, "later") as later:
        later.engine(generation("fourth"))
        assert _within(5, lambda: not _lives(used["pid"]))


def test_what_does_not_come_up_says_why(states: Path) -> None:
    with pytest.raises(LabError, match=r"the lab did not come up; read .*\n.*no such luck"):
        supervisor.start(states, command=("-c", "raise SystemExit('no such luck')"))
