"""The gateway's doors without an engine: who gets in, who may do what, which rule refuses what."""

from __future__ import annotations

import asyncio
import base64
import inspect
import io
import json
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest

from lab.catalogs import amends, profiles, proxy, stages
from lab.catalogs.keyring import Caller, Keyring
from lab.catalogs.proxy import Request, Response, error
from lab.catalogs.signing import Entry, SignOn
from lab.catalogs.triggers import TRIGGERS, Asked
from lab.catalogs.vending import Credentials, Terms, Vending
from lab.errors import LabError
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

    def __init__(self, **metadata: Any) -> None:
        self.asked: list[Request] = []
        self.terms: list[Terms] = []
        self.metadata = {**METADATA, **metadata}
        self.missing: set[str] = set()
        line = stages.pipeline(STORE, MINE.secret)
        self.stages = [Vending(STORE, self._assume) if isinstance(one, Vending) else one for one in line]

    def __call__(
        self, method: str, path: str, body: Any = None, *, headers: proxy.Headers = (), query: str = ""
    ) -> Response:
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return asyncio.run(self._whole()(Request(method, path, query, (("host", "127.0.0.1:9"), *headers), sent)))

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
        return Response(200, proxy.JSON).with_json(table if "/tables" in request.path else {})

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


# ---------------------------------------------------------------- doors
@pytest.mark.parametrize("path", ["/v1/config", ORDERS, "/v1/namespaces/a%1Fb", "/v1//namespaces/%7e~"])
def test_the_open_door_asks_nobody_anything(path: str) -> None:
    lab = Lab()
    assert lab("GET", path).status == 200
    assert [(one.path, one.door, one.headers) for one in lab.asked] == [(path, None, (("host", "127.0.0.1:9"),))]


@pytest.mark.parametrize("segment", ["horizn", "", "horizon~off=W-no-such", "horizon~colour=blue"])
def test_a_door_that_is_none_says_which_there_are(segment: str) -> None:
    lab = Lab()
    answer = lab("GET", f"/{segment}/v1/config")
    assert told(answer)[0] == 404
    assert any(word in answer.json()["error"]["message"] for word in ("horizon-preview", "W-no-ctas", "token-seconds"))
    assert lab.asked == []


@pytest.mark.parametrize(
    "path",
    [
        "/horizon/v1/../v1/namespaces",
        "/horizon/../v1/namespaces",
        "/horizon/v1/namespaces/%2e%2e/tables/x",
        "/horizon/v1/namespaces/a/tables/..%2F..%2Fb",
        "/horizon/v1/namespaces/a/tables/%252e%252e",
        "/v1/namespaces/../../x",
    ],
)
def test_a_path_that_climbs_is_refused(path: str) -> None:
    lab = Lab()
    answer = lab("GET", path, headers=bearer(KEYS.pat("owner")))
    assert answer.status in (400, 404)
    assert lab.asked == [] or "%252e" in path


@pytest.mark.parametrize("path", ["/v1/secrets", "/v1/namespaces/a/tables/b/c/d", "/v2/namespaces", "/v1/"])
def test_what_is_no_operation_reaches_no_catalog(path: str) -> None:
    lab = Lab()
    assert told(lab.engineer("GET", path))[0] == 406
    assert lab.asked == []


# ---------------------------------------------------------------- signing on
@pytest.mark.parametrize("by", BYS)
def test_whoever_signs_on_gets_in_and_the_catalog_sees_no_secret(by: str) -> None:
    lab = Lab()
    assert lab.as_(Access("horizon", by=by), "GET", ORDERS).status == 200
    assert {one.path for one in lab.asked} == {ORDERS}
    assert not any(one.header("authorization") for one in lab.asked)


@pytest.mark.parametrize("by", BYS)
def test_what_one_lab_gave_is_worthless_in_another(by: str) -> None:
    lab = Lab()
    status, rule = told(lab.as_(Access("horizon", by=by), "GET", ORDERS, sign_on=OTHERS))
    assert (status in (401, 403), rule) == (True, "H-token-expiry")
    assert lab.asked == []


