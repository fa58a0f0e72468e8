"""What the lab takes for granted of a REST catalog, asked of each that can be had; where one differs is data.

Each is asked bare, by the gateway's open door and by a door with rules. `reference` and `seaweedfs` are started here;
`polaris` and `remote` where they are supplied, by the variables that `iceberg-lab matrix --catalog` takes
(docs/catalogs.md): else they are skipped with the line that tells how.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import psutil
import pytest
import requests
from minio.error import S3Error

from lab import catalogs
from lab.catalogs import CATALOGS, Upstream, oauth, sigv4
from lab.model import Access
from lab.provision import Cache, NotProvided
from lab.runtime.embedded import Embedded
from lab.tables.storage import Store

pytestmark = pytest.mark.stack

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "x", "type": "long", "required": False}]}
DOOR = Access("unity-managed", by="token")
BARE, OPEN, RULED = WAYS = ("bare", "by the gateway", "by a door")
# What a catalog answers otherwise than the specification says: question → (status, why). All else must be as it says.
DIFFERENCES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "reference": {
        "nonsense": (500, "its servlet fails on an update that the parser does not know, with a page of Jetty's"),
    },
    "polaris": {"rename": (200, "1.4.1 answers a rename with 200")},
    "seaweedfs": {
        "again": (
            200,
            "who creates a table that is there gets that one (handleCreateTable: so that CTAS is repeatable)",
        ),
        "letters": (400, "validateNamespacePart: a-z, 0-9, _ and - alone, as Amazon S3 Tables has it"),
        "upper": (400, "validateNamespacePart and its like of tables: a-z, 0-9 and _ alone"),
        "puffin": (403, "iceberg_layout.go: data/ of a table bucket takes *.parquet, *.orc, *.avro, *.lance alone"),
    },
}


@dataclass
class Catalog:
    """A catalog as it is reached one way, and a namespace of this run's own in it."""

    name: str
    way: str
    at: Upstream
    warehouse: str
    prefix: str = ""
    namespace: str = field(default_factory=lambda: f"conform_{secrets.token_hex(4)}")

    def __post_init__(self) -> None:
        if self.at.token_uri:
            self.at = Upstream(self.at.uri, token=oauth.token(self.at))

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = {}) -> requests.Response:
        """`path` without version and prefix."""
        return self.sent(method, f"{f'{self.prefix}/' if self.prefix else ''}{path}", body, headers)

    def sent(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = {}) -> requests.Response:
        """`path` without version."""
        url, data = f"{self.at.uri}/v1/{path}", b"" if body is None else json.dumps(body).encode()
        headers = {**headers, **({"content-type": "application/json"} if data else {})}
        if self.at.token:
            headers["authorization"] = f"Bearer {self.at.token}"
        if self.at.signing_name:
            key = (*self.at.credential.split(":", 1), self.at.session_token)
            headers |= sigv4.signed(method, url, data, key, self.at.signing_name, self.at.region)
        with requests.Session() as http:
            http.trust_env = not url.startswith("http://127.0.0.1:")
            return http.request(method, url, data=data or None, headers=headers, timeout=60)

    def answers(self, answer: requests.Response, question: str, status: int) -> bool:
        """Whether this catalog answers as it should, or as it is known to; then nothing further may be asked of it."""
        known = self.told(question, status)
        assert answer.status_code == known, answer.text
        return known == status

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


