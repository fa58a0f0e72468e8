"""Engines in containers, each bound to a catalog."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from lab.catalogs import CatalogEndpoint
from lab.containers.part import Network, Part, image
from lab.containers.services import Catalog
from lab.engines import GENERATIONS, Engine, adapter
from lab.engines import Session as EngineSession
from lab.errors import LabError
from lab.model import Generation
from lab.provision import Cache
from lab.runtime import folder as folders
from lab.runtime.host import EVERYWHERE, Host


class _Engine(Part):
    """A generation of an engine. `endpoint` is what its adapter connects to."""

    endpoint: dict[str, Any]

    def __init__(
        self,
        network: Network,
        catalog: Catalog | CatalogEndpoint,
        generation: Generation | str,
        ports: Sequence[int] = (),
    ) -> None:
        """generation: its name will do. ports: of the network's, as many as `PORTS` says; taken if none are given."""
        if isinstance(generation, str) and generation not in GENERATIONS:
            raise LabError(f"no generation is called {generation!r}; see: iceberg-lab list generations")
        self.generation = GENERATIONS[generation] if isinstance(generation, str) else generation
        super().__init__(network, image_of(self.generation), ["engine", self.generation.name])
        self._ports = ports or [network.port() for _ in range(PORTS[self.generation.kind])]
        self.catalog = catalog if isinstance(catalog, CatalogEndpoint) else catalog.endpoint
        self._engine: Engine | None = None
        self._settings: dict[str, str | None] = {}
        self.endpoint = {"port": self._ports[0]}
        self.with_envs(
            LAB_PORT=str(self.endpoint["port"]),
            LAB_STORE_URL=self.catalog.s3_endpoint,
            LAB_CATALOG_URI=self.catalog.uri,
            LAB_WAREHOUSE=self.catalog.warehouse,
            LAB_CLIENT_ENVIRONMENT=json.dumps(dict(self.catalog.client_environment)),
        )

    def with_setting(self, name: str, value: str | None) -> Self:
        """A setting of each of its sessions, e.g. `spark.sql.…` or Trino's session properties; None takes one away."""
        self._settings[name] = value
        return self

    def session(self, settings: Mapping[str, str | None] = {}) -> EngineSession:
        """A fresh session of it, see `lab.engines.Session`. What is needed beside it lives in a temporary folder."""
        if self._engine is None:
            self._folder = tempfile.TemporaryDirectory()
            host = Host(Cache(), Path(self._folder.name))
            folders.claim(host.folder)
            self._engine = adapter(self.generation.kind).Engine(host, self.generation, self.catalog, self.endpoint)
        return self._engine.session({**self._settings, **settings})

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        if self._engine is not None:
            self._engine.close()
            self._folder.cleanup()
        super().stop(force, delete_volume)


class Trino(_Engine):
    """A Trino server with the catalog `lab`."""


class _Driven(_Engine):
    """A JVM that is driven by py4j, with a token that only its starter knows."""

    def __init__(self, *made: Any, **of: Any) -> None:
        super().__init__(*made, **of)
        self.endpoint["token"] = secrets.token_urlsafe(32)
        self.with_env("LAB_TOKEN", self.endpoint["token"])


class Spark(_Driven):
    """Spark with Iceberg and the catalog `lab`; Spark Connect is started by the first session that asks for it."""

    def __init__(self, *made: Any, **of: Any) -> None:
        super().__init__(*made, **of)
        self.endpoint["connect"] = {"bind": EVERYWHERE, "port": self._ports[1]}


class Library(_Driven):
    """Iceberg's Java library, driven through its own API."""


KINDS: Mapping[str, type[_Engine]] = {"spark": Spark, "trino": Trino, "iceberg": Library}
PORTS = {"spark": 2, "trino": 1, "iceberg": 1}  # that each needs


def image_of(generation: Generation) -> str:
    """`iceberg-lab/spark:4.1.1-iceberg-1.11.0`, of a generation called `spark-4.1.1+iceberg-1.11.0`."""
    word = "iceberg-java" if generation.kind == "iceberg" else generation.kind
    return image(word, generation.name.removeprefix(f"{word}-").replace("+", "-"))