ENGINEER = Caller("engineer", "ENGINEER", "token")
GOOD = KEYS.token("horizon", ENGINEER, 60)
HEAD, CLAIMS, SIGNATURE = GOOD.split(".")


def recoded(part: str, **changes: Any) -> str:
    known = json.loads(base64.urlsafe_b64decode(part + "=="))
    return base64.urlsafe_b64encode(json.dumps({**known, **changes}).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "nonsense",
        GOOD[:-2],
        f"{HEAD}.{recoded(CLAIMS, role='OWNER')}.{SIGNATURE}",
        f"{recoded(HEAD, alg='none')}.{CLAIMS}.",
        f"{recoded(HEAD, alg='none')}.{recoded(CLAIMS, sub='owner', role='OWNER')}.",
        KEYS.token("s3tables", ENGINEER, 60),
        KEYS.token("horizon", replace(ENGINEER, role="OWNER"), 60),
        KEYS.token("horizon", Caller("nobody", "ENGINEER", "token"), 60),
        KEYS.key_pair_token("horizon", "engineer"),
        jwt.encode({"iss": "iceberg-lab", "sub": "engineer", "role": "ENGINEER", "aud": "horizon"}, b"x" * 32),
        f"engineer.{'0' * 64}",
        KEYS.pat("nobody"),
        KEYS.client_secret("engineer"),
    ],
)
def test_a_token_that_is_not_good_is_refused(token: str) -> None:
    lab = Lab()
    assert told(lab("GET", f"/horizon{ORDERS}", headers=bearer(token))) == (401, "H-token-expiry")
    assert lab.asked == []


@pytest.mark.parametrize(("terms", "status"), [("horizon", 401), ("horizon~expired-status=419", 419)])
def test_an_expired_token_is_refused_as_the_profile_says(terms: str, status: int) -> None:
    lab = Lab()
    expired = bearer(KEYS.token("horizon", ENGINEER, -2))
    answer = lab("GET", f"/{terms}{ORDERS}", headers=expired)
    assert told(answer) == (status, "H-token-expiry")
    assert "expired" in answer.json()["error"]["message"]
    assert lab("GET", f"/horizon~off=H-token-expiry{ORDERS}", headers=expired).status == 200


@pytest.mark.parametrize("field", ["method", "path", "query", "body", "date"])
def test_a_signature_holds_for_one_request_alone(field: str) -> None:
    lab = Lab()
    entry = MINE.entry(Access("s3tables", by="sigv4"), HOST, "cafe")
    path = f"{entry.uri.removeprefix(HOST)}{ORDERS}"
    headers = signed(entry, "POST", path, {})
    assert lab("POST", path, {}, headers=headers).status == 200
    changed: dict[str, Any] = {"method": "POST", "path": path, "body": {}, "headers": headers}
    match field:
        case "method":
            changed["method"] = "PUT"
        case "path":
            changed["path"] = f"{path}2"
        case "query":
            changed["query"] = "purgeRequested=true"
        case "body":
            changed["body"] = {"updates": []}
        case "date":
            old = "20200101T000000Z"
            changed["headers"] = tuple((k, old if k == "x-amz-date" else v) for k, v in headers)
    before = len(lab.asked)
    assert told(lab(changed.pop("method"), changed.pop("path"), changed.pop("body"), **changed)) == (403, "T-sigv4")
    assert len(lab.asked) == before


def asked_for(lab: Lab, door: str = "horizon", headers: proxy.Headers = (), **form: str) -> tuple[int, Any]:
    answer = lab("POST", f"/{door}/v1/oauth/tokens", urlencode(form).encode(), headers=headers)
    return answer.status, answer.json()


