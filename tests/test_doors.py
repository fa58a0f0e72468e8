"""The gateway's doors without an engine: who gets in, who may do what, and what nobody learns."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest
from door_lab import (
    BYS,
    DDL,
    DELEGATION,
    HOST,
    KEYS,
    MINE,
    NEW,
    ORDERS,
    OTHERS,
    STORE,
    TABLES,
    Lab,
    bearer,
    commit,
    signed,
    snapshot,
    told,
)

from lab.catalogs import DENY, Upstream, profiles, proxy, stages, transactions
from lab.catalogs.authorisation import Authorisation
from lab.catalogs.keyring import Caller
from lab.catalogs.profiles import Grant
from lab.catalogs.proxy import Request, Response
from lab.catalogs.signing import Entry, SignOn
from lab.catalogs.triggers import Asked
from lab.errors import LabError
from lab.model import Access


# ---------------------------------------------------------------- doors
@pytest.mark.parametrize("door", ["", "/horizon", "/witness"])
def test_no_door_tells_how_else_to_part_the_levels_of_a_namespace(door: str) -> None:
    told = {"overrides": {"namespace-separator": "%2E", "uri": "http://127.0.0.1:1", "prefix": "p"}}

    class Tells(Lab):
        async def _catalog(self, request: Request) -> Response:
            return Response(200, proxy.JSON).with_json(told)

    lab = Tells()
    token = lab.exchanged(MINE.entry(Access(door[1:]), HOST, "cafe")) if door else ""
    answer = lab("GET", f"{door}/v1/config", headers=bearer(token) if door else ())
    assert answer.json()["overrides"] == {"prefix": "p"}


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
    ("setting", "values"),
    [
        ("token-seconds", ("banana", "nan", "1e400", "inf", "")),
        ("expired-status", ("banana", "9999", "0", "204", "200")),
        ("vended-seconds", ("banana", "0", "-1", "1e9", "nan")),
        ("vended-refresh", ("maybe", "")),
        ("vending-deny", ("s3:Everything", "GetObject")),
        ("vending-claim", ("", "a claim")),
        ("shown-commits", ("-1", "1.5", "all")),
        ("lag-seconds", ("-1", "nan")),
        ("transactions", ("foo", "")),
    ],
)
def test_a_setting_that_can_not_be_is_told_with_what_can(setting: str, values: tuple[str, ...]) -> None:
    lab = Lab()
    for value in values:
        answer = lab("GET", f"/horizon~{setting}={value}/v1/config".replace(" ", "%20"))
        assert told(answer)[0] == 404
        assert f"{setting} is not {value!r}; it takes " in answer.json()["error"]["message"]
        with pytest.raises(LabError, match=f"{setting} is not"):
            MINE.entry(Access(f"horizon~{setting}={value}"), HOST, "x")


@pytest.mark.parametrize(
    "path",
    [
        "/horizon/v1/../v1/namespaces",
        "/horizon/../v1/namespaces",
        "/horizon/v1/namespaces/%2e%2e/tables/x",
        "/horizon/v1/namespaces/a/tables/..%2F..%2Fb",
        "/horizon/v1/namespaces/a/tables/%252e%252e",
        "/v1/namespaces/../../x",
        "/v1/namespaces/A%00B/tables/x",
        "/horizon/v1/namespaces/A%00B/tables/x",
        "/v1/namespaces/A%0D%0AB",
    ],
)
def test_a_path_that_climbs_is_refused(path: str) -> None:
    lab = Lab()
    answer = lab("GET", path, headers=bearer(KEYS.pat("owner")))
    assert answer.status in (400, 404)
    assert lab.asked == [] or "%252e" in path


@pytest.mark.parametrize("name", ["../../x", "..", "a/../b", "a\0b", "a\nb", "\x1f"])
@pytest.mark.parametrize("door", ["", "/horizon"])
def test_a_name_in_a_body_that_climbs_or_has_control_characters_is_refused(door: str, name: str) -> None:
    lab, one = Lab(), {"namespace": ["W_NS"], "name": name}
    headers = bearer(KEYS.pat("owner")) if door else ()
    for path, body in (
        (TABLES, {**NEW, "name": name}),
        ("/v1/namespaces", {"namespace": ["A", name]}),
        ("/v1/namespaces/W_NS/register", {"name": name, "metadata-location": "s3://lab/x"}),
        ("/v1/namespaces/W_NS/views", {"name": name}),
        ("/v1/tables/rename", {"source": {**one, "name": "x"}, "destination": one}),
        ("/v1/views/rename", {"source": one, "destination": {**one, "namespace": [name]}}),
        (TRANSACTION, {"table-changes": [{"identifier": one, **DDL}]}),
    ):
        assert told(lab("POST", door + path, body, headers=headers))[0] == 400
    assert lab.asked == []


def test_a_name_may_have_any_other_character() -> None:
    lab = Lab()
    for name in ("a b", "ü\u00a0", ".a", "a..b", "a/b", "…"):
        assert lab("POST", TABLES, {**NEW, "name": name}).status == 200


TRANSACTION = "/v1/transactions/commit"


@pytest.mark.parametrize(
    "changes",
    [
        [None],
        [{}],
        [{"identifier": {"namespace": "W_NS", "name": 1}}],
        [{"identifier": None, "updates": []}],
        [{"identifier": {"namespace": ["W_NS"], "name": "T"}, "updates": [1]}],
        None,
        [],
    ],
)
def test_a_transaction_that_is_none_is_malformed_at_the_open_door_too(changes: Any) -> None:
    lab = Lab()
    lab.stages = [transactions.single]
    assert told(lab("POST", TRANSACTION, {"table-changes": changes}))[0] == 400
    assert told(lab("POST", TRANSACTION, b"nothing"))[0] == 400
    assert lab.asked == []


def test_a_transaction_of_one_table_goes_on_as_its_commit_and_of_two_as_it_is() -> None:
    lab = Lab()
    lab.stages = [transactions.single]
    change = {"identifier": {"namespace": ["a", "b/c"], "name": "T U"}, **DDL}
    assert lab("POST", "/v1/p/transactions/commit", {"table-changes": [change]}).status == 204
    assert lab("POST", "/v1/p/transactions/commit", {"table-changes": [change, change]}).status == 200
    one, two = lab.asked
    assert (one.path, one.json()) == ("/v1/p/namespaces/a%1Fb%2Fc/tables/T%20U", DDL)
    assert two.path == "/v1/p/transactions/commit"


@pytest.mark.parametrize(("kind", "right"), [("table", "ICEBERG TABLE"), ("view", "VIEW")])
def test_a_rename_takes_the_right_to_make_one_where_it_goes(kind: str, right: str, monkeypatch: Any) -> None:
    lab, moves = Lab(), {side: {"namespace": [f"W_{side}"], "name": "T"} for side in ("source", "destination")}
    horizon = profiles.door("horizon")

    def moved(*made: Grant) -> Response:
        roles = {**horizon.profile.roles, "READER": (Grant("W_source.*", frozenset({"OWNERSHIP"})), *made)}
        door = replace(horizon, profile=replace(horizon.profile, roles=roles))
        monkeypatch.setattr(profiles, "door", lambda _: door)
        return lab("POST", f"/horizon/v1/{kind}s/rename", moves, headers=bearer(KEYS.pat("reader")))

    assert told(moved()) == (403, "H-privileges")
    assert moved(Grant("W_destination.*", frozenset({"USAGE", f"CREATE {right}"}))).status == 200


def test_whose_table_a_commit_changes_says_its_path_and_not_its_body() -> None:
    """The catalog goes by the path, so whoever may write the one that the body names may not write the other."""
    lab = Lab()
    mine = {**commit(snapshot()), "identifier": {"namespace": ["W_NS"], "name": "MINE"}}
    stages = [one for one in lab.stages if isinstance(one, Authorisation)]
    stages[0].made[("W_NS", "MINE")] = "READER"
    assert told(lab.as_(Access("horizon", "reader"), "POST", ORDERS, mine)) == (403, "H-privileges")


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


ROOT = "s3://lab/warehouse"
ABOVE = (
    ROOT,
    f"{ROOT}/",
    "s3a://lab//warehouse",
    f"{ROOT}#x",
    f"{ROOT}/W_NS/..",
    "s3://lab/ware\nhouse",
    "s3://lab/other/T",
)


@pytest.mark.parametrize(
    "door", ["", "/witness~off=H-token-expiry", "/horizon~off=H-token-expiry~off=H-privileges~off=W-no-location"]
)
@pytest.mark.parametrize("location", ABOVE)
def test_no_table_is_placed_at_the_warehouse_itself_or_beside_it(door: str, location: str) -> None:
    lab, sets = Lab(ROOT), {"action": "set-location", "location": location}
    asked = [
        (TABLES, {**NEW, "location": location}),
        (ORDERS, commit(sets)),
        (f"{TABLES}/Y", commit(sets, creates=True)),
        ("/v1/namespaces", {"namespace": ["N"], "properties": {"location": location}}),
        ("/v1/namespaces/W_NS/properties", {"updates": {"location": location}}),
        (
            "/v1/transactions/commit",
            {"table-changes": [{"identifier": {"namespace": ["W_NS"], "name": "T"}, **commit(sets)}]},
        ),
    ]
    for path, body in asked:
        answer = lab("POST", door + path, body, headers=DELEGATION)
        assert told(answer)[0] == 403
        assert answer.json()["error"]["message"].startswith("Invalid locations")
    assert {one.method for one in lab.asked} <= {"GET"}


@pytest.mark.parametrize("location", ABOVE)
def test_keys_of_the_whole_warehouse_are_vended_nobody(location: str) -> None:
    """As a table that was registered may lie there."""
    lab = Lab(ROOT, location=location)
    for method, path, body in (("GET", ORDERS, None), ("POST", "/v1/namespaces/W_NS/register", {"name": "X"})):
        assert told(lab(method, path, body, headers=DELEGATION))[0] == 403
    assert lab.terms == []


def test_tables_below_the_warehouse_are_placed_and_vended_keys() -> None:
    lab = Lab(ROOT)
    assert lab("POST", TABLES, {**NEW, "location": f"{ROOT}/W_NS/chosen"}, headers=DELEGATION).status == 200
    assert len(lab.terms) == 1


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
    untold = lab.as_(Access("horizon~vended-refresh=none"), "GET", ORDERS), lab("GET", ORDERS, headers=DELEGATION)
    assert all("client.refresh-credentials-endpoint" not in answer.json()["config"] for answer in untold)


# ---------------------------------------------------------------- secrets
class Recorded(proxy.Proxy):
    async def _ask_catalog(self, request: Request) -> Response:
        if request.path.endswith("/broken"):
            raise RuntimeError("the catalog is broken")
        return Response(200, proxy.JSON).with_json({})


def test_no_secret_reaches_record_log_or_answer(caplog: pytest.LogCaptureFixture) -> None:
    record, sent = io.StringIO(), []
    app = Recorded(HOST, stages.pipeline(STORE, MINE.secret, Upstream(HOST)), record)

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
            line = {"method": "GET", "path": "/horizon/v1/x", "status": 200, "tag": tag}
            file.write(json.dumps({**line, **more}) + "\n")

    note(mine.tag, rule="H-token-expiry", status=401)
    offset = record.stat().st_size
    for entry in (other, mine):
        note(entry.tag, rule=f"of {entry.tag}", status=403)
    note(mine.tag, path="/horizon/v1/oauth/tokens")
    note(mine.tag, narrowed=["H-privileges"])
    note(mine.tag, path="/horizon/v1/namespaces/a/tables/b", vended=True)
    note(mine.tag, path="/horizon/v1/namespaces/a/tables/b/credentials", vended=True)
    for path in (
        "namespaces/W/tables/T",
        "transactions/commit",
        "namespaces/W/tables",
        "namespaces/W/tables/T/metrics",
    ):
        note(mine.tag, method="POST", path=f"/horizon/v1/{path}", status=409)
    note(mine.tag, path="/horizon/v1/namespaces/W/tables/T")  # a load
    timer = threading.Timer(0.1, lambda: note(mine.tag, path="/horizon/mark/the-mark", rule="?", status=404))
    timer.start()
    told, end = Told(MINE.secret, str(record)).asked(mine, offset)
    assert told == {
        "rules": ["of aaaaaaaa"],
        "amended": [],
        "narrowed": ["H-privileges"],
        "tokens": 1,
        "keys": 1,
        "refreshed": True,
        "statuses": [403],
        "commits": [409, 409],
    }
    assert end == record.stat().st_size


@pytest.mark.parametrize(
    ("terms", "principal", "narrowed"),
    [
        ("horizon-no-delete", "engineer", ["H-delete-403"]),
        ("horizon-no-delete", "reader", ["H-privileges", "H-delete-403"]),
        ("horizon-no-delete~off=H-delete-403", "reader", ["H-privileges"]),
        ("horizon-no-delete~off=H-delete-403", "engineer", None),
    ],
)
def test_what_a_rule_keeps_from_keys_is_noted_by_its_claim(
    terms: str, principal: str, narrowed: list[str] | None
) -> None:
    lab = Lab()
    answer = lab.as_(Access(terms, principal), "GET", ORDERS)
    assert answer.notes.get("narrowed") == narrowed
    assert answer.notes.get("denied", ()) == lab.terms[-1].deny
    assert bool(lab.terms[-1].deny) == bool(narrowed)


def test_what_a_table_keeps_from_its_keys_is_no_rule_of_the_door() -> None:
    lab = Lab(properties={DENY: "s3:DeleteObject"})
    notes = lab.as_(Access("horizon"), "GET", ORDERS).notes
    assert notes["denied"] == ("s3:DeleteObject",)
    assert "narrowed" not in notes


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
