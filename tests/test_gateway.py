"""The gateway between a catalog and an STS made here: what passes unharmed, what is added, what is withheld."""

from __future__ import annotations

import asyncio
import datetime as dt
import http.client
import http.server
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest
import uvicorn

from lab.catalogs import DENY, GRANT, TRANSFORM, handmade, proxy, vending
from lab.catalogs.proxy import Forward, Proxy, Request, Response
from lab.catalogs.vending import Credentials, Terms, session_policy
from lab.stores import StoreEndpoint, s3

STORE = StoreEndpoint("http://127.0.0.1:1", "us-east-1", "lab", "admin-key", "admin-secret")
WANTS = {"X-Iceberg-Access-Delegation": "remote-signing, Vended-Credentials"}
LOCATION = "s3://lab/warehouse/ns/orders"
# A catalog that tells more than it should; whole numbers beyond a float's precision must survive.
TABLE = {
    "metadata-location": f"{LOCATION}/metadata/1.json",
    "metadata": {"location": LOCATION, "last-updated-ms": 9007199254740993, "properties": {"ü": "✓"}},
    "config": {"s3.access-key-id": "admin-key", "s3.secret-access-key": "admin-secret"},
    "storage-credentials": [{"prefix": "s3://", "config": {"s3.secret-access-key": "admin-secret"}}],
}
CONFIG = {
    "defaults": {"s3.access-key-id": "admin-key", "client.region": "x", "clients": "4"},
    "overrides": {"uri": "http://127.0.0.1:9", "prefix": "p", "namespace-separator": "%2E"},
    "endpoints": ["GET /v1/{prefix}/namespaces", "POST https://auth-server.com/token"],
}


class Catalog(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str, dict[str, str], bytes]] = []
    table: dict[str, Any] = TABLE

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        path = self.path.partition("?")[0]
        if path == "/v1/config":
            return self._say(200, CONFIG)
        if path.endswith("/missing"):
            return self._say(404, {"error": {"code": 404, "type": "NoSuchTableException", "message": "no"}})
        if path.endswith(("/page", "/unsaid")):
            return self._say(
                400, None, b"<h1>Bad Message 400</h1><pre>reason: Bad <b>URI</b></pre>" * (path[-1] == "e")
            )
        if path.endswith("/unchanged"):
            return self._say(304, None)
        if self.command == "DELETE":
            return self._say(204, None)
        return self._say(200, self.table if "/tables/" in path or self.command == "POST" else {"path": self.path})

    def _say(self, status: int, value: object, page: bytes = b"") -> None:
        body = page if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("X-Of-The-Catalog", "kept")
        self.send_header("Keep-Alive", "timeout=5")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_DELETE = do_HEAD = _answer

    def log_message(self, *args: object) -> None:
        pass


class Sts:
    """Counts its sessions; refuses while `broken`."""

    def __init__(self) -> None:
        self.policies: list[dict[str, Any]] = []
        self.terms: list[Terms] = []
        self.broken = False
        self.lifetime = 3600.0

    def __call__(self, terms: Terms) -> Credentials:
        time.sleep(0.05)
        if self.broken:
            raise ValueError("STS is down")
        self.terms.append(terms)
        self.policies.append(json.loads(session_policy(terms.location, terms.deny)))
        n = len(self.policies)
        return Credentials(f"key{n}", f"secret{n}", f"token{n}", int((time.time() + self.lifetime) * 1000))


class Gateway:
    def __init__(self) -> None:
        Catalog.seen = []
        Catalog.table = TABLE
        self.catalog = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Catalog)
        threading.Thread(target=self.catalog.serve_forever, args=(0.02,), daemon=True).start()
        self.sts, self.record = Sts(), io.StringIO()
        app = Proxy(
            f"http://127.0.0.1:{self.catalog.server_port}",
            [vending.within_reach, vending.Vending(STORE, self.sts)],
            self.record,
        )
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(app, log_level="error", lifespan="on", server_header=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(sockets=[listener])), daemon=True)
        self.thread.start()

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, json.loads(text) if text else None

    def load(self, table: str = "orders", **headers: str) -> Any:
        status, _, body = self.ask("GET", f"/v1/p/namespaces/ns/tables/{table}", headers={**WANTS, **headers})
        assert status == 200, body
        return body

    def close(self) -> None:
        self.server.should_exit = True
        self.catalog.shutdown()
        self.catalog.server_close()


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    gateway = Gateway()
    yield gateway
    gateway.close()


