"""The gateway under requests that the REST catalog's own document describes, good and malformed, by every door."""

from __future__ import annotations

import base64
import datetime as dt
import json
from itertools import cycle
from typing import Any

import pytest
import schemathesis
from door_lab import DELEGATION, HOST, KEYS, MINE, ORDERS, STORE, TABLES, Lab, bearer, told
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from openapi import document
from schemathesis.core import NotSet

from lab.catalogs import profiles
from lab.catalogs.authentication import TOKENS as TOKENS_AT
from lab.catalogs.proxy import Request
from lab.catalogs.sigv4 import ALGORITHM
from lab.model import Access

SCHEMA = schemathesis.openapi.from_dict(document())
DOORS = ("", *sorted(profiles.known()))
TURNS = cycle(DOORS)
# Who may do most, so that rules are met and not rights alone.
WHO = {door: "owner" if door.startswith("horizon") else "engineer" for door in DOORS if door}
TOKENS = {door: MINE.entry(Access(door, who, by="token"), HOST, "x").token for door, who in WHO.items()}
# The same requests each time.
BOUNDED = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
SECRETS = {STORE.access_key, STORE.secret_key, MINE.secret}


def check(case: Any, door: str) -> None:
    """Never a failure of the gateway's own, a refusal in the specification's shape, and nothing changed by it."""
    lab = Lab(**{"format-version": 3})
    headers = (*bearer(TOKENS[door]), *DELEGATION) if door else DELEGATION
    path = f"/{door}{case.formatted_path}" if door else case.formatted_path
    answer = lab(case.method, path, _body(case), headers=headers)
    assert answer.status < 500, answer.body
    assert not any(secret in answer.body.decode() for secret in SECRETS)
    if answer.status >= 400:
        told(answer)
        assert all(one.method == "GET" for one in lab.asked), "what is refused changes nothing"


def _body(case: Any) -> bytes:
    if isinstance(case.body, bytes):
        return case.body
    return b"" if isinstance(case.body, NotSet) else json.dumps(case.body).encode()


NOW = f"{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}"
SIGNED = (
    f"{ALGORITHM} Credential={KEYS.aws('engineer')[0]}/20261130/us-east-1/s3tables/aws4_request, "
    f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
)
HEADER = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=40)
DEEP = base64.urlsafe_b64encode(b"[" * 40_000).decode().rstrip("=")


@settings(BOUNDED, max_examples=150)
@given(
    door=st.sampled_from(DOORS[1:]),
    path=st.sampled_from((ORDERS, TOKENS_AT, "/v1/config")),
    shown=st.one_of(HEADER, HEADER.map("Bearer {}".format), HEADER.map("Basic {}".format), st.just(SIGNED)),
    host=st.one_of(st.just("127.0.0.1"), HEADER),
)
@example(door="s3tables", path=ORDERS, shown=SIGNED, host="[")
@example(door="horizon", path=TOKENS_AT, shown="Basic \xff", host="")
@example(door="horizon", path=ORDERS, shown=f"Bearer {DEEP}.e30.e30", host="")
def test_whatever_is_shown_to_sign_on_is_refused_in_the_protocols_words(
    door: str, path: str, shown: str, host: str
) -> None:
    lab = Lab()
    headers = (("authorization", shown), ("x-amz-date", NOW), ("host", host))
    form = b"grant_type=client_credentials&client_id=engineer"
    answer = lab.answered(Request("POST", f"/{door}{path}", headers=headers, body=form))
    assert (answer.status, lab.asked) in ((400, []), (401, []), (403, []))
    assert answer.json()["error"]


@pytest.mark.parametrize(
    "body", [b"[" * 200_000, b'{"updates": ' + b"[" * 200_000, b"\xff\xfe", b'{"name": "\\ud800"}']
)
@pytest.mark.parametrize("path", [ORDERS, TABLES, "/v1/namespaces", "/v1/transactions/commit"])
def test_a_body_that_no_parser_should_follow_is_refused(path: str, body: bytes) -> None:
    lab = Lab()
    assert told(lab.engineer("POST", path, body))[0] == 400
    assert all(one.method == "GET" for one in lab.asked)


@SCHEMA.parametrize()
@settings(BOUNDED, max_examples=10)
def test_a_request_is_passed_on_or_refused_in_the_specifications_words(case: Any) -> None:
    check(case, next(TURNS))


@pytest.mark.full
@SCHEMA.parametrize()
@settings(BOUNDED, max_examples=300)
def test_many_requests_are_passed_on_or_refused_in_the_specifications_words(case: Any) -> None:
    for door in DOORS:
        check(case, door)
