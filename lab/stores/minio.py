"""MinIO as one process on loopback: S3, STS and its administration under one address.

It is built once, from its Go module at the last release under Apache-2.0. Its root may not assume roles, so the
administrator that the lab knows is a user of its own with every right to objects; the root's keys stay here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import secrets
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import urllib3
from minio import MinioAdmin
from minio import time as amazon
from minio.credentials.credentials import Credentials
from minio.credentials.providers import StaticProvider
from minio.signer import sign_v4_s3

from lab.provision import NotProvided
from lab.runtime.host import Host
from lab.runtime.process import Process, StartFailed, lines
from lab.stores import StoreEndpoint, access, s3
from lab.stores.access import Access

if TYPE_CHECKING:
    from lab.provision import Cache

NAME = "minio"
ARTEFACTS: tuple[str, ...] = ()  # Go has a cache and a checksum database of its own
MODULE, RELEASE = "github.com/minio/minio", "RELEASE.2021-04-22T15-44-28Z"
# The release by its commit: the public proxy serves it so, and no longer by its tag.
SOURCE = f"{MODULE}@v0.0.0-20210422020608-a7acfa6158ea"
SHORTEST_SECONDS = 900  # it takes no shorter duration, and for one that is not named an hour
VERSION = RELEASE.removeprefix("RELEASE.").partition("T")[0]
NAMED = "ICEBERG_LAB_MINIO"  # a binary of the user's, instead
# Newer AWS SDKs send a checksum after the body, whose length is then not announced: it answers those with 411.
CLIENT_ENVIRONMENT = {
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
}
_POLICY = "readwrite"  # its own, of all S3 actions
_TRACE_SECONDS = 10.0


@dataclass(frozen=True)
class User:
    """A user beside the administrator, who may do what a policy says: one of MinIO's own by its name, or a document."""

    access_key: str
    secret_key: str = field(repr=False)
    policy: str | Mapping[str, Any] = _POLICY


def program(cache: Cache) -> Path:
    """MinIO's program: the one that $ICEBERG_LAB_MINIO names, else built once with this machine's Go.

    Raises NotProvided.
    """
    if named := os.environ.get(NAMED):
        if not os.access(named, os.X_OK) or not Path(named).is_file():
            raise NotProvided(f"{NAMED} is {named}, which can't be executed; let it name MinIO's program")
        return Path(named).absolute()

    def build(folder: Path) -> None:
        go = shutil.which("go")
        if go is None or cache.offline:
            reason = "the cache is offline" if cache.offline else "this machine has no Go"
            raise NotProvided(f"MinIO is built from source and {reason}; install Go 1.16 or newer, or set {NAMED}=FILE")
        work = folder / "build"
        environment = {
            **os.environ,
            "CGO_ENABLED": "0",
            "GOBIN": str(folder),
            "GOCACHE": str(work / "cache"),
            "GOFLAGS": "-modcacherw",  # so that it can be removed
            "GOPATH": str(work),
        }
        argv = [go, "install", "-trimpath", "-ldflags=-s -w", SOURCE]
        done = subprocess.run(argv, env=environment, cwd=folder, text=True, capture_output=True)
        shutil.rmtree(work, ignore_errors=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1].strip(" .\t")
            raise NotProvided(f"MinIO {RELEASE} can't be built with {go}: {reason}; or set {NAMED}=FILE to a program")

    built = cache.derived(f"minio-{RELEASE}-{platform.system()}-{platform.machine()}".lower(), build)
    return built / "minio"


def choose(host: Host) -> StoreEndpoint:
    """See `lab.stores.Store`."""
    return s3.endpoint(host, client_environment=CLIENT_ENVIRONMENT)


def start(host: Host, endpoint: StoreEndpoint, users: Sequence[User] = ()) -> None:
    """See `lab.stores.Store`. users: beside the administrator."""
    binary = program(host.cache)
    root = Credentials(secrets.token_hex(10), secrets.token_urlsafe(30))
    address = endpoint.url.removeprefix("http://")
    served = f"{host.bind}:{address.rpartition(':')[2]}"
    process, _ = host.process(
        NAME,
        # Quiet: it would print its keys, and ask whether there is a newer release.
        [binary, "server", "--quiet", "--anonymous", "--address", served, host.data("minio-objects")],
        env={
            "MINIO_ROOT_USER": root.access_key,
            "MINIO_ROOT_PASSWORD": root.secret_key,
            "MINIO_REGION_NAME": endpoint.region,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
        },
        grace=0,  # its data ends with the run
    )
    admin = MinioAdmin(
        endpoint=address,
        credentials=StaticProvider(root.access_key, root.secret_key),
        region=endpoint.region,
        secure=False,
        http_client=urllib3.PoolManager(timeout=3.0, retries=False),
    )

    def make_users() -> None:
        for user in (User(endpoint.access_key, endpoint.secret_key), *users):
            admin.user_add(user.access_key, user.secret_key)
            if isinstance(policy := user.policy, Mapping):
                admin.policy_add(user.access_key, policy=dict(policy))
                policy = user.access_key
            admin.policy_set(policy, user=user.access_key)

    try:
        s3.await_write(endpoint, process, make_users)
        _record(endpoint, root, process)
    except StartFailed:
        host.end(process)
        raise


