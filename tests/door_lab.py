"""A lab's stages before a catalog made here, and requests as clients send them, for the tests of doors and rules."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

from lab.catalogs import Upstream, proxy, stages
from lab.catalogs.keyring import Keyring
from lab.catalogs.proxy import Request, Response, error
from lab.catalogs.signing import Entry, SignOn
from lab.catalogs.vending import Credentials, Terms, Vending
from lab.model import Access
from lab.stores import StoreEndpoint

STORE = StoreEndpoint("http://127.0.0.1:1", "us-east-1", "lab", "admin-key", "admin-secret")
MINE, OTHERS = SignOn("secret-of-this-lab", ""), SignOn("secret-of-another-lab", "")
KEYS = Keyring(MINE.secret)
HOST = "http://127.0.0.1:9"
TABLES = "/v1/namespaces/W_NS/tables"
ORDERS = f"{TABLES}/ORDERS_V2"
BYS = ("credential", "token", "pat", "pat-credential", "key-pair", "external", "sigv4")
DELEGATION = (("x-iceberg-access-delegation", "vended-credentials"),)
METADATA: dict[str, Any] = {
    "format-version": 2,
    "location": "s3://lab/warehouse/W_NS/ORDERS_V2",
    "last-updated-ms": 2_000,
    "properties": {},
    "current-schema-id": 0,
    "schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "a", "type": "unknown", "write-default": "x"}]}],
    "snapshots": [{"snapshot-id": n} for n in range(5)],
    "snapshot-log": [{"snapshot-id": n} for n in range(5)],
    "metadata-log": [{"timestamp-ms": 1_000, "metadata-file": "s3://lab/old.json"}],
}


class Lab:
    """The stages before a catalog made here, which notes what it was asked."""

    def __init__(self, root: str = "", **metadata: Any) -> None:
        self.asked: list[Request] = []
        self.terms: list[Terms] = []
        self.metadata = {**METADATA, **metadata}
        self.missing: set[str] = set()
        line = stages.pipeline(STORE, MINE.secret, Upstream("http://127.0.0.1:1", root=root))
        self.namespaces: dict[str, Any] = {}  # how one of them is told
        self.stages = [Vending(STORE, self._assume, root) if isinstance(one, Vending) else one for one in line]

    def __call__(
        self, method: str, path: str, body: Any = None, *, headers: proxy.Headers = (), query: str = ""
    ) -> Response:
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.answered(Request(method, path, query, (("host", "127.0.0.1:9"), *headers), sent))

    def answered(self, request: Request) -> Response:
        return asyncio.run(self._whole()(request))

    def _whole(self) -> Callable[[Request], Awaitable[Response]]:
        answer: proxy.Forward = self._catalog
        for stage in reversed(self.stages):
            answer = proxy._bind(stage, answer)
        return answer

    async def _catalog(self, request: Request) -> Response:
        self.asked.append(request)
        if request.path in self.missing:
            return error(404, "NoSuchTableException", "no")
        table = {"metadata-location": "s3://lab/new.json", "metadata": self.metadata}
        return Response(200, proxy.JSON).with_json(
            table if request.path.endswith("/register") or "/tables" in request.path else self.namespaces
        )

    def _assume(self, terms: Terms) -> Credentials:
        self.terms.append(terms)
        return Credentials("key", "secret", "token", int((time.time() + terms.seconds) * 1000))

    # ------------------------------------------------------------ as clients do
    def as_(self, access: Access, method: str, path: str, body: Any = None, sign_on: SignOn = MINE) -> Response:
        """A request of one who signed on so, as a client of the REST protocol does that."""
        entry = sign_on.entry(access, HOST, "cafe")
        door = entry.uri.removeprefix(HOST)
        if entry.signed:
            return self(method, door + path, body, headers=signed(entry, method, door + path, body))
        token = entry.token or self.exchanged(entry)
        headers = (("authorization", f"Bearer {token}"),) if token else ()
        return self(method, door + path, body, headers=(*headers, *DELEGATION))

    def exchanged(self, entry: Entry) -> str:
        if not entry.credential:
            return ""
        client, _, secret = entry.credential.rpartition(":")
        form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret, "scope": entry.scope}
        answer = self("POST", entry.token_uri.removeprefix(HOST), urlencode(form).encode())
        return str(answer.json().get("access_token", "")) if answer.status == 200 else ""

    def engineer(self, method: str, path: str, body: Any = None, terms: str = "horizon") -> Response:
        return self.as_(Access(terms, "owner" if terms.startswith("horizon") else "engineer"), method, path, body)


def signed(entry: Entry, method: str, path: str, body: Any = None) -> proxy.Headers:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials as Keys

    request = AWSRequest(method, HOST + path, data=b"" if body is None else json.dumps(body).encode())
    SigV4Auth(Keys(*entry.aws), "s3tables", "us-east-1").add_auth(request)
    return tuple((name.lower(), value) for name, value in request.headers.items())


def bearer(token: str) -> proxy.Headers:
    return (("authorization", f"Bearer {token}"),)


def told(answer: Response) -> tuple[int, str]:
    """Status and rule of a refusal, whose body must be the specification's."""
    body = answer.json()
    assert body["error"]["code"] == answer.status
    assert set(body["error"]) == {"message", "type", "code"}
    return answer.status, str(answer.notes.get("rule"))


def commit(*updates: dict[str, Any], creates: bool = False) -> dict[str, Any]:
    return {"requirements": [{"type": "assert-create"}] if creates else [], "updates": list(updates)}


def snapshot(number: int = 9) -> dict[str, Any]:
    made = {"snapshot-id": number, "manifest-list": "s3://lab/list.avro", "summary": {"operation": "append"}}
    return {"action": "add-snapshot", "snapshot": made}


NEW = {"name": "T", "schema": {"fields": []}}
DDL = commit({"action": "set-properties", "updates": {"a": "b"}})
MAIN = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
