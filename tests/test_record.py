from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest

from lab.errors import LabError
from lab.model import (
    Cause,
    Cell,
    ClaimVerdict,
    Column,
    ExpectationVerdict,
    Failure,
    Observation,
    Outcome,
    Rows,
    StepResult,
    Verdict,
)
from lab.records.record import Recorder, read, recorded, schema
from lab.records.redact import MASK, Redactor
from lab.values import Nanoseconds, decode, encode

CELL = Cell("H-x", "default", "w", "r", "none", "reference", "seaweedfs", "embedded", 2)


def seen(*steps: StepResult) -> Observation:
    return Observation(CELL, steps, {"r": {"engine": "1"}}, {"r": {"a": "b"}}, "duckdb", 0.5)


VERDICT = Verdict(Outcome.WORKS, ClaimVerdict.NONE, ExpectationVerdict.MET)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        2**63,
        -(2**70),
        1.5,
        float("inf"),
        "text",
        Decimal("4500.00"),
        dt.datetime(2026, 7, 1, 9, 0, 0, 123456),
        dt.datetime(2026, 7, 1, 9, tzinfo=dt.UTC),
        dt.date(2026, 7, 1),
        dt.time(9, 0, 0, 5),
        uuid.UUID(int=7),
        b"\x00\xff",
        Nanoseconds("2026-07-01T09:00:00.123456789"),
        (1, ("a", None)),
        {"k": (1, Decimal("2"))},
    ],
)
def test_values_survive_json(value: object) -> None:
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_every_line_obeys_the_published_schema_and_reads_back(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "record.jsonl", "run-1", Redactor())
    rows = Rows((Column("ID", "int"),), ((2**60,), (None,)))
    failure = Failure((Cause("a.B", "outer"), Cause("c.D", "inner")))
    observation = seen(
        StepResult("read", "r", "SELECT 1", 0.1, rows, truth=((2**60,), (None,))),
        StepResult("write", "w", "INSERT", 0.2, failure),
        StepResult("written", "lab", "look", 0.0, look={"deletes": []}),
    )
    recorder.cell(observation, VERDICT, "the claim")
    recorder.control(CELL, CELL, ["why not"])
    recorder.close()
    lines = list(read(recorder.path))
    assert [line["type"] for line in lines] == ["run", "cell", "control"]
    for line in lines:
        jsonschema.validate(line, schema())
    back = recorded(lines[1])
    assert back.observation == observation
    assert back.verdict.outcome is VERDICT.outcome


def test_a_line_that_lacks_its_outcome_is_refused_by_the_schema(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "record.jsonl", "run-1", Redactor())
    recorder.cell(seen(), VERDICT, None)
    recorder.close()
    line = list(read(recorder.path))[1]
    del line["outcome"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(line, schema())


SECRETS = {
    "a known one": "plain-known-value",
    "a signed URL": "http://s/x?X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F2026&X-Amz-Signature=deadbeef01&X-Amz-Security-Token=tok123",
    "a bearer": "Authorization: Bearer abc.DEF-123_x",
    "a signature header": "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261130, Signature=deadbeef01",
    "a property": "{s3.secret-access-key=wJalrXUtnFEMI, s3.session-token=tok123, s3.endpoint=http://x}",
    "JSON": '{"s3.access-key-id": "AKIAIOSFODNN7EXAMPLE", "client_secret": "tok123"}',
    "a JWT": "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig-part",
}
LEAKS = ("plain-known-value", "AKIAIOSFODNN7EXAMPLE", "deadbeef01", "tok123", "abc.DEF-123_x", "wJalrXUtnFEMI", "eyJ")


@pytest.mark.parametrize("where", SECRETS)
def test_a_secret_planted_in_a_cause_chain_is_not_written(where: str, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "record.jsonl", "run-1", Redactor({"plain-known-value"}))
    chain = Failure((Cause("a.B", "denied"), Cause("c.D", f"because of {SECRETS[where]}")))
    recorder.cell(seen(StepResult("read", "r", SECRETS[where], 0.1, chain)), VERDICT, None)
    recorder.close()
    text = recorder.path.read_text()
    assert MASK in text
    assert [leak for leak in LEAKS if leak in text] == []


def test_what_is_no_secret_stays() -> None:
    message = (
        "Cannot read s3://lab/warehouse/x: NoSuchKey; credential vending was requested; key s3.endpoint=http://h:1"
    )
    assert Redactor().text(message) == message


def test_a_torn_last_line_is_passed_over_and_a_torn_inner_one_is_told(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "record.jsonl", "run-1", Redactor())
    recorder.cell(seen(), VERDICT, None)
    recorder.close()
    whole = recorder.path.read_text()
    recorder.path.write_text(whole[:-20])
    assert [line["type"] for line in read(recorder.path)] == ["run"]
    recorder.path.write_text(whole[:30] + "\n" + whole)
    with pytest.raises(LabError, match=r"record\.jsonl:1"):
        list(read(recorder.path))


def test_a_record_of_a_newer_schema_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "r").write_text(json.dumps({"type": "run", "schema": 99}) + "\n")
    with pytest.raises(LabError, match="update the lab"):
        list(read(tmp_path / "r"))
