"""Guarded processes die with the lab, whatever the lab dies of, and a run's folder says what was left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from lab.runtime import folder as folders
from lab.runtime.host import Host
from lab.runtime.process import StartFailed

ROOT = Path(__file__).parents[1]
DEADLINE = 10.0

# A lab that starts three commands: one that any signal ends, one that ignores SIGTERM, one with a child.
LAB = textwrap.dedent("""
    import pathlib, sys
    from lab.runtime import folder
    from lab.runtime.host import Host

    run = pathlib.Path(sys.argv[1])
    folder.claim(run)
    host = Host(None, run)
    stubborn = "from signal import *; signal(SIGTERM, SIG_IGN); print(1, flush=True); pause()"
    host.process("plain", ["sleep", "900"], grace=0)
    host.process("stubborn", [sys.executable, "-c", stubborn], first_lines=1, grace=0.2)
    host.process("parent", ["sh", "-c", "sleep 900 & echo 1; wait"], first_lines=1)
    print("up", flush=True)
    sys.stdin.read()
    """)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    run = tmp_path / "runs" / "this"
    folders.claim(run)
    host = Host(cast(Any, None), run)
    yield host
    host.stop()


class Lab:
    """A lab in a process of its own, and all processes below it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAB, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"up\n"
        below = psutil.Process(self.process.pid).children(recursive=True)
        self.guards = [p for p in below if "guard.py" in " ".join(p.cmdline())]
        self.watchers = [p for p in below if "farewell" in " ".join(p.cmdline())]
        self.commands = [p for p in below if p not in self.guards + self.watchers]
        assert (len(self.guards), len(self.watchers), len(self.commands)) == (3, 3, 4)

    def left(self) -> list[psutil.Process]:
        return [p for p in self.guards + self.watchers + self.commands if _lives(p)]

    def close(self) -> None:
        for process in [*self.guards, *self.watchers, *self.commands]:
            if _lives(process):
                process.kill()
        self.process.kill()
        self.process.communicate()


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _until(condition: Callable[[], bool], seconds: float = DEADLINE) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _kill_lab(lab: Lab) -> None:
    lab.process.kill()


def _kill_group(lab: Lab) -> None:
    os.killpg(lab.process.pid, signal.SIGKILL)


def _kill_lab_and_guards(lab: Lab) -> None:
    for process in (psutil.Process(lab.process.pid), *lab.guards):
        process.kill()


def _kill_guards(lab: Lab) -> None:
    for process in lab.guards:
        process.kill()


def _interrupt_guards(lab: Lab) -> None:
    for process in lab.guards:
        process.terminate()


KILLS = [_kill_lab, _kill_group, _kill_lab_and_guards, _kill_guards, _interrupt_guards]


def test_nothing_outlives_the_lab(tmp_path: Path) -> None:
    """Ten labs, killed in five ways; all at once, for it is the same wait for all."""
    labs = [(kill, Lab(tmp_path / "runs" / str(n))) for n, kill in enumerate(KILLS * 2)]
    try:
        for kill, lab in labs:
            kill(lab)
        ended = _until(lambda: not any(lab.left() for _, lab in labs))
        assert ended, {kill.__name__: lab.left() for kill, lab in labs}
    finally:
        for _, lab in labs:
            lab.close()


def test_a_run_beside_is_unaffected(tmp_path: Path) -> None:
    killed, beside = Lab(tmp_path / "runs" / "killed"), Lab(tmp_path / "runs" / "beside")
    try:
        killed.process.kill()
        assert _until(lambda: not killed.left())
        folders.sweep(tmp_path / "runs")
        time.sleep(0.3)
        assert len(beside.left()) == 10
        assert (beside.folder / "data").is_dir()
    finally:
        killed.close()
        beside.close()


