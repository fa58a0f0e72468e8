"""The store and the catalog in containers."""

from __future__ import annotations

import secrets

from lab.catalogs import CatalogEndpoint, reference
from lab.containers.part import Network, Part, image
from lab.runtime.host import LOOPBACK
from lab.stores import StoreEndpoint, seaweedfs


class SeaweedFs(Part):
    """SeaweedFS, an S3 store with STS. `endpoint` has its address and its administrator's keys."""

    IMAGE = image("seaweedfs", seaweedfs.ARTEFACT.partition("==")[2])

    def __init__(self, network: Network, endpoint: StoreEndpoint | None = None) -> None:
        """endpoint: where it is to answer, on a port of the network's, and its keys; chosen if none is given."""
        super().__init__(network, self.IMAGE, ["store"])
        self.endpoint = endpoint or StoreEndpoint(
            f"http://{LOOPBACK}:{network.port()}",
            seaweedfs.REGION,
            seaweedfs.BUCKET,
            secrets.token_hex(10),
            secrets.token_urlsafe(30),
        )
        self.with_envs(LAB_PORT=self.endpoint.url.rpartition(":")[2], **_of_the_store(self.endpoint))


class Catalog(Part):
    """Iceberg's reference REST catalog behind the lab's gateway, which vends credentials. `endpoint` is public."""

    IMAGE = image("catalog", reference.VERSION)

    def __init__(self, network: Network, store: SeaweedFs | StoreEndpoint, port: int | None = None) -> None:
        super().__init__(network, self.IMAGE, ["catalog"])
        where = store if isinstance(store, StoreEndpoint) else store.endpoint
        number = port or network.port()
        self.endpoint = CatalogEndpoint(
            f"http://{LOOPBACK}:{number}", reference.warehouse(where), where.url, where.region
        )
        self.with_envs(LAB_PORT=str(number), **_of_the_store(where))


def _of_the_store(store: StoreEndpoint) -> dict[str, str]:
    return {
        "LAB_STORE_URL": store.url,
        "LAB_STORE_ACCESS_KEY": store.access_key,
        "LAB_STORE_SECRET_KEY": store.secret_key,
    }


STORES = {"seaweedfs": SeaweedFs}
CATALOGS = {"reference": Catalog}
