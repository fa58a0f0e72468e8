"""Credential vending, the gateway's first stage: an engine that asks for it gets keys of the table it loads.

They are STS credentials under a session policy: objects below the table's location, nothing else. An engine
that does not ask gets nothing, and what the catalog itself would say about storage is never passed on.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import urllib3
from minio.credentials.providers import AssumeRoleProvider

from lab.catalogs.proxy import Forward, Request, Response, error
from lab.stores import StoreEndpoint

DELEGATION = "x-iceberg-access-delegation"
LIFETIME_SECONDS = 3600

_TABLE = re.compile(r"/v1/(?:.+/)?namespaces/[^/]+/(?:tables(?:/[^/]+)?|register)")
_CREATED_BY_POST = re.compile(r".*/(?:tables|register)")
# Characters that a policy would read as a pattern: a location with one can't be named exactly.
_PATTERN = re.compile(r"[*?$]")
# Of a catalog's own configuration: what would send an engine past the gateway, or hand it keys. The
# separator is dropped too: the reference catalog announces %2E, with which a.b is one level to it, and
# understands the protocol's own %1F as well.
_WITHHELD = re.compile(r"uri|token|credential|namespace-separator|(?:s3|client|oauth2|rest\.sigv4)[.-].*|io-impl")


async def within_reach(request: Request, forward: Forward) -> Response:
    """A stage that keeps `/v1/config` from leading engines elsewhere than to this gateway."""
    response = await forward(request)
    if request.path != "/v1/config" or response.status != 200:
        return response
    config = response.json()
    for part in ("defaults", "overrides"):
        config[part] = {k: v for k, v in (config.get(part) or {}).items() if not _WITHHELD.fullmatch(k)}
    if "endpoints" in config:
        config["endpoints"] = [line for line in config["endpoints"] if line.partition(" ")[2].startswith("/v1/")]
    return response.with_json(config)


@dataclass(frozen=True)
class Credentials:
    """A session's keys (secrets) and when it ends, in milliseconds since 1970."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at_ms: int


Assume = Callable[[str], Credentials]  # session policy (JSON) → credentials; blocks; OSError or ValueError if refused


class Vending:
    """The stage. One session per location, until half of its life is over: a load costs no call to STS."""

    def __init__(self, store: StoreEndpoint, assume: Assume | None = None) -> None:
        self._store = store
        self._assume = assume or _assume_at(store)
        self._sessions: dict[str, asyncio.Task[Credentials]] = {}

    async def __call__(self, request: Request, forward: Forward) -> Response:
        response = await forward(request)
        if not _answers_with_a_table(request) or response.status != 200:
            return response
        table = response.json()
        if not isinstance(table, dict) or "metadata" not in table:
            return response
        table.pop("config", None)
        table.pop("storage-credentials", None)
        if not _asked_for(request):
            return response.with_json(table)
        location = table["metadata"]["location"].rstrip("/")
        try:
            policy = session_policy(location)
            credentials = await self._credentials(location, policy)
        except (OSError, ValueError, urllib3.exceptions.HTTPError) as reason:
            return error(
                400,
                "BadRequestException",
                f"Credential vending was requested for {location}, but no credentials are available: {reason}",
            )
        table["config"] = self._config(credentials)
        table["storage-credentials"] = [{"prefix": location + "/", "config": table["config"]}]
        return Response(response.status, response.headers, notes={"vended": True}).with_json(table)

    async def _credentials(self, location: str, policy: str) -> Credentials:
        task = self._sessions.get(location)
        if task is None or (task.done() and not _fresh(task)):
            task = asyncio.create_task(asyncio.to_thread(self._assume, policy))
            self._sessions[location] = task
        return await asyncio.shield(task)  # an engine that hangs up takes nobody else's session along

    def _config(self, credentials: Credentials) -> dict[str, str]:
        return {
            "s3.access-key-id": credentials.access_key,
            "s3.secret-access-key": credentials.secret_key,
            "s3.session-token": credentials.session_token,
            "s3.session-token-expires-at-ms": str(credentials.expires_at_ms),
            "s3.endpoint": self._store.url,
            "s3.path-style-access": "true",
            "client.region": self._store.region,
        }


def session_policy(location: str) -> str:
    """The policy of a session that reaches what lies below `location` (s3://bucket/path), as JSON.

    Raises ValueError for a location that is not S3's or that a policy can't name exactly.
    """
    parts = urlsplit(location)
    bucket, prefix = parts.netloc, parts.path.strip("/")
    if parts.scheme not in ("s3", "s3a", "s3n") or not bucket or not prefix:
        raise ValueError("not a location below a bucket")
    if _PATTERN.search(location):
        raise ValueError("a location with one of * ? $ can't be named in a policy")
    objects = ["GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload", "ListMultipartUploadParts"]
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": [f"s3:{action}" for action in objects],
                    "Resource": [f"arn:aws:s3:::{bucket}/{prefix}/*"],
                },
                {
                    "Effect": "Allow",
                    "Action": ["s3:ListBucket"],
                    "Resource": [f"arn:aws:s3:::{bucket}"],
                    "Condition": {"StringLike": {"s3:prefix": [f"{prefix}/*"]}},
                },
            ],
        },
        separators=(",", ":"),
    )


def _answers_with_a_table(request: Request) -> bool:
    """Load (GET), create and register (POST); a commit's answer carries no configuration."""
    if not _TABLE.fullmatch(request.path):
        return False
    return request.method == "GET" or (request.method == "POST" and bool(_CREATED_BY_POST.fullmatch(request.path)))


def _asked_for(request: Request) -> bool:
    wanted = request.header(DELEGATION).split(",")
    return "vended-credentials" in (value.strip().lower() for value in wanted)


def _fresh(task: asyncio.Task[Credentials]) -> bool:
    if task.cancelled() or task.exception() is not None:
        return False
    return task.result().expires_at_ms / 1000 - time.time() > LIFETIME_SECONDS / 2


def _assume_at(store: StoreEndpoint) -> Assume:
    http = urllib3.PoolManager(timeout=10.0, retries=urllib3.Retry(2, backoff_factor=0.2))

    def assume(policy: str) -> Credentials:
        session = AssumeRoleProvider(
            sts_endpoint=store.url,
            access_key=store.access_key,
            secret_key=store.secret_key,
            duration_seconds=LIFETIME_SECONDS,
            policy=policy,
            region=store.region,
            role_session_name="lab",
            http_client=http,
        ).retrieve()
        assert session.session_token and session.expiration
        return Credentials(
            session.access_key,
            session.secret_key,
            session.session_token,
            int(session.expiration.timestamp() * 1000),
        )

    return assume
