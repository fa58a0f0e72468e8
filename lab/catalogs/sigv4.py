"""Requests signed as AWS's are, by AWS's own library: those of engines verified by signing them anew, ours signed."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.catalogs.keyring import Keyring
    from lab.catalogs.proxy import Request

ALGORITHM = "AWS4-HMAC-SHA256"
_AUTHORIZATION = re.compile(
    rf"{ALGORITHM} Credential=(?P<key>[^/,]+)/(?P<day>\d{{8}})/(?P<region>[^/,]+)/(?P<service>[^/,]+)/aws4_request, ?"
    r"SignedHeaders=(?P<signed>[a-z0-9;-]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)
_SKEW_SECONDS = 900


def signer(request: Request, keys: Keyring, principals: Iterable[str]) -> str | None:
    """Which of the principals signed this request, its path, query, signed headers and body; None if none did."""
    told = _AUTHORIZATION.fullmatch(request.header("authorization"))
    by_key = {keys.aws(principal)[0]: principal for principal in principals}
    if told is None or told["key"] not in by_key or not _recent(request.header("x-amz-date")):
        return None
    principal = by_key[told["key"]]
    try:
        expected = _signature(request, keys.aws(principal), told)
    except ValueError:  # its host and path make no URL
        return None
    return principal if hmac.compare_digest(expected, told["signature"]) else None


def signed(method: str, url: str, body: bytes, key: Sequence[str], service: str, region: str) -> dict[str, str]:
    """The headers by which such a request is signed, names in lower case; key: access key, secret, session token."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    access, secret, session = key
    told = {"x-amz-content-sha256": hashlib.sha256(body).hexdigest()}
    of = AWSRequest(method, url, data=body, headers=told)
    SigV4Auth(Credentials(access, secret, session or None), service, region).add_auth(of)
    return {name.lower(): value for name, value in of.headers.items()}


def _signature(request: Request, key: tuple[str, str], told: re.Match[str]) -> str:
    from botocore.auth import SigV4Auth  # loaded when somebody signs: it takes a while
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    named = set(told["signed"].split(";"))
    of = AWSRequest(
        request.method,
        f"http://{request.header('host')}{request.sent}" + (f"?{request.query}" if request.query else ""),
        headers={name: value for name, value in request.headers if name in named},
    )
    of.context["timestamp"] = request.header("x-amz-date")
    auth = SigV4Auth(Credentials(*key), told["service"], told["region"])
    # Its last line is the body's digest: that of the body which came, whatever a header says of it.
    head, _, _ = auth.canonical_request(of).rpartition("\n")
    canonical = f"{head}\n{hashlib.sha256(request.body).hexdigest()}"
    return str(auth.signature(auth.string_to_sign(of, canonical), of))


def _recent(date: str) -> bool:
    try:
        sent = dt.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
    except ValueError:
        return False
    return abs((dt.datetime.now(dt.UTC) - sent).total_seconds()) < _SKEW_SECONDS
