"""Apache Polaris as the catalog behind the lab's gateway: what its server is told, and how it is set up.

Engines meet the gateway, which shows Polaris a token of its own and vends the store's sessions itself: so the cells
of both catalogs compare. The set-up goes through Polaris's official client, the extra `polaris` of this package.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import requests

from lab.errors import LabError
from lab.provision import NotProvided
from lab.stores import StoreEndpoint

VERSION = "1.4.1"
OFFICIAL = f"apache/polaris:{VERSION}"
IMAGE = os.environ.get("ICEBERG_LAB_POLARIS_IMAGE", OFFICIAL)
CATALOG = "lab"  # its catalog, and so the warehouse that engines name
_REALM, _ROOT = "POLARIS", "root"
_SCOPE = "PRINCIPAL_ROLE:ALL"
_SECONDS = 60


@dataclass(frozen=True)
class Upstream:
    """A catalog behind the gateway that wants a token: where it serves, and the credential of its root (a secret)."""

    uri: str
    token_uri: str
    credential: str = field(repr=False)  # CLIENT_ID:CLIENT_SECRET
    scope: str = _SCOPE


def environment(port: str, secret: str, store: dict[str, str]) -> dict[str, str]:
    """Variables of the official image: its port, its root's secret, and the store's keys as LAB_STORE_… has them."""
    return {
        "quarkus.http.port": port,
        "quarkus.management.enabled": "false",
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
    return Upstream(uri, f"{uri}/v1/oauth/tokens", f"{_ROOT}:{secret}")


def answers(server: str, secret: str) -> bool:
    """Whether the server gives its root a token."""
    try:
        return bool(token(upstream(server, secret)))
    except (LabError, requests.RequestException):
        return False


def token(of: Upstream) -> str:
    """A token for the credential. Raises LabError with the server's refusal, or RequestException."""
    client, _, secret = of.credential.partition(":")
    form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret, "scope": of.scope}
    with requests.Session() as http:
        http.trust_env = False  # a proxy of the host's must not come between
        answer = http.post(of.token_uri, data=form, timeout=_SECONDS)
    if not answer.ok:
        raise LabError(f"Polaris gives no token: {answer.status_code} {' '.join(answer.text.split())[:200]}")
    return str(answer.json()["access_token"])


def set_up(server: str, secret: str, store: StoreEndpoint, warehouse: str, name: str = CATALOG) -> None:
    """Makes a catalog, on the store, and lets its root do anything in it. Raises LabError, NotProvided."""
    try:
        from apache_polaris.sdk import management
        from apache_polaris.sdk.management.exceptions import OpenApiException
    except ImportError:
        raise NotProvided(
            "Polaris is set up through its own client, which is not installed: pip install -e '.[polaris]'"
        ) from None
    shown = token(upstream(server, secret))
    api = management.PolarisDefaultApi(
        management.ApiClient(management.Configuration(host=f"{server}/api/management/v1", access_token=shown))
    )
    kept = management.AwsStorageConfigInfo(
        storageType="S3",
        allowedLocations=[warehouse],
        roleArn="arn:aws:iam::000000000000:role/lab",
        endpoint=store.url,
        stsEndpoint=store.url,
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
