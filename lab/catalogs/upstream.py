"""The stage that shows the catalog behind the gateway a token, where it wants one. Engines need none of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import requests

from lab.catalogs.proxy import Forward, Request, Response, error
from lab.errors import LabError

_UNAUTHORIZED = 401


class Authorized:
    """Adds the token to each request; asks for a new one when the catalog no longer takes it, once a request."""

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


def _with(request: Request, token: str) -> Request:
    kept = tuple((name, value) for name, value in request.headers if name != "authorization")
    return replace(request, headers=(*kept, ("authorization", f"Bearer {token}")))