CLIENT = {
    "grant_type": "client_credentials",
    "client_id": "engineer",
    "client_secret": KEYS.client_secret("engineer"),
    "scope": "session:role:ENGINEER",
}
EXCHANGE = {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange"}


@pytest.mark.parametrize(
    ("change", "status", "why"),
    [
        ({"client_secret": "wrong"}, 401, "unauthorized_client"),
        ({"client_secret": OTHERS.secret}, 401, "unauthorized_client"),
        ({"client_id": "owner"}, 401, "unauthorized_client"),
        ({"scope": ""}, 400, "invalid_scope"),
        ({"scope": "catalog"}, 400, "invalid_scope"),
        ({"scope": "session:role:OWNER"}, 400, "invalid_scope"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        (EXCHANGE | {"subject_token": KEYS.token("horizon", ENGINEER, -2)}, 401, "invalid_client"),
        (EXCHANGE | {"subject_token": "nonsense"}, 401, "invalid_client"),
    ],
)
def test_the_token_endpoint_refuses_in_oauths_words(change: dict[str, str], status: int, why: str) -> None:
    answered, body = asked_for(Lab(), **{**CLIENT, **change})
    assert (answered, body["error"]) == (status, why)
    assert "access_token" not in body


def test_a_token_lives_as_long_as_the_door_says_and_is_renewed() -> None:
    lab = Lab()
    status, body = asked_for(lab, "horizon~token-seconds=7", **CLIENT)
    assert (status, body["expires_in"]) == (200, 7)
    told = jwt.decode(body["access_token"], options={"verify_signature": False})
    assert 6 < told["exp"] - time.time() <= 8
    assert isinstance(told["exp"], int), "Iceberg's Java client reads no other"
    status, renewed = asked_for(lab, **EXCHANGE, subject_token=body["access_token"])
    assert status == 200
    assert lab("GET", f"/horizon{ORDERS}", headers=bearer(renewed["access_token"])).status == 200
    basic = base64.b64encode(f"engineer:{KEYS.client_secret('engineer')}".encode()).decode()
    expired = KEYS.token("horizon", ENGINEER, -2)
    status, _ = asked_for(lab, headers=(("authorization", f"Basic {basic}"),), **EXCHANGE, subject_token=expired)
    assert status == 200, "who shows the client's secret needs no token that lives"


# ---------------------------------------------------------------- rights
def commit(*updates: dict[str, Any], creates: bool = False) -> dict[str, Any]:
    return {"requirements": [{"type": "assert-create"}] if creates else [], "updates": list(updates)}


def snapshot(number: int = 9) -> dict[str, Any]:
    made = {"snapshot-id": number, "manifest-list": "s3://lab/list.avro", "summary": {"operation": "append"}}
    return {"action": "add-snapshot", "snapshot": made}


NEW = {"name": "T", "schema": {"fields": []}}
DDL = commit({"action": "set-properties", "updates": {"a": "b"}})


@pytest.mark.parametrize(
    ("principal", "method", "path", "body", "allowed"),
    [
        ("reader", "GET", ORDERS, None, True),
        ("reader", "POST", ORDERS, commit(snapshot()), False),
        ("inserter", "POST", ORDERS, commit(snapshot()), False),
        ("engineer", "POST", ORDERS, commit(snapshot()), True),
        ("engineer", "POST", ORDERS, DDL, False),
        ("engineer", "DELETE", ORDERS, None, False),
        ("owner", "POST", ORDERS, DDL, True),
        ("owner", "DELETE", ORDERS, None, True),
        ("reader", "POST", "/v1/namespaces/W_NS/tables", NEW, False),
        ("engineer", "POST", "/v1/namespaces/W_NS/tables", NEW, True),
        ("reader", "POST", "/v1/namespaces", {"namespace": ["X"]}, False),
        ("engineer", "POST", "/v1/namespaces", {"namespace": ["X"]}, True),
        ("analyst", "GET", ORDERS, None, True),
        ("analyst", "GET", "/v1/namespaces/W_NS/tables/OTHERS", None, False),
        ("analyst", "GET", "/v1/namespaces/OTHER/tables/ORDERS_V2", None, False),
        ("stranger", "GET", ORDERS, None, False),
        ("stranger", "GET", "/v1/namespaces", None, True),
    ],
)
def test_who_may_do_what(principal: str, method: str, path: str, body: Any, allowed: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(Asked, "content", lambda *_: b"")
    monkeypatch.setattr(Asked, "_records", lambda *_: [])
    lab = Lab()
    answer = lab.as_(Access("horizon", principal), method, path, body)
    if allowed:
        assert answer.status == 200
    else:
        assert told(answer) == (403, "H-privileges")
        assert "is not authorized for op " in answer.json()["error"]["message"]
        assert all(one.method == "GET" for one in lab.asked), "the catalog is asked at most whether the table exists"
        off = lab.as_(Access("horizon~off=H-privileges", principal), method, path, body)
        assert off.status == 200


def test_what_does_not_exist_does_not_for_one_without_rights_too() -> None:
    lab = Lab()
    lab.missing = {ORDERS}
    answer = lab.as_(Access("horizon", "stranger"), "GET", ORDERS)
    assert answer.status == 404


def test_a_table_is_its_makers_and_new_to_older_grants() -> None:
    lab = Lab()
    later, moved = "/v1/namespaces/W_NS/tables/ORDERS_LATER", "/v1/namespaces/W_NS/tables/ORDERS_MOVED"

    def may(principal: str, path: str = later, method: str = "GET") -> bool:
        return lab.as_(Access("horizon", principal), method, path, DDL if method == "POST" else None).status == 200

    assert may("analyst")
    lab.as_(Access("horizon", "engineer"), "POST", "/v1/namespaces/W_NS/tables", {**NEW, "name": "ORDERS_LATER"})
    assert (may("analyst"), may("later-analyst"), may("engineer", method="POST")) == (False, True, True)
    names = {"source": {"namespace": ["W_NS"], "name": "ORDERS_LATER"}}
    names["destination"] = {"namespace": ["W_NS"], "name": "ORDERS_MOVED"}
    assert lab.as_(Access("horizon", "engineer"), "POST", "/v1/tables/rename", names).status == 200
    assert (may("engineer", moved, "POST"), may("engineer", later, "POST")) == (True, False)
    assert may("engineer", moved, "DELETE")
    assert not may("engineer", moved, "POST"), "what was dropped is nobody's"


def test_who_may_not_write_gets_keys_that_can_not() -> None:
    lab = Lab()
    for principal in ("engineer", "reader"):
        lab.as_(Access("horizon", principal), "GET", ORDERS)
    writer, reader = lab.terms
    assert writer.deny == ()
    assert set(reader.deny) == {"s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}
    lab.as_(Access("horizon~vending-deny=s3:DeleteObject~vended-seconds=900"), "GET", ORDERS)
    assert (lab.terms[-1].deny, lab.terms[-1].seconds) == (("s3:DeleteObject",), 900)


def test_keys_are_refreshed_where_the_table_said() -> None:
    lab = Lab()
    for method, path, body in (("GET", ORDERS, None), ("POST", TABLES, {**NEW, "name": "ORDERS_V2"})):
        loaded = lab.as_(Access("horizon"), method, path, body).json()
        assert loaded["config"]["client.refresh-credentials-endpoint"] == f"{ORDERS[1:]}/credentials"
    answer = lab.as_(Access("horizon", "reader"), "GET", f"{ORDERS}/credentials")
    (keys,) = answer.json()["storage-credentials"]
    assert (keys["prefix"], keys["config"]["s3.session-token"]) == ("s3://lab/warehouse/W_NS/ORDERS_V2/", "token")
    assert "s3:PutObject" in lab.terms[-1].deny
    assert told(lab.as_(Access("horizon", "stranger"), "GET", f"{ORDERS}/credentials")) == (403, "H-privileges")
    assert "client.refresh-credentials-endpoint" not in lab("GET", ORDERS, headers=DELEGATION).json()["config"]


# ---------------------------------------------------------------- rules
MAIN = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}


@pytest.mark.parametrize(
    ("claim", "terms", "method", "path", "body", "metadata"),
    [
        ("W-no-register", "horizon", "POST", "/v1/namespaces/W_NS/register", {"name": "X"}, {}),
        ("W-no-location", "horizon", "POST", TABLES, {**NEW, "location": "s3://lab/elsewhere"}, {}),
        ("W-no-location", "horizon", "POST", ORDERS, commit({"action": "set-location", "location": "s3://x"}), {}),
        ("W-no-refs", "horizon", "POST", ORDERS, commit({**MAIN, "ref-name": "b", "snapshot-id": 1}), {}),
        ("W-no-refs", "horizon", "POST", ORDERS, commit({"action": "remove-snapshot-ref", "ref-name": "b"}), {}),
        ("W-no-rollback", "horizon", "POST", ORDERS, commit({**MAIN, "snapshot-id": 1}), {}),
        ("W-no-expiry", "horizon", "POST", ORDERS, commit({"action": "remove-snapshots", "snapshot-ids": [1]}), {}),
        (
            "W-no-upgrade",
            "horizon",
            "POST",
            ORDERS,
            commit({"action": "upgrade-format-version", "format-version": 3}),
            {},
        ),
        ("W-clone-vending", "horizon", "GET", ORDERS, None, {"properties": {"lab.horizon.cloned": "true"}}),
        ("W-owner-volume", "horizon", "GET", ORDERS, None, {"properties": {"lab.horizon.volume-revoked": "true"}}),
        ("W-policies", "horizon", "POST", ORDERS, DDL, {"properties": {"lab.horizon.policy": "masking"}}),
        ("W-not-writable", "horizon", "POST", ORDERS, DDL, {"properties": {"lab.horizon.read-only": "kms"}}),
        ("W-no-v3-write", "horizon-preview", "POST", ORDERS, DDL, {"format-version": 3}),
        ("W-no-v3-write", "horizon-preview", "POST", TABLES, {**NEW, "properties": {"format-version": "3"}}, {}),
        ("W-no-v3-write", "horizon-preview", "GET", ORDERS, None, {"format-version": 3}),
        ("H-federated-v3", "glue-federation", "GET", ORDERS, None, {"format-version": 3}),
        ("H-federated-write", "glue-federation", "POST", ORDERS, DDL, {}),
        ("D-matrix", "unity-uniform", "POST", ORDERS, DDL, {}),
        (
            *("D-no-metadata-path", "unity-managed", "POST", TABLES),
            *({**NEW, "properties": {"write.metadata.path": "s3://x"}}, {}),
        ),
        (
            *("D-transforms", "unity-managed", "POST", TABLES),
            *({**NEW, "partition-spec": {"fields": [{"transform": "bucket[4]"}]}}, {}),
        ),
        (
            *("T-void-alter", "s3tables", "POST", ORDERS),
            *(commit({"action": "add-schema", "schema": {"fields": [{"id": 1, "name": "a", "type": "string"}]}}), {}),
        ),
        (
            *("T-default-set", "s3tables", "POST", ORDERS),
            *(commit({"action": "add-schema", "schema": {"fields": [{"id": 1, "name": "a", "type": "unknown"}]}}), {}),
        ),
    ],
)
def test_a_rule_refuses_what_it_says_and_nothing_is_asked_of_the_catalog_but_to_look(
    claim: str, terms: str, method: str, path: str, body: Any, metadata: dict[str, Any]
) -> None:
    lab = Lab(**metadata)
    status, rule = told(lab.engineer(method, path, body, terms))
    assert (400 <= status < 500, rule) == (True, claim)
    assert all(one.method == "GET" for one in lab.asked)
    assert lab.engineer(method, path, body, f"{terms}~off={claim}").notes.get("rule") != claim


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", TABLES, {**NEW, "location": f"s3://lab/warehouse/W_NS/T-{'0a' * 16}"}),  # Trino's plain CREATE
        ("POST", TABLES, {**NEW, "stage-create": True}),
        ("POST", ORDERS, commit({"action": "upgrade-format-version", "format-version": 2})),
        ("POST", ORDERS, commit(snapshot(9), {**MAIN, "snapshot-id": 9})),
        ("POST", ORDERS, commit({"action": "upgrade-format-version", "format-version": 2}, snapshot(), creates=True)),
        ("GET", ORDERS, None),
    ],
)
def test_what_only_looks_like_it_passes(method: str, path: str, body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asked, "_records", lambda *_: [])
    assert Lab().engineer(method, path, body).status == 200


# What a commit's manifests say, whatever its summary does.
FILES = {"data": (0, "PARQUET"), "position-delete": (1, "PARQUET"), "deletion-vector": (1, "PUFFIN")}
FILES["equality-delete"] = (2, "PARQUET")


@pytest.mark.parametrize(
    ("kind", "creates", "claim"),
    [
        ("data", False, None),
        ("data", True, "W-no-ctas"),
        ("position-delete", False, "W-cow-only"),
        ("deletion-vector", False, "W-cow-only"),
        ("equality-delete", False, "W-no-eq-delete"),
    ],
)
def test_rules_about_files_read_the_manifests(
    kind: str, creates: bool, claim: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, form = FILES[kind]
    records = {
        "s3://lab/list.avro": [
            {"manifest_path": "s3://lab/older.avro", "added_snapshot_id": 1},
            {"manifest_path": "s3://lab/mine.avro", "added_snapshot_id": 9},
        ],
        "s3://lab/mine.avro": [
            {"status": 0, "data_file": {"content": 2, "file_format": "PARQUET"}},
            {"status": 1, "data_file": {"content": content, "file_format": form}},
        ],
    }
    monkeypatch.setattr(Asked, "_records", lambda self, location: records[location])
    answer = Lab().engineer("POST", ORDERS, commit(snapshot(), creates=creates))
    assert answer.notes.get("rule") == claim
    several = {"table-changes": [{**commit(snapshot()), "identifier": {"namespace": ["W_NS"], "name": "X"}}]}
    if not creates:
        assert Lab().engineer("POST", "/v1/transactions/commit", several).notes.get("rule") == claim


def test_what_is_amended_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    lab.engineer("POST", TABLES, {**NEW, "schema": {"fields": [{"id": 1, "write-default": 1}]}}, "s3tables")
    body = lab.asked[-1].json()
    assert body["properties"] == {"write.parquet.compression-codec": "zstd"}
    assert body["schema"] == {"fields": [{"id": 1}]}
    new = {"id": 2, "name": "b", "type": "int", "initial-default": 1, "write-default": 1}
    schema = {"fields": [METADATA["schemas"][0]["fields"][0], new]}
    answer = lab.engineer("POST", ORDERS, commit({"action": "add-schema", "schema": schema}), "s3tables")
    assert answer.notes["amended"] == ["T-default-add"]
    old, added = lab.asked[-1].json()["updates"][0]["schema"]["fields"]
    assert (old["write-default"], "initial-default" in added, added["write-default"]) == ("x", False, 1)
    answer = lab.engineer("GET", ORDERS, None, "snowflake-reader~shown-commits=2")
    assert [one["snapshot-id"] for one in answer.json()["metadata"]["snapshots"]] == [3, 4]
    assert answer.notes["amended"] == ["D-thousand-commits"]
    monkeypatch.setattr(Asked, "content", lambda self, location: json.dumps({"location": "s3://lab/a/b"}).encode())
    fresh = Lab(**{"last-updated-ms": time.time() * 1000})
    answer = fresh.engineer("GET", ORDERS, None, "unity-uniform")
    assert (answer.json()["metadata-location"], answer.notes["amended"]) == ("s3://lab/old.json", ["D-uniform-lag"])
    assert lab.engineer("GET", ORDERS, None, "unity-uniform").json()["metadata-location"] == "s3://lab/new.json"


# ---------------------------------------------------------------- malformed
GOOD_BODIES: list[tuple[str, str, Any]] = [
    ("POST", ORDERS, commit(snapshot(), {**MAIN, "snapshot-id": 9}, creates=True)),
    ("POST", ORDERS, commit({"action": "upgrade-format-version", "format-version": 3})),
    ("POST", ORDERS, commit({"action": "add-schema", "schema": {"fields": [{"id": 1, "name": "a", "type": "int"}]}})),
    ("POST", ORDERS, commit({"action": "add-spec", "spec": {"fields": [{"transform": "bucket[4]"}]}})),
    ("POST", ORDERS, commit({"action": "set-properties", "updates": {"a": "b"}})),
    ("POST", TABLES, {**NEW, "properties": {"format-version": "3"}, "location": "s3://x", "partition-spec": {}}),
    ("POST", "/v1/namespaces", {"namespace": ["a"], "properties": {}}),
    ("POST", "/v1/tables/rename", {"source": {"namespace": ["a"], "name": "b"}, "destination": {}}),
    ("POST", "/v1/transactions/commit", {"table-changes": [{**commit(snapshot()), "identifier": {"name": "X"}}]}),
]
STRANGE = (None, [], {}, "", "x", 7, -1.5, True, [None], [[]], {"a": None}, ["x"], {"action": []})


def bent(value: Any, random: Random) -> Any:
    """The value with one part of it, anywhere, made into something else or left out."""
    if random.random() < 0.25 or not isinstance(value, dict | list) or not value:
        return random.choice(STRANGE)
    if isinstance(value, list):
        place = random.randrange(len(value))
        return [bent(one, random) if n == place else one for n, one in enumerate(value)]
    name = random.choice(list(value))
    if random.random() < 0.2:
        return {key: one for key, one in value.items() if key != name}
    return {**value, name: bent(value[name], random)}


@pytest.mark.parametrize("terms", sorted(profiles.known()))
def test_what_is_malformed_is_refused_in_the_specifications_words_or_passed_on(terms: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(Asked, "_records", lambda *_: [])
    random = Random(terms)  # noqa: S311 - the same ones each time
    lab = Lab(**{"format-version": 3})
    token = MINE.entry(Access(terms, by="token"), HOST, "x").token
    for _ in range(300):
        method, path, body = random.choice(GOOD_BODIES)
        sent = random.choice((b"\xff", b"{", b"", b"null")) if random.random() < 0.05 else bent(body, random)
        answer = lab(method, f"/{terms}{path}", sent, headers=(*bearer(token), *DELEGATION))
        assert answer.status < 500, (path, sent)
        if answer.status != 200:
            told(answer)


# ---------------------------------------------------------------- profiles
def test_every_rule_names_a_trigger_and_only_words_that_it_takes() -> None:
    for profile in profiles.known().values():
        for rule in profile.rules:
            of = {**amends.REQUESTS, **amends.RESPONSES} if rule.amends else TRIGGERS
            taken = set(inspect.signature(of[rule.trigger]).parameters) - {"asked", "body", "table"}
            assert set(rule.words) <= taken, (profile.name, rule.id)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("title = ", "Invalid"),
        ('title = "x"\ncolour = "blue"', "nothing reads colour"),
        ('title = "x"\n[principals]\n[settings]\nhue = 1', "nothing reads hue"),
        ('title = "x"\n[principals]\n[[rules]]\nid = "X"', "add message, source, status, trigger, type"),
    ],
)
def test_a_profile_that_is_wrong_says_what_to_correct(text: str, why: str, tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "mine.toml").write_text(text)
    monkeypatch.setattr(profiles, "FILES", tmp_path)
    with pytest.raises(LabError, match=f"(?s)mine.toml.*{why}"):
        profiles.known.__wrapped__()


# ---------------------------------------------------------------- secrets
class Recorded(proxy.Proxy):
    async def _ask_catalog(self, request: Request) -> Response:
        if request.path.endswith("/broken"):
            raise RuntimeError("the catalog is broken")
        return Response(200, proxy.JSON).with_json({})


def test_no_secret_reaches_record_log_or_answer(caplog: pytest.LogCaptureFixture) -> None:
    record, sent = io.StringIO(), []
    app = Recorded(HOST, stages.pipeline(STORE, MINE.secret), record)

    async def ask(path: str, headers: proxy.Headers, body: bytes = b"") -> None:
        scope = {"type": "http", "method": "POST" if body else "GET", "raw_path": path.encode(), "query_string": b""}
        scope["headers"] = [(key.encode(), value.encode()) for key, value in headers]

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message.get("body", b"").decode())

        await app(scope, receive, send)

    secrets = {KEYS.client_secret("engineer"), KEYS.pat("engineer"), KEYS.key_pair_token("horizon", "engineer"), GOOD}
    for secret in secrets:
        for path in ("/horizon/v1/config", "/horizon/v1/namespaces/a/tables/broken", "/horizon/v1/secrets"):
            asyncio.run(ask(path, bearer(secret)))
        form = urlencode({**CLIENT, "client_secret": secret, "scope": "wrong"}).encode()
        asyncio.run(ask("/horizon/v1/oauth/tokens", (), form))
    told = record.getvalue() + caplog.text + "".join(sent)
    assert "H-token-expiry" in told
    assert "broken" in told
    for secret in {*secrets, MINE.secret, *KEYS.aws("engineer")[1:]}:
        assert secret not in told
    assert all(secret not in repr(MINE.entry(Access("horizon", by=by), HOST, "x")) for by in BYS for secret in secrets)


