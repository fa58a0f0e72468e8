"""How downloads are shown: a bar each on a terminal, a line each in a log."""

from __future__ import annotations

import atexit
from threading import Lock
from typing import IO, Protocol

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Columns
from rich.table import Column


class Progress(Protocol):
    """Told of downloads by several threads at once. Names are file names, sizes bytes."""

    def start(self, name: str, size: int) -> None: ...
    def advance(self, name: str, size: int) -> None:
        """`size` more bytes are there; fewer, when it is negative."""

    def done(self, name: str) -> None:
        """It has ended, well or not."""


class Silent:
    """Shows nothing."""

    def start(self, name: str, size: int) -> None: ...
    def advance(self, name: str, size: int) -> None: ...
    def done(self, name: str) -> None: ...


class Lines:
    """A line when a large download starts and one when it has ended well: for logs.

    `least`: bytes from which a download is told of; hundreds of small jars would hide what a log is read for.
    """

    def __init__(self, stream: IO[str], least: int = 20_000_000) -> None:
        self._stream, self._least = stream, least
        self._lacking: dict[str, int] = {}

    def start(self, name: str, size: int) -> None:
        if size >= self._least:
            self._lacking[name] = size
            self._say(f"fetching {name} ({megabytes(size)})")

    def advance(self, name: str, size: int) -> None:
        if name in self._lacking:
            self._lacking[name] -= size

    def done(self, name: str) -> None:
        if self._lacking.pop(name, None) == 0:
            self._say(f"fetched {name}")

    def _say(self, line: str) -> None:
        self._stream.write(line + "\n")  # in one write: several threads do it
        self._stream.flush()


class Bars:
    """A bar per running download, drawn while there is one."""

    def __init__(self, console: Console) -> None:
        self._columns = Columns(
            # A wheel's name is long, and its beginning tells enough.
            TextColumn("{task.description}", table_column=Column(max_width=36, no_wrap=True, overflow="ellipsis")),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._lock = Lock()
        atexit.register(self._columns.stop)  # an interrupted download leaves the terminal as it was

    def start(self, name: str, size: int) -> None:
        with self._lock:
            if not self._tasks:
                self._columns.start()
            self._tasks[name] = self._columns.add_task(name, total=size)

    def advance(self, name: str, size: int) -> None:
        self._columns.advance(self._tasks[name], size)

    def done(self, name: str) -> None:
        with self._lock:
            self._columns.remove_task(self._tasks.pop(name))
            if not self._tasks:
                self._columns.stop()


def shown_on(console: Console) -> Progress:
    """Bars on a terminal, lines elsewhere."""
    return Bars(console) if console.is_terminal else Lines(console.file)


def megabytes(size: int) -> str:
    """`size` bytes as people read it: "455 MB", "0.3 MB"."""
    return f"{size / 1e6:.0f} MB" if size >= 1e7 else f"{size / 1e6:.1f} MB"
