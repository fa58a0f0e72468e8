"""A lab of local processes: started once, side by side, and stopped to make room only when nobody uses them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from fake_embedded import STORE, Fakes, generation

from lab.provision import NotProvided
from lab.runtime import embedded, stack
from lab.runtime.embedded import Embedded
from lab.runtime.process import StartFailed


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    for name in ("named", "gateway", "catalogs", "adapter"):
        monkeypatch.setattr(embedded, name, getattr(embedded, name))  # restored afterwards
    return Fakes()


@pytest.fixture
def lab(fakes: Fakes, tmp_path: Path) -> Iterator[Embedded]:
    with fakes.lab(tmp_path / "runs" / "this") as lab:
        yield lab


def test_nothing_starts_before_it_is_asked_for(lab: Embedded, fakes: Fakes) -> None:
    assert fakes.launched == []
    assert lab.store() == STORE
    assert fakes.launched == ["store"]
    assert lab.catalog().uri == "http://127.0.0.1:2"
    assert sorted(fakes.launched) == ["catalog", "gateway", "store"]


def test_many_who_ask_get_the_same(lab: Embedded, fakes: Fakes) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: lab.engine(generation("a")), range(12)))
        catalogs = set(pool.map(lambda _: lab.catalog(), range(12)))
    assert all(answer == answers[0] for answer in answers)
    assert len(catalogs) == 1
    assert sorted(fakes.launched) == ["a", "catalog", "gateway", "store"]


def test_engines_start_side_by_side_but_no_more_jvms_than_cores(lab: Embedded, fakes: Fakes) -> None:
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda n: lab.engine(generation(f"e{n}")), range(12)))
    assert 1 < fakes.most_at_once <= (os.cpu_count() or 1) or os.cpu_count() == 1


def test_an_engine_that_died_is_started_anew(lab: Embedded) -> None:
    first = lab.engine(generation("a"))
    process = psutil.Process(first["pid"])
    process.kill()
    process.wait(5) if process.is_running() else None
    assert _gone(lab, "a")
    second = lab.engine(generation("a"))
    assert second["pid"] != first["pid"]


def _gone(lab: Embedded, name: str) -> bool:
    (process,) = [p for p in lab.host.processes() if p.name == name]
    process.wait(5)
    return not process.alive()


def test_room_is_made_by_who_was_idle_longest_and_not_in_use(fakes: Fakes, tmp_path: Path) -> None:
    with fakes.lab(tmp_path / "runs" / "this", memory=0) as lab:
        with lab.using(generation("kept")), lab.using(generation("worker", java=None)):
            lab.engine(generation("older"))
            assert {"kept", "older"} <= {p.name for p in lab.host.processes()}
            lab.engine(generation("newer"))
            assert {p.name for p in lab.host.processes()} == {"store", "catalog", "gateway", "kept", "newer"}
        lab.engine(generation("last"))
        assert {p.name for p in lab.host.processes()} == {"store", "catalog", "gateway", "last"}
        assert lab.engine(generation("kept"))["pid"]


def test_a_failure_reaches_all_who_wait_and_is_not_tried_again_at_once(
    lab: Embedded, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.store_breaks = True
    for _ in range(2):
        with pytest.raises(StartFailed, match="made to fail"):
            lab.engine(generation("a"))
    assert fakes.launched.count("store") == fakes.launched.count("a") == 1
    fakes.store_breaks = False
    monkeypatch.setattr(stack, "_FAILURE_SECONDS", 0.0)
    assert lab.engine(generation("a"))["pid"]
    assert fakes.launched.count("gateway") == 2


def test_what_is_not_provided_is_that_engines_failure_alone(lab: Embedded) -> None:
    with pytest.raises(NotProvided, match="install one"):
        lab.engine(generation("absent"))
    assert lab.engine(generation("a"))["pid"]


def test_status_is_json_without_secrets(lab: Embedded) -> None:
    assert lab.status()["catalog"] is None
    lab.engine(generation("a"))
    status = lab.status()
    assert status["catalog"] == {"uri": "http://127.0.0.1:2"}
    assert [engine["name"] for engine in status["engines"]] == ["a"]
    assert {p["name"] for p in status["processes"]} == {"store", "catalog", "gateway", "a"}
    assert all(p["rss"] > 0 and p["uptime"] >= 0 for p in status["processes"])
    assert "secret" not in json.dumps(status)


def test_stop_leaves_logs_and_no_process(fakes: Fakes, tmp_path: Path) -> None:
    lab = fakes.lab(tmp_path / "runs" / "this")
    lab.engine(generation("a"))
    pids = [p.pid for p in lab.host.processes()]
    lab.stop()
    lab.stop()
    assert not any(map(psutil.pid_exists, pids))
    assert sorted(p.name for p in lab.host.folder.iterdir()) == ["logs"]
    with pytest.raises(StartFailed, match="has stopped"):
        lab.engine(generation("b"))
