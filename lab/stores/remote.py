"""The store behind a catalog of the user's own, which the lab does not start: `lab/catalogs/remote.py` says where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lab.provision import NotProvided
from lab.stores import StoreEndpoint

if TYPE_CHECKING:
    from lab.provision import Cache
    from lab.runtime.host import Host

NAME = "remote"
ARTEFACTS: tuple[str, ...] = ()


def program(cache: Cache) -> Path:
    """See `lab.stores.Store`."""
    raise NotProvided("a catalog of your own has its own store; name another --catalog to have the lab's")


def choose(host: Host) -> StoreEndpoint:
    """See `lab.stores.Store`: nothing is known of it until its catalog says it."""
    return StoreEndpoint("", "", "", "", "")


def start(host: Host, endpoint: StoreEndpoint) -> None:
    """See `lab.stores.Store`: it runs."""
