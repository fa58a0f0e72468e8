"""The lab's own look at what was written, on metadata made here; one small server is catalog and store."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import pytest

from lab.errors import LabError
from lab.tables.rest import RestCatalog, RestError
from lab.tables.xray import File, xray

FILE = {"name": "data_file", "type": "record"}
V1 = [("file_path", "string"), ("file_format", "string"), ("record_count", "long")]
V2 = [("content", "int"), *V1]
V3 = [
    *V2,
    ("referenced_data_file", ["null", "string"]),
    ("content_offset", ["null", "long"]),
    ("content_size_in_bytes", ["null", "long"]),
]


def avro(name: str, fields: list[tuple[str, Any]], records: list[dict[str, Any]]) -> bytes:
    schema = {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec="deflate")
    return out.getvalue()


def manifest(fields: list[tuple[str, Any]], entries: list[tuple[int, int | None, dict[str, Any]]]) -> bytes:
    """Entries are (status, snapshot_id, data_file)."""
    file = {**FILE, "name": "r2", "fields": [{"name": n, "type": t} for n, t in fields]}
    records = [{"status": s, "snapshot_id": i, "data_file": f} for s, i, f in entries]
    columns = [("status", "int"), ("snapshot_id", ["null", "long"]), ("data_file", file)]
    return avro("manifest_entry", columns, records)


def manifest_list(*manifests: tuple[str, int]) -> bytes:
    records = [{"manifest_path": f"s3://lake/{path}", "added_snapshot_id": by} for path, by in manifests]
    return avro("manifest_file", [("manifest_path", "string"), ("added_snapshot_id", "long")], records)


def data(path: str, records: int = 1, **more: Any) -> dict[str, Any]:
    empty = {"referenced_data_file": None, "content_offset": None, "content_size_in_bytes": None}
    return {
        "content": 0,
        "file_path": path,
        "file_format": "PARQUET",
        "record_count": records,
        **empty,
        **more,
    }


class Lake:
    """Catalog and store in one: what stands in `objects` is served, what was asked is kept in `asked`."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.table: dict[str, Any] = {"location": "s3://lake/t"}
        self.config: dict[str, Any] = {}
        self.asked: list[tuple[str, str, str | None]] = []
        lake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                lake.asked.append((self.command, self.path, self.headers.get("X-Iceberg-Access-Delegation")))
                path = self.path.partition("?")[0]
                if self.command == "DELETE":
                    status, body = 204, b""
                elif path.startswith("/v1/"):
                    status, body = lake.answer(path)
                else:
                    signed = "Credential=k/" in self.headers["Authorization"]
                    found = lake.objects.get(path.removeprefix("/lake/"))
                    status, body = (200, found) if signed and found else (403, b"")
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_DELETE = do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self.server.server_port}/"

    def answer(self, path: str) -> tuple[int, bytes]:
        if path == "/v1/config":
            return 200, json.dumps(self.config).encode()
        if path.endswith("/tables"):
            return 200, json.dumps({"identifiers": [{"namespace": ["N"], "name": "A B"}]}).encode()
        if path.endswith("/tables/T"):
            keys = {"s3.access-key-id": "k", "s3.secret-access-key": "hush", "s3.session-token": "token"}
            place = {"s3.endpoint": self.uri.rstrip("/"), "client.region": "region-1"}
            vended = [
                {"prefix": "s3://lake/", "config": {**place, **keys, "s3.access-key-id": "wide"}},
                {"prefix": "s3://lake/t", "config": {**place, **keys}},
                {"prefix": "s3://other-and-much-longer/", "config": {}},
            ]
            loaded = {
                "metadata-location": "s3://lake/m.json",
                "metadata": self.table,
                "storage-credentials": vended,
            }
            return 200, json.dumps(loaded).encode()
        error = {"message": "no such table", "type": "NoSuchTableException", "code": 404}
        return 404, json.dumps({"error": error}).encode()


@pytest.fixture
def lake() -> Iterator[Lake]:
    served = Lake()
    thread = threading.Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.server.shutdown()
    served.server.server_close()
    thread.join()


def catalog(lake: Lake) -> RestCatalog:
    return RestCatalog(lake.uri, "w")


def snapshot(number: int, parent: int | None, operation: str, **more: Any) -> dict[str, Any]:
    return {
        "snapshot-id": number,
        "sequence-number": number,
        **({"parent-snapshot-id": parent} if parent else {}),
        "manifest-list": f"s3://lake/list-{number}",
        "summary": {"operation": operation, "added-records": "1"},
        **more,
    }


