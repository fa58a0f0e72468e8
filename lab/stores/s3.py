"""What the lab asks of any store, as its administrator: S3 and nothing else."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from typing import Any
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import urllib3
from minio import Minio
from minio import time as amazon
from minio.credentials.credentials import Credentials as LongLived
from minio.error import MinioAdminException, MinioException, S3Error
from minio.helpers import sha256_hash
from minio.signer import sign_v4_sts

from lab.errors import LabError
from lab.runtime.host import LOOPBACK, Host
from lab.runtime.process import Process, StartFailed
from lab.stores import StoreEndpoint, access

BUCKET = "lab"
REGION = "us-east-1"
IDENTITY = "lab"  # who assumes roles, and the role's name where a store has such names
KEYS = "ICEBERG_LAB_STORE_KEYS"  # a user's, ACCESS_KEY:SECRET_KEY: instead of random ones, for who must know them
_READY_SECONDS = 60.0
_ASKED_SECONDS = 900  # the least that STS takes as a duration; who wants less names none, and gets the store's own
_GRANTS = threading.Lock()  # a bucket has one policy, which each grant writes anew


def endpoint(host: Host, client_environment: Mapping[str, str] | None = None) -> StoreEndpoint:
    """A free port of the host's, and random keys of this run."""
    return at(host.port(), str(host.folder / "logs" / access.FILE), client_environment)


def at(port: int, access_record: str = "", client_environment: Mapping[str, str] | None = None) -> StoreEndpoint:
    """This port of loopback, and random keys; the others are what a store says of itself."""
    access_key, secret_key = keys()
    return StoreEndpoint(
        url=f"http://{LOOPBACK}:{port}",
        region=REGION,
        bucket=BUCKET,
        access_key=access_key,
        secret_key=secret_key,
        access_record=access_record,
        client_environment=client_environment or {},
    )


def keys() -> tuple[str, str]:
    """The user's access key and secret key, else random ones. Raises LabError for half a pair."""
    told = os.environ.get(KEYS, "")
    access_key, _, secret_key = told.partition(":")
    if told and not (access_key and secret_key):
        raise LabError(f"{KEYS} is not a pair of keys; write it as ACCESS_KEY:SECRET_KEY")
    return access_key or secrets.token_hex(10), secret_key or secrets.token_urlsafe(30)


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


def session(endpoint: StoreEndpoint, vended: Mapping[str, str]) -> Minio:
    """An S3 client with vended keys, in the words of Iceberg's S3 properties."""
    return Minio(
        endpoint.url.removeprefix("http://"),
        access_key=vended["s3.access-key-id"],
        secret_key=vended["s3.secret-access-key"],
        session_token=vended["s3.session-token"],
        region=endpoint.region,
        secure=False,
        http_client=urllib3.PoolManager(timeout=10.0, retries=False),
    )


@dataclass(frozen=True)
class Credentials:
    """A session's keys (secrets) and when it ends, in milliseconds since 1970."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at_ms: int


def assume(endpoint: StoreEndpoint, http: urllib3.PoolManager, policy: str, name: str, seconds: int) -> Credentials:
    """Keys of a role session called `name`, under a session policy, that live for so many seconds.

    Raises ValueError for a number that the store can't give (`Store.SHORTEST_SECONDS`), and urllib3's errors.

    minio's own provider asks for an hour at least.
    """
    asked = {"Action": "AssumeRole", "Version": "2011-06-15", "RoleSessionName": name, "Policy": policy}
    body = urlencode(asked | ({"DurationSeconds": str(seconds)} if seconds >= _ASKED_SECONDS else {}))
    now, url, digest = amazon.utcnow(), urlsplit(endpoint.url), sha256_hash(body)
    headers: dict[str, Any] = sign_v4_sts(
        method="POST",
        url=url,
        region=endpoint.region,
        headers={
            "Content-Type": "application/x-www-form-urlencoded",
            "Host": url.netloc,
            "X-Amz-Date": amazon.to_amz_date(now),
        },
        credentials=LongLived(endpoint.access_key, endpoint.secret_key),
        content_sha256=digest,
        date=now,
    )
    answer = http.request("POST", endpoint.url, body=body, headers=headers)
    try:
        (told,) = ElementTree.fromstring(answer.data).iterfind(".//{*}Credentials")  # noqa: S314 - the lab's own
        names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
        key, secret, token, end = (str(told.findtext(f"{{*}}{name}")) for name in names)
        ends = datetime.fromisoformat(end).timestamp()
    except (ElementTree.ParseError, ValueError):
        raise ValueError(f"the store gives no session's keys: {answer.status} {answer.reason}") from None
    if ends - time.time() > 2 * seconds:
        raise ValueError(f"the store's keys live for {ends - time.time():.0f} seconds, and can't for {seconds}")
    return Credentials(key, secret, token, int(ends * 1000))


def grant(endpoint: StoreEndpoint, session: str, actions: Sequence[str], prefix: str) -> None:
    """A bucket policy's statement: the sessions called `session` may do `actions` (`s3:…`) below `prefix`.

    It names the session's principal, not its role: as in AWS, such a grant is not bounded by the session's own
    policy, one to the role is.
    """
    bucket, s3 = endpoint.bucket, client(endpoint)
    statement = {
        "Sid": session,
        "Effect": "Allow",
        "Principal": {"AWS": [f"arn:aws:sts::000000000000:assumed-role/{IDENTITY}/{session}"]},
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


def await_write(endpoint: StoreEndpoint, process: Process, prepare: Callable[[], object] = lambda: None) -> None:
    """Returns when an object has been written: the port answers before that works. Raises StartFailed.

    `prepare` is done before, and again as long as it fails like a store that is still starting.
    """
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            prepare()
            _write(endpoint)
            return
        except (MinioException, MinioAdminException, urllib3.exceptions.HTTPError, ValueError) as reason:
            if not process.alive():
                raise StartFailed(process.name, f"ended with exit code {process.wait()}", process.log) from None
            if time.monotonic() > deadline:
                raise StartFailed(process.name, f"no object could be written ({reason})", process.log) from None
        time.sleep(0.05)


def _write(endpoint: StoreEndpoint) -> None:
    """Makes the bucket, and writes and removes an object."""
    s3 = client(endpoint, timeout=3.0)
    if not s3.bucket_exists(endpoint.bucket):
        s3.make_bucket(endpoint.bucket)
    s3.put_object(endpoint.bucket, ".ready", BytesIO(b"ready"), 5)
    s3.remove_object(endpoint.bucket, ".ready")
