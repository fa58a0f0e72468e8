"""A whole lab: store, catalog, gateway and engines, each started when first asked for, wherever they live.

Starts run side by side. The gateway's address is known at once, so that engines may start on it while store and
catalog still do. `embedded.py` starts local processes, `containers.py` containers.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from lab.catalogs import CatalogEndpoint
from lab.catalogs.gateway import ACCESS_RECORD
from lab.catalogs.signing import SignOn
from lab.errors import LabError
from lab.model import Generation
from lab.provision import NotProvided
from lab.runtime import folder as folders
from lab.runtime.host import Host
from lab.stores import StoreEndpoint

if TYPE_CHECKING:
    from lab.provision import Cache

GIB = 1024**3
MEMORY_BUDGET = 8 * GIB
_NEXT_ENGINE = 700 * 1024**2  # bytes that a JVM is expected to take
_FAILURE_SECONDS = 60.0  # a start that failed is not tried again before

T = TypeVar("T")


class _Start(Generic[T]):
    """A start in the background, on a daemon thread: an interrupted run does not wait for it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._future: Future[T] = Future()
        self._ended = 0.0
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def _run(self, work: Callable[[], T]) -> None:
        try:
            result = work()
        except BaseException as error:
            self._ended = time.monotonic()
            self._future.set_exception(error)
        else:
            self._future.set_result(result)

    def result(self) -> T:
        """Waits for it. Raises what made it fail."""
        return self._future.result()

    def done(self) -> bool:
        return self._future.done()

    def succeeded(self) -> bool:
        return self.done() and self._future.exception() is None

    def failed_a_while_ago(self) -> bool:
        return self.done() and not self.succeeded() and time.monotonic() - self._ended > _FAILURE_SECONDS


class Running(Protocol):
    """A process or a container of the lab."""

    name: str

    @property
    def pid(self) -> int: ...
    def alive(self) -> bool: ...
    def rss(self) -> int: ...
    def uptime(self) -> float: ...


@dataclass(frozen=True)
class _Started:
    process: Running | None  # None for an engine whose users start workers of their own
    endpoint: dict[str, Any]

    def alive(self) -> bool:
        return self.process is None or self.process.alive()


