"""The gateway's stages in their order. Who signs on, may and is ruled is asked behind a door, not at the open one."""

from __future__ import annotations

from lab.catalogs import Upstream, handmade, transactions, upstream
from lab.catalogs.authentication import Authentication
from lab.catalogs.authorisation import Authorisation
from lab.catalogs.doors import doors
from lab.catalogs.keyring import Keyring
from lab.catalogs.placing import Placing
from lab.catalogs.proxy import Stage
from lab.catalogs.rules import Rules
from lab.catalogs.vending import Vending, within_reach
from lab.stores import StoreEndpoint


def pipeline(store: StoreEndpoint, secret: str, catalog: Upstream) -> list[Stage]:
    """secret: the lab's, see `keyring.py`. catalog: the one behind the gateway."""
    return [
        doors,
        within_reach,  # of every door: two clients that part a namespace's levels otherwise name two tables
        Authentication(Keyring(secret)),
        Authorisation(),
        *([] if catalog.vends else [Vending(store, root=catalog.root)]),
        Rules(store),
        Placing(catalog.root),
        handmade.transformed,
        *([transactions.single] if catalog.loses_transactions else []),
        *([] if catalog.vends else [upstream.undelegated]),
        *upstream.sign_on(catalog),
    ]
