"""The store's own record of what it was asked, by whom and with what answer: a line of JSON per request.

A store tells it beside its answers, so that nothing stands between an engine and the store; each store's module
knows how. What the record does not tell: the keys of a refused batch (DeleteObjects), and an aborted upload from a
deletion.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from minio import Minio
from minio.error import S3Error
from urllib3.exceptions import HTTPError

from lab.errors import LabError
from lab.stores import StoreEndpoint

FILE = "store-access.jsonl"  # in the lab's logs/
_SECONDS = 10.0  # within which the record must show a request that was answered


@dataclass(frozen=True)
class Access:
    """A request as the store logged it.

    `operation`: DELETE, GET, HEAD, POST or PUT. `key` is empty for a batch as such; each key that a batch removed
    follows as a POST of its own with status 204 under the batch's `request`. `session`: the role session that
    asked, empty for the store's administrator.
    """

    time: float  # seconds since 1970, of arrival
    operation: str
    bucket: str
    key: str
    status: int
    error: str
    session: str
    request: str
    agent: str


def write(requests: Iterable[Access], record: Path) -> None:
    """Adds requests to the record as they come, until there are no more or the connection they come by is gone."""
    with suppress(OSError, HTTPError), record.open("a") as file:
        for entry in requests:
            file.write(json.dumps(asdict(entry)) + "\n")
            file.flush()


def below(store: StoreEndpoint, admin: Minio, prefix: str, session: str) -> list[Access]:
    """All requests so far for keys below `prefix`, and the batches of `session`, in the store's order.

    Raises LabError when the record does not keep up.
    """
    _caught_up(store, admin)
    with Path(store.access_record).open() as file:
        lines = [line for line in file if prefix in line or session in line]
    found = [Access(**json.loads(line)) for line in lines]
    mine = [a for a in found if a.key.startswith(prefix) or (not a.key and a.bucket and a.session == session)]
    return sorted(mine, key=lambda a: a.time)  # as they arrived: a store may tell of them when it has answered


def _caught_up(store: StoreEndpoint, admin: Minio) -> None:
    """Returns when the record shows a request that is made here: then it shows all that were answered before."""
    mark = f".mark/{secrets.token_hex(8)}"
    deadline = time.monotonic() + _SECONDS
    with Path(store.access_record).open() as file:
        file.seek(0, 2)
        with suppress(S3Error):  # there is no such object
            admin.stat_object(store.bucket, mark)
        while mark not in file.read():
            if time.monotonic() > deadline:
                raise LabError(f"the store's access record stands still; read {store.access_record}")
            time.sleep(0.005)
