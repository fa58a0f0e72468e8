"""What the lab takes for granted of a REST catalog, asked of each that can be had; where one differs is data.

`reference` is started here, and asked by the open door and by one with rules. A Polaris or any other catalog that runs
is asked where variables name it (`ELSEWHERE`), by the same questions: give it a warehouse of its own.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
import requests

from lab.catalogs import polaris
from lab.model import Access
from lab.provision import Cache
from lab.runtime.embedded import Embedded

pytestmark = pytest.mark.stack

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "x", "type": "long", "required": False}]}
DOOR = Access("unity-managed", by="token")
ELSEWHERE = {
    "polaris": "ICEBERG_LAB_POLARIS_URL (of a running server), ICEBERG_LAB_POLARIS_SECRET (its root's) and, if it is "
    "not called lab, ICEBERG_LAB_POLARIS_WAREHOUSE",
    "remote": "ICEBERG_LAB_REMOTE_URI, ICEBERG_LAB_REMOTE_WAREHOUSE and, if it wants one, ICEBERG_LAB_REMOTE_TOKEN",
}
# What a catalog answers otherwise than the specification says: question → (status, why).
REFERENCE = {"nonsense": (500, "its servlet fails on an update that the parser does not know, with a page of Jetty's")}
DIFFERENCES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "reference": REFERENCE,
    "reference by a door": REFERENCE,
    "polaris": {"rename": (200, "1.4.1 answers a rename with 200")},
}


@dataclass
class Catalog:
    """A catalog by its URI, and a namespace of this run's own in it."""

    name: str
    uri: str
    warehouse: str
    headers: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    namespace: str = field(default_factory=lambda: f"conform_{secrets.token_hex(4)}")

    def ask(self, method: str, path: str, body: Any = None) -> requests.Response:
        """`path` without version and prefix."""
        base = f"{self.uri}/v1/{f'{self.prefix}/' if self.prefix else ''}"
        with requests.Session() as http:
            http.trust_env = False
            return http.request(method, base + path, json=body, headers=dict(self.headers), timeout=60)

    def told(self, question: str, status: int) -> int:
        """The status that this catalog answers with, where that is not the specification's."""
        return DIFFERENCES.get(self.name, {}).get(question, (status, ""))[0]

    @property
    def tables(self) -> str:
        return f"namespaces/{self.namespace}/tables"

    def table(self, **more: Any) -> str:
        """The path of a new table."""
        name = f"t_{secrets.token_hex(4)}"
        answer = self.ask("POST", self.tables, {"name": name, "schema": SCHEMA, **more})
        assert answer.status_code == 200, answer.text
        return f"{self.tables}/{name}"

    def commit(self, path: str, *updates: Any, requirements: Any = ()) -> requests.Response:
        return self.ask("POST", path, {"requirements": list(requirements), "updates": list(updates)})

    def metadata(self, path: str) -> Any:
        return self.ask("GET", path).json()["metadata"]


def refused(answer: requests.Response, status: int, kind: str) -> None:
    """An error in the specification's shape."""
    told = answer.json()["error"]
    assert (answer.status_code, told["code"], told["type"]) == (status, status, kind), answer.text
    assert isinstance(told["message"], str)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded(Cache(), tmp_path_factory.mktemp("state") / "runs" / "this") as lab:
        yield lab


@pytest.fixture(scope="module", params=["reference", "reference by a door", "polaris", "remote"])
def catalog(request: pytest.FixtureRequest) -> Iterator[Catalog]:
    found = _elsewhere(request.param) if request.param in ELSEWHERE else _here(request.param, request)
    config = requests.get(
        f"{found.uri}/v1/config", params={"warehouse": found.warehouse}, headers=dict(found.headers), timeout=60
    ).json()
    found.prefix = {**config.get("defaults", {}), **config.get("overrides", {})}.get("prefix", "")
    assert found.ask("POST", "namespaces", {"namespace": [found.namespace]}).status_code == 200
    yield found
    for name in found.ask("GET", found.tables).json()["identifiers"]:
        found.ask("DELETE", f"{found.tables}/{name['name']}")
    assert found.ask("DELETE", f"namespaces/{found.namespace}").status_code == 204


def _here(name: str, request: pytest.FixtureRequest) -> Catalog:
    lab: Embedded = request.getfixturevalue("lab")
    where = lab.catalog()
    if name == "reference":
        return Catalog(name, where.uri, where.warehouse)
    entry = lab.sign_on().entry(DOOR, where.uri, "conforms")
    return Catalog(name, entry.uri, where.warehouse, {"Authorization": f"Bearer {entry.token}"})


