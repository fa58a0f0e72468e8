"""The proxy between engines and the catalog: a plain ASGI application of the REST protocol.

Each request passes a list of stages on its way to the catalog and back; see `Stage`. What the proxy itself
does is to keep the raw path as it came (a nested namespace's %1F is lost once decoded), to drop headers that
belong to one connection, and to limit bodies.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any

import aiohttp
import orjson
from yarl import URL

if TYPE_CHECKING:
    from lab.catalogs.keyring import Caller
    from lab.catalogs.profiles import Door

BODY_LIMIT = 64 * 1024 * 1024  # bytes; a commit of thousands of files is a few megabytes
UPSTREAM_SECONDS = 180.0

Headers = tuple[tuple[str, str], ...]  # names in lower case

# RFC 9110, 7.6.1, and what each of the two connections says for itself
_OF_ONE_CONNECTION = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"),
    *("trailer", "transfer-encoding", "upgrade", "host", "content-length", "expect", "accept-encoding"),
    *("server", "date"),
}
_NO_BODY = frozenset((204, 304))
_ERRORS, _FAILURES = 400, 500  # the first statuses of errors, and of those that are the server's own
_WORDS = 300  # characters of what a server says that is no JSON
JSON: Headers = (("content-type", "application/json"),)


@dataclass(frozen=True)
class Request:
    """A request as the engine sent it. `path` is raw, as on the wire, without the query."""

    method: str
    path: str
    query: str = ""
    headers: Headers = ()
    body: bytes = b""
    door: Door | None = None  # by which it came in; None: the open one, of which no rule is kept
    sent: str = ""  # behind a door: the path as it was sent
    caller: Caller | None = None  # who it was found to be, behind a door
    may_write: bool = True  # whether the caller has the right to commit to the table

    def json(self) -> Any:
        """The body as JSON, None when it isn't."""
        return _json(self.body)

    def header(self, name: str) -> str:
        """All values of a header, joined; empty without one."""
        return ", ".join(value for key, value in self.headers if key == name)


@dataclass(frozen=True)
class Response:
    """An answer. `notes` go to the access record, not to the engine: no secrets."""

    status: int
    headers: Headers = ()
    body: bytes = b""
    notes: dict[str, Any] = field(default_factory=dict)

    def json(self) -> Any:
        """The body as JSON, None when it isn't."""
        return _json(self.body)

    def with_json(self, value: Any) -> Response:
        return replace(self, body=orjson.dumps(value))


Forward = Callable[[Request], Awaitable[Response]]
# A stage answers by itself, or asks `forward` for what the stages behind it and the catalog say.
Stage = Callable[[Request, Forward], Awaitable[Response]]


def error(status: int, kind: str, message: str, rule: str | None = None) -> Response:
    """An error in the REST protocol's own shape. `rule`: the claim of whose it is, for the access record."""
    body = {"error": {"message": message, "type": kind, "code": status}}
    notes = {"rule": rule} if rule else {}
    return Response(status, JSON, notes=notes).with_json(body)


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)  # one that is nested too deep is none either
    except ValueError:
        return None


class Proxy:
    """The ASGI application."""

    def __init__(self, upstream: str, stages: Sequence[Stage], record: IO[str] | None = None) -> None:
        """upstream: the catalog's URI without a trailing slash.  record: gets a line of JSON per request."""
        self._upstream = upstream
        self._record = record
        self._client: aiohttp.ClientSession | None = None
        self._answer: Forward = self._ask_catalog
        for stage in reversed(stages):
            self._answer = _bind(stage, self._answer)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=UPSTREAM_SECONDS),
            headers={"accept-encoding": "identity"},  # a stage reads the body
            skip_auto_headers=("user-agent", "accept", "content-type"),
            auto_decompress=False,
            trust_env=False,
        )
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._client.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        started = time.monotonic()
        body = await _body(receive)
        request = Request(
            scope["method"],
            scope["raw_path"].decode("latin-1"),
            scope["query_string"].decode("latin-1"),
            tuple((key.decode("latin-1"), value.decode("latin-1")) for key, value in scope["headers"]),
            body or b"",
        )
        if body is None:
            response = error(413, "BadRequestException", f"A request body may have {BODY_LIMIT} bytes at most")
        else:
            try:
                response = await self._answer(request)
            except Exception:
                logging.exception("%s %s", request.method, request.path)
                response = error(500, "InternalServerError", "The gateway failed; its log says why")
        self._note(request, response, time.monotonic() - started)
        headers = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in response.headers]
        if response.status not in _NO_BODY and request.method != "HEAD":
            headers.append((b"content-length", b"%d" % len(response.body)))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else response.body})

    async def _ask_catalog(self, request: Request) -> Response:
        assert self._client is not None
        url = f"{self._upstream}{request.path}" + (f"?{request.query}" if request.query else "")
        try:
            async with self._client.request(
                request.method,
                URL(url, encoded=True),
                headers=_passed_on(request.headers),
                data=request.body or None,
                allow_redirects=False,
            ) as answer:
                headers = tuple((key.lower(), value) for key, value in answer.headers.items())
                response = Response(answer.status, _passed_on(headers), await answer.read())
                return _worded(response) if request.method != "HEAD" else response
        except (aiohttp.ClientError, TimeoutError) as reason:
            return error(503, "ServiceUnavailableException", f"The catalog did not answer: {type(reason).__name__}")

    def _note(self, request: Request, response: Response, seconds: float) -> None:
        if self._record is None:
            return
        line = {
            "time": time.time(),
            "method": request.method,
            "path": request.path,
            "status": response.status,
            "ms": round(seconds * 1000, 2),
            **response.notes,
        }
        self._record.write(json.dumps(line) + "\n")
        self._record.flush()


def _worded(response: Response) -> Response:
    """An error that is not JSON, as a server tells it who is asked before the catalog is, in the protocol's shape."""
    if response.status < _ERRORS or isinstance(response.json(), dict):
        return response
    words = " ".join(re.sub(r"<[^>]*>", " ", response.body.decode("utf-8", "replace")).split())[:_WORDS]
    kind = "BadRequestException" if response.status < _FAILURES else "InternalServerError"
    told = error(
        response.status, kind, f"The catalog answered {response.status} without a word of the protocol: {words}"
    )
    kept = tuple(pair for pair in response.headers if pair[0] not in ("content-type", "content-encoding"))
    return replace(told, headers=(*kept, *told.headers))


def _bind(stage: Stage, forward: Forward) -> Forward:
    return lambda request: stage(request, forward)


def _passed_on(headers: Headers) -> Headers:
    named = {name.strip().lower() for key, value in headers if key == "connection" for name in value.split(",")}
    return tuple((key, value) for key, value in headers if key not in _OF_ONE_CONNECTION | named)


async def _body(receive: Any) -> bytes | None:
    """The whole body, or None when it is longer than the limit (the rest is read and dropped)."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size <= BODY_LIMIT:
            parts.append(part)
        else:
            parts.clear()
        if not message.get("more_body"):
            return b"".join(parts) if size <= BODY_LIMIT else None
