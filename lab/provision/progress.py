"""How downloads are shown: a bar each on a terminal, a line each in a log."""

from __future__ import annotations

from threading import Lock
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress as Bars, TextColumn, TimeRemainingColumn
from rich.progress import TaskID, TransferSpeedColumn


class Progress(Protocol):
    """Told of downloads by several threads at once; names are file names, sizes are bytes."""

    def start(self, name: str, size: int) -> None: ...
    def advance(self, name: str, size: int) -> None: ...
    def done(self, name: str) -> None: ...


class Silent:
    """Shows nothing."""

    def start(self, name: str, size: int) -> None: ...
    def advance(self, name: str, size: int) -> None: ...
    def done(self, name: str) -> None: ...


class Lines:
    """A line when a download starts and one when it ends: for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def start(self, name: str, size: int) -> None:
        print(f"fetching {name} ({megabytes(size)})", file=self._stream, flush=True)

    def advance(self, name: str, size: int) -> None: ...

    def done(self, name: str) -> None:
        print(f"fetched  {name}", file=self._stream, flush=True)


class Bar:
    """A bar per running download; what is drawn vanishes when nothing runs any more."""

    def __init__(self, console: Console) -> None:
        self._bars = Bars(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
            console=console, transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._lock = Lock()

    def start(self, name: str, size: int) -> None:
        with self._lock:
            if not self._tasks:
                self._bars.start()
            self._tasks[name] = self._bars.add_task(name, total=size)

    def advance(self, name: str, size: int) -> None:
        self._bars.advance(self._tasks[name], size)

    def done(self, name: str) -> None:
        with self._lock:
            self._bars.remove_task(self._tasks.pop(name))
            if not self._tasks:
                self._bars.stop()


def shown_on(console: Console) -> Progress:
    """Bars on a terminal, lines elsewhere."""
    return Bar(console) if console.is_terminal else Lines(console.file)


def megabytes(size: int) -> str:
    """`size` bytes as people read it: "455 MB", "0.3 MB"."""
    return f"{size / 1e6:.0f} MB" if size >= 1e7 else f"{size / 1e6:.1f} MB"
