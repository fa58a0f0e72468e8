"""The lab's side of a Python engine: a worker process in that engine's own provisioned environment.

A worker answers one question at a time, in the protocol of `lab/engines/workers/serve.py`. A native crash is
one statement's Failure, and the next session starts a new worker.
"""

from __future__ import annotations

import io
import itertools
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from lab import values
from lab.engines import environment, split
from lab.errors import LabError
from lab.model import Answer, Cause, Column, Failure, Generation, Rows, Statement

if TYPE_CHECKING:
    from lab.catalogs import CatalogEndpoint
    from lab.catalogs.signing import Entry
    from lab.runtime.host import Host

WORKERS = Path(__file__).with_name("workers")
_SIGNALLED = 128  # a guarded process that a signal ended has this exit code and the signal's number


class WorkerEnded(Exception):
    """The worker's process is no more; `failure` says of what it died."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.causes[0].message)
        self.failure = failure


class Worker:
    """A process that has one engine's packages and nothing else of this lab's environment.

    `engine` is the file that knows the engine, `sites` the folders of its packages, `environment` what else stands in
    its environment.
    """

    def __init__(
        self, host: Host, name: str, engine: Path, sites: Sequence[Path], environment: Mapping[str, str]
    ) -> None:
        self._lock = threading.Lock()
        self._host = host
        self._process, _ = host.process(
            name,
            # no site-packages but `sites`, no variable that changes Python
            [sys.executable, "-I", "-S", WORKERS / "serve.py", engine, values.__file__, *sites],
            env={"AWS_EC2_METADATA_DISABLED": "true", **environment},  # without vended credentials, fail at once
            talk=True,
            grace=0,
        )
        assert self._process.stdout is not None
        self._answers = self._process.stdout
        self._questions = io.BufferedWriter(cast(io.RawIOBase, self._process.stdin))

    def ask(self, **question: Any) -> dict[str, Any]:
        """One question's answer, both as in `serve.py`. Raises WorkerEnded, and LabError for a misuse."""
        with self._lock:
            try:
                self._questions.write(json.dumps(question).encode() + b"\n")
                self._questions.flush()
                line = self._answers.readline()
            except (OSError, ValueError):  # the pipe is broken or closed
                line = b""
            except BaseException:  # interrupted: half an answer may be left in the pipe
                self.stop()
                raise
            if not line:
                raise WorkerEnded(self._end())
        answer: dict[str, Any] = json.loads(line)
        if "misuse" in answer:
            raise LabError(answer["misuse"])
        return answer

    def alive(self) -> bool:
        return self._process.alive()

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._host.end(self._process)

    def _end(self) -> Failure:
        with suppress(subprocess.TimeoutExpired):  # it closed its pipe and lives on
            self._process.wait(5)
        self.stop()
        code = self._process.wait()
        names = {_SIGNALLED + number: number.name for number in signal.Signals}
        if code in names:
            cause = Cause(names[code], f"the engine's process was ended by {names[code]}")
        else:
            cause = Cause("exit", f"the engine's process ended with exit code {code}")
        return Failure((cause,), crash=True)


class WorkerEngine:
    """An engine whose sessions live in a worker, started by the first of them.

    The effective settings are the adapter's, the generation's and the session's, the last one winning; None
    removes one.
    """

    engine_file: ClassVar[Path]
    defaults: ClassVar[Mapping[str, str]]

    def __init__(
        self, host: Host, generation: Generation, catalog: CatalogEndpoint, endpoint: Mapping[str, Any]
    ) -> None:
        self._host, self._generation, self._catalog = host, generation, catalog
        self._workers: dict[frozenset[tuple[str, str]], Worker] = {}  # by what is in their environment
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    @property
    def name(self) -> str:
        """The worker's, hence its log's."""
        return self._generation.name

    def sites(self) -> list[Path]:
        """The folders of the engine's packages."""
        return [self._host.cache.environment(self._generation.name)]

    @staticmethod
    def entered(entry: Entry) -> dict[str, str]:
        """The settings by which the engine comes in so."""
        raise NotImplementedError

    @staticmethod
    def worded(statement: Statement) -> object:
        """The statement as the engine's file takes it, made of what `lab.values` encodes. Raises LabError."""
        raise NotImplementedError

    def session(self, settings: Mapping[str, str | None] = {}, entry: Entry | None = None) -> WorkerSession:
        """A fresh session. What fails in opening it is the answer of each of its statements."""
        settings = {**settings, **(self.entered(entry) if entry else {})}
        effective = {k: v for k, v in {**self.settings(), **settings}.items() if v is not None}
        variables, rest = split(effective)
        worker = self._living(variables)
        session = WorkerSession(worker, next(self._numbers), self.worded, asdict(self._catalog), rest)
        session.settings = entry.told(effective) if entry else effective
        return session

    def versions(self) -> dict[str, str]:
        """Those of the engine and of its parts, asked of themselves. Raises LabError if it can't start."""
        try:
            answer = self._living().ask(do="versions")
        except WorkerEnded as end:
            raise LabError(f"{self.name} does not start: {end}; read {self._host.log(self.name)}") from None
        if "failure" in answer:
            cls, message = answer["failure"][0]
            raise LabError(f"{self.name} does not start: {cls}: {message}; read {self._host.log(self.name)}")
        versions: dict[str, str] = answer["versions"]
        return versions

    def settings(self) -> dict[str, str]:
        """Those of a session without settings of its own."""
        return {**environment(self._catalog), **self.defaults, **self._generation.settings}

    def close(self) -> None:
        with self._lock:
            for worker in self._workers.values():
                worker.stop()
            self._workers.clear()

    def _living(self, variables: Mapping[str, str] | None = None) -> Worker:
        """A worker with these variables, where None is what the catalog's store wants."""
        given = self._catalog.client_environment if variables is None else variables
        key = frozenset(given.items())
        with self._lock:
            worker = self._workers.get(key)
            if worker is None or not worker.alive():
                usual = given == self._catalog.client_environment
                name = self.name if usual else f"{self.name}-{next(self._numbers)}"
                worker = self._workers[key] = Worker(self._host, name, self.engine_file, self.sites(), given)
            return worker


class WorkerSession:
    """One session in a worker; it ends with it."""

    def __init__(
        self,
        worker: Worker,
        number: int,
        worded: Callable[[Statement], object],
        catalog: dict[str, str],
        settings: dict[str, str],
    ) -> None:
        self.settings = settings
        self._worker, self._number, self._worded = worker, number, worded
        opened = self._ask(do="open", catalog=catalog, settings=settings)
        self._unopened = opened if isinstance(opened, Failure) else None

    def execute(self, statement: Statement) -> Answer:
        """Rows, or the Failure with its causes; never raises for a failure of the engine's own."""
        if self._unopened is not None:
            return self._unopened
        answer = self._ask(do="execute", statement=values.encode(self._worded(statement)))
        if isinstance(answer, Failure):
            return answer
        return Rows(
            tuple(Column(name, kind) for name, kind in answer["columns"]),
            tuple(tuple(map(values.decode, row)) for row in answer["rows"]),
        )

    def close(self) -> None:
        if self._worker.alive():
            self._ask(do="close")

    def _ask(self, **question: Any) -> dict[str, Any] | Failure:
        try:
            answer = self._worker.ask(session=self._number, **question)
        except WorkerEnded as end:
            return end.failure
        if "failure" in answer:
            return Failure(tuple(Cause(cls, message) for cls, message in answer["failure"]))
        return answer