def _elsewhere(name: str) -> Catalog:
    def said(what: str) -> str:
        return os.environ.get(f"ICEBERG_LAB_{name.upper()}_{what}", "")

    if name == "polaris" and said("URL"):
        server = polaris.upstream(said("URL"), said("SECRET"))
        headers = {"Authorization": f"Bearer {polaris.token(server)}"}
        return Catalog(name, server.uri, said("WAREHOUSE") or polaris.CATALOG, headers)
    if name == "remote" and said("URI"):
        headers = {"Authorization": f"Bearer {said('TOKEN')}"} if said("TOKEN") else {}
        return Catalog(name, said("URI").rstrip("/"), said("WAREHOUSE"), headers)
    pytest.skip(f"no {name} runs here; set {ELSEWHERE[name]}")


# ---------------------------------------------------------------- namespaces
def test_a_namespace_is_made_once_listed_and_dropped(catalog: Catalog) -> None:
    name = f"{catalog.namespace}_b"
    assert catalog.ask("POST", "namespaces", {"namespace": [name]}).status_code == 200
    refused(catalog.ask("POST", "namespaces", {"namespace": [name]}), 409, "AlreadyExistsException")
    assert [name] in catalog.ask("GET", "namespaces").json()["namespaces"]
    assert catalog.ask("DELETE", f"namespaces/{name}").status_code == 204
    refused(catalog.ask("GET", f"namespaces/{name}"), 404, "NoSuchNamespaceException")


@pytest.mark.parametrize("below", ["b", "B c", "ü"])
def test_a_nested_namespace_keeps_its_levels(catalog: Catalog, below: str) -> None:
    nested = [catalog.namespace, below]
    path = f"namespaces/{quote(chr(0x1F).join(nested), safe='')}"
    assert catalog.ask("POST", "namespaces", {"namespace": nested}).status_code == 200
    assert catalog.ask("GET", path).json()["namespace"] == nested
    assert nested in catalog.ask("GET", f"namespaces?parent={catalog.namespace}").json()["namespaces"]
    assert catalog.ask("POST", f"{path}/tables", {"name": "t", "schema": SCHEMA}).status_code == 200
    assert catalog.ask("GET", f"{path}/tables").json()["identifiers"] == [{"namespace": nested, "name": "t"}]
    assert catalog.ask("DELETE", f"{path}/tables/t").status_code == 204
    assert catalog.ask("DELETE", path).status_code == 204


# ---------------------------------------------------------------- tables
def test_a_table_is_made_once_loaded_and_dropped(catalog: Catalog) -> None:
    path = catalog.table()
    name = path.rpartition("/")[2]
    refused(catalog.ask("POST", catalog.tables, {"name": name, "schema": SCHEMA}), 409, "AlreadyExistsException")
    assert catalog.metadata(path)["format-version"] == 2
    assert catalog.ask("HEAD", path).status_code == 204
    assert catalog.ask("DELETE", path).status_code == 204
    refused(catalog.ask("GET", path), 404, "NoSuchTableException")
    refused(catalog.ask("DELETE", path), 404, "NoSuchTableException")


