"""Catalogs that users supply, and how the gateway signs on to them. No engine, and no secret in the wrong place."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lab import catalogs
from lab.asking import untouched
from lab.behaviours import BEHAVIOURS
from lab.catalogs import CATALOGS, Traits, Upstream, polaris, proxy, remote, seaweedfs, stages, upstream
from lab.catalogs.proxy import Request, Response
from lab.engines import GENERATIONS
from lab.errors import LabError, UsageError
from lab.labs import selected
from lab.model import Cell, Rows
from lab.provision import Cache, NotProvided
from lab.runtime.host import Host
from lab.runtime.places import Places
from lab.runtime.stack import Stack
from lab.stores import StoreEndpoint, s3
from lab.stores import remote as no_store
from lab.tables.orders import NAMESPACE, ORDERS_V2

STORE = StoreEndpoint("http://127.0.0.1:1", "us-east-1", "lab", "admin-key", "admin-secret")
MINE = """
uri = "https://catalog.example/api/"
warehouse = "SALES"
credential_variable = "MY_CREDENTIAL"
scope = "PRINCIPAL_ROLE:ALL"
"""
SIGNED = 'uri = "https://s3tables.us-east-1.amazonaws.com/iceberg"\nwarehouse = "arn"\nsigning_name = "s3tables"\n'
KEYS = '[store]\nurl = "https://s3.example"\nbucket = "sales"\naccess_key_variable = "A"\nsecret_key_variable = "B"\n'
OWN = (polaris.FOLDER, polaris.URL, polaris.SECRET, remote.FILE, s3.KEYS)


@pytest.fixture(autouse=True)
def nothing_supplied(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in OWN:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(Cache(tmp_path / "cache", offline=True), tmp_path / "run")


def declared(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    monkeypatch.setenv(remote.FILE, str(file))
    return file


@pytest.mark.parametrize("name", CATALOGS)
def test_every_catalog_has_what_a_catalog_has(name: str) -> None:
    module = catalogs.named(name)
    wanted = {word for word in catalogs.Catalog.__dict__ if not word.startswith("_")} | {"NAME", "ARTEFACTS", "STORES"}
    assert [word for word in wanted if not hasattr(module, word)] == []


# ---------------------------------------------------------------- what is supplied, and what is missing
@pytest.mark.parametrize(
    ("catalog", "told"),
    [("polaris", r"ICEBERG_LAB_POLARIS=FOLDER.*ICEBERG_LAB_POLARIS_URL"), ("remote", r"ICEBERG_LAB_CATALOG=FILE")],
)
def test_one_line_tells_how_to_supply_a_catalog(catalog: str, told: str) -> None:
    store = catalogs.named(catalog).STORES[0]
    with pytest.raises(NotProvided, match=told) as missing:
        Places("embedded", catalog, store).check()
    assert "\n" not in str(missing.value)


def test_a_folder_that_is_no_polaris_and_a_server_without_its_keys_say_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(polaris.FOLDER, str(tmp_path))
    with pytest.raises(NotProvided, match=r"has no quarkus-run.jar"):
        polaris.check()
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / polaris.STARTED).touch()
    polaris.check()
    monkeypatch.setenv(polaris.URL, "http://127.0.0.1:8181")
    with pytest.raises(NotProvided, match=r"ICEBERG_LAB_POLARIS_SECRET.*ICEBERG_LAB_STORE_KEYS"):
        polaris.check()


@pytest.mark.parametrize("half", ["access-key", "access-key:", ":secret"])
def test_half_a_pair_of_keys_is_told_in_one_line_without_them(half: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(polaris.URL, "http://127.0.0.1:8181")
    monkeypatch.setenv(polaris.SECRET, "root-secret")
    monkeypatch.setenv(s3.KEYS, half)
    for asked in (polaris.check, lambda: s3.at(4711)):
        with pytest.raises(LabError, match=r"ICEBERG_LAB_STORE_KEYS .* ACCESS_KEY:SECRET_KEY$") as told:
            asked()
        assert half.strip(":") not in str(told.value)


def test_a_doors_rule_holds_on_every_catalog_and_its_twin_shows_the_catalogs_own() -> None:
    cell = Cell("T-codec", "rule", "duckdb-1.5.5", "duckdb-1.5.5", "none", "seaweedfs", "seaweedfs", "embedded", 3)
    for variant, codec in (("rule", "zstd"), ("rule-off", None), ("default", None)):
        expected = BEHAVIOURS["T-codec"].expectation(replace(cell, variant=variant))
        assert expected is not None
        assert expected.facts["schema.codec"] == codec


@pytest.mark.parametrize(
    ("theirs", "cure"), [(True, "drop its namespace ANALYTICS there"), (False, "iceberg-lab down")]
)
def test_a_table_that_was_written_to_is_told_with_what_makes_it_anew(theirs: bool, cure: str) -> None:
    def written(statement: object) -> Rows:
        return Rows((), ORDERS_V2.rows[1:])

    session = cast(Any, SimpleNamespace(execute=written))
    with pytest.raises(LabError, match=cure):
        untouched(session, GENERATIONS["duckdb-1.5.5"], NAMESPACE, ORDERS_V2, theirs=theirs)


def test_a_server_that_runs_gets_a_catalog_of_each_lab_and_the_store_its_keys(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert s3.at(4711).access_key != s3.at(4711).access_key
    assert polaris.warehouse(STORE) == polaris.CATALOG
    monkeypatch.setenv(polaris.URL, "http://127.0.0.1:8181/")
    monkeypatch.setenv(polaris.SECRET, "root-secret")
    monkeypatch.setenv(s3.KEYS, "known:to both")
    made: list[Any] = []
    monkeypatch.setattr(polaris, "set_up", lambda *args: made.append(args))
    store = s3.at(4711)
    assert (store.access_key, store.secret_key) == ("known", "to both")
    found = polaris.start(host, store, lambda: None)
    assert made == [("http://127.0.0.1:8181", "root-secret", store, "s3://lab/warehouse/lab-4711", "lab-4711")]
    assert (found.uri, polaris.warehouse(store)) == ("http://127.0.0.1:8181/api/catalog", "lab-4711")


def test_a_catalog_that_only_local_processes_have_is_had_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEBERG_LAB_STATE", str(tmp_path))
    declared(tmp_path, MINE, monkeypatch)
    selection, _ = selected({"catalog": "remote", "generations": "duckdb*"})
    assert selection.places == Places("embedded", "remote", "remote")


def test_seaweedfs_serves_its_catalog_where_it_is_wanted_and_nowhere_else(host: Host) -> None:
    store = seaweedfs.choose(host, STORE)
    assert store.catalog.startswith("http://127.0.0.1:")
    assert store.catalog != store.url
    assert STORE.catalog == ""
    assert catalogs.named("reference").choose(host, STORE) == STORE


# ---------------------------------------------------------------- a catalog of the user's own
def test_a_declared_catalog_is_reached_as_its_file_says(
    tmp_path: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared(tmp_path, MINE, monkeypatch)
    monkeypatch.setenv("MY_CREDENTIAL", "client:whispered")
    found = remote.start(host, STORE, lambda: None)
    assert found == Upstream(
        "https://catalog.example/api",
        token_uri="https://catalog.example/api/v1/oauth/tokens",  # noqa: S106
        credential="client:whispered",
        scope="PRINCIPAL_ROLE:ALL",
        region="us-east-1",
        vends=True,
    )
    assert "whispered" not in repr(found)
    assert remote.choose(host, no_store.choose(host)).url == "https://s3.us-east-1.amazonaws.com"
    assert (remote.traits(), remote.warehouse(STORE)) == (Traits(vends=True), "SALES")


def test_with_keys_of_its_store_the_gateway_vends(tmp_path: Path, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    declared(tmp_path, MINE + KEYS, monkeypatch)
    monkeypatch.setenv("A", "key")
    monkeypatch.setenv("B", "whispered")
    store = remote.choose(host, no_store.choose(host))
    assert (store.url, store.bucket, store.access_key, store.secret_key) == (
        *("https://s3.example", "sales"),
        *("key", "whispered"),
    )
    assert not remote.traits().vends


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("uri = ", "correct its TOML"),
        ('uri = "https://c"', r"warehouse is missing; e\.g\. warehouse"),
        (MINE + 'token = "t"', r'take the token out of the file.*token_variable = "NAME"'),
        (MINE + KEYS + 'secret_key = "t"', r'take the secret_key out of the file.*secret_key_variable = "NAME"'),
        (MINE + 'colour = "blue"', "nothing reads colour; remove it"),
        (MINE + 'token_variable = "T"', "credential_variable and token_variable are two ways to sign on; keep one"),
        (MINE + "region = 4", "region must be text in quotation marks"),
        (MINE + '[store]\nbucket = "b"', "bucket alone; bucket and both keys go together"),
        (MINE.replace("https://", "https://me:secret@"), "take the secret out of uri"),
        (MINE.replace("https://", "s3://"), "uri is where it answers"),
        (MINE + 'token_uri = "https://c/tokens?client_secret=x"', "take the secret out of token_uri"),
        (MINE + "store = 4", r"store is a table, \[store\]"),
    ],
)
def test_a_file_that_is_wrong_says_what_to_correct(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared(tmp_path, text, monkeypatch)
    with pytest.raises(UsageError, match=told) as wrong:
        remote.declared()
    assert "me:secret" not in str(wrong.value)


def test_a_variable_that_is_not_set_and_a_file_that_is_not_there_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = declared(tmp_path, MINE, monkeypatch)
    monkeypatch.delenv("MY_CREDENTIAL", raising=False)
    with pytest.raises(NotProvided, match=r"\$MY_CREDENTIAL, which is not set"):
        remote.check()
    file.unlink()
    with pytest.raises(UsageError, match="No such file"):
        remote.check()


def test_its_store_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    class Without(Stack):
        def __init__(self) -> None: ...

        def _store_ready(self) -> None: ...

        def _store_endpoint(self) -> StoreEndpoint:
            return StoreEndpoint("https://s3.example", "us-east-1", "sales", "key", "secret")

        _choose_store = _start_store = _warehouse = _open_catalog = _start_catalog = None  # type: ignore[assignment]
        _launch = running = end = None  # type: ignore[assignment]

    with pytest.raises(NotProvided, match="a remote catalog's is its owner's"):
        Without().store()


# ---------------------------------------------------------------- how the gateway signs on
class Behind:
    """A catalog behind the stages of a gateway, which notes what it was asked."""

    def __init__(self, of: Upstream) -> None:
        self.asked: list[Request] = []
        self._stages = stages.pipeline(STORE, "secret-of-this-lab", of)

    def __call__(self, method: str, path: str, body: bytes = b"", headers: proxy.Headers = ()) -> Response:
        answer: proxy.Forward = self._catalog
        for stage in reversed(self._stages):
            answer = proxy._bind(stage, answer)
        return asyncio.run(answer(Request(method, path, headers=(("host", "127.0.0.1:9"), *headers), body=body)))  # type: ignore[arg-type]

    async def _catalog(self, request: Request) -> Response:
        self.asked.append(request)
        keys = {"s3.access-key-id": "its own"}
        table = {"metadata-location": "s3://b/m.json", "metadata": {"location": "s3://b/t"}, "config": keys}
        return Response(200, proxy.JSON).with_json(table)


WANTED = (("x-iceberg-access-delegation", "vended-credentials"), ("authorization", "Bearer of the engine"))
TABLE = "/v1/p/namespaces/a%1Fb/tables/t"


def test_a_token_of_the_users_is_shown_in_place_of_the_engines() -> None:
    catalog = Behind(Upstream("https://c", token="shown", vends=True))  # noqa: S106
    catalog("GET", TABLE, headers=WANTED)
    (asked,) = catalog.asked
    assert asked.header("authorization") == "Bearer shown"


def test_a_catalog_that_vends_is_asked_for_keys_and_they_are_passed_on() -> None:
    catalog = Behind(Upstream("https://c", vends=True))
    answer = catalog("GET", TABLE, headers=WANTED)
    assert answer.json()["config"] == {"s3.access-key-id": "its own"}
    assert catalog.asked[0].header("x-iceberg-access-delegation") == "vended-credentials"


def test_a_catalog_whose_keys_the_gateway_vends_is_asked_for_none() -> None:
    catalog = Behind(Upstream("https://c"))
    answer = catalog("GET", TABLE, headers=(("authorization", "Bearer x"),))
    assert "config" not in answer.json()
    catalog("POST", "/v1/p/namespaces", b'{"namespace": ["n"]}', headers=WANTED)
    assert [one.header("x-iceberg-access-delegation") for one in catalog.asked] == ["", ""]


@pytest.mark.parametrize("session", ["", "of a session"])
def test_a_signed_request_is_signed_as_botocore_signs_it(session: str) -> None:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    of = Upstream("https://c.example/iceberg", signing_name="s3tables", region="eu-west-1")
    of = Upstream(**{**vars(of), "credential": "KEY:secret:with colon", "session_token": session})
    catalog = Behind(of)
    body = json.dumps({"namespace": ["a"]}).encode()
    catalog("POST", TABLE, body, headers=WANTED)
    (asked,) = catalog.asked
    shown = dict(asked.headers)
    assert shown.get("x-amz-security-token", "") == session
    again = AWSRequest("POST", f"{of.uri}{TABLE}", data=body)
    again.headers["x-amz-content-sha256"] = shown["x-amz-content-sha256"]
    again.context["timestamp"] = shown["x-amz-date"]
    auth = SigV4Auth(Credentials("KEY", "secret:with colon", session or None), "s3tables", "eu-west-1")
    again.headers["X-Amz-Date"] = shown["x-amz-date"]
    if session:
        again.headers["X-Amz-Security-Token"] = session
    signature = auth.signature(auth.string_to_sign(again, auth.canonical_request(again)), again)
    assert shown["authorization"].endswith(f"Signature={signature}")
    assert "/eu-west-1/s3tables/aws4_request" in shown["authorization"]
    assert "secret" not in json.dumps(shown)


def test_whom_nobody_asks_who_he_is_needs_no_stage() -> None:
    assert upstream.sign_on(Upstream("http://127.0.0.1:1")) == []


def test_a_store_that_makes_no_table_bucket_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refuses:
        status_code, text = 403, "no\n right"

    monkeypatch.setattr("requests.Session.put", lambda *_, **__: Refuses())
    with pytest.raises(LabError, match="SeaweedFS makes no table bucket: 403 no right"):
        seaweedfs.set_up(STORE)
