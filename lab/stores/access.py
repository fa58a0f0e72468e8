"""The store's own record of what it was asked, by whom and with what answer: a line of JSON per request.

SeaweedFS sends its access log to a collector beside its answers, so that nothing stands between an engine and the
store; a request takes a tenth of a millisecond more. What the log does not tell: the keys of a refused batch
(DeleteObjects), and an aborted upload from a deletion.
"""

from __future__ import annotations

import codecs
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from minio import Minio
from minio.error import S3Error

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

    time: float  # seconds since 1970, of arrival here
    operation: str
    bucket: str
    key: str
    status: int
    error: str
    session: str
    request: str
    agent: str


def collect(listener: socket.socket, record: Path) -> None:
    """Writes what the store sends to `listener` into `record`, in the background, until the store ends."""

    listener.settimeout(_SECONDS * 6)  # a store that did not come up leaves no thread behind

    def work() -> None:
        with suppress(OSError), listener, listener.accept()[0] as store, record.open("a") as file:
            for entry in parsed(iter(lambda: store.recv(65_536), b"")):
                file.write(json.dumps(asdict(entry)) + "\n")
                file.flush()

    threading.Thread(target=work, name="store access record", daemon=True).start()


def parsed(chunks: Iterator[bytes]) -> Iterator[Access]:
    """The requests in a stream of fluentd's forward protocol as JSON: `[tag, time, {…}, {}]`, one after another."""
    decoder, utf8, text = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8")(), ""
    for chunk in chunks:
        text = (text + utf8.decode(chunk)).lstrip()
        while text:
            try:
                (_, _, said, _), end = decoder.raw_decode(text)
            except ValueError:
                break  # the rest of it is still to come
            text = text[end:].lstrip()
            yield _access(said)


def below(store: StoreEndpoint, admin: Minio, prefix: str, session: str) -> list[Access]:
    """All requests so far for keys below `prefix`, and the batches of `session`, in the store's order.

    Raises LabError when the record does not keep up.
    """
    _caught_up(store, admin)
    with Path(store.access_record).open() as file:
        lines = [line for line in file if prefix in line or session in line]
    found = [Access(**json.loads(line)) for line in lines]
    return [a for a in found if a.key.startswith(prefix) or (not a.key and a.bucket and a.session == session)]


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


def _access(said: dict[str, Any]) -> Access:
    arn = said.get("requester_arn", "")
    return Access(
        time=time.time(),
        operation=said["operation"].split(".")[1] if said["operation"] else "",
        bucket=said["bucket"],
        key=said["key"],
        status=said["status"],
        error=said["error_code"],
        session=arn.rpartition("/")[2] if ":assumed-role/" in arn else "",
        request=said["request_id"],
        agent=said["user_agent"],
    )
