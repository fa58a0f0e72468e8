"""A guarded child process: it dies within seconds when the lab dies, whatever the lab dies of."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil

from lab.errors import LabError

GUARD = Path(__file__).with_name("guard.py")
_TAIL_LINES = 12


class StartFailed(LabError):
    """A process of the lab did not come up; the message ends with its log's last lines."""

    def __init__(self, name: str, reason: str, log: Path) -> None:
        super().__init__(f"{name} did not start: {reason}; read {log}{tail(log)}")


def tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """A log's last lines, indented to follow a message; empty when there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_384))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "".join(f"\n  | {line[:400]}" for line in text.splitlines()[-lines:])


class Process:
    """A command under a guard (see guard.py), in a session of its own, so that a Ctrl-C is the lab's alone.

    `stdin` is the command's standard input; it reaches end of file when the lab dies, which by itself ends
    what watches it. Standard error goes to `log`, and standard output too unless `pipe` is set: then it is
    `stdout`. All descriptors are close-on-exec: a sibling never holds another's pipe open. (So the lab never
    forks without executing: multiprocessing is only ever used with "spawn".)
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        folder: Path,
        log: Path,
        pipe: bool = False,
        grace: float = 2.0,
    ) -> None:
        """Starts `argv` in `folder` with the environment `env` and no other variable.

        grace: seconds between SIGTERM and SIGKILL at the end; 0 kills at once.
        Raises StartFailed when the command can't be executed.
        """
        self.name = name
        self.log = log
        ours, guards = socket.socketpair()
        stdin_read, stdin_write = os.pipe()
        try:
            with log.open("ab") as output:
                self._guard = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(GUARD), str(stdin_read), str(grace), *map(str, argv)],
                    stdin=guards.fileno(),
                    stdout=subprocess.PIPE if pipe else output,
                    stderr=output,
                    env=dict(env),
                    cwd=folder,
                    pass_fds=(stdin_read,),
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            os.close(stdin_write)
            raise
        finally:
            guards.close()
            os.close(stdin_read)
        self._lifeline = ours
        self.stdin: IO[bytes] = os.fdopen(stdin_write, "wb", buffering=0)
        self.stdout: IO[bytes] | None = self._guard.stdout
        with ours.makefile("rb") as report:
            said = report.readline()
        if not said:
            self.stop()
            raise StartFailed(name, f"{argv[0]} can't be executed", log)
        self.pid = int(said)
        self._started = time.monotonic()

    def alive(self) -> bool:
        return self._guard.poll() is None

    def wait(self, timeout: float | None = None) -> int:
        """The command's exit code, once it has ended by itself. Raises subprocess.TimeoutExpired."""
        return self._guard.wait(timeout)

    def stop(self) -> None:
        """Ends the command and everything in its group, and returns when they are gone. Idempotent."""
        with suppress(OSError):
            self.stdin.close()
        with suppress(OSError):
            self._lifeline.shutdown(socket.SHUT_RDWR)
        self._lifeline.close()
        self._guard.wait()

    def uptime(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def rss(self) -> int:
        """Resident memory in bytes of the command and all its descendants; 0 when it is gone."""
        total: int = 0
        with suppress(psutil.Error):
            root = psutil.Process(self.pid)
            for process in (root, *root.children(recursive=True)):
                with suppress(psutil.Error):
                    total += process.memory_info().rss
        return total


def drain(stream: IO[bytes], log: Path) -> None:
    """Copies what is still to come on a child's output to its log, in the background: a full pipe blocks."""

    def copy() -> None:
        with suppress(OSError, ValueError), log.open("ab") as output:
            for line in stream:
                output.write(line)
                output.flush()

    threading.Thread(target=copy, name=f"drain {log.name}", daemon=True).start()


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The whole lines, each with its end, in what comes in pieces of any size; one that is cut short is left out."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in whole)