@pytest.fixture(scope="module", params=CATALOGS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def lab(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    found = catalogs.named(name)
    try:
        found.check()
    except NotProvided as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("state") / "runs" / "this"
    with Embedded(Cache(), folder, catalog=name, store=found.STORES[0]) as lab:
        yield lab


@pytest.fixture(scope="module", params=WAYS)
def catalog(request: pytest.FixtureRequest, name: str, lab: Embedded) -> Iterator[Catalog]:
    where = lab.catalog()
    if request.param == BARE:
        at = lab.upstream
    elif request.param == OPEN:
        at = Upstream(where.uri)
    else:
        entry = lab.sign_on().entry(DOOR, where.uri, "conforms")
        at = Upstream(entry.uri, token=entry.token)
    found = Catalog(name, request.param, at, where.warehouse)
    config = found.sent("GET", f"config?warehouse={quote(found.warehouse, safe='')}").json()
    found.prefix = {**config.get("defaults", {}), **config.get("overrides", {})}.get("prefix", "")
    assert found.ask("POST", "namespaces", {"namespace": [found.namespace]}).status_code == 200
    yield found
    for table in found.ask("GET", found.tables).json()["identifiers"]:
        found.ask("DELETE", f"{found.tables}/{table['name']}")
    assert found.ask("DELETE", f"namespaces/{found.namespace}").status_code == 204


def test_what_was_started_listens_on_loopback_alone(lab: Embedded) -> None:
    lab.catalog()
    started = [psutil.Process(one.pid) for one in lab.running()]
    processes = [process for one in started for process in (one, *one.children(recursive=True))]
    heard = {c.laddr.ip for process in processes for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
    assert heard
    assert heard <= {"127.0.0.1", "::ffff:127.0.0.1"}


# ---------------------------------------------------------------- namespaces
def test_a_namespace_is_made_once_listed_and_dropped(catalog: Catalog) -> None:
    name = f"{catalog.namespace}_b"
    assert catalog.ask("POST", "namespaces", {"namespace": [name]}).status_code == 200
    refused(catalog.ask("POST", "namespaces", {"namespace": [name]}), 409, "AlreadyExistsException")
    assert [name] in catalog.ask("GET", "namespaces").json()["namespaces"]
    assert catalog.ask("DELETE", f"namespaces/{name}").status_code == 204
    refused(catalog.ask("GET", f"namespaces/{name}"), 404, "NoSuchNamespaceException")


@pytest.mark.parametrize(("below", "question"), [("b", ""), ("B c", "letters"), ("ü", "letters")])
def test_a_nested_namespace_keeps_its_levels(catalog: Catalog, below: str, question: str) -> None:
    nested = [catalog.namespace, below]
    path = f"namespaces/{quote(chr(0x1F).join(nested), safe='')}"
    if not catalog.answers(catalog.ask("POST", "namespaces", {"namespace": nested}), question, 200):
        listed = catalog.ask("GET", f"namespaces?parent={catalog.namespace}").json()["namespaces"]
        assert nested not in listed
        return
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
    made = catalog.metadata(path)
    again = catalog.ask("POST", catalog.tables, {"name": name, "schema": {**SCHEMA, "fields": []}})
    if catalog.answers(again, "again", 409):
        refused(again, 409, "AlreadyExistsException")
    assert catalog.metadata(path) == made
    assert made["format-version"] == 2
    assert catalog.ask("HEAD", path).status_code == 204
    assert catalog.ask("DELETE", path).status_code == 204
    refused(catalog.ask("GET", path), 404, "NoSuchTableException")
    refused(catalog.ask("DELETE", path), 404, "NoSuchTableException")


def test_a_name_in_upper_case_is_kept_or_refused(catalog: Catalog) -> None:
    name = f"T_{secrets.token_hex(4)}"
    answer = catalog.ask("POST", catalog.tables, {"name": name, "schema": SCHEMA})
    listed = {one["name"] for one in catalog.ask("GET", catalog.tables).json()["identifiers"]}
    assert catalogs.named(catalog.name).traits().lower_case == (catalog.told("upper", 200) != 200)
    if catalog.answers(answer, "upper", 200):
        assert name in listed
    else:
        assert name.lower() not in {one.lower() for one in listed}


def test_vended_keys_write_what_a_table_is_made_of(catalog: Catalog) -> None:
    if catalog.way == BARE:
        pytest.skip("vending is the gateway's")
    wanted = {"x-iceberg-access-delegation": "vended-credentials"}
    assert catalogs.named(catalog.name).traits().puffin == (catalog.told("puffin", 200) == 200)
    loaded = catalog.ask("GET", catalog.table(), headers=wanted).json()
    keys = Store(loaded["config"])
    for name, question in (("x.parquet", ""), ("x.puffin", "puffin")):
        location = f"{loaded['metadata']['location']}/data/{name}"
        if catalog.told(question, 200) == 200:
            keys.write(location, b"x")
            assert keys.read(location) == b"x"
        else:
            with pytest.raises(S3Error) as refusal:
                keys.write(location, b"x")
            assert (refusal.value.code, refusal.value.response.status) == ("AccessDenied", catalog.told(question, 200))


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
    if catalog.at.loses_transactions:  # Why `transactions.py` is there. Where this fails it need not be any more.
        assert any(acknowledged_and_lost(catalog)[1] for _ in range(20))
        return
    for _ in range(3):
        done, lost = acknowledged_and_lost(catalog)
        assert done and not lost


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
