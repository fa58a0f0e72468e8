"""kill -9 at random moments of real runs: nothing is left, and what was observed is kept. Marked `full`: minutes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lab.records.record import read

ROOT = Path(__file__).parents[1]
GONE_SECONDS = 10.0
SEED = 20261130
pytestmark = pytest.mark.full


def start(state: Path, cache: str | None, *words: str) -> subprocess.Popen[bytes]:
    """A matrix over one quick engine and one JVM, in a session of its own as a terminal would give it."""
    env = {**os.environ, "ICEBERG_LAB_STATE": str(state), **({"ICEBERG_LAB_CACHE": cache} if cache else {})}
    return subprocess.Popen(
        [sys.executable, "-m", "lab", "matrix", *words],
        cwd=ROOT,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def belonging(state: Path) -> list[psutil.Process]:
    """Every process that has this run's state folder in its command line, environment or working folder."""

    def mentions(process: psutil.Process) -> bool:
        try:
            words = [*process.cmdline(), *process.environ().values(), process.cwd()]
        except psutil.Error:
            return False
        return any(str(state) in word for word in words)

    return [p for p in psutil.process_iter() if p.pid != os.getpid() and mentions(p)]


def listening(processes: list[psutil.Process]) -> set[int]:
    ports = set()
    for process in processes:
        try:
            ports |= {c.laddr.port for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
        except psutil.Error:
            continue
    return ports


def assert_gone(state: Path, ports: set[int]) -> None:
    deadline = time.monotonic() + GONE_SECONDS
    while (left := belonging(state)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [p.cmdline()[:3] for p in left if p.is_running()] == []
    held = {c.laddr.port for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN}
    assert ports & held == set()


def moments(count: int, until: float) -> list[float]:
    """Seconds after the start; the same at every run."""
    generator = random.Random(SEED)  # noqa: S311 - no secret
    return [round(generator.uniform(0.1, until), 2) for _ in range(count)]


@pytest.mark.parametrize(
    ("moment", "whole_group"), [*((m, False) for m in moments(14, 16.0)), *((m, True) for m in moments(6, 8.0))]
)
def test_a_killed_run_leaves_nothing_but_its_record(moment: float, whole_group: bool, tmp_path: Path) -> None:
    process = start(tmp_path, None, "--generations", "duckdb*,spark-3.5*")
    time.sleep(moment)
    ports = listening(belonging(tmp_path))
    if whole_group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    assert_gone(tmp_path, ports)
    for record in tmp_path.glob("runs/*/record.jsonl"):
        assert [line["type"] for line in read(record)][:1] == ["run"]


@pytest.mark.parametrize("moment", moments(6, 12.0))
def test_a_kill_while_provisioning_leaves_a_cache_that_the_next_run_completes(moment: float, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    process = start(tmp_path / "state", cache, "--generations", "duckdb*,pyiceberg*")
    time.sleep(moment)
    process.kill()
    process.wait()
    assert_gone(tmp_path / "state", set())
    again = start(tmp_path / "state", cache, "--generations", "duckdb*", "--behaviours", "H-read-v2")
    assert again.wait(300) == 0
    verified = [sys.executable, "-m", "lab", "cache", "--verify"]
    shown = subprocess.run(verified, cwd=ROOT, env={**os.environ, "ICEBERG_LAB_CACHE": cache}, capture_output=True)
    assert b"damaged" not in shown.stdout


def test_of_two_runs_side_by_side_the_other_is_unaffected(tmp_path: Path) -> None:
    words = ("--generations", "duckdb*,pyiceberg*")
    first, second = start(tmp_path / "shared", None, *words), start(tmp_path / "shared", None, *words)
    time.sleep(4)
    first.kill()
    first.wait()
    assert second.wait(180) == 0
    assert_gone(tmp_path / "shared", set())
