"""A lab in containers, with the interface of `Embedded`: same code in each of them, same answers.

What has no Java of its own (DuckDB, PyIceberg) stays a worker process of the user's machine in both runtimes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests
from docker.errors import DockerException
from testcontainers.core.container import DockerContainer

from lab import catalogs
from lab.catalogs import CatalogEndpoint
from lab.catalogs.gateway import ACCESS_RECORD
from lab.containers import Network, Part, engine_answers
from lab.containers.engines import KINDS, PORTS
from lab.containers.part import remove, sweep
from lab.containers.services import CATALOGS, STORES
from lab.engines import GENERATIONS, adapter
from lab.errors import LabError
from lab.model import Generation
from lab.runtime import reaper
from lab.runtime.process import Process, lines
from lab.runtime.stack import MEMORY_BUDGET, Stack
from lab.stores import StoreEndpoint, access

if TYPE_CHECKING:
    from lab.provision import Cache

_NETWORK, _STORE, _CATALOG = "network", "store", "catalog"


class Container:
    """A part that runs, as the lab sees what it started. What it says goes to the run's logs, as it comes."""

    def __init__(self, part: DockerContainer, name: str, log: Path, record: Path | None) -> None:
        self.name, self.log = name, log
        self._wrapped = part.get_wrapped_container()
        self._started = time.monotonic()
        for output, file in (("stderr", log), ("stdout", record)):
            if file is not None:
                threading.Thread(target=self._copy, args=(output, file), name=f"{output} {name}", daemon=True).start()

    @property
    def pid(self) -> int:
        """Of its first process, as the engine's machine has it."""
        return int(self._wrapped.attrs["State"]["Pid"])

    def alive(self) -> bool:
        try:
            self._wrapped.reload()
        except (DockerException, requests.RequestException):
            return False
        return bool(self._wrapped.status == "running")

    def rss(self) -> int:
        """Memory in bytes without what the kernel only caches; 0 when it is gone."""
        with suppress(DockerException, requests.RequestException, KeyError):
            memory = self._wrapped.stats(stream=False, one_shot=True)["memory_stats"]
            cached = memory["stats"].get("inactive_file", memory["stats"].get("total_inactive_file", 0))
            return int(memory["usage"] - cached)
        return 0

    def uptime(self) -> float:
        return time.monotonic() - self._started

    def stop(self) -> None:
        with suppress(DockerException, requests.RequestException):
            remove(self._wrapped)

    def _copy(self, output: str, file: Path) -> None:
        """A part's standard output is its record; that it is ready is for whoever waits for it."""
        with suppress(DockerException, requests.RequestException, OSError), file.open("ab") as to:
            for line in lines(self._wrapped.logs(stream=True, follow=True, **_only(output))):
                if output == "stderr" or b'"ready"' not in line:
                    to.write(line)
                    to.flush()


def _only(output: str) -> dict[str, bool]:
    return {"stdout": output == "stdout", "stderr": output == "stderr"}


class Containers(Stack):
    """Services and engines in containers of one network, removed with the run, after a kill -9 too."""

    services = frozenset((_NETWORK, _STORE, _CATALOG))

    def __init__(self, cache: Cache, folder: Path, *, catalog: str, store: str, memory: int = MEMORY_BUDGET) -> None:
        """Raises LabError when no Docker engine answers."""
        self._store, self._catalog, self._name = STORES[store], CATALOGS[catalog], catalog
        engine_answers()
        super().__init__(cache, folder, memory=memory)
        sweep()
        self._reaper = reaper.start(folder.name, self.host.log("reaper"))
        self._containers: dict[str, Container] = {}
        self._closed = False
        # All that may be asked for: a network publishes its ports when it is made, and not later.
        wanted = [
            _STORE,
            *[_CATALOG] * self._catalog.PORTS,
            *(g.name for g in GENERATIONS.values() for _ in range(PORTS.get(g.kind, 0))),
        ]
        self._network = Network(ports=len(wanted))
        self._ports: dict[str, list[int]] = {}
        for name in wanted:
            self._ports.setdefault(name, []).append(self._network.port())

    # ------------------------------------------------------------ what a runtime does its own way
    def _choose_store(self) -> StoreEndpoint:
        store = self._store.choose(self._ports[_STORE][0], str(self.host.folder / "logs" / access.FILE))
        return catalogs.named(self._name).choose(self.host, store)

    def _start_store(self) -> None:
        endpoint = self._store_endpoint()
        self._run(_STORE, self._store(self._shared(), endpoint), Path(endpoint.access_record))

    def _open_catalog(self) -> str:
        return f"http://127.0.0.1:{self._ports[_CATALOG][0]}"

    def _start_catalog(self) -> None:
        store = self._service(_STORE, self._start_store)
        ports = self._ports[_CATALOG]
        for name, part in self._catalog.parts(self._shared(), self._store_endpoint(), ports, store.result):
            if name == _CATALOG:
                part.with_envs(LAB_SIGN_ON_SECRET=self._sign_on.secret)
            self._run(name, part, self.host.folder / "logs" / ACCESS_RECORD if name == _CATALOG else None)
        store.result()

    def _warehouse(self, store: StoreEndpoint) -> str:
        return self._catalog.warehouse(store)

    def _launch(self, generation: Generation, catalog: CatalogEndpoint) -> tuple[Any, dict[str, Any]]:
        if generation.kind not in KINDS:
            return adapter(generation.kind).launch(self.host, generation, catalog)
        self.catalog()  # an engine asks for its catalog as soon as it is there
        part = KINDS[generation.kind](self._shared(), catalog, generation, self._ports[generation.name])
        return self._run(generation.name, part), part.endpoint

    def running(self) -> Sequence[Container | Process]:
        with self._lock:
            return [*self._containers.values(), *self.host.processes()]

    def end(self, running: Container | Process) -> None:
        if isinstance(running, Process):
            self.host.end(running)
            return
        running.stop()
        with self._lock:
            if self._containers.get(running.name) is running:
                del self._containers[running.name]

    def stop(self) -> None:
        """Removes all containers, ends all processes and removes their data; logs stay. Idempotent."""
        with self._lock:
            self._closed = True
            containers = list(self._containers.values())
        if containers:
            with ThreadPoolExecutor(len(containers)) as pool:
                list(pool.map(Container.stop, containers))
        super().stop()
        if self._reaper.stdin and not self._reaper.stdin.closed:
            self._reaper.stdin.close()  # what was being made meanwhile is its work
        self._reaper.wait()

    # ------------------------------------------------------------ containers
    def _shared(self) -> Network:
        """The network, up."""
        self._service(_NETWORK, lambda: self._run(_NETWORK, self._network)).result()
        return self._network

    def _run(self, name: str, part: Part | Network, record: Path | None = None) -> Container:
        """Starts a container of this run and returns when it serves. Raises LabError."""
        if self._closed:
            raise LabError("the lab has stopped")
        run = self.host.folder.name
        part.with_label(reaper.RUN, run).with_name(f"iceberg-lab-{run}-{name.replace('+', '-')}")
        log = self.host.log(name)
        try:
            part.start()
        except LabError as error:
            with suppress(Exception):
                log.write_bytes(part.get_wrapped_container().logs(stdout=False, stderr=True))
                part.stop()
            raise LabError(f"{name} did not start: {error}") from None
        container = Container(part, name, log, record)
        with self._lock:
            if not self._closed:
                self._containers[name] = container
                return container
        container.stop()
        raise LabError("the lab has stopped")