# ---------------------------------------------------------------- what passes
@pytest.mark.parametrize(
    "path",
    [
        "/v1/namespaces/a%1Fb%2Fc",
        "/v1/namespaces/%C3%BC%20x/views/a+b",
        "/v1/namespaces?parent=a%1Fb&pageToken=&x=%2B",
        "/v1//namespaces/%7e~",
    ],
)
def test_a_path_arrives_as_it_was_sent(gateway: Gateway, path: str) -> None:
    status, _, body = gateway.ask("GET", path)
    assert (status, body) == (200, {"path": path})


def test_bodies_and_headers_pass_but_not_those_of_a_connection(gateway: Gateway) -> None:
    body = b'{"x": 1}'
    headers = {"X-Own": "a", "Connection": "close, X-Hop", "X-Hop": "b", "TE": "trailers", "Accept-Encoding": "gzip"}
    _, answered, _ = gateway.ask("POST", "/v1/namespaces", body, headers)
    method, _, sent, received = Catalog.seen[0]
    assert (method, received, sent["x-own"]) == ("POST", body, "a")
    assert not {"x-hop", "te"} & set(sent)
    assert sent["accept-encoding"] == "identity", "a compressed answer could not be completed"
    assert not {"user-agent", "content-type"} & set(sent), "what the engine did not say"
    assert answered["x-of-the-catalog"] == "kept"
    assert "keep-alive" not in answered


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/v1/namespaces/ns/tables/orders", 200),
        ("DELETE", "/v1/namespaces/ns/tables/orders", 204),
        ("GET", "/v1/namespaces/ns/tables/unchanged", 304),
        ("GET", "/v1/namespaces/ns/tables/missing", 404),
    ],
)
def test_statuses_pass(gateway: Gateway, method: str, path: str, status: int) -> None:
    assert gateway.ask(method, path, headers=WANTS)[0] == status
    assert gateway.sts.policies == []


def test_an_error_that_is_no_json_is_told_in_the_protocols_own_words(gateway: Gateway) -> None:
    for path, words in (("page", "of the protocol: Bad Message 400 reason: Bad URI"), ("unsaid", "of the protocol: ")):
        status, headers, body = gateway.ask("GET", f"/v1/namespaces/ns/tables/{path}", headers=WANTS)
        assert (status, body["error"]["code"], body["error"]["type"]) == (400, 400, "BadRequestException")
        assert body["error"]["message"].endswith(words)
        assert headers["content-type"] == "application/json"
        assert headers["x-of-the-catalog"] == "kept"


def test_a_body_beyond_the_limit_is_refused(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "BODY_LIMIT", 1000)
    assert gateway.ask("POST", "/v1/namespaces", b"x" * 1000)[0] == 200
    status, _, body = gateway.ask("POST", "/v1/namespaces", b"x" * 300_000)
    assert (status, body["error"]["code"]) == (413, 413)
    assert len(Catalog.seen) == 1


def test_a_catalog_that_is_gone_is_told_in_the_protocols_own_words(gateway: Gateway) -> None:
    gateway.catalog.shutdown()
    gateway.catalog.server_close()
    status, _, body = gateway.ask("GET", "/v1/namespaces")
    assert (status, body["error"]["type"]) == (503, "ServiceUnavailableException")


def test_stages_wrap_each_other_in_order() -> None:
    said: list[str] = []

    def stage(name: str) -> proxy.Stage:
        async def run(request: Request, forward: Forward) -> Response:
            said.append(f"{name} in")
            response = await forward(request) if name != "last" else Response(418)
            said.append(f"{name} out")
            return response

        return run

    app = Proxy("http://127.0.0.1:9", [stage("first"), stage("last")])
    response = asyncio.run(app._answer(Request("GET", "/v1/config")))
    assert response.status == 418
    assert said == ["first in", "last in", "last out", "first out"]


