"""The gateway's stage that knows who asks: it gives out tokens, and refuses whoever shows none that is good.

Behind a door only. A request shows a bearer token of the door's own token endpoint, one of an external issuer, a PAT
as it is, or a SigV4 signature. `POST /v1/{door}/oauth/tokens` exchanges a client's secret, a PAT, a key-pair token or
an older token for a new one. What is refused has the status and body of the specification.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import jwt

from lab.catalogs import sigv4
from lab.catalogs.keyring import Caller, Keyring
from lab.catalogs.profiles import Door
from lab.catalogs.proxy import JSON, Forward, Request, Response, error

TOKENS = "/v1/oauth/tokens"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type's name
_BY_SECRET = "client_credentials"  # noqa: S105 - a grant type's name
_UNAUTHORIZED = 401


class Refused(Exception):
    """Why a token or a request is refused: status, the error's type, its message."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


class Authentication:
    """The stage."""

    def __init__(self, keys: Keyring) -> None:
        self._keys = keys

    async def __call__(self, request: Request, forward: Forward) -> Response:
        door = request.door
        if door is None:
            return await forward(request)
        if request.path == TOKENS:
            return self._tokens(request, door)
        if door.off(door.settings["token-claim"]):
            who = next(iter(door.profile.principals))
            caller = Caller(who, door.profile.principals[who][0], "nothing")
        else:
            try:
                caller = self._caller(request, door)
            except Refused as no:
                return error(no.status, no.kind, no.message, rule=door.settings["token-claim"])
        kept = tuple((name, value) for name, value in request.headers if name != "authorization")
        response = await forward(replace(request, headers=kept, caller=caller))
        return replace(response, notes={"caller": f"{caller.principal}/{caller.role}", **response.notes})

    def _caller(self, request: Request, door: Door) -> Caller:
        kind, _, shown = request.header("authorization").partition(" ")
        if kind == sigv4.ALGORITHM:
            principal = sigv4.signer(request, self._keys, door.profile.principals)
            if principal is None:
                raise Refused(403, "ForbiddenException", "The request signature we calculated does not match")
            return Caller(principal, door.profile.principals[principal][0], "sigv4")
        if kind.lower() != "bearer":
            raise Refused(_UNAUTHORIZED, "NotAuthorizedException", "Not authorized: no token was shown")
        if (principal := self._keys.pat_of(shown)) in door.profile.principals and principal:
            return Caller(principal, door.profile.principals[principal][0], "pat")
        try:
            caller = self._keys.caller_of(door.profile.name, shown)
        except jwt.ExpiredSignatureError:
            raise Refused(
                int(door.settings["expired-status"]), "NotAuthorizedException", "Not authorized: the token has expired"
            ) from None
        except jwt.InvalidTokenError:
            raise Refused(
                _UNAUTHORIZED, "NotAuthorizedException", "Not authorized: the token is not one of this catalog's"
            ) from None
        if caller.role not in door.profile.principals.get(caller.principal, ()):
            raise Refused(_UNAUTHORIZED, "NotAuthorizedException", "Not authorized: the principal has no such role")
        return caller

    # ------------------------------------------------------------ the token endpoint
    def _tokens(self, request: Request, door: Door) -> Response:
        form = dict(parse_qsl(request.body.decode("utf-8", "replace")))
        try:
            if request.method != "POST":
                raise Refused(400, "invalid_request", "Tokens are asked for by POST")
            caller = self._exchanged(form, request.header("authorization"), door)
        except Refused as no:
            refused = Response(no.status, JSON, notes={"rule": door.settings["token-claim"]})
            return refused.with_json({"error": no.kind, "error_description": no.message})
        seconds = door.seconds("token-seconds")
        told: dict[str, Any] = {
            "access_token": self._keys.token(door.profile.name, caller, seconds),
            "token_type": "bearer",
            "expires_in": max(1, round(seconds)),
            "issued_token_type": _ACCESS_TOKEN,
            "scope": form.get("scope", ""),
        }
        return Response(200, JSON, notes={"caller": f"{caller.principal}/{caller.role}"}).with_json(told)

    def _exchanged(self, form: dict[str, str], authorization: str, door: Door) -> Caller:
        if form.get("grant_type") == _EXCHANGE and not authorization.lower().startswith("basic "):
            return self._renewed(form.get("subject_token", ""), door)
        if form.get("grant_type") not in (_BY_SECRET, _EXCHANGE):
            raise Refused(400, "unsupported_grant_type", f"grant_type is {_BY_SECRET} or token exchange")
        client, secret = _basic(authorization) or (form.get("client_id", ""), form.get("client_secret", ""))
        principal = self._keys.principal_of(door.profile.name, client, secret)
        if principal not in door.profile.principals or principal is None:
            raise Refused(_UNAUTHORIZED, "unauthorized_client", "The client is not authorized")
        if form["grant_type"] == _EXCHANGE:  # the client's own proof, in place of a token that may have expired
            return Caller(principal, door.profile.principals[principal][0], _BY_SECRET)
        return Caller(principal, _role(form.get("scope", ""), door, principal), _BY_SECRET)

    def _renewed(self, subject: str, door: Door) -> Caller:
        principal = self._keys.pat_of(subject)
        if principal in door.profile.principals and principal:
            return Caller(principal, door.profile.principals[principal][0], "pat")
        try:
            return self._keys.caller_of(door.profile.name, subject)
        except jwt.InvalidTokenError:
            raise Refused(_UNAUTHORIZED, "invalid_client", "The subject token is not good here (any more)") from None


def _role(scope: str, door: Door, principal: str) -> str:
    """The role that a scope asks for, as the profile spells scopes; also Polaris's `PRINCIPAL_ROLE:ALL`, any role."""
    roles = door.profile.principals[principal]
    spelled = {door.profile.scope.replace("{role}", role): role for role in roles}
    if scope in spelled:
        return spelled[scope]
    if scope == door.profile.scope.replace("{role}", "ALL"):
        return roles[0]
    raise Refused(400, "invalid_scope", f"The scope is invalid: it is {door.profile.scope}")


def _basic(authorization: str) -> tuple[str, str] | None:
    kind, _, shown = authorization.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        client, _, secret = base64.b64decode(shown, validate=True).decode().partition(":")
    except ValueError:  # neither base64 nor text
        raise Refused(_UNAUTHORIZED, "invalid_client", "The authorization header is malformed") from None
    return client, secret