# ---------------------------------------------------------------- the record of requests
def _record(endpoint: StoreEndpoint, root: Credentials, process: Process) -> None:
    """Keeps the access record from now on, in the background, until the store ends. Raises StartFailed.

    It is MinIO's live trace. Its audit log, the other way, does not tell what a batch of deletions removed.
    """
    record, begun = Path(endpoint.access_record), threading.Event()
    record.touch()

    def work() -> None:
        with suppress(OSError, urllib3.exceptions.HTTPError), _trace(endpoint, root) as trace:
            if trace.status == 200:  # told with the first keep-alive, half a second later
                begun.set()
                access.write(parsed(trace.stream()), record)

    threading.Thread(target=work, name="store access record", daemon=True).start()
    if not begun.wait(_TRACE_SECONDS):
        raise StartFailed(NAME, "it does not tell what it is asked", process.log)


def _trace(endpoint: StoreEndpoint, root: Credentials) -> urllib3.BaseHTTPResponse:
    url, now = urlsplit(f"{endpoint.url}/minio/admin/v3/trace?s3=true"), amazon.utcnow()
    nothing = hashlib.sha256().hexdigest()
    signed: dict[str, Any] = sign_v4_s3(
        method="GET",
        url=url,
        region=endpoint.region,
        headers={"Host": url.netloc, "x-amz-content-sha256": nothing, "x-amz-date": amazon.to_amz_date(now)},
        credentials=root,
        content_sha256=nothing,
        date=now,
    )
    return urllib3.request("GET", url.geturl(), headers=signed, preload_content=False, retries=False, timeout=30.0)


def parsed(chunks: Iterable[bytes]) -> Iterator[Access]:
    """The requests in a trace: a JSON object a line, and blanks to keep the connection alive."""
    for line in filter(None, map(bytes.strip, lines(chunks))):
        yield from _accesses(json.loads(line))


def _accesses(said: dict[str, Any]) -> Iterator[Access]:
    """A request; before a batch of deletions each key that it removed, as `Access` has it."""
    asked, answered = said["request"], said["response"]
    bucket, _, key = asked.get("path", "").removeprefix("/").partition("/")
    headers = asked.get("headers", {})
    body = base64.b64decode(answered.get("body", ""))
    whole = Access(
        time=datetime.fromisoformat(asked["time"]).timestamp(),
        operation=asked["method"],
        bucket=bucket,
        key=key,
        status=answered.get("statuscode", 0),
        error="".join(_texts(body, "{*}Code")),
        session=_session(_first(headers, "X-Amz-Security-Token")),
        request=_first(answered.get("headers", {}), "X-Amz-Request-Id"),
        agent=_first(headers, "User-Agent"),
    )
    if said["funcname"] == "s3.DeleteMultipleObjects" and whole.status == 200:
        refused = {*_texts(body, "{*}Error/{*}Key")}
        for name in _texts(base64.b64decode(asked.get("body", "")), "{*}Object/{*}Key"):
            if name not in refused:
                yield replace(whole, key=name, status=204)
    yield whole


def _first(headers: Mapping[str, Sequence[str]], name: str) -> str:
    return next(iter(headers.get(name, ())), "")


def _texts(xml: bytes, path: str) -> list[str]:
    """The texts of the elements at this path of ElementTree's; none where it is no XML."""
    try:
        found = ElementTree.fromstring(xml).iterfind(path)  # noqa: S314 - of a store that this lab has started
    except ElementTree.ParseError:
        return []
    return [element.text or "" for element in found]


def _session(token: str) -> str:
    """The name of the session whose token this is.

    MinIO takes no session name; it signs the session's policy into the token, whose first statement carries it.
    """
    try:
        claims = _base64_json(token.split(".")[1])
        policy = _base64_json(claims["sessionPolicy"])
        return str(policy["Statement"][0].get("Sid", ""))
    except (ValueError, LookupError):
        return ""


def _base64_json(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_"))
    return value
