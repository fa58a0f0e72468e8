"""The stage by which the gateway signs on to the catalog behind it. What engines show ends at the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import requests

from lab.catalogs import Upstream, oauth, sigv4
from lab.catalogs.operations import DELEGATION
from lab.catalogs.proxy import Forward, Request, Response, Stage, error
from lab.errors import LabError

_UNAUTHORIZED = 401


async def undelegated(request: Request, forward: Forward) -> Response:
    """The stage before a catalog whose keys the gateway vends: it is asked for none, which it may not have."""
    kept = tuple((name, value) for name, value in request.headers if name != DELEGATION)
    return await forward(replace(request, headers=kept))


def sign_on(of: Upstream) -> list[Stage]:
    """The stage that signs on there; none where anybody may ask."""
    if of.signing_name:
        key = (*of.credential.split(":", 1), of.session_token)
        return [Signed(of.uri, key, of.signing_name, of.region)]
    if of.token_uri:
        return [Authorized(lambda: oauth.token(of))]
    return [Authorized(lambda: of.token)] if of.token else []


class Authorized:
    """Adds a token to each request; asks for a new one when the catalog no longer takes it, once a request."""

    def __init__(self, ask: Callable[[], str]) -> None:
        """ask: blocks; returns a token, raises LabError or RequestException."""
        self._ask = ask
        self._token: str | None = None
        self._lock = asyncio.Lock()

    async def __call__(self, request: Request, forward: Forward) -> Response:
        try:
            shown = await self._renewed(None)
            response = await forward(_with(request, shown))
            if response.status != _UNAUTHORIZED:
                return response
            return await forward(_with(request, await self._renewed(shown)))
        except (LabError, requests.RequestException) as reason:
            return error(503, "ServiceUnavailableException", f"The catalog gives the gateway no token: {reason}")

    async def _renewed(self, refused: str | None) -> str:
        """The token that is known, unless it is the refused one."""
        async with self._lock:
            if self._token is None or self._token == refused:
                self._token = await asyncio.to_thread(self._ask)
            return self._token


class Signed:
    """Signs each request as AWS's services want it, in place of whatever signature or token it had."""

    def __init__(self, uri: str, key: tuple[str, ...], service: str, region: str) -> None:
        """key: (access key, secret key, session token or empty)."""
        self._uri, self._key, self._service, self._region = uri, key, service, region

    async def __call__(self, request: Request, forward: Forward) -> Response:
        url = f"{self._uri}{request.path}" + (f"?{request.query}" if request.query else "")
        shown = sigv4.signed(request.method, url, request.body, self._key, self._service, self._region)
        kept = tuple((name, value) for name, value in request.headers if name not in shown)
        return await forward(replace(request, headers=(*kept, *shown.items())))


def _with(request: Request, token: str) -> Request:
    kept = tuple((name, value) for name, value in request.headers if name != "authorization")
    return replace(request, headers=(*kept, ("authorization", f"Bearer {token}")))
