"""The gateway's stages in their order. Each lets pass what came in by the open door, as if it were not there."""

from __future__ import annotations

from lab.catalogs.authentication import Authentication
from lab.catalogs.authorisation import Authorisation
from lab.catalogs.doors import Behind, Doors
from lab.catalogs.keyring import Keyring
from lab.catalogs.proxy import Stage
from lab.catalogs.rules import Rules
from lab.catalogs.vending import Vending, within_reach
from lab.stores import StoreEndpoint


def pipeline(store: StoreEndpoint, warehouse: str, secret: str) -> list[Stage]:
    """warehouse: what the catalog behind calls its own. secret: the lab's, see `keyring.py`."""
    return [
        within_reach,
        Doors(warehouse),
        Authentication(Keyring(secret)),
        Authorisation(),
        Vending(store),
        Rules(store),
        Behind(warehouse),
    ]