def test_the_next_start_ends_what_lost_even_its_watchers(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "runs" / "dead")
    try:
        (lab.folder / "data" / "volume").write_text("x")
        outside = tmp_path / "socket"
        outside.touch()
        folders.remember_outside(lab.folder, [outside])
        for process in (*lab.watchers, *lab.guards, psutil.Process(lab.process.pid)):
            process.suspend()  # so that none of them acts on the death of another
        for process in (*lab.watchers, *lab.guards, psutil.Process(lab.process.pid)):
            process.kill()
        lab.process.wait()
        assert not _until(lambda: not lab.left(), 0.5), "nobody should be left to end the commands"
        folders.sweep(tmp_path / "runs")
        assert _until(lambda: not lab.left())
        assert not (lab.folder / "data").exists()
        assert not outside.exists()
        assert (lab.folder / "logs").is_dir(), "logs stay"
    finally:
        lab.close()


def test_the_sweep_spares_a_stranger_who_has_a_noted_pid(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "900"], start_new_session=True)
    try:
        run = tmp_path / "runs" / "dead"
        folders.claim(run)
        folders.register(run, "x", stranger.pid, "weed")  # that command line is not the stranger's
        older = {**folders.identity(stranger.pid), "started": 1.0, "command": "sleep"}
        (run / "processes" / "y.json").write_text(json.dumps(older))
        (run / "owner.json").write_text(json.dumps({"pid": stranger.pid, "started": 1.0}))
        folders.sweep(tmp_path / "runs")
        assert not (run / "owner.json").exists()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_stop_ends_the_whole_group_and_leaves_the_log(host: Host) -> None:
    process, lines = host.process("group", ["sh", "-c", "sleep 900 & echo ready; echo noise; wait"], first_lines=1)
    group = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    assert lines == ["ready"]
    assert len(group) == 2
    assert process.rss() > 100_000
    host.end(process)
    assert not any(map(_lives, group))
    assert not process.alive()
    assert _until(lambda: host.log("group").read_text() == "noise\n")
    assert host.processes() == []


def test_a_sibling_holds_nobodys_pipe(host: Host) -> None:
    reader, _ = host.process("reader", ["cat"])
    host.process("sibling", ["sleep", "900"])
    reader.stdin.close()
    assert reader.wait(DEADLINE) == 0


def test_a_childs_environment_is_the_labs_own(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "planted")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dplanted=1")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    process, _ = host.process("env", ["env"], env={"MORE": "1"}, talk=True)
    assert process.stdout is not None
    found = dict(line.split("=", 1) for line in process.stdout.read().decode().splitlines())
    assert found.pop("MORE") == "1"
    assert set(found) - {"PWD", "SHLVL", "_", "__CF_USER_TEXT_ENCODING"} == {"TZ", "LANG", "PATH", "HOME", "TMPDIR"}
    assert found["TZ"] == "UTC"
    assert found["HOME"].startswith(str(host.folder))


def test_talk_is_both_ways(host: Host) -> None:
    process, _ = host.process("talk", ["cat"], stdin=b"said\n", talk=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"said\n"


def test_a_failed_start_says_what_the_process_said_last(host: Host) -> None:
    with pytest.raises(StartFailed, match=r"broken did not start: ended with exit code 3; read .*\n  \| no port"):
        host.process("broken", ["sh", "-c", "echo no port >&2; exit 3"], first_lines=2)
    with pytest.raises(StartFailed, match="can't be executed"):
        host.process("absent", ["/nowhere/java"])
    assert host.processes() == []


def test_a_stopped_host_starts_nothing(host: Host) -> None:
    host.stop()
    with pytest.raises(StartFailed, match="has stopped"):
        host.process("late", ["sleep", "900"])
    assert host.processes() == []


def test_files_of_a_run_are_its_users_alone(host: Host) -> None:
    host.process("p", ["sleep", "900"])
    modes = {path.name: path.stat().st_mode & 0o077 for path in host.folder.rglob("*") if path.suffix == ".json"}
    assert set(modes) == {"owner.json", "p.json"}
    assert set(modes.values()) == {0}
    assert host.folder.stat().st_mode & 0o077 == 0


def test_ports_are_free_and_given_once(host: Host) -> None:
    ports = [host.port() for _ in range(50)]
    assert len(set(ports)) == 50
