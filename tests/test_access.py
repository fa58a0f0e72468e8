"""What a session lacks, what the store says it was asked, and what a refusal leaves: without an engine or a store."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lab import catalogs
from lab.behaviours.h_delete import DELETE_403
from lab.catalogs import DENY, GRANT
from lab.catalogs.vending import ACTIONS, Terms, session_name, session_policy
from lab.model import Observation, Outcome, Rows, StepResult
from lab.plan import cases, control_of, select
from lab.records.verdict import judge
from lab.report import traps
from lab.report.line import FAILED, Line, expected
from lab.stores import seaweedfs
from lab.stores.access import Access
from lab.tables import look
from lab.tables.look import deletions, readings

LOCATION = "s3://lab/warehouse/ns/t"
DELETE = "s3:DeleteObject"


# ---------------------------------------------------------------- the policy
def allowed(policy: str) -> set[str]:
    return {action for statement in json.loads(policy)["Statement"] for action in statement["Action"]}


def terms(**properties: str) -> Terms:
    return Terms.of({"location": f"{LOCATION}/", "properties": properties})


@pytest.mark.parametrize("denied", [[], [DELETE], [DELETE, "s3:ListBucket"], list(ACTIONS)])
def test_a_session_lacks_what_is_denied_and_nothing_else(denied: list[str]) -> None:
    policy = session_policy(LOCATION, terms(**{DENY: " ,".join(denied)}).deny)
    assert allowed(policy) == set(ACTIONS) - set(denied)
    assert all(statement["Action"] for statement in json.loads(policy)["Statement"]), "a statement without an action"


def test_without_a_word_a_session_has_all() -> None:
    assert terms() == Terms(LOCATION)
    assert allowed(session_policy(LOCATION)) == set(ACTIONS)


@pytest.mark.parametrize("name", [DENY, GRANT])
@pytest.mark.parametrize("action", ["s3:*", "*", "s3:PutBucketPolicy", "DeleteObject", "s3:deleteobject"])
def test_what_no_session_has_can_be_neither_denied_nor_granted(name: str, action: str) -> None:
    with pytest.raises(ValueError, match="it takes some of s3:GetObject"):
        terms(**{name: f"{DELETE},{action}"})


def test_a_grant_does_not_touch_the_sessions_own_policy() -> None:
    both = terms(**{DENY: DELETE, GRANT: DELETE})
    assert (both.deny, both.grant) == ((DELETE,), (DELETE,))
    assert DELETE not in allowed(session_policy(both.location, both.deny))


def test_sessions_are_told_apart_by_their_table_and_by_nothing_else() -> None:
    assert terms(**{DENY: DELETE}).session == terms().session == session_name(LOCATION)
    assert session_name(LOCATION) != session_name(f"{LOCATION}2")


def test_what_is_denied_is_part_of_a_cells_key() -> None:
    assert catalogs.profile({}) == "none"
    assert catalogs.profile({DENY: DELETE, "write.update.mode": "merge-on-read"}) == f"vends-no-{DELETE}"
    planned = cases(select({"behaviours": "H-delete-403", "generations": "spark-3.2*"}))
    profiles = {case.cell.variant: case.cell.profile for case in planned}
    assert profiles["update"] == f"vends-no-{DELETE}"
    assert profiles["update-allowed"] == "none"


def test_a_controls_key_has_the_controls_own_profile() -> None:
    planned = {case.cell: case for case in cases(select({"behaviours": "*"}))}
    assert all(control in planned for case in planned.values() if (control := control_of(case)))


# ---------------------------------------------------------------- cures and silence
def lines(behaviours: str) -> list[Line]:
    """The planned cells of these behaviours, as a record names them."""
    return [{"cell": asdict(case.cell)} for case in cases(select({"behaviours": behaviours}))]


def test_every_statement_that_is_refused_has_a_cured_cell_beside_it() -> None:
    refused = [line for line in lines("H-delete-403*") if (told := expected(line)) and told.trap is DELETE_403]
    assert {"update", "delete", "default", "dml", "get-and-put-alone"} <= {line["cell"]["variant"] for line in refused}
    for line in refused:
        assert [variant.name for variant in traps.curing(line)], line["cell"]


def test_what_is_set_for_update_is_no_cure_of_delete() -> None:
    (cell,) = (line for line in lines("H-delete-403") if line["cell"]["variant"] == "delete" and fails(line))
    settings = {key for variant in traps.curing(cell) for key in variant.cured_by()}
    assert settings == {"write.delete.mode", "write.delete.distribution-mode", "spark.sql.shuffle.partitions"}


def fails(line: Line) -> bool:
    told = expected(line)
    return told is not None and told.outcome in FAILED


def test_no_cell_that_works_leaves_a_file_behind_that_it_was_refused_to_delete() -> None:
    for line in lines("H-delete-403*"):
        told = expected(line)
        assert told is not None
        left = told.facts.get("orphans.data", 0) + told.facts.get("orphans.metadata", 0)
        assert told.outcome != Outcome.WORKS or not (left and told.facts.get("deletes.refused")), line["cell"]


def test_work_that_is_not_done_is_wrong_though_the_statement_answers_success() -> None:
    case = next(c for c in cases(select({"behaviours": "H-delete-403-new"})) if c.cell.variant == "expire-snapshots")
    answers = tuple(StepResult(step.name, "engine", "", 0, Rows()) for step in case.steps if step.look is None)
    look_at = next(step for step in case.steps if step.look == "orphans")

    def outcome(data: int) -> Outcome:
        shown = {"data": data, "metadata": 0}
        seen = StepResult("orphans", "lab", "", 0, look=shown, truth=look_at.truth_for("lab"))
        return judge(case.behaviour, Observation(case.cell, (*answers, seen), {}, {}, "", 0)).outcome

    assert (outcome(0), outcome(1)) == (Outcome.WORKS, Outcome.SILENTLY_WRONG)


def test_what_is_said_to_suffice_is_all_that_some_session_has() -> None:
    enough = "s3:GetObject and s3:PutObject suffice"
    said, had = set(), set()
    for case in cases(select({"behaviours": "H-delete-403-new"})):
        told = case.behaviour.expectation(case.cell)
        if told and enough in told.reason:
            said.add((told.reason, case.cell.reader))
            left = allowed(session_policy(LOCATION, terms(**cast(Any, case.variant.properties)).deny))
            if left == {"s3:GetObject", "s3:PutObject"}:
                had.add((told.reason, case.cell.reader))
    assert said
    assert said == had


# ---------------------------------------------------------------- the store's record
def logged(operation: str, key: str, status: int, *, request: str = "r", error: str = "", name: str = "s") -> str:
    said = {
        "bucket": "lab",
        "error_code": error,
        "key": key,
        "operation": operation,
        "request_id": request,
        "requester": "an-access-key",
        "requester_arn": f"arn:aws:sts::000000000000:assumed-role/lab/{name}" if name else "arn:aws:iam::0:user/lab",
        "status": status,
        "user_agent": "aws-sdk-java/2",
    }
    return json.dumps(["s3.access", 1796013600, said, {}], ensure_ascii=False)


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_the_stream_is_read_wherever_it_is_cut(size: int) -> None:
    text = logged("REST.PUT.OBJECT", "warehouse/ü/a", 200) + "\n" + logged("REST.DELETE.OBJECT", "b", 403, name="")
    stream = text.encode()
    put, deleted = seaweedfs.parsed(stream[at : at + size] for at in range(0, len(stream), size))
    assert (put.operation, put.key, put.status, put.session) == ("PUT", "warehouse/ü/a", 200, "s")
    assert (deleted.operation, deleted.status, deleted.session) == ("DELETE", 403, "")


def test_a_record_has_no_key_of_anybodys(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    record = tmp_path / "record.jsonl"
    record.touch()
    seaweedfs.collect(listener, record)
    with socket.create_connection(listener.getsockname()) as store:
        store.sendall(logged("REST.HEAD.OBJECT", ".mark/1", 404).encode())
    for _ in range(500):
        if record.read_text():
            break
        time.sleep(0.01)
    (line,) = record.read_text().splitlines()
    assert json.loads(line)["key"] == ".mark/1"
    assert "an-access-key" not in line


def asked(*requests: str) -> list[Access]:
    return list(seaweedfs.parsed(request.encode() for request in requests))


def put(key: str) -> str:
    return logged("REST.PUT.OBJECT", key, 200)


def batch(request: str, *keys: str) -> Iterator[str]:
    yield from (logged("REST.POST.OBJECT", key, 204, request=request) for key in keys)
    yield logged("REST.POST.OBJECT", "", 200, request=request)


def delete(key: str, status: int = 204) -> str:
    return logged("REST.DELETE.OBJECT", key, status, error="" if status == 204 else "AccessDenied")


@pytest.mark.parametrize(
    ("requests", "told"),
    [
        ([put("a")], (0, 0, 0, 0, 0)),
        ([put("a"), delete("a")], (1, 0, 1, 0, 0)),
        ([delete("never")], (1, 0, 1, 1, 0)),
        ([put("a"), delete("a", 403), delete("never", 403)], (2, 0, 2, 1, 2)),
        ([put("a"), delete("a"), delete("a")], (2, 0, 2, 1, 0)),
        ([put("a"), delete("a", 403), delete("a")], (2, 0, 2, 0, 1)),
        ([put("a"), *batch("1", "a", "never")], (1, 1, 2, 1, 0)),
        ([put("a"), *batch("1"), *batch("2", "a")], (2, 2, 1, 0, 1)),
        ([logged("REST.POST.OBJECT", "large", 200), delete("large")], (1, 0, 1, 0, 0)),
        ([logged("REST.PUT.OBJECT", "a", 403), delete("a")], (1, 0, 1, 1, 0)),
    ],
    ids=["none", "one", "nothing", "refused", "twice", "again", "batch", "refused-batch", "upload", "not-written"],
)
def test_deletes_are_counted_with_those_of_nothing(requests: list[str], told: tuple[int, ...]) -> None:
    assert tuple(deletions(asked(*requests)).values()) == told


@pytest.mark.parametrize(
    ("key", "operation", "status", "read"),
    [
        ("a.parquet", "GET", 200, 1),
        ("a.parquet", "GET", 206, 1),
        ("a.parquet", "GET", 403, 0),
        ("a.parquet", "HEAD", 200, 0),
        ("a.parquet", "PUT", 200, 0),
        ("m.avro", "GET", 200, 0),
    ],
)
def test_a_file_is_opened_when_something_of_it_was_read(key: str, operation: str, status: int, read: int) -> None:
    requests = [logged(f"REST.{operation}.OBJECT", key, status)] * 2
    assert len(readings(asked(*requests))) == read


# ---------------------------------------------------------------- what nobody refers to
PARQUET = {"file_format": "PARQUET", "record_count": 1, "file_size_in_bytes": 1}


def test_orphans_are_what_the_store_has_and_no_snapshot_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = {
        "location": f"{LOCATION}/",
        "metadata-log": [{"metadata-file": f"{LOCATION}/metadata/0.json"}],
        "statistics": [{"statistics-path": f"{LOCATION}/metadata/s.puffin"}],
        "snapshots": [{"manifest-list": f"{LOCATION}/metadata/snap.avro"}],
    }
    files = {
        f"{LOCATION}/metadata/snap.avro": [
            {"manifest_path": f"{LOCATION}/metadata/m.avro", "added_snapshot_id": 1, "content": 0}
        ],
        f"{LOCATION}/metadata/m.avro": [
            {"status": 1, "data_file": {**PARQUET, "file_path": f"{LOCATION}/data/a"}},
            {"status": 2, "data_file": {**PARQUET, "file_path": f"{LOCATION}/data/gone"}},
        ],
    }
    listed = {
        *(f"metadata/{name}" for name in ("0.json", "1.json", "s.puffin", "snap.avro", "m.avro", "old.avro")),
        *(f"data/{name}" for name in ("a", "gone", "lost")),
    }
    table = SimpleNamespace(metadata=metadata, metadata_location=f"{LOCATION}/metadata/1.json", credentials={})
    monkeypatch.setattr(look, "Store", lambda credentials: SimpleNamespace(records=files.__getitem__))
    monkeypatch.setattr(look.s3, "client", lambda store: Listing({f"warehouse/ns/t/{key}" for key in listed}))
    rest = cast(Any, SimpleNamespace(load_table=lambda namespace, name: table))
    found = look.looks(lambda: cast(Any, None))["orphans"](rest, "ns", "t")
    assert found == {"data": 2, "metadata": 1}, "gone and lost; old.avro"


def test_what_lies_within_a_cases_further_namespace_is_told_by_its_last_level() -> None:
    below = {"": ["NS", "ns_outer", "ns_outer.inner", "other"], "ns_outer": ["ns_outer.inner"]}
    rest = cast(Any, SimpleNamespace(namespaces=lambda within="": below[within], tables=lambda of: [f"t of {of}"]))
    assert look.nested(rest, "NS", "t") == {"within": ["inner"], "tables": ["t of ns_outer.inner"]}


class Listing:
    def __init__(self, keys: set[str]) -> None:
        self._keys = keys

    def list_objects(self, bucket: str, prefix: str, recursive: bool) -> Iterator[Any]:
        assert (bucket, prefix, recursive) == ("lab", "warehouse/ns/t/", True)
        return (SimpleNamespace(object_name=key) for key in self._keys)


def test_every_look_says_what_it_looks_at() -> None:
    for name, seen in look.looks(lambda: cast(Any, None)).items():
        assert seen.__doc__ and "partial" not in seen.__doc__, name