def test_each_kind_of_file_in_commit_order(lake: Lake) -> None:
    lake.table |= {
        "current-snapshot-id": 4,
        "snapshots": [  # 3 was rolled back: main leads from 4 to 2
            snapshot(4, 2, "delete"),
            snapshot(3, 2, "append"),
            snapshot(1, None, "append"),
            snapshot(2, 1, "overwrite"),
        ],
    }
    vector = data(
        "dv.puffin",
        content=1,
        file_format="PUFFIN",
        content_offset=4,
        content_size_in_bytes=43,
        referenced_data_file="a",
    )
    lake.objects |= {
        "m1": manifest(V3, [(1, None, data("a", 3))]),  # the snapshot id is inherited
        "m2": manifest(V3, [(1, 2, data("b")), (2, 2, data("a", 3)), (0, 1, data("c")), (1, 1, data("d"))]),
        "m2d": manifest(V3, [(1, 2, data("p", content=1)), (1, 2, data("e", content=2, file_format="AVRO"))]),
        "m4": manifest(V3, [(1, 4, vector)]),
        "list-1": manifest_list(("m1", 1)),
        "list-2": manifest_list(("m1", 1), ("m2", 2), ("m2d", 2)),
        "list-4": manifest_list(("m1", 1), ("m2", 2), ("m4", 4)),
    }
    one, two, four = xray(catalog(lake), "N", "T")
    assert [(s.snapshot_id, s.parent_id, s.operation) for s in (one, two, four)] == [
        (1, None, "append"),
        (2, 1, "overwrite"),
        (4, 2, "delete"),
    ]
    assert one.added == (File("data", "a", "parquet", 3),)
    assert two.removed == (File("data", "a", "parquet", 3),)
    assert two.added == (
        File("data", "b", "parquet", 1),
        File("position-delete", "p", "parquet", 1),
        File("equality-delete", "e", "avro", 1),
    )
    assert four.added == (File("deletion-vector", "dv.puffin", "puffin", 1, 4, 43, "a"),)
    assert four.sequence_number == 4
    assert four.summary == {"added-records": "1"}
    assert ("GET", "/v1/namespaces/N/tables/T", "vended-credentials") in lake.asked


def test_v2_without_the_fields_of_v3(lake: Lake) -> None:
    lake.table |= {"current-snapshot-id": 1, "snapshots": [snapshot(1, None, "append")]}
    lake.objects |= {"m1": manifest(V2, [(1, 1, data("a"))]), "list-1": manifest_list(("m1", 1))}
    assert xray(catalog(lake), "N", "T")[0].added == (File("data", "a", "parquet", 1),)


def test_v1_with_manifests_in_the_metadata(lake: Lake) -> None:
    old = {"snapshot-id": 7, "manifests": ["s3://lake/m6", "s3://lake/m7"]}
    lake.table |= {"current-snapshot-id": 7, "snapshots": [old]}
    lake.objects |= {"m6": manifest(V1, [(1, 6, data("a"))]), "m7": manifest(V1, [(1, 7, data("b", 2))])}
    (seen,) = xray(catalog(lake), "N", "T")
    assert (seen.sequence_number, seen.operation, seen.summary) == (0, None, {})
    assert seen.added == (File("data", "b", "parquet", 2),)


@pytest.mark.parametrize("nothing", [{}, {"current-snapshot-id": -1}, {"current-snapshot-id": None}])
def test_a_table_without_a_snapshot_has_no_history(lake: Lake, nothing: dict[str, Any]) -> None:
    lake.table |= nothing
    assert xray(catalog(lake), "N", "T") == []


def test_the_narrowest_credentials_are_taken_and_never_shown(lake: Lake) -> None:
    loaded = catalog(lake).load_table("N", "T")
    assert loaded.credentials["s3.access-key-id"] == "k"
    assert "hush" not in repr(loaded)


def test_prefix_and_separator_of_the_catalog(lake: Lake) -> None:
    lake.config = {"overrides": {"prefix": "a/b", "namespace-separator": "%2E"}}
    with pytest.raises(RestError) as refused:
        catalog(lake).load_table("X.Y", "missing")
    assert lake.asked[-1][1] == "/v1/a%2Fb/namespaces/X.Y/tables/missing"
    assert (refused.value.status, refused.value.kind) == (404, "NoSuchTableException")
    lake.config = {}
    with pytest.raises(RestError):
        catalog(lake).load_table("X.Y", "missing")
    assert lake.asked[-1][1] == "/v1/namespaces/X%1FY/tables/missing"


def test_a_namespace_is_dropped_with_its_tables(lake: Lake) -> None:
    catalog(lake).drop_namespace("N")
    assert [path for method, path, _ in lake.asked if method == "DELETE"] == [
        "/v1/namespaces/N/tables/A%20B?purgeRequested=true",
        "/v1/namespaces/N",
    ]


def test_a_catalog_that_is_not_there_is_one_line(lake: Lake) -> None:
    lake.server.shutdown()
    lake.server.server_close()
    with pytest.raises(LabError, match=r"^the catalog at \S+ does not answer \(ConnectionError\)$"):
        catalog(lake)
