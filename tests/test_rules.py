"""Vendors' rules without an engine: which refuses what, what is amended, and what is malformed."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from door_lab import (
    DDL,
    MAIN,
    METADATA,
    NEW,
    ORDERS,
    TABLES,
    Lab,
    commit,
    snapshot,
    told,
)

from lab.catalogs import profiles
from lab.catalogs.triggers import Asked
from lab.errors import LabError
from lab.model import Access

README = Path(__file__).parents[1] / "README.md"


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("claim", "terms", "method", "path", "body", "metadata"),
    [
        ("W-no-register", "horizon", "POST", "/v1/namespaces/W_NS/register", {"name": "X"}, {}),
        ("W-no-location", "horizon", "POST", TABLES, {**NEW, "location": "s3://lab/elsewhere"}, {}),
        ("W-no-location", "horizon", "POST", ORDERS, commit({"action": "set-location", "location": "s3://x"}), {}),
        ("W-no-location", "horizon", "POST", TABLES, {**NEW, "location": "s3://lab/warehouse/OTHERS/T"}, {}),
        (
            "W-no-location",
            "horizon",
            "POST",
            TABLES,
            {**NEW, "name": "warehouse", "location": "s3://lab/warehouse"},
            {},
        ),
        (
            *("W-no-location", "horizon", "POST", f"{TABLES}/Y"),
            *(commit({"action": "set-location", "location": "s3://lab/warehouse/W_NS/X"}, creates=True), {}),
        ),
        (
            *("W-no-location", "horizon", "POST", "/v1/namespaces"),
            *({"namespace": ["N"], "properties": {"location": "s3://lab/warehouse/W_NS"}}, {}),
        ),
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
        ("W-not-writable", "horizon", "GET", ORDERS, None, {"properties": {"lab.horizon.external": "true"}}),
        ("D-uniform-dv", "unity-uniform", "GET", ORDERS, None, {"properties": {"lab.delta.deletion-vectors": "on"}}),
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
        ("POST", TABLES, {**NEW, "location": "s3://lab/warehouse/W_NS/T-1d9c81b5-3a35-4c4f-9f3f-0d6ac1b2a3c4"}),
        (  # what a staged CREATE TABLE was told and repeats
            *("POST", f"{TABLES}/Y"),
            commit({"action": "set-location", "location": "s3://lab/warehouse/W_NS/Y"}, creates=True),
        ),
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


def within(**field: Any) -> list[dict[str, Any]]:
    """A schema's fields: this one in a struct, that in a map's value, that in a list."""
    struct = {"type": "struct", "fields": [{"id": 9, "name": "x", "required": False, **field}]}
    told = {"type": "map", "key-id": 6, "key": "string", "value-id": 7, "value": struct, "value-required": False}
    inner = {"type": "list", "element-id": 5, "element": told, "element-required": False}
    return [{"id": 4, "name": "a", "required": False, "type": inner}]


def test_a_rule_about_columns_sees_those_within_others() -> None:
    def has(**field: Any) -> Lab:
        return Lab(schemas=[{"schema-id": 0, "fields": within(**field)}])

    def becomes(**field: Any) -> Any:
        return commit({"action": "add-schema", "schema": {"fields": within(**field)}})

    nanos = has(type="timestamp_ns")
    assert told(nanos.engineer("GET", ORDERS, None, "horizon-preview"))[1] == "W-no-v3-write"
    unknown = has(type="unknown")
    assert told(unknown.engineer("POST", ORDERS, becomes(type="string"), "s3tables"))[1] == "T-void-alter"
    default = becomes(type="int", **{"write-default": 1})
    assert told(has(type="int").engineer("POST", ORDERS, default, "s3tables"))[1] == "T-default-set"


def test_a_default_within_a_struct_vanishes_like_any() -> None:
    lab = Lab()
    fields = within(type="int", **{"initial-default": 1, "write-default": 1})
    answer = lab.engineer("POST", TABLES, {"name": "T", "schema": {"type": "struct", "fields": fields}}, "s3tables")
    assert "T-default-create" in answer.notes["amended"]
    assert lab.asked[-1].json()["schema"]["fields"] == within(type="int")


def test_where_a_namespace_is_told_to_lie_its_tables_do() -> None:
    lab = Lab()
    lab.namespaces = {"properties": {"location": "s3://lab/warehouse/other/"}}
    for location, refused in (("s3://lab/warehouse/other/T", False), ("s3://lab/warehouse/W_NS/T", True)):
        answer = lab.engineer("POST", TABLES, {**NEW, "location": location})
        assert (answer.notes.get("rule") == "W-no-location") is refused


def test_the_readmes_own_vendor_refuses_by_its_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```toml\n(title = .*?)```", README.read_text("utf-8"), re.DOTALL)
    for file in profiles.FILES.glob("*.toml"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "archive.toml").write_text(example)
    monkeypatch.setattr(profiles, "FILES", tmp_path)
    profiles.known.cache_clear()
    profiles.door.cache_clear()
    try:
        lab, expiry = Lab(), commit({"action": "remove-snapshots", "snapshot-ids": [1]})
        refused = lab.as_(Access("archive"), "POST", ORDERS, expiry)
        assert told(refused) == (400, "X-no-expiry")
        assert re.fullmatch(r"Snapshots are kept: .+", refused.json()["error"]["message"])
        assert not any(one.method == "POST" for one in lab.asked)
        assert lab.as_(Access("archive~off=X-no-expiry"), "POST", ORDERS, expiry).status == 200
        assert any(one.method == "POST" for one in lab.asked)
    finally:
        monkeypatch.undo()
        profiles.known.cache_clear()
        profiles.door.cache_clear()


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


# ---------------------------------------------------------------- profiles
def test_what_the_catalog_answers_amiss_is_not_the_clients_malformed_request() -> None:
    lab = Lab()
    del lab.metadata["metadata-log"], lab.metadata["last-updated-ms"]
    with pytest.raises(KeyError):
        lab.engineer("GET", ORDERS, None, "unity-uniform")


OF_E = "title = 'x'\n[principals]\nengineer = ['E']\n"
RULE = "[[rules]]\nid = 'X'\nsource = 'x'\nstatus = 400\ntype = 'x'\nmessage = 'x'\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("title = ", "Invalid"),
        ('title = "x"\ncolour = "blue"', "nothing reads colour"),
        ('title = "x"\n[principals]\n[settings]\nhue = 1', "nothing reads 'hue'"),
        ('title = "x"\n[principals]\n[settings]\ntoken-seconds = "soon"', "token-seconds is not 'soon'; it takes num"),
        ('title = "x"\n[principals]\n[settings]\nshown-commits = true', "shown-commits is not 'True'"),
        ('title = "x"', r"add a title, and \[principals\]"),
        ('[principals]\nengineer = ["E"]', r"add a title, and \[principals\]"),
        ('title = "x"\n[principals]\nengineer = []', "a role each"),
        ('title = "x"\n[principals]\nengineer = "E"', "a role each"),
        ('title = "x"\nprincipals = 3', "principals is no table"),
        ('title = "x"\n[principals]\nengineer = [1]', "a role each"),
        ('title = "x"\nsettings = 3', "settings is no table"),
        (f"rules = [1]\n{OF_E}", "a rule is a table"),
        ('title = "x"\nextends = "mine"', "extends itself"),
        ('title = "x"\nextends = "nobody"', "nobody.toml"),
        (f"{OF_E}[[roles.F]]\non = '*'\nprivileges = []", r"roles E; add \[\[roles.E\]\]"),
        (f"{OF_E}[[roles.E]]\non = '*'\nprivileges = ['SELCT']", "no privilege SELCT; there are: USAGE"),
        (f"{OF_E}[[roles.E]]\non = '*'\nprivileges = 'SELECT'", "privileges is no list"),
        (f"{OF_E}[[roles.E]]\nprivileges = ['SELECT']", "a grant has on and privileges"),
        (f"{OF_E}[[roles.E]]\non = '*'\nprivileges = []\nfutre = true", "a grant has on and privileges"),
        (f"{OF_E}[needs]\nLOAD_TABLE = ['SELCT']", "needs: there is no privilege SELCT"),
        (f"{OF_E}{RULE}trigger = 'nonesuch'", "no trigger 'nonesuch'; there are: operation, "),
        (f"{OF_E}{RULE}trigger = 'operation'\nnmaes = []", "nothing reads nmaes; trigger operation takes names"),
        (f"{OF_E}{RULE}trigger = 'operation'", "add names; trigger operation takes names"),
        (f"{OF_E}{RULE}trigger = 'operation'\nnames = 'X'", "names is no list"),
        (f"{OF_E}{RULE}trigger = 'format-version'\nversion = '3'", "version is no whole number"),
        (f"{OF_E}{RULE}trigger = 'refs'\nwhat = 1", "nothing reads what; trigger refs takes no words"),
        (f"{OF_E}{RULE.replace('400', '200')}trigger = 'refs'", "status is 200; a refusal's is from 400 to 599"),
        (f"{OF_E}[[rules]]\nid = 'X'\nsource = 'x'\namend = 'lags'", "no amend 'lags'; there are: properties, "),
        ('title = "x"\n[principals]\n[[rules]]\nid = "X"', "add message, source, status, trigger, type"),
    ],
)
def test_a_profile_that_is_wrong_says_what_to_correct(text: str, why: str, tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "mine.toml").write_text(text)
    monkeypatch.setattr(profiles, "FILES", tmp_path)
    with pytest.raises(LabError, match=why if "nobody" in why else f"mine.toml.*{why}") as told:
        profiles.known.__wrapped__()
    assert "\n" not in str(told.value)
