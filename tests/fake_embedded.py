"""An `Embedded` whose services and engines are sleeping processes, for the tests of what keeps and ends them."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from lab.catalogs import CatalogEndpoint, Upstream
from lab.model import Generation
from lab.provision import NotProvided
from lab.runtime import embedded, supervisor
from lab.runtime.embedded import MEMORY_BUDGET, Embedded
from lab.runtime.host import Host
from lab.runtime.process import Process, StartFailed
from lab.stores import StoreEndpoint

STORE = StoreEndpoint("http://127.0.0.1:1", "us-east-1", "lab", "admin-key", "admin-secret", "record")


def generation(name: str, java: str | None = "21") -> Generation:
    return Generation(name, "fake", {}, (), java)


class Fakes:
    """What stands in for stores, catalogs and the adapter, and how often each was asked."""

    def __init__(self) -> None:
        self.launched: list[str] = []
        self.at_once = self.most_at_once = 0
        self.seconds = 0.05
        self.store_breaks = False
        self._lock = threading.Lock()

    def lab(self, folder: Path, memory: int = MEMORY_BUDGET) -> Embedded:
        fake: Any = embedded
        fake.named = lambda name: SimpleNamespace(NAME="store", choose=lambda host: STORE, start=self._store)
        fake.gateway = SimpleNamespace(
            NAME="gateway",
            launch=lambda host: (self._sleep(host, "gateway"), "http://127.0.0.1:2"),
            serve=lambda *_: None,
        )
        catalog = SimpleNamespace(
            NAME="catalog",
            choose=lambda host, store: store,
            start=lambda host, store, ready: self._sleep(host, "catalog") and Upstream("http://127.0.0.1:3"),
            warehouse=lambda store: "s3://lab/warehouse",
        )
        fake.catalogs = SimpleNamespace(named=lambda name: catalog)
        fake.adapter = lambda kind: SimpleNamespace(launch=self._launch)
        return Embedded(cast(Any, None), folder, memory=memory)

    def _sleep(self, host: Host, name: str) -> Process:
        self.launched.append(name)
        return host.process(name, ["sleep", "900"], grace=0)[0]

    def _store(self, host: Host, endpoint: StoreEndpoint) -> None:
        process = self._sleep(host, "store")
        time.sleep(self.seconds)
        if self.store_breaks:
            raise StartFailed("store", "made to fail", process.log)

    def _launch(
        self, host: Host, generation: Generation, catalog: CatalogEndpoint
    ) -> tuple[Process | None, dict[str, Any]]:
        if generation.name == "absent":
            raise NotProvided("no Java; install one")
        if generation.java is None:
            self.launched.append(generation.name)
            return None, {}
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        process = self._sleep(host, generation.name)
        time.sleep(self.seconds)
        with self._lock:
            self.at_once -= 1
        return process, {"pid": process.pid, "token": "engine-secret"}


def serve() -> None:
    """A supervisor's process around a fake lab."""
    supervisor.serve(lambda folder, memory: Fakes().lab(folder, memory), json.loads(sys.argv[1]))