# ---------------------------------------------------------------- what is vended
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/namespaces/ns/tables/orders"),
        ("GET", "/v1/some/prefix/namespaces/a%1Fb/tables/orders?snapshots=refs"),
        ("POST", "/v1/p/namespaces/ns/tables"),
        ("POST", "/v1/p/namespaces/ns/register"),
    ],
)
def test_who_asks_gets_a_session_of_the_tables_location(gateway: Gateway, method: str, path: str) -> None:
    _, _, body = gateway.ask(method, path, b"{}" if method == "POST" else None, WANTS)
    expires = body["config"].pop("s3.session-token-expires-at-ms")
    assert 3500 < int(expires) / 1000 - time.time() < 3700
    assert body["config"] == {
        "s3.access-key-id": "key1",
        "s3.secret-access-key": "secret1",
        "s3.session-token": "token1",
        "s3.endpoint": STORE.url,
        "s3.path-style-access": "true",
        "client.region": STORE.region,
    }
    (storage,) = body["storage-credentials"]
    assert storage["prefix"] == LOCATION + "/"
    assert storage["config"] == {**body["config"], "s3.session-token-expires-at-ms": expires}
    assert body["metadata"] == TABLE["metadata"]
    (policy,) = gateway.sts.policies
    assert policy == json.loads(session_policy(LOCATION))


@pytest.mark.parametrize("headers", [{}, {"X-Iceberg-Access-Delegation": "remote-signing"}])
def test_who_does_not_ask_gets_nothing(gateway: Gateway, headers: dict[str, str]) -> None:
    _, _, body = gateway.ask("GET", "/v1/namespaces/ns/tables/orders", headers=headers)
    assert set(body) == {"metadata-location", "metadata"}
    assert gateway.sts.policies == []


def test_a_commit_is_answered_as_the_catalog_answers(gateway: Gateway) -> None:
    _, _, body = gateway.ask("POST", "/v1/namespaces/ns/tables/orders", b"{}", WANTS)
    assert gateway.sts.policies == []
    assert body["metadata"] == TABLE["metadata"]


def test_a_session_is_shared_until_half_of_its_life(gateway: Gateway) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: gateway.load()["config"]["s3.access-key-id"], range(8)))
    assert keys == {"key1"}
    Catalog.table = {"metadata": {"location": LOCATION + "2"}}
    assert gateway.load()["config"]["s3.access-key-id"] == "key2", "another location, another session"
    gateway.sts.lifetime = 1700
    Catalog.table = {"metadata": {"location": LOCATION + "3"}}
    assert [gateway.load()["config"]["s3.access-key-id"] for _ in range(2)] == ["key3", "key4"]


def test_a_tables_property_narrows_its_sessions_and_has_them_made_anew(gateway: Gateway) -> None:
    assert gateway.load()["config"]["s3.access-key-id"] == "key1"
    denied = {DENY: "s3:DeleteObject"}
    Catalog.table = {"metadata": {"location": LOCATION, "properties": denied}}
    assert [gateway.load()["config"]["s3.access-key-id"] for _ in range(2)] == ["key2", "key2"]
    whole, narrowed = ({a for s in policy["Statement"] for a in s["Action"]} for policy in gateway.sts.policies)
    assert whole - narrowed == {"s3:DeleteObject"}
    assert whole > narrowed
    Catalog.table = TABLE
    assert gateway.load()["config"]["s3.access-key-id"] == "key1"
    told = [json.loads(line).get("denied") for line in gateway.record.getvalue().splitlines()]
    assert told == [None, ["s3:DeleteObject"], ["s3:DeleteObject"], None]


@pytest.mark.parametrize("wanted", ["s3:*", "s3:DeleteObject,sts:AssumeRole"])
def test_a_property_that_names_what_no_session_has_is_refused_with_what_to_write(gateway: Gateway, wanted: str) -> None:
    Catalog.table = {"metadata": {"location": LOCATION, "properties": {GRANT: wanted}}}
    status, _, body = gateway.ask("GET", "/v1/namespaces/ns/tables/orders", headers=WANTS)
    assert status == 400
    assert f"{GRANT} names" in body["error"]["message"]
    assert "it takes some of s3:GetObject" in body["error"]["message"]
    assert gateway.sts.policies == []


def test_a_refusing_sts_is_an_error_and_not_remembered(gateway: Gateway) -> None:
    gateway.sts.broken = True
    status, _, body = gateway.ask("GET", "/v1/namespaces/ns/tables/orders", headers=WANTS)
    assert status == 400
    assert "no credentials are available: STS is down" in body["error"]["message"]
    gateway.sts.broken = False
    assert gateway.load()["config"]["s3.access-key-id"] == "key1"


def test_a_policy_names_the_location_and_nothing_beside_it() -> None:
    objects, listing = json.loads(session_policy("s3://bucket/a/b/"))["Statement"]
    assert objects["Resource"] == ["arn:aws:s3:::bucket/a/b/*"]
    assert {"s3:GetObject", "s3:PutObject", "s3:DeleteObject"} < set(objects["Action"])
    assert listing["Resource"] == ["arn:aws:s3:::bucket"]
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ["a/b/*"]}}


