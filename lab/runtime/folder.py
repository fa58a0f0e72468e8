"""A run's folder: who owns it, what is in it, and what becomes of it when the owner is gone.

owner.json        pid and start time of the lab that owns it, while it runs
processes/*.json  pid, start time and command of each guarded process, while it runs
logs/             one per process; stays
data/             volumes, databases, temporary files; removed at the end of the run
outside           paths elsewhere, one a line, that go with data/ (a service that knows no other place)
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

# Start times come from a clock that may be set between two readings.
_SAME_START_SECONDS = 5.0


def identity(pid: int) -> dict[str, Any]:
    """A process as JSON that outlives its pid's reuse: pid and start time (seconds since 1970)."""
    return {"pid": pid, "started": psutil.Process(pid).create_time()}


def alive(who: dict[str, Any]) -> bool:
    """Whether the process of an `identity` still lives; another one with its pid does not count."""
    try:
        process = psutil.Process(int(who["pid"]))
        same = abs(process.create_time() - float(who["started"])) < _SAME_START_SECONDS
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, KeyError, TypeError, ValueError, OverflowError):
        return False


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner reads (0600), whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def read(path: Path) -> dict[str, Any]:
    """A JSON object from a file; empty when the file is missing or not whole."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def claim(folder: Path) -> None:
    """Makes the folder this process's own, only for its user's eyes (0700)."""
    for part in (folder, folder / "logs", folder / "data" / "tmp", folder / "processes"):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(folder / "owner.json", json.dumps(identity(os.getpid())))


def release(folder: Path) -> None:
    """Removes all that does not outlive a run; logs and records stay."""
    outside = folder / "outside"
    if outside.exists():
        for line in outside.read_text().splitlines():
            Path(line).unlink(missing_ok=True)
        outside.unlink()
    for part in ("data", "processes"):
        shutil.rmtree(folder / part, ignore_errors=True)
    (folder / "owner.json").unlink(missing_ok=True)


def remember_outside(folder: Path, paths: Iterable[Path]) -> None:
    """Notes files outside of the folder that `release` removes."""
    with (folder / "outside").open("a") as file:
        file.writelines(f"{path}\n" for path in paths)


def register(folder: Path, name: str, pid: int, command: str) -> None:
    """Notes a running process, so that a later start can end it if guard and lab were killed together."""
    with suppress(psutil.Error):  # it ended at once
        write_private(_note(folder, name), json.dumps({**identity(pid), "command": command}))


def unregister(folder: Path, name: str) -> None:
    _note(folder, name).unlink(missing_ok=True)


def sweep(runs: Path) -> None:
    """Ends the processes and removes the data that dead owners left in the folders under `runs`."""
    for owner in runs.glob("*/owner.json"):
        if alive(read(owner)):
            continue
        for note in owner.parent.glob("processes/*.json"):
            _end(read(note))
        release(owner.parent)


def _note(folder: Path, name: str) -> Path:
    return folder / "processes" / f"{name}.json"


def _end(who: dict[str, Any]) -> None:
    """Kills a noted process with its group, if it is still the one that was noted."""
    with suppress(psutil.Error, ProcessLookupError, PermissionError):
        if alive(who) and psutil.Process(who["pid"]).cmdline()[:1] == [who["command"]]:
            os.killpg(who["pid"], signal.SIGKILL)
