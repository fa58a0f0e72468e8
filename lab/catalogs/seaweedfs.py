"""The REST catalog inside the SeaweedFS binary, like Amazon S3 Tables: beside the store's S3, over the same data.

Its tables are in a table bucket, which refuses objects that are no Iceberg layout to it: all that is in neither
metadata/ nor data/, and every *.puffin, hence deletion vectors and statistics. Namespaces and tables have names in
lower case. Those refusals are its own, of this version; no rule of the gateway's makes them.

The gateway signs on with the store's administrator, by OAuth, and vends the keys: the store's STS takes table buckets
like any other. What the catalog could vend itself (`-s3.iceberg.credentialRole`) is left off.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import requests

from lab.catalogs import Traits, Upstream, sigv4
from lab.errors import LabError
from lab.runtime.host import LOOPBACK, Host
from lab.stores import StoreEndpoint

NAME = "seaweedfs"  # its process is the store's
ARTEFACTS: tuple[str, ...] = ()
STORES = ("seaweedfs",)
BUCKET = "lab-tables"
_SIGNING_NAME = "s3tables"
_MADE, _MADE_BEFORE = 200, 409


def check() -> None:
    """See `lab.catalogs.Catalog`: where the store is, it is."""


def traits() -> Traits:
    """See `lab.catalogs.Catalog`."""
    return Traits(lower_case=True, puffin=False)


def choose(host: Host, store: StoreEndpoint) -> StoreEndpoint:
    """See `lab.catalogs.Catalog`: the store is to serve its catalog too."""
    return replace(store, catalog=f"http://{LOOPBACK}:{host.port()}")


def warehouse(store: StoreEndpoint) -> str:
    """See `lab.catalogs.Catalog`."""
    return f"s3://{BUCKET}"


def start(host: Host, store: StoreEndpoint, store_ready: Callable[[], object]) -> Upstream:
    """See `lab.catalogs.Catalog`."""
    store_ready()
    return set_up(store)


def set_up(store: StoreEndpoint) -> Upstream:
    """Makes the table bucket. Raises LabError with the store's refusal."""
    body = json.dumps({"name": BUCKET}).encode()
    key = (store.access_key, store.secret_key, "")
    headers = sigv4.signed("PUT", f"{store.url}/buckets", body, key, _SIGNING_NAME, store.region)
    with requests.Session() as http:
        http.trust_env = False
        answer = http.put(f"{store.url}/buckets", data=body, headers=headers, timeout=60)
    if answer.status_code not in (_MADE, _MADE_BEFORE):
        raise LabError(f"SeaweedFS makes no table bucket: {answer.status_code} {' '.join(answer.text.split())[:200]}")
    return Upstream(
        store.catalog, token_uri=f"{store.catalog}/v1/oauth/tokens", credential=f"{store.access_key}:{store.secret_key}"
    )
