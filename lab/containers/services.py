"""The store and the catalog in containers."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

from lab.catalogs import CatalogEndpoint, Upstream, polaris, reference
from lab.catalogs import seaweedfs as catalog_of_seaweedfs
from lab.containers.part import Answers, Network, Part, image
from lab.runtime.host import LOOPBACK
from lab.stores import StoreEndpoint, minio, s3, seaweedfs


class _Store(Part):
    """An S3 store with STS. `endpoint` has its address and its administrator's keys."""

    IMAGE: str
    NAME: str  # of its module in lab/stores
    CLIENT_ENVIRONMENT: Mapping[str, str] = {}

    def __init__(self, network: Network, endpoint: StoreEndpoint | None = None) -> None:
        """endpoint: where it is to answer, on a port of the network's, and its keys; chosen if none is given."""
        super().__init__(network, self.IMAGE, ["store", self.NAME])
        self.endpoint = endpoint or self.choose(network.port())
        self.with_envs(LAB_PORT=self.endpoint.url.rpartition(":")[2], **_of_the_store(self.endpoint))

    @classmethod
    def choose(cls, port: int, access_record: str = "") -> StoreEndpoint:
        """Its address on this port, and random keys."""
        return s3.at(port, access_record, cls.CLIENT_ENVIRONMENT)


class SeaweedFs(_Store):
    """SeaweedFS."""

    IMAGE = image("seaweedfs", seaweedfs.VERSION)
    NAME = "seaweedfs"


class Minio(_Store):
    """MinIO; the endpoint's keys are a user's, not its root's. The image is that of its last release under Apache-2.0,
    or the one that ICEBERG_LAB_MINIO_IMAGE names, as `iceberg-lab images build --minio IMAGE` makes it of any other."""

    IMAGE = os.environ.get("ICEBERG_LAB_MINIO_IMAGE") or image("minio", minio.VERSION)
    NAME = "minio"
    CLIENT_ENVIRONMENT = minio.CLIENT_ENVIRONMENT

    def __init__(self, network: Network, endpoint: StoreEndpoint | None = None) -> None:
        super().__init__(network, endpoint)
        self._users: list[minio.User] = []

    def with_user(self, access_key: str, secret_key: str, policy: str | Mapping[str, Any] = "readwrite") -> Self:
        """A user who may do what a policy says: MinIO's `readonly`, `readwrite`, …, or a document of one's own."""
        self._users.append(minio.User(access_key, secret_key, policy))
        return self.with_env("LAB_STORE_USERS", json.dumps([asdict(user) for user in self._users]))


class Catalog(Part):
    """Iceberg's reference REST catalog behind the lab's gateway, which vends credentials. `endpoint` is public."""

    IMAGE = image("catalog", reference.VERSION)
    IMAGES: tuple[str, ...] = (IMAGE,)  # all that it takes
    PORTS = 1
    COMMAND = "catalog"

    def __init__(self, network: Network, store: _Store | StoreEndpoint, port: int | None = None) -> None:
        """port: of the network's; taken if none is given."""
        super().__init__(network, self.IMAGE, [self.COMMAND])
        where = store if isinstance(store, StoreEndpoint) else store.endpoint
        number = port or network.port()
        self.endpoint = CatalogEndpoint(
            f"http://{LOOPBACK}:{number}",
            self.warehouse(where),
            where.url,
            where.region,
            where.client_environment,
        )
        self.with_envs(LAB_PORT=str(number), **_of_the_store(where))

    @classmethod
    def warehouse(cls, store: StoreEndpoint) -> str:
        """What engines name it by."""
        return reference.warehouse(store)

    @classmethod
    def parts(
        cls, network: Network, store: StoreEndpoint, ports: Sequence[int], store_ready: Callable[[], object]
    ) -> Iterator[tuple[str, Part]]:
        """Name and container of each part as they start; each is up before the next is asked for."""
        yield "catalog", cls(network, store, ports[0])

    def before(self, upstream: Upstream) -> Self:
        """The catalog that a gateway stands before."""
        return self.with_envs(LAB_UPSTREAM=json.dumps(asdict(upstream)))


class Gateway(Catalog):
    """The lab's gateway in front of Apache Polaris."""

    IMAGES = (polaris.IMAGE, Catalog.IMAGE)
    PORTS = 2
    COMMAND = "gateway"

    @classmethod
    def warehouse(cls, store: StoreEndpoint) -> str:
        return polaris.CATALOG

    @classmethod
    def parts(
        cls, network: Network, store: StoreEndpoint, ports: Sequence[int], store_ready: Callable[[], object]
    ) -> Iterator[tuple[str, Part]]:
        server = Polaris(network, store, ports[1])
        yield "polaris", server
        yield "catalog", cls(network, store, ports[0]).before(polaris.upstream(server.url, server.secret))


class StoresOwn(Catalog):
    """The lab's gateway in front of the catalog inside SeaweedFS."""

    COMMAND = "gateway"

    @classmethod
    def warehouse(cls, store: StoreEndpoint) -> str:
        return catalog_of_seaweedfs.warehouse(store)

    @classmethod
    def parts(
        cls, network: Network, store: StoreEndpoint, ports: Sequence[int], store_ready: Callable[[], object]
    ) -> Iterator[tuple[str, Part]]:
        store_ready()
        yield "catalog", cls(network, store, ports[0]).before(catalog_of_seaweedfs.set_up(store))


class Polaris(Part):
    """Apache Polaris with its state in memory and a catalog on the store; `url` and its root's `secret`."""

    def __init__(self, network: Network, store: _Store | StoreEndpoint, port: int | None = None) -> None:
        """port: of the network's; taken if none is given."""
        super().__init__(network, polaris.IMAGE, [])
        number = port or network.port()
        self.url, self.secret = f"http://{LOOPBACK}:{number}", secrets.token_urlsafe(30)
        self._store = store if isinstance(store, StoreEndpoint) else store.endpoint
        self._catalog = polaris.CATALOG
        self.with_envs(**polaris.environment(str(number), self.secret, _of_the_store(self._store)))
        self.waiting_for(Answers(lambda: polaris.answers(self.url, self.secret)))

    def with_catalog(self, name: str) -> Self:
        """What its catalog is called."""
        self._catalog = name
        return self

    def start(self) -> Self:
        """Returns when its catalog is made. Raises LabError."""
        super().start()
        polaris.set_up(self.url, self.secret, self._store, reference.warehouse(self._store), self._catalog)
        return self


def _of_the_store(store: StoreEndpoint) -> dict[str, str]:
    return {
        "LAB_STORE_URL": store.url,
        "LAB_STORE_ACCESS_KEY": store.access_key,
        "LAB_STORE_SECRET_KEY": store.secret_key,
        "LAB_CLIENT_ENVIRONMENT": json.dumps(dict(store.client_environment)),
        "LAB_STORE_CATALOG": store.catalog,
    }


STORES: Mapping[str, type[_Store]] = {"seaweedfs": SeaweedFs, "minio": Minio}
CATALOGS: Mapping[str, type[Catalog]] = {"reference": Catalog, "polaris": Gateway, "seaweedfs": StoresOwn}
