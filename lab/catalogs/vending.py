"""Credential vending, a stage of the gateway: an engine that asks for it gets keys of the table it loads.

They are STS credentials under a session policy: objects below the table's location, nothing else. An engine
that does not ask gets nothing, and what the catalog itself would say about storage is never passed on.

A table's property `lab.vending.deny` narrows its sessions further: the gateway then acts as catalogs do whose
external volume vends Put, Get and List alone. `lab.bucket.grant` has the bucket's owner grant actions back to the
sessions' principal. Neither opens more than a table's session has without them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import urllib3
from minio.error import MinioException

from lab.catalogs import DENY, GRANT
from lab.catalogs.operations import DELEGATION
from lab.catalogs.placing import below, place, refused
from lab.catalogs.proxy import Forward, Request, Response, error
from lab.stores import StoreEndpoint, s3
from lab.stores.s3 import Credentials

LIFETIME_SECONDS = 3600

_WRITES = ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:PutObject")  # what a reader's session lacks
# What a session may do with the objects below its table's location.
_OBJECT_ACTIONS = ("GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload", "ListMultipartUploadParts")
ACTIONS = (*(f"s3:{action}" for action in _OBJECT_ACTIONS), "s3:ListBucket")

_TABLE = re.compile(r"/v1/(?:.+/)?namespaces/[^/]+/(?:tables(?:/[^/]+)?|register)")
_REFRESH = re.compile(rf"(?P<table>{_TABLE.pattern})/credentials")
_VENDED = "vended-credentials"
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
class Terms:
    """What a session is vended for: a table's location, and what its properties deny it or grant it elsewhere."""

    location: str  # s3://bucket/path
    deny: tuple[str, ...] = ()  # actions that its policy lacks
    grant: tuple[str, ...] = ()  # actions that the bucket's policy grants its principal
    seconds: int = LIFETIME_SECONDS

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Terms:
        properties = metadata.get("properties", {})
        return cls(metadata["location"].rstrip("/"), actions(properties, DENY), actions(properties, GRANT))

    @property
    def session(self) -> str:
        """The role session's name: the store's record and its bucket policy know the table's sessions by it."""
        return session_name(self.location)


# Terms → a session's credentials, the grants made; blocks; OSError, ValueError or MinioException if refused
Assume = Callable[[Terms], Credentials]


class Vending:
    """The stage. One session per table and terms, until half of its life is over: a load costs no call to STS."""

    def __init__(self, store: StoreEndpoint, assume: Assume | None = None, root: str = "") -> None:
        """root: where the warehouse lies: no keys reach it whole; empty where that is not known."""
        self._store, self._root = store, root
        self._assume = assume or _assume_at(store)
        self._sessions: dict[Terms, asyncio.Task[Credentials]] = {}

    async def __call__(self, request: Request, forward: Forward) -> Response:
        if request.method == "GET" and (of := _REFRESH.fullmatch(request.path)):
            return await self._refreshed(replace(request, path=of["table"]), forward)
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
        location = str(table["metadata"]["location"])
        if self._root and not below(location, self._root):  # as a registered table's metadata may have it
            return refused(location, self._root)
        try:
            terms, narrowed = _narrowed(Terms.of(table["metadata"]), request)
            credentials = await self._credentials(terms)
        except (OSError, ValueError, urllib3.exceptions.HTTPError, MinioException) as reason:
            return error(
                400,
                "BadRequestException",
                f"Credential vending was requested for {location}, but no credentials are available: {reason}",
            )
        keys = self._config(credentials)
        table["config"] = keys | _refreshing(request)
        table["storage-credentials"] = [{"prefix": terms.location + "/", "config": keys}]
        told = {"denied": terms.deny, "narrowed": narrowed}
        notes = {**response.notes, "vended": True, **{name: value for name, value in told.items() if value}}
        return Response(response.status, response.headers, notes=notes).with_json(table)

    async def _refreshed(self, request: Request, forward: Forward) -> Response:
        """New keys alone of a table whose metadata a client knows."""
        loaded = await self(replace(request, headers=(*request.headers, (DELEGATION, _VENDED))), forward)
        if loaded.status != 200:
            return loaded
        return loaded.with_json({"storage-credentials": loaded.json()["storage-credentials"]})

    async def _credentials(self, terms: Terms) -> Credentials:
        task = self._sessions.get(terms)
        if task is None or (task.done() and not _fresh(task, terms.seconds)):
            task = asyncio.create_task(asyncio.to_thread(self._assume, terms))
            self._sessions[terms] = task
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


