"""The gateway under requests that the REST catalog's own document describes, good and malformed, by every door."""

from __future__ import annotations

import json
from itertools import cycle
from typing import Any

import pytest
import schemathesis
from door_lab import DELEGATION, HOST, MINE, STORE, Lab, bearer, told
from hypothesis import HealthCheck, settings
from openapi import document
from schemathesis.core import NotSet

from lab.catalogs import profiles
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
