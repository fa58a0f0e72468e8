"""A lab of local processes: all of it from package registries, on loopback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import catalogs
from lab.catalogs import CATALOGS, CatalogEndpoint, Upstream, gateway
from lab.engines import adapter
from lab.model import Generation
from lab.runtime.process import Process
from lab.runtime.stack import MEMORY_BUDGET, Stack
from lab.stores import STORES, StoreEndpoint, named

if TYPE_CHECKING:
    from lab.provision import Cache

__all__ = ["MEMORY_BUDGET", "Embedded"]


class Embedded(Stack):
    """Services and engines on this machine. Engines start while the catalog does; what they ask waits there."""

    upstream: Upstream  # the catalog behind the gateway, once that answers

    def __init__(
        self,
        cache: Cache,
        folder: Path,
        *,
        catalog: str = CATALOGS[0],
        store: str = STORES[0],
        memory: int = MEMORY_BUDGET,
    ) -> None:
        """catalog: one of `CATALOGS`, store: one of its own; for the others see `Stack`."""
        self._catalog, self._store = catalogs.named(catalog), named(store)
        self.services = frozenset((gateway.NAME, self._catalog.NAME, self._store.NAME))
        super().__init__(cache, folder, memory=memory)

    def _choose_store(self) -> StoreEndpoint:
        return self._catalog.choose(self.host, self._store.choose(self.host))

    def _warehouse(self, store: StoreEndpoint) -> str:
        return self._catalog.warehouse(store)

    def _start_store(self) -> None:
        self._store.start(self.host, self._store_endpoint())

    def _open_catalog(self) -> str:
        self._gateway, uri = gateway.launch(self.host)
        return uri

    def _start_catalog(self) -> None:
        self._service("gateway", self._open_catalog).result()
        process = self._gateway
        try:
            store = self._service("store", self._start_store)
            self.upstream = self._catalog.start(self.host, self._store_endpoint(), store.result)
            store.result()
            gateway.serve(self.host, process, self._store_endpoint(), self.upstream, self._sign_on.secret)
        except BaseException:
            self._forget("gateway")
            self.host.end(process)  # nobody waits any longer for what it will never answer
            raise

    def _launch(self, generation: Generation, catalog: CatalogEndpoint) -> tuple[Process | None, dict[str, Any]]:
        return adapter(generation.kind).launch(self.host, generation, catalog)

    def running(self) -> Sequence[Process]:
        return self.host.processes()

    def end(self, running: Process) -> None:
        self.host.end(running)