def _narrowed(terms: Terms, request: Request) -> tuple[Terms, list[str]]:
    """Behind a door, without what writes for one who may not write, and without what its profile vends to nobody.

    Also the claims by whose rules that is.
    """
    if request.door is None:
        return terms, []
    settings = request.door.settings
    lacking = {
        "privilege-claim": () if request.may_write else _WRITES,
        "vending-claim": actions(settings, "vending-deny"),
    }
    deny = tuple(sorted(set(terms.deny).union(*lacking.values())))
    seconds = int(request.door.seconds("vended-seconds"))
    return replace(terms, deny=deny, seconds=seconds), [settings[of] for of, actions in lacking.items() if actions]


def _refreshing(request: Request) -> dict[str, str]:
    """Behind a door, where a client gets new keys before the old ones end; as the open door is, nobody is told."""
    if request.door is None or request.door.settings["vended-refresh"] == "none":
        return {}
    made = "" if request.method == "GET" else f"/{quote(str(request.json()['name']), safe='')}"
    path = request.path.removesuffix("/register") + ("/tables" if request.path.endswith("/register") else "")
    return {"client.refresh-credentials-endpoint": f"{path.lstrip('/')}{made}/credentials"}


def session_name(location: str) -> str:
    """The name of the role session vended for a table at this location; letters and digits, as policies want it."""
    return f"lab{hashlib.sha256(location.encode()).hexdigest()[:16]}"


def session_policy(location: str, deny: Sequence[str] = ()) -> str:
    """The policy of a session that reaches what lies below `location` (s3://bucket/path), as JSON.

    deny: those of `ACTIONS` that it lacks.  Raises ValueError for a location that is not S3's or that a policy
    can't name exactly.
    """
    bucket, prefix = place(location)
    if _PATTERN.search(location):
        raise ValueError("a location with one of * ? $ can't be named in a policy")
    *objects, listing = ACTIONS
    statements: list[dict[str, Any]] = [
        {
            "Sid": session_name(location),  # for the record of a store that takes no session's name
            "Effect": "Allow",
            "Action": [action for action in objects if action not in deny],
            "Resource": [f"arn:aws:s3:::{bucket}/{prefix}/*"],
        },
        {
            "Effect": "Allow",
            "Action": [action for action in [listing] if action not in deny],
            "Resource": [f"arn:aws:s3:::{bucket}"],
            "Condition": {"StringLike": {"s3:prefix": [f"{prefix}/*"]}},
        },
    ]
    policy = {"Version": "2012-10-17", "Statement": [statement for statement in statements if statement["Action"]]}
    return json.dumps(policy, separators=(",", ":"))


def actions(properties: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The actions that a property lists, sorted. Raises ValueError for one that no session has."""
    actions = {action.strip() for action in properties.get(name, "").split(",") if action.strip()}
    if unknown := sorted(actions - set(ACTIONS)):
        raise ValueError(f"{name} names {', '.join(unknown)}; it takes some of {', '.join(ACTIONS)}")
    return tuple(sorted(actions))


def _answers_with_a_table(request: Request) -> bool:
    """Load (GET), create and register (POST); a commit's answer carries no configuration."""
    if not _TABLE.fullmatch(request.path):
        return False
    return request.method == "GET" or (request.method == "POST" and bool(_CREATED_BY_POST.fullmatch(request.path)))


def _asked_for(request: Request) -> bool:
    wanted = request.header(DELEGATION).split(",")
    return _VENDED in (value.strip().lower() for value in wanted)


def _fresh(task: asyncio.Task[Credentials], lifetime: int) -> bool:
    if task.cancelled() or task.exception() is not None:
        return False
    return task.result().expires_at_ms / 1000 - time.time() > lifetime / 2


def _assume_at(store: StoreEndpoint) -> Assume:
    http = urllib3.PoolManager(timeout=10.0, retries=urllib3.Retry(2, backoff_factor=0.2))

    def assume(terms: Terms) -> Credentials:
        policy = session_policy(terms.location, terms.deny)
        if terms.grant:
            bucket, prefix = place(terms.location)
            s3.grant(replace(store, bucket=bucket), terms.session, terms.grant, prefix)
        return s3.assume(store, http, policy, terms.session, terms.seconds)

    return assume
