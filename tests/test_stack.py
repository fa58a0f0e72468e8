"""The real store, catalog and gateway together: what vended credentials open, and what they don't."""

from __future__ import annotations

import io
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from minio import Minio
from minio.deleteobjects import DeleteObject
from minio.error import S3Error

from lab.catalogs import DENY, GRANT
from lab.model import Access
from lab.provision import Cache, NotProvided
from lab.runtime.embedded import Embedded
from lab.stores import STORES
from lab.tables.look import looks
from lab.tables.rest import RestCatalog

pytestmark = pytest.mark.stack

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "x", "type": "long", "required": False}]}
WANTS = {"X-Iceberg-Access-Delegation": "vended-credentials"}


class Stack:
    def __init__(self, lab: Embedded) -> None:
        self.lab = lab
        self.catalog = lab.catalog()
        self.bucket = lab.store().bucket

    def rest(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        return requests.request(method, self.catalog.uri + path, json=body, headers=headers, timeout=60)

    def table(self, namespace: str, name: str, **body: Any) -> Any:
        self.rest("POST", "/v1/namespaces", {"namespace": [namespace]})
        answer = self.rest(
            "POST", f"/v1/namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA, **body}, **WANTS
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def s3(self, table: Any) -> tuple[Minio, str]:
        """A client with a table's vended credentials, and the key prefix of its location."""
        config = table["config"]
        endpoint = urllib.parse.urlsplit(config["s3.endpoint"]).netloc
        client = Minio(
            endpoint,
            access_key=config["s3.access-key-id"],
            secret_key=config["s3.secret-access-key"],
            session_token=config["s3.session-token"],
            region=config["client.region"],
            secure=False,
        )
        return client, table["metadata"]["location"].removeprefix(f"s3://{self.bucket}/")


@pytest.fixture(scope="module", params=STORES)
def stack(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    with Embedded(Cache(), tmp_path_factory.mktemp("state") / "runs" / "this", store=request.param) as lab:
        try:
            lab.store()
        except NotProvided as missing:
            pytest.skip(str(missing))
        yield Stack(lab)


def _refused(call: Any, *args: Any, **kwargs: Any) -> bool:
    with pytest.raises(S3Error) as refusal:
        result = call(*args, **kwargs)
        if result is not None and not hasattr(result, "data"):
            list(result)
    return refusal.value.code == "AccessDenied" and refusal.value.response.status == 403


def test_vended_credentials_open_the_tables_prefix_and_no_other(stack: Stack) -> None:
    own, other = stack.table("scope", "t"), stack.table("scope", "t2")
    s3, prefix = stack.s3(own)
    assert prefix == "warehouse/scope/t"
    _, beside = stack.s3(other)

    s3.put_object(stack.bucket, f"{prefix}/data/a", io.BytesIO(b"abc"), 3)
    s3.put_object(stack.bucket, f"{prefix}/data/large", io.BytesIO(bytes(6 << 20)), -1, part_size=5 << 20)
    assert s3.get_object(stack.bucket, f"{prefix}/data/a", offset=1, length=1).data == b"b"
    listed = {o.object_name for o in s3.list_objects(stack.bucket, f"{prefix}/data/", recursive=True)}
    assert listed == {f"{prefix}/data/a", f"{prefix}/data/large"}
    assert list(s3.remove_objects(stack.bucket, [DeleteObject(f"{prefix}/data/large")])) == []
    s3.remove_object(stack.bucket, f"{prefix}/data/a")

    metadata = other["metadata-location"].removeprefix(f"s3://{stack.bucket}/")
    assert _refused(s3.put_object, stack.bucket, f"{beside}/data/a", io.BytesIO(b"abc"), 3)
    assert _refused(s3.get_object, stack.bucket, metadata)
    assert _refused(s3.remove_object, stack.bucket, metadata)
    assert _refused(s3.list_objects, stack.bucket, f"{beside}/", recursive=True)
    assert _refused(s3.list_objects, stack.bucket, recursive=True)
    assert _refused(s3.make_bucket, "another")
    (failed,) = s3.remove_objects(stack.bucket, [DeleteObject(metadata)])
    assert failed.code == "AccessDenied"
    assert stack.rest("GET", "/v1/namespaces/scope/tables/t2").status_code == 200


def _deletes(stack: Stack, name: str) -> dict[str, Any]:
    rest = RestCatalog(stack.catalog.uri, stack.catalog.warehouse)
    return looks(stack.lab.store)["deletes"](rest, "deny", name)


def test_a_session_without_delete_is_refused_in_the_store_and_the_store_tells(stack: Stack) -> None:
    denied = stack.table("deny", "t", properties={DENY: "s3:DeleteObject"})
    s3, prefix = stack.s3(denied)
    s3.put_object(stack.bucket, f"{prefix}/data/a", io.BytesIO(b"abc"), 3)
    assert s3.get_object(stack.bucket, f"{prefix}/data/a").data == b"abc"
    assert _refused(s3.remove_object, stack.bucket, f"{prefix}/data/a")
    assert _refused(s3.remove_object, stack.bucket, f"{prefix}/data/never")
    (failed,) = s3.remove_objects(stack.bucket, [DeleteObject(f"{prefix}/data/a")])
    assert failed.code == "AccessDenied"
    assert _deletes(stack, "t") == {"requests": 3, "batches": 1, "keys": 2, "of_nothing": 1, "refused": 3}
    rest = RestCatalog(stack.catalog.uri, stack.catalog.warehouse)
    assert looks(stack.lab.store)["orphans"](rest, "deny", "t") == {"data": 1, "metadata": 0}


def test_a_bucket_policys_grant_to_the_principal_passes_the_session_policy(
    stack: Stack, request: pytest.FixtureRequest
) -> None:
    properties = {DENY: "s3:DeleteObject", GRANT: "s3:DeleteObject"}
    s3, prefix = stack.s3(stack.table("deny", "granted", properties=properties))
    beside, other = stack.s3(stack.table("deny", "beside", properties={DENY: "s3:DeleteObject"}))
    for client, where in ((s3, prefix), (beside, other)):
        client.put_object(stack.bucket, f"{where}/data/a", io.BytesIO(b"abc"), 3)
    assert _refused(beside.remove_object, stack.bucket, f"{other}/data/a")
    assert _refused(s3.remove_object, stack.bucket, f"{other}/data/a")
    if request.node.callspec.params["stack"] == "minio":  # asks a bucket's policy for anonymous requests alone
        assert _refused(s3.remove_object, stack.bucket, f"{prefix}/data/a")
        return
    s3.remove_object(stack.bucket, f"{prefix}/data/a")
    assert list(s3.remove_objects(stack.bucket, [DeleteObject(f"{prefix}/data/a")])) == []
    assert _deletes(stack, "granted") == {"requests": 2, "batches": 1, "keys": 2, "of_nothing": 1, "refused": 0}


def test_a_staged_table_is_vended_for_and_one_who_does_not_ask_gets_nothing(stack: Stack) -> None:
    staged = stack.table("staged", "t", **{"stage-create": True})
    s3, prefix = stack.s3(staged)
    s3.put_object(stack.bucket, f"{prefix}/data/a", io.BytesIO(b"abc"), 3)
    stack.table("staged", "plain")
    plain = stack.rest("GET", "/v1/namespaces/staged/tables/plain").json()
    assert not plain.get("config")
    assert "storage-credentials" not in plain


def test_a_location_of_ones_own_is_the_one_vended_for(stack: Stack) -> None:
    s3, prefix = stack.s3(stack.table("own", "t", location=f"s3://{stack.bucket}/warehouse/elsewhere/t"))
    assert prefix == "warehouse/elsewhere/t"
    s3.put_object(stack.bucket, "warehouse/elsewhere/t/data/a", io.BytesIO(b"abc"), 3)


def test_nested_namespaces_by_the_protocols_own_separator(stack: Stack) -> None:
    assert "namespace-separator" not in stack.rest("GET", "/v1/config").text
    for levels in (["n"], ["n", "m"], ["n", "m", "o"]):
        assert stack.rest("POST", "/v1/namespaces", {"namespace": levels}).status_code == 200
    assert stack.rest("GET", "/v1/namespaces?parent=n%1Fm").json()["namespaces"] == [["n", "m", "o"]]
    made = stack.rest("POST", "/v1/namespaces/n%1Fm/tables", {"name": "t", "schema": SCHEMA}, **WANTS).json()
    assert made["storage-credentials"][0]["prefix"] == f"s3://{stack.bucket}/warehouse/n/m/t/"
    assert stack.rest("GET", "/v1/namespaces/n%1Fm/tables/t").status_code == 200


def test_concurrent_commits_conflict_or_succeed_but_do_not_fail(stack: Stack) -> None:
    stack.table("busy", "t")

    def commit(n: int) -> int:
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {f"k{n}": "v"}}]}
        return stack.rest("POST", "/v1/namespaces/busy/tables/t", body).status_code

    def create(n: int) -> int:
        return stack.rest("POST", "/v1/namespaces/busy/tables", {"name": f"c{n}", "schema": SCHEMA}).status_code

    with ThreadPoolExecutor(8) as pool:
        commits = Counter(pool.map(commit, range(16)))
        creates = Counter(pool.map(create, range(32)))
    assert set(commits) <= {200, 409}
    assert creates == {200: 32}
    kept = stack.rest("GET", "/v1/namespaces/busy/tables/t").json()["metadata"]["properties"]
    assert sum(key.startswith("k") for key in kept) == commits[200]