@pytest.mark.parametrize(
    "location", ["file:///a/b", "s3://bucket", "s3://bucket/", "s3://b/a*", "s3://b/${x}", "s3://b/?"]
)
def test_what_a_policy_can_not_name_is_not_vended(location: str) -> None:
    with pytest.raises(ValueError, match="location"):
        session_policy(location)


SESSION = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>key</AccessKeyId><SecretAccessKey>very-secret</SecretAccessKey><SessionToken>very-token</SessionToken>
<Expiration>{}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


class Http:
    """A store's STS whose sessions live for so many seconds, whatever it is asked."""

    def __init__(self, seconds: float, body: str = SESSION) -> None:
        self.ends, self.body = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds), body

    def request(self, method: str, url: str, body: str, headers: dict[str, str]) -> Any:
        self.asked = parse_qs(body)
        told = self.body.format(self.ends.isoformat()).encode()
        return SimpleNamespace(status=200, reason="OK", data=told)


@pytest.mark.parametrize(("seconds", "named"), [(10, None), (899, None), (900, "900"), (3600, "3600")])
def test_keys_of_seconds_are_had_by_naming_no_duration(seconds: int, named: str | None) -> None:
    http = Http(seconds)
    keys = s3.assume(STORE, http, "{}", "me", seconds)  # type: ignore[arg-type]
    assert http.asked.get("DurationSeconds", [None]) == [named]
    assert (keys.session_token, keys.expires_at_ms) == ("very-token", int(http.ends.timestamp() * 1000))
    assert "very-" not in repr(keys)


@pytest.mark.parametrize("http", [Http(3600), Http(10, "<no/>"), Http(10, "very-token"), Http(10, SESSION[:200])])
def test_a_store_that_has_no_such_keys_is_told_without_what_it_answered(http: Http) -> None:
    with pytest.raises(
        ValueError, match=r"live for 3\d+ seconds, and can't for 10|gives no session's keys: 200 OK"
    ) as no:
        s3.assume(STORE, http, "{}", "me", 10)  # type: ignore[arg-type]
    assert "very-" not in str(no.value)


# ---------------------------------------------------------------- what is withheld
def test_the_configuration_leads_nobody_past_the_gateway(gateway: Gateway) -> None:
    _, _, body = gateway.ask("GET", "/v1/config?warehouse=s3://lab/warehouse", headers=WANTS)
    assert body == {
        "defaults": {"clients": "4"},
        "overrides": {"prefix": "p"},
        "endpoints": ["GET /v1/{prefix}/namespaces"],
    }


def test_the_access_record_has_what_happened_and_no_secret(gateway: Gateway) -> None:
    gateway.load()
    gateway.ask("GET", "/v1/namespaces/ns/tables/missing?token=planted", headers={"Authorization": "Bearer planted"})
    first, second = (json.loads(line) for line in gateway.record.getvalue().splitlines())
    assert (first["method"], first["path"], first["status"]) == ("GET", "/v1/p/namespaces/ns/tables/orders", 200)
    assert first["vended"] is True
    assert first["ms"] > 0
    assert (second["status"], second.get("vended")) == (404, None)
    for secret in ("planted", "secret1", "token1", "admin-secret"):
        assert secret not in gateway.record.getvalue()
    assert "secret1" not in repr(gateway.sts(Terms(LOCATION)))
    assert "admin-secret" not in repr(STORE)


# ---------------------------------------------------------------- metadata made by hand
@pytest.mark.parametrize(("method", "told"), [("GET", True), ("POST", False)])
def test_a_table_is_loaded_with_the_transform_of_several_columns_that_it_asks_for(method: str, told: bool) -> None:
    field = {"source-id": 2, "field-id": 1000, "name": "n", "transform": "identity"}
    metadata = {"properties": {TRANSFORM: "of_two:1,2"}, "partition-specs": [{"spec-id": 0, "fields": [field]}]}

    async def catalog(request: Request) -> Response:
        return Response(200, body=json.dumps({"metadata": metadata}).encode())

    path = "/v1/p/namespaces/ns/tables/t"
    answer = asyncio.run(handmade.transformed(Request(method, path), catalog)).json()
    (found,) = answer["metadata"]["partition-specs"][0]["fields"]
    told_otherwise = {"field-id": 1000, "name": "n", "transform": "of_two", "source-ids": [1, 2]}
    assert found == (told_otherwise if told else field)
