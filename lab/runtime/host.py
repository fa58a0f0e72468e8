"""What a runtime lends to whoever starts something on it: a folder, ports and guarded processes."""

from __future__ import annotations

import os
import queue
import secrets
import socket
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lab.runtime import folder as folders
from lab.runtime.process import Process, StartFailed, drain

if TYPE_CHECKING:
    from lab.provision import Cache

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - of a container, whose ports are published on loopback alone
# Below those that systems give to outgoing connections. What is published of a container has its own: in the network
# that containers share, one that binds a port by chance must not take what another one will be reached by.
PORTS, PUBLISHED_PORTS = range(20_000, 26_000), range(26_000, 32_000)
FIRST_LINES_SECONDS = 90.0


class Host:
    """Starts guarded processes for one run and ends them together."""

    def __init__(
        self, cache: Cache, folder: Path, *, bind: str = LOOPBACK, published: int = 0, archives: bool = True
    ) -> None:
        """folder: the run's own, claimed by `lab.runtime.folder.claim`.

        bind: the address on which its service is reached. published: the port, 0 where any will do; in a container,
        the one that is published. archives: whether class archives that are missing are made here.
        """
        self.cache = cache
        self.folder = folder
        self.bind = bind
        self.published = published
        self.archives = archives
        self._lock = threading.Lock()
        self._processes: dict[str, Process] = {}
        self._ports: set[int] = set()
        self._closed = False

    def data(self, name: str) -> Path:
        """A folder for what does not outlive the run. Raises FileNotFoundError after the run's end."""
        path = self.folder / "data" / name
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def environment(self) -> dict[str, str]:
        """What every child gets: nothing of the host's that changes what an engine does or where it reaches."""
        return {
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.data("home")),
            "TMPDIR": str(self.data("tmp")),
        }

    def process(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        first_lines: int = 0,
        talk: bool = False,
        grace: float = 2.0,
    ) -> tuple[Process, list[str]]:
        """Starts a guarded child whose output goes to logs/NAME.log; its folder is data/NAME.

        env: on top of `environment()`.  stdin: said to the child at once (for a secret: never in argv).
        first_lines: so many lines of standard output are returned instead of logged (py4j's port and token).
        talk: standard output stays the caller's, as `process.stdout`.  grace: see `Process`.
        A name used before belongs to the new process from now on.
        Raises StartFailed when the child ends, or stays silent for 90 s, before it said its first lines.
        """
        log = self.log(name)
        try:
            process = Process(
                name,
                argv,
                env={**self.environment(), **(env or {})},
                folder=self.data(name),
                log=log,
                pipe=bool(first_lines) or talk,
                grace=grace,
            )
        except FileNotFoundError:  # the data folder is gone
            raise StartFailed(name, "the lab has stopped", log) from None
        with self._lock:
            closed = self._closed
            if not closed:
                self._processes[name] = process
                folders.register(self.folder, name, process.pid, str(argv[0]))
        if closed:
            process.stop()
            raise StartFailed(name, "the lab has stopped", log)
        if stdin:
            process.stdin.write(stdin)
        try:
            lines = _first_lines(process, first_lines)
        except BaseException:
            self.end(process)
            raise
        if first_lines and not talk and process.stdout:
            drain(process.stdout, log)
        return process, lines

    def port(self) -> int:
        """A loopback port that is free now, and that this host has not handed out before.

        Below the range from which systems give ports to outgoing connections, so that only another service
        could take it before it is bound.
        """
        while True:
            port = free_port()
            with self._lock:
                if port not in self._ports:
                    self._ports.add(port)
                    return port

    def processes(self) -> list[Process]:
        """Those started here and not ended by `end`."""
        with self._lock:
            return list(self._processes.values())

    def end(self, process: Process) -> None:
        """Stops one process."""
        process.stop()
        with self._lock:
            if self._processes.get(process.name) is process:
                del self._processes[process.name]
                folders.unregister(self.folder, process.name)

    def stop(self) -> None:
        """Stops every process, all at once, and starts no other."""
        with self._lock:
            self._closed = True
        processes = self.processes()
        if processes:
            with ThreadPoolExecutor(len(processes)) as pool:
                list(pool.map(self.end, processes))


def free_port(of: range = PORTS) -> int:
    """A port of these that is free on loopback now."""
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, secrets.choice(of)))
            return int(probe.getsockname()[1])


def _first_lines(process: Process, count: int) -> list[str]:
    if not count:
        return []
    stream = process.stdout
    assert stream is not None
    said: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        for _ in range(count):
            line = stream.readline()
            said.put(line)
            if not line:
                return

    threading.Thread(target=read, daemon=True).start()
    lines = []
    for _ in range(count):
        try:
            line = said.get(timeout=FIRST_LINES_SECONDS)
        except queue.Empty:
            raise StartFailed(process.name, f"silent for {FIRST_LINES_SECONDS:.0f} s", process.log) from None
        if not line:
            raise StartFailed(process.name, f"ended with exit code {process.wait(10)}", process.log)
        lines.append(line.decode().strip())
    return lines
