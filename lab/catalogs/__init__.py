"""REST catalogs, and the gateway in front of whichever it is. Knows nothing of engines.

A catalog is a module of this folder with what `Catalog` names, and its name in `CATALOGS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from lab.model import Access

if TYPE_CHECKING:
    from lab.runtime.host import Host
    from lab.stores import StoreEndpoint

CATALOGS = ("reference", "polaris", "seaweedfs", "remote")

# Table properties that the gateway obeys, so that every engine meets what they say without settings of its own.
# Comma-separated S3 actions (`s3:DeleteObject`):
DENY = "lab.vending.deny"  # sessions vended for this table lack these
GRANT = "lab.bucket.grant"  # the bucket's policy grants these to the principal of this table's sessions
# A transform and the ids of its columns, `name:1,2`: what the table is said to be partitioned by (see `handmade.py`)
TRANSFORM = "lab.told.transform"


@dataclass(frozen=True)
class CatalogEndpoint:
    """What an engine is told of the catalog, and all it is told: there is no secret in it."""

    uri: str  # the gateway's
    warehouse: str
    s3_endpoint: str
    region: str
    client_environment: Mapping[str, str] = field(default_factory=dict, hash=False)  # see `StoreEndpoint`


@dataclass(frozen=True)
class Upstream:
    """The catalog behind the gateway: its URI without a trailing slash, and one way to sign on there, or none."""

    uri: str
    token_uri: str = ""  # of its OAuth endpoint: `credential` is exchanged there for tokens
    credential: str = field(default="", repr=False)  # CLIENT_ID:CLIENT_SECRET
    scope: str = ""
    token: str = field(default="", repr=False)  # shown as it is
    signing_name: str = ""  # of SigV4, e.g. s3tables or glue: `credential` is then ACCESS_KEY:SECRET_KEY
    region: str = ""
    session_token: str = field(default="", repr=False)
    vends: bool = False  # it vends its tables' keys itself, and the gateway passes them on
    root: str = ""  # below which all its tables lie, where the gateway is to see to that; see `placing.py`
    loses_transactions: bool = False  # see `transactions.py`


@dataclass(frozen=True)
class Traits:
    """What sets a catalog apart: each is as most catalogs are, unless it says otherwise."""

    lower_case: bool = False  # it takes namespaces and tables whose names are in lower case, and no others
    puffin: bool = True  # objects called *.puffin can be written below its tables: deletion vectors, statistics
    vends: bool = False  # tables' keys are its own, and not the gateway's


class Catalog(Protocol):
    """The module of a catalog that the gateway stands before."""

    NAME: str  # of its process, where it has one
    ARTEFACTS: tuple[str, ...]  # what is fetched for it, in the grammar of lab/provision
    STORES: tuple[str, ...]  # where its tables may lie: modules of lab/stores

    def check(self) -> None:
        """Raises NotProvided, with what the user has to supply, where there is no such catalog on this machine."""

    def traits(self) -> Traits:
        """What sets it apart, as far as the lab has to know before it asks."""

    def choose(self, host: Host, store: StoreEndpoint) -> StoreEndpoint:
        """The store as this catalog wants it to be started."""

    def warehouse(self, store: StoreEndpoint) -> str:
        """What engines name the catalog by."""

    def start(self, host: Host, store: StoreEndpoint, store_ready: Callable[[], object]) -> Upstream:
        """Starts it, or finds the one that runs; returns how the gateway reaches it when it answers.

        `store_ready` blocks until the store answers. Raises StartFailed, LabError, NotProvided.
        """


def named(name: str) -> Catalog:
    """One of `CATALOGS`. Loaded when asked for: a container has what its own catalog needs and no more."""
    return cast(Catalog, importlib.import_module(f"lab.catalogs.{name}"))


def profile(properties: Mapping[str, str | None], access: Access | None = None) -> str:
    """Whose rules a catalog acts under that meets these table properties: part of each cell's key.

    `none`, what vended sessions lack (`vends-no-s3:DeleteObject`), or the terms of the door by which engines come in
    (`horizon~off=W-no-ctas`).
    """
    if access is not None:
        return access.profile
    return f"vends-no-{properties[DENY]}" if DENY in properties else "none"