def test_a_staged_table_is_there_when_it_is_committed_and_once(catalog: Catalog) -> None:
    name = f"s_{secrets.token_hex(4)}"
    staged = catalog.ask("POST", catalog.tables, {"name": name, "schema": SCHEMA, "stage-create": True}).json()
    refused(catalog.ask("GET", f"{catalog.tables}/{name}"), 404, "NoSuchTableException")
    made = staged["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": made["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": made["schemas"][0], "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": made["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": made["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": made["location"]},
    ]
    create = {"type": "assert-create"}
    assert catalog.commit(f"{catalog.tables}/{name}", *updates, requirements=[create]).status_code == 200
    assert catalog.metadata(f"{catalog.tables}/{name}")["table-uuid"] == made["table-uuid"]
    again = catalog.commit(f"{catalog.tables}/{name}", *updates, requirements=[create])
    assert again.status_code == 409, again.text


def test_a_commit_whose_requirement_fails_changes_nothing(catalog: Catalog) -> None:
    path = catalog.table()
    wrong = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    change = {"action": "set-properties", "updates": {"a": "b"}}
    refused(catalog.commit(path, change, requirements=[wrong]), 409, "CommitFailedException")
    assert "a" not in catalog.metadata(path)["properties"]
    assert catalog.commit(path, change).status_code == 200
    assert catalog.metadata(path)["properties"]["a"] == "b"


def test_a_transaction_of_many_tables_is_whole_or_nothing(catalog: Catalog) -> None:
    paths = [catalog.table(), catalog.table()]
    change = {"action": "set-properties", "updates": {"a": "b"}}

    def changes(*requirements: list[Any]) -> Any:
        names = [{"namespace": [catalog.namespace], "name": path.rpartition("/")[2]} for path in paths]
        each = zip(names, requirements, strict=True)
        return {"table-changes": [{"identifier": n, "requirements": r, "updates": [change]} for n, r in each]}

    wrong = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    refused(catalog.ask("POST", "transactions/commit", changes([], [wrong])), 409, "CommitFailedException")
    assert ["a" in catalog.metadata(path)["properties"] for path in paths] == [False, False]
    assert catalog.ask("POST", "transactions/commit", changes([], [])).status_code == 204
    assert ["a" in catalog.metadata(path)["properties"] for path in paths] == [True, True]


def test_of_many_commits_on_one_base_one_is_made(catalog: Catalog) -> None:
    path = catalog.table()
    base = {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1}

    def add(number: int) -> int:
        fields = [*SCHEMA["fields"], {"id": 2, "name": f"c{number}", "type": "long", "required": False}]
        schema = {"action": "add-schema", "schema": {**SCHEMA, "fields": fields}, "last-column-id": 2}
        current = {"action": "set-current-schema", "schema-id": -1}
        return catalog.commit(path, schema, current, requirements=[base]).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(add, range(8)))
    assert statuses == [200, *[409] * 7]


def acknowledged_and_lost(catalog: Catalog) -> tuple[set[str], set[str]]:
    """Eight transactions at once that each set a property of a table: those answered with success, and of them those
    whose property is not there."""
    path = catalog.table()
    identifier = {"namespace": [catalog.namespace], "name": path.rpartition("/")[2]}

    def commit(key: str) -> bool:
        updates = [{"action": "set-properties", "updates": {key: "1"}}]
        change = {"identifier": identifier, "requirements": [], "updates": updates}
        return catalog.ask("POST", "transactions/commit", {"table-changes": [change]}).status_code == 204

    keys = [f"writer-{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as writers:
        done = {key for key, made in zip(keys, writers.map(commit, keys), strict=True) if made}
    return done, done - catalog.metadata(path)["properties"].keys()


def test_no_transaction_of_one_table_is_lost_that_was_acknowledged(catalog: Catalog) -> None:
    for _ in range(3):
        done, lost = acknowledged_and_lost(catalog)
        assert done and not lost


def test_the_reference_catalog_alone_loses_transactions(lab: Embedded) -> None:
    """Why `transactions.py` is there. On the day that this fails it need not be any more."""
    where = lab.catalog()
    door = Access("witness~off=H-token-expiry~transactions=whole", by="nothing")
    alone = Catalog("alone", lab.sign_on().entry(door, where.uri, "alone").uri, where.warehouse)
    assert alone.ask("POST", "namespaces", {"namespace": [alone.namespace]}).status_code == 200
    assert any(acknowledged_and_lost(alone)[1] for _ in range(20))


def test_a_table_moves_by_its_new_name(catalog: Catalog) -> None:
    path = catalog.table()
    old, new = path.rpartition("/")[2], f"m_{secrets.token_hex(4)}"
    names = {what: {"namespace": [catalog.namespace], "name": n} for what, n in (("source", old), ("destination", new))}
    assert catalog.ask("POST", "tables/rename", names).status_code == catalog.told("rename", 204)
    refused(catalog.ask("GET", path), 404, "NoSuchTableException")
    assert catalog.ask("GET", f"{catalog.tables}/{new}").status_code == 200
    refused(catalog.ask("POST", "tables/rename", names), 404, "NoSuchTableException")


def test_a_format_version_goes_up_and_not_down(catalog: Catalog) -> None:
    path = catalog.table()
    assert catalog.commit(path, {"action": "upgrade-format-version", "format-version": 3}).status_code == 200
    assert catalog.metadata(path)["format-version"] == 3
    down = catalog.commit(path, {"action": "upgrade-format-version", "format-version": 2})
    assert down.status_code == 400, down.text
    assert catalog.metadata(path)["format-version"] == 3


def test_what_it_does_not_know_is_a_bad_request_and_changes_nothing(catalog: Catalog) -> None:
    path = catalog.table()
    before = catalog.metadata(path)["properties"]
    answer = catalog.commit(path, {"action": "set-nonsense"})
    assert answer.status_code == catalog.told("nonsense", 400), answer.text
    assert catalog.metadata(path)["properties"] == before