class Stack(ABC):
    """Services and engines of one run. Thread-safe; two who ask for the same get the same."""

    services: frozenset[str]  # names of those whose death ends the lab's usefulness

    def __init__(self, cache: Cache, folder: Path, *, memory: int = MEMORY_BUDGET) -> None:
        """folder: the run's own; what dead runs left in the folders beside it is cleaned up.

        memory: bytes resident above which the engine that was idle longest is stopped.
        """
        folders.sweep(folder.parent)
        folders.claim(folder)
        self.host = Host(cache, folder)
        self._memory = memory
        self._lock = threading.RLock()
        self._services: dict[str, _Start[Any]] = {}
        self._engines: dict[str, _Start[_Started]] = {}
        self._used: dict[str, float] = {}
        self._leases: Counter[str] = Counter()
        self._jvm_starts = threading.Semaphore(os.cpu_count() or 1)
        self._sign_on = SignOn(secrets.token_urlsafe(32), str(folder / "logs" / ACCESS_RECORD))

    # ------------------------------------------------------------ what a runtime does its own way
    @abstractmethod
    def _choose_store(self) -> StoreEndpoint:
        """Where the store will answer; starts nothing."""

    @abstractmethod
    def _start_store(self) -> None:
        """Returns when an object can be written."""

    @abstractmethod
    def _warehouse(self, store: StoreEndpoint) -> str:
        """What engines name the catalog by."""

    @abstractmethod
    def _open_catalog(self) -> str:
        """The gateway's URI; it need not answer yet."""

    @abstractmethod
    def _start_catalog(self) -> None:
        """Returns when the gateway answers, with catalog and store behind it."""

    @abstractmethod
    def _launch(self, generation: Generation, catalog: CatalogEndpoint) -> tuple[Running | None, dict[str, Any]]:
        """Starts an engine: what runs (None: its users start workers of their own), and its endpoint."""

    @abstractmethod
    def running(self) -> Sequence[Running]:
        """What was started here and not ended."""

    @abstractmethod
    def end(self, running: Any) -> None:
        """Ends one of those."""

    # ------------------------------------------------------------ services
    def store(self) -> StoreEndpoint:
        """The object store, with its administrator's keys. Raises StartFailed, and NotProvided where it is not ours."""
        self._store_ready()
        endpoint = self._store_endpoint()
        if not endpoint.access_record:
            raise NotProvided("this looks into the store as its administrator; a remote catalog's is its owner's")
        return endpoint

    def catalog(self) -> CatalogEndpoint:
        """The gateway, with the catalog and the store behind it ready.

        Raises StartFailed, and LabError when one of the three has died since: its data are gone with it.
        """
        ready = self._service("catalog", self._start_catalog)
        endpoint = self._catalog_endpoint()
        ready.result()
        dead = [one.name for one in self.running() if one.name in self.services and not one.alive()]
        if dead:
            raise LabError(f"{', '.join(dead)} has died; end this lab (iceberg-lab down) and start it anew")
        return endpoint

    def sign_on(self) -> SignOn:
        """By what engines sign on at the gateway's doors."""
        return self._sign_on

    def _store_endpoint(self) -> StoreEndpoint:
        return self._service("store endpoint", self._choose_store).result()

    def _store_ready(self) -> None:
        self._service("store", self._start_store).result()

    def _catalog_endpoint(self) -> CatalogEndpoint:
        uri = self._service("gateway", self._open_catalog).result()
        store = self._store_endpoint()
        return CatalogEndpoint(uri, self._warehouse(store), store.url, store.region, store.client_environment)

    def _service(self, name: str, work: Callable[[], T]) -> _Start[T]:
        with self._lock:
            start = self._services.get(name)
            if start is None or start.failed_a_while_ago():
                start = self._services[name] = _Start(work)
            return start

    def _forget(self, name: str) -> None:
        with self._lock:
            del self._services[name]

    # ------------------------------------------------------------ engines
    def engine(self, generation: Generation) -> dict[str, Any]:
        """How to connect to the engine, as its adapter's `launch` says; started if it does not run.

        Raises LabError. One that fails to start is not tried again for a minute.
        """
        with self._lock:
            self._used[generation.name] = time.monotonic()
            start = self._engines.get(generation.name)
            if start is None or start.failed_a_while_ago() or (start.succeeded() and not start.result().alive()):
                start = self._engines[generation.name] = _Start(lambda: self._start_engine(generation))
        return start.result().endpoint

    @contextmanager
    def using(self, generation: Generation) -> Iterator[dict[str, Any]]:
        """The engine's endpoint; while in use it is not stopped to make room."""
        with self._lock:
            self._leases[generation.name] += 1
        try:
            yield self.engine(generation)
        finally:
            with self._lock:
                self._leases[generation.name] -= 1
                self._used[generation.name] = time.monotonic()

    def _start_engine(self, generation: Generation) -> _Started:
        services = self._service("catalog", self._start_catalog)
        try:
            started = self._started(generation, self._catalog_endpoint())
        except BaseException:
            if services.done():
                services.result()  # if this is why, this is what to say
            raise
        try:
            services.result()
        except BaseException:
            if started.process:
                self.end(started.process)
            raise
        return started

    def _started(self, generation: Generation, catalog: CatalogEndpoint) -> _Started:
        if generation.java is None:
            return _Started(*self._launch(generation, catalog))
        with self._jvm_starts:
            self._make_room(_NEXT_ENGINE)
            started = _Started(*self._launch(generation, catalog))
            self._make_room(0, keep=generation.name)
            return started

    def _make_room(self, wanted: int, keep: str | None = None) -> None:
        """Stops idle engines, the one that was idle longest first, until `wanted` bytes more fit the budget."""
        while self.memory() + wanted > self._memory:
            with self._lock:
                idle = [
                    (self._used[name], name, start.result())
                    for name, start in self._engines.items()
                    if name != keep and not self._leases[name] and start.succeeded() and start.result().process
                ]
                if not idle:
                    return
                _, name, started = min(idle, key=lambda entry: entry[0])
                del self._engines[name]
            assert started.process is not None
            self.end(started.process)

    # ------------------------------------------------------------ the whole
    def memory(self) -> int:
        """Resident bytes of all processes together."""
        return sum(size for _, size in self._resident())

    def _resident(self) -> list[tuple[Running, int]]:
        """What runs, and its bytes; asked side by side, since Docker takes a second or two to tell a container's."""
        running = self.running()
        with ThreadPoolExecutor(max(1, len(running))) as pool:
            return list(zip(running, pool.map(lambda one: one.rss(), running), strict=True))

    def status(self) -> dict[str, Any]:
        """What runs, as JSON without secrets: folder, store, catalog, engines, processes; seconds and bytes."""
        resident = self._resident()
        with self._lock:
            services = {name for name, start in self._services.items() if start.succeeded()}
            engines = [name for name, start in self._engines.items() if start.succeeded()]
            now = time.monotonic()
            return {
                "folder": str(self.host.folder),
                "store": {"url": self._store_endpoint().url} if "store" in services else None,
                "catalog": {"uri": self._catalog_endpoint().uri} if "catalog" in services else None,
                "engines": [
                    {"name": name, "idle": 0.0 if self._leases[name] else round(now - self._used[name], 1)}
                    for name in engines
                ],
                "memory": sum(size for _, size in resident),
                "processes": [
                    {"name": one.name, "pid": one.pid, "rss": size, "uptime": round(one.uptime(), 1)}
                    for one, size in resident
                ],
            }

    def stop(self) -> None:
        """Ends all processes and removes their data; logs stay. Idempotent."""
        self.host.stop()
        folders.release(self.host.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
