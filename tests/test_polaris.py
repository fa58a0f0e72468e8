"""Polaris's set-up and the gateway's token, against a server that answers as a real 1.4.1 was seen to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from lab.catalogs import oauth, polaris
from lab.catalogs.proxy import Request, Response
from lab.catalogs.upstream import Authorized
from lab.errors import LabError
from lab.stores import StoreEndpoint

STORE = StoreEndpoint("http://127.0.0.1:9", "us-east-1", "lab", "key", "store-secret")
SECRET = "root-secret"  # noqa: S105


class Server:
    """Token endpoint and management API; `asked` has method, path and body of each request."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
                status, answer = server.answer(self.command, self.path, body, self.headers.get("authorization", ""))
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = _answer

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, method: str, path: str, body: str, shown: str) -> tuple[int, Any]:
        if path == "/api/catalog/v1/oauth/tokens":
            said = {name: value[0] for name, value in parse_qs(body).items()}
            if said["client_secret"] != SECRET:
                return 401, {"error": "unauthorized_client", "error_description": "The client is not authorized"}
            if said.get("scope") != "PRINCIPAL_ROLE:ALL":
                return 400, {"error": "invalid_scope"}
            return 200, {"access_token": "shown", "token_type": "bearer", "expires_in": 3600}
        if shown != "Bearer shown":
            return 401, {}
        said = json.loads(body)
        self.asked.append((method, path, said))
        return 201, said.get("catalog")

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.stop()


def test_the_catalog_is_made_on_the_store_and_its_root_may_vend(server: Server) -> None:
    pytest.importorskip("apache_polaris", reason="apache-polaris is not installed: pip install -e '.[polaris]'")
    polaris.set_up(server.url, SECRET, STORE, "s3://lab/warehouse")
    made, granted = server.asked
    assert made[:2] == ("POST", "/api/management/v1/catalogs")
    catalog = made[2]["catalog"]
    assert catalog["name"] == polaris.CATALOG
    assert catalog["properties"]["default-base-location"] == "s3://lab/warehouse"
    kept = catalog["storageConfigInfo"]
    assert (kept["endpoint"], kept["stsUnavailable"], kept["pathStyleAccess"]) == (STORE.url, True, True)
    assert granted[:2] == ("PUT", "/api/management/v1/catalogs/lab/catalog-roles/catalog_admin/grants")
    assert granted[2]["grant"] == {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}


def test_a_refusal_is_one_line_without_the_secret(server: Server) -> None:
    with pytest.raises(LabError, match=r"tokens gives no token: 401 .*unauthorized_client") as refused:
        oauth.token(polaris.upstream(server.url, "wrong-secret"))
    assert "wrong-secret" not in str(refused.value)
    assert "wrong-secret" not in repr(polaris.upstream(server.url, "wrong-secret"))
    assert not polaris.answers(server.url, "wrong-secret")
    assert polaris.answers(server.url, SECRET)


def test_a_server_that_is_not_there_does_not_answer() -> None:
    assert not polaris.answers("http://127.0.0.1:9", SECRET)


def test_where_none_answers_the_set_up_says_so_in_one_line() -> None:
    with pytest.raises(LabError, match=r"no Polaris answers at http://127.0.0.1:9 .*ICEBERG_LAB_POLARIS_URL") as told:
        polaris.set_up("http://127.0.0.1:9", SECRET, STORE, "s3://lab/warehouse")
    assert "\n" not in str(told.value)


def through(stage: Authorized, takes: str, *, times: int = 1) -> list[Response]:
    """Requests through the stage, to a catalog that takes this token alone."""

    async def forward(request: Request) -> Response:
        return Response(200 if request.header("authorization") == f"Bearer {takes}" else 401)

    async def ask() -> list[Response]:
        request = Request("GET", "/v1/config", headers=(("authorization", "Bearer of the engine"),))
        return list(await asyncio.gather(*(stage(request, forward) for _ in range(times))))

    return asyncio.run(ask())


def test_engines_need_no_token_and_one_serves_many_requests() -> None:
    asked: list[str] = []
    stage = Authorized(lambda: asked.append("token") or "known")  # type: ignore[func-returns-value]
    assert {answer.status for answer in through(stage, "known", times=8)} == {200}
    assert asked == ["token"]


def test_an_expired_token_is_renewed_once() -> None:
    tokens = iter(["old", "new", "newer"])
    stage = Authorized(lambda: next(tokens))
    assert {answer.status for answer in through(stage, "new", times=4)} == {200}
    assert next(tokens) == "newer"


def test_without_a_token_the_catalog_is_unavailable() -> None:
    def refused() -> str:
        raise LabError("401 unauthorized_client")

    (answer,) = through(Authorized(refused), "known")
    assert answer.status == 503
    assert "unauthorized_client" in answer.json()["error"]["message"]