def test_what_was_noted_of_one_session_is_told_when_the_record_has_all_of_it(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    mine, other = (MINE.entry(Access("horizon"), HOST, tag) for tag in ("aaaaaaaa", "bbbbbbbb"))

    class Told(SignOn):
        def _marked(self, entry: Entry) -> bytes:
            return b"the-mark"

    def note(tag: str, **more: Any) -> None:
        with record.open("a") as file:
            file.write(json.dumps({"path": "/horizon/v1/x", "status": 200, "tag": tag, **more}) + "\n")

    note(mine.tag, rule="H-token-expiry", status=401)
    offset = record.stat().st_size
    for entry in (other, mine):
        note(entry.tag, rule=f"of {entry.tag}", status=403)
    note(mine.tag, path="/horizon/v1/oauth/tokens")
    note(mine.tag, narrowed="H-privileges")
    timer = threading.Timer(0.1, lambda: note(mine.tag, path="/horizon/mark/the-mark", rule="?", status=404))
    timer.start()
    told, end = Told(MINE.secret, str(record)).asked(mine, offset)
    assert told == {
        "rules": ["of aaaaaaaa"],
        "amended": [],
        "narrowed": ["H-privileges"],
        "tokens": 1,
        "statuses": [403],
    }
    assert end == record.stat().st_size


def test_what_an_engine_is_told_is_recorded_without_its_secrets() -> None:
    entry = MINE.entry(Access("horizon~token-seconds=9"), HOST, "cafe")
    told = entry.told(
        {"credential": entry.credential, "uri": entry.uri, "oauth2-server-uri": entry.token_uri, "a": "b"}
    )
    assert told == {
        "credential": "(a secret of this lab)",
        "uri": "…/horizon~token-seconds=9",
        "oauth2-server-uri": "…/horizon~token-seconds=9",
        "a": "b",
    }
