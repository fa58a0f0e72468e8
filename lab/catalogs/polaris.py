"""Apache Polaris as the catalog behind the lab's gateway: what its server is told, and how it is set up.

Engines meet the gateway, which shows Polaris a token of its own and vends the store's sessions itself: so the cells
of both catalogs compare. The set-up goes through Polaris's official client, the extra `polaris` of this package.

No registry that the lab asks has a server. In containers it is an image; as a local process it is started from a folder
that the user names, or it runs already. A server that runs already must know the store's keys: those of its environment
(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) are given to the lab as well, see `lab.stores.s3.KEYS`.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import requests

from lab import stores
from lab.catalogs import Traits, Upstream, oauth, reference
from lab.errors import LabError
from lab.provision import NotProvided
from lab.runtime.host import LOOPBACK, Host
from lab.runtime.process import Process, StartFailed
from lab.stores import StoreEndpoint, s3

NAME = "polaris"
JAVA = "21"
ARTEFACTS = (f"java:{JAVA}",)
STORES = stores.STORES
FOLDER, URL, SECRET = "ICEBERG_LAB_POLARIS", "ICEBERG_LAB_POLARIS_URL", "ICEBERG_LAB_POLARIS_SECRET"  # of the user
STARTED = "quarkus-run.jar"  # in the folder of a distribution, or in its server/
VERSION = "1.4.1"
OFFICIAL = f"apache/polaris:{VERSION}"
IMAGE = os.environ.get("ICEBERG_LAB_POLARIS_IMAGE", OFFICIAL)
CATALOG = "lab"  # its catalog, and so the warehouse that engines name
_REALM, _ROOT = "POLARIS", "root"
_SCOPE = "PRINCIPAL_ROLE:ALL"
_JVM_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_START_SECONDS = 120.0


def check() -> None:
    """See `lab.catalogs.Catalog`."""
    if not os.environ.get(URL):
        _jar()
    elif not os.environ.get(SECRET) or not os.environ.get(s3.KEYS):
        raise NotProvided(f"a Polaris that runs is told by {URL}, {SECRET} (its root's) and {s3.KEYS}; set all three")
    else:
        s3.keys()


def _jar() -> Path:
    folder = os.environ.get(FOLDER)
    if not folder:
        raise NotProvided(
            f"no Polaris is here and no registry has one: name an unpacked binary distribution, {FOLDER}=FOLDER, or a "
            f"server that runs, {URL}=http://… with {SECRET} and {s3.KEYS} (docs/catalogs.md)"
        )
    found = next((jar for jar in (Path(folder, "server", STARTED), Path(folder, STARTED)) if jar.is_file()), None)
    if found is None:
        raise NotProvided(f"{FOLDER}={folder} is no unpacked distribution of Polaris: it has no {STARTED} in server/")
    return found.absolute()


def traits() -> Traits:
    """See `lab.catalogs.Catalog`."""
    return Traits()


def choose(host: Host, store: StoreEndpoint) -> StoreEndpoint:
    """See `lab.catalogs.Catalog`."""
    return store


def warehouse(store: StoreEndpoint) -> str:
    """See `lab.catalogs.Catalog`. In a server that runs before and after, each lab has a catalog of its own."""
    return f"{CATALOG}-{store.url.rpartition(':')[2]}" if os.environ.get(URL) else CATALOG


def start(host: Host, store: StoreEndpoint, store_ready: Callable[[], object]) -> Upstream:
    """See `lab.catalogs.Catalog`."""
    name, location = warehouse(store), reference.warehouse(store)
    if server := os.environ.get(URL, "").rstrip("/"):
        secret, location = os.environ[SECRET], f"{location}/{name}"  # no two catalogs of a server may overlap
    else:
        server, secret = _launch(host, store)
    store_ready()
    set_up(server, secret, store, location, name)
    return upstream(server, secret)


def _launch(host: Host, store: StoreEndpoint) -> tuple[str, str]:
    """Starts the user's distribution on loopback. Returns its URL and its root's secret when it gives tokens."""
    port, secret = str(host.port()), secrets.token_urlsafe(30)
    keys = {"LAB_STORE_ACCESS_KEY": store.access_key, "LAB_STORE_SECRET_KEY": store.secret_key}
    variables = {
        **environment(port, secret, keys),
        "quarkus.http.host": LOOPBACK,
        "quarkus.log.file.enabled": "false",  # its output is kept already; the file would lie where the user stands
        **store.client_environment,
    }
    java = host.cache.java(JAVA) / "bin" / "java"
    process, _ = host.process(NAME, [java, *_JVM_OPTIONS, "-jar", _jar()], env=variables)
    server = f"http://{LOOPBACK}:{port}"
    _await(process, server, secret)
    return server, secret


def _await(process: Process, server: str, secret: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not answers(server, secret):
        if not process.alive():
            raise StartFailed(NAME, f"ended with exit code {process.wait()}", process.log)
        if time.monotonic() > deadline:
            raise StartFailed(NAME, f"gave no token for {_START_SECONDS:.0f} s", process.log)
        time.sleep(0.2)


def environment(port: str, secret: str, store: dict[str, str]) -> dict[str, str]:
    """Variables of the official image: its port, its root's secret, and the store's keys as LAB_STORE_… has them."""
    return {
        "quarkus.http.port": port,
        # That it has this interface was decided when it was built; else it would be 0.0.0.0:8182.
        "quarkus.management.host": LOOPBACK,
        "quarkus.management.port": "0",
        "quarkus.otel.sdk.disabled": "true",
        "polaris.realm-context.realms": _REALM,
        "POLARIS_BOOTSTRAP_CREDENTIALS": f"{_REALM},{_ROOT},{secret}",
        'polaris.features."SUPPORTED_CATALOG_STORAGE_TYPES"': '["S3"]',
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": store["LAB_STORE_ACCESS_KEY"],
        "AWS_SECRET_ACCESS_KEY": store["LAB_STORE_SECRET_KEY"],
    }


def upstream(server: str, secret: str) -> Upstream:
    """How the gateway reaches the catalog of a server at this URL."""
    uri = f"{server}/api/catalog"
    return Upstream(uri, f"{uri}/v1/oauth/tokens", f"{_ROOT}:{secret}", _SCOPE)


def answers(server: str, secret: str) -> bool:
    """Whether the server gives its root a token."""
    try:
        return bool(oauth.token(upstream(server, secret)))
    except (LabError, requests.RequestException):
        return False


def set_up(server: str, secret: str, store: StoreEndpoint, warehouse: str, name: str = CATALOG) -> None:
    """Makes a catalog, on the store, and lets its root do anything in it. Raises LabError, NotProvided."""
    try:
        from apache_polaris.sdk import management
        from apache_polaris.sdk.management.exceptions import OpenApiException
    except ImportError:
        raise NotProvided(
            "Polaris is set up through its own client, which is not installed: pip install -e '.[polaris]'"
        ) from None
    try:
        shown = oauth.token(upstream(server, secret))
    except requests.RequestException as reason:
        raise LabError(
            f"no Polaris answers at {server} ({type(reason).__name__}); start it, or let {URL} say where it runs"
        ) from None
    api = management.PolarisDefaultApi(
        management.ApiClient(management.Configuration(host=f"{server}/api/management/v1", access_token=shown))
    )
    kept = management.AwsStorageConfigInfo(
        storageType="S3",
        allowedLocations=[warehouse],
        endpoint=store.url,
        # It writes with the keys of its environment: vending is the gateway's, and the stores here know no role ARNs.
        stsUnavailable=True,
        pathStyleAccess=True,
        region=store.region,
    )
    catalog = management.PolarisCatalog(
        type="INTERNAL",
        name=name,
        properties=management.CatalogProperties.from_dict({"default-base-location": warehouse}),
        storageConfigInfo=kept,
    )
    # Without it the root gets no table's credentials: 403, LOAD_TABLE_WITH_READ_DELEGATION.
    grant = management.CatalogGrant(type="catalog", privilege=management.CatalogPrivilege.CATALOG_MANAGE_CONTENT)
    try:
        api.create_catalog(management.CreateCatalogRequest(catalog=catalog))
        api.add_grant_to_catalog_role(name, "catalog_admin", management.AddGrantRequest(grant=grant))
    except OpenApiException as refusal:
        raise LabError(f"Polaris refuses its set-up: {' '.join(str(refusal).split())[:300]}") from None