def test_everything_listens_on_loopback_and_no_secret_is_in_sight(stack: Stack) -> None:
    store = stack.lab.store()
    vended = stack.table("secrets", "t")["config"]
    processes = [
        below
        for process in stack.lab.host.processes()
        for below in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True))
    ]
    listening = [c.laddr for p in processes for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert len(listening) >= 4
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
    logs = [path.read_text(errors="replace") for path in Path(stack.lab.host.folder / "logs").iterdir()]
    words = [" ".join(process.cmdline()) for process in processes] + logs
    for secret in (store.secret_key, vended["s3.secret-access-key"], vended["s3.session-token"]):
        assert not any(secret in text for text in words)


# ---------------------------------------------------------------- by a door
def _behind(stack: Stack, principal: str, terms: str = "horizon") -> tuple[str, dict[str, str]]:
    """A door's URI, and the headers of one who signed on there."""
    entry = stack.lab.sign_on().entry(Access(terms, principal, by="token"), stack.catalog.uri, "cafe")
    return entry.uri, {"Authorization": f"Bearer {entry.token}", **WANTS}


def test_a_readers_keys_read_and_a_writers_write_their_own_table_alone(stack: Stack) -> None:
    made, other = stack.table("doors", "ORDERS_1"), stack.table("doors", "ORDERS_2")
    writing, prefix = stack.s3(made)
    writing.put_object(stack.bucket, f"{prefix}/data/a", io.BytesIO(b"a"), 1)
    for principal, may_write in (("reader", False), ("engineer", True)):
        uri, headers = _behind(stack, principal)
        loaded = requests.get(f"{uri}/v1/namespaces/doors/tables/ORDERS_1", headers=headers, timeout=60).json()
        client, prefix = stack.s3(loaded)
        assert client.get_object(stack.bucket, f"{prefix}/data/a").read() == b"a"
        assert _refused(client.get_object, stack.bucket, stack.s3(other)[1] + "/metadata/x")
        if may_write:
            client.put_object(stack.bucket, f"{prefix}/data/b", io.BytesIO(b"b"), 1)
        else:
            assert _refused(client.put_object, stack.bucket, f"{prefix}/data/b", io.BytesIO(b"b"), 1)
            assert _refused(client.remove_object, stack.bucket, f"{prefix}/data/a")


def test_32_clients_lose_no_commit_behind_a_door(stack: Stack) -> None:
    clients, each = 32, 3
    stack.table("doors", "CROWDED")
    uri, headers = _behind(stack, "owner")

    def commits(client: int) -> list[int]:
        statuses = []
        with requests.Session() as http:
            for number in range(each):
                property_ = {"action": "set-properties", "updates": {f"of-{client}-{number}": "there"}}
                while True:
                    answer = http.post(
                        f"{uri}/v1/namespaces/doors/tables/CROWDED",
                        json={"requirements": [], "updates": [property_]},
                        headers=headers,
                        timeout=120,
                    )
                    statuses.append(answer.status_code)
                    if answer.status_code != 409:
                        break
        return statuses

    with ThreadPoolExecutor(clients) as pool:
        statuses = Counter(status for seen in pool.map(commits, range(clients)) for status in seen)
    assert set(statuses) <= {200, 409}, statuses
    assert statuses[200] == clients * each
    properties = RestCatalog(stack.catalog.uri, stack.catalog.warehouse).load_table("doors", "CROWDED").metadata
    kept = [name for name in properties["properties"] if name.startswith("of-")]
    assert len(kept) == clients * each
