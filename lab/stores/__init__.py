"""Object stores: where tables' files lie, and who may reach them. Knows nothing of catalogs.

A store is a module of this folder with what `Store` names; nothing outside of here names a particular one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from pathlib import Path

    from lab.provision import Cache
    from lab.runtime.host import Host

STORES = ("seaweedfs", "minio")  # the first is the one where none is asked for


@dataclass(frozen=True)
class StoreEndpoint:
    """An S3 store, its STS under the same address, and the keys of its administrator (secrets)."""

    url: str
    region: str
    bucket: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    access_record: str = ""  # the file of `lab/stores/access.py`
    catalog: str = ""  # where it is to serve the REST catalog that it has inside, if it has one and is to
    # What a client must find in its environment to get on with this store: variables of the AWS SDKs.
    client_environment: Mapping[str, str] = field(default_factory=dict, hash=False)


class Store(Protocol):
    """The module of a store; all of them speak S3, so that what is asked of any of them is in `s3.py`."""

    NAME: str  # of its process, hence of its log
    ARTEFACTS: tuple[str, ...]  # what is fetched for it, in the grammar of lab/provision
    SHORTEST_SECONDS: int  # that keys of its STS can live; from 900 on it gives any number of them

    def program(self, cache: Cache) -> Path:
        """The one file that the store is. Raises NotProvided where it can't be had."""

    def choose(self, host: Host) -> StoreEndpoint:
        """Where the store will answer, and the keys it will know: random ones of this run."""

    def start(self, host: Host, endpoint: StoreEndpoint) -> None:
        """Starts the store; returns when an object has been written to it and its record of requests is kept.

        Raises StartFailed, and NotProvided where it can't be had on this machine.
        """


def named(name: str) -> Store:
    """One of `STORES`. Loaded when asked for: the gateway, which needs none, starts sooner."""
    return cast(Store, importlib.import_module(f"lab.stores.{name}"))
