"""MinIO's own: what its trace tells, and what stands where its program can't be had. Nothing is started or built."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from lab.behaviours import BEHAVIOURS
from lab.catalogs.vending import session_name, session_policy
from lab.model import Outcome
from lab.plan import cases, select
from lab.provision import Cache, NotProvided
from lab.stores import STORES, minio, named
from lab.tables.look import deletions

LOCATION = "s3://lab/warehouse/ns/t"


def text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def token() -> str:
    claims = {"accessKey": "K", "sessionPolicy": text(session_policy(LOCATION).encode())}
    return f"x.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.signature"


def traced(
    method: str, path: str, status: int, *, name: str = "s3.Any", body: bytes = b"", answer: bytes = b""
) -> bytes:
    said: dict[str, Any] = {
        "funcname": name,
        "request": {
            "time": "2026-11-30T08:00:00.123456789Z",
            "method": method,
            "path": path,
            "headers": {"X-Amz-Security-Token": [token()], "User-Agent": ["sdk"], "Authorization": ["a-signature"]},
            "body": text(body),
        },
        "response": {"statuscode": status, "headers": {"X-Amz-Request-Id": ["R"]}, "body": text(answer)},
    }
    return json.dumps(said).encode() + b"\n"


def batch(*keys: str, refused: tuple[str, ...] = (), status: int = 200) -> bytes:
    asked = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    errors = "".join(f"<Error><Code>AccessDenied</Code><Key>{key}</Key></Error>" for key in refused)
    return traced(
        "POST",
        "/lab",
        status,
        name="s3.DeleteMultipleObjects",
        body=f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{asked}</Delete>'.encode(),
        answer=f'<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{errors}</DeleteResult>'.encode(),
    )


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_the_trace_is_read_wherever_it_is_cut_and_tells_the_session(size: int) -> None:
    stream = traced("PUT", "/lab/warehouse/ü/a", 200) + b"  " + traced("DELETE", "/lab/b", 403, answer=REFUSED)
    put, deleted = minio.parsed(stream[at : at + size] for at in range(0, len(stream), size))
    assert (put.operation, put.bucket, put.key, put.status, put.error) == ("PUT", "lab", "warehouse/ü/a", 200, "")
    assert (deleted.operation, deleted.key, deleted.status, deleted.error) == ("DELETE", "b", 403, "AccessDenied")
    assert put.session == session_name(LOCATION)
    assert "signature" not in str(put)


REFUSED = b"<Error><Code>AccessDenied</Code></Error>"


@pytest.mark.parametrize(
    ("requests", "told"),
    [
        ([batch("never")], (1, 1, 1, 1, 0)),
        ([traced("PUT", "/lab/a", 200), batch("a", "b")], (1, 1, 2, 1, 0)),
        ([batch("a", "b", refused=("a", "b"))], (1, 1, 0, 0, 1)),
        ([batch("a", "b", refused=("a",))], (1, 1, 1, 1, 0)),
        ([batch("a", status=400)], (1, 1, 0, 0, 1)),
        ([traced("DELETE", "/lab/a", 204)], (1, 0, 1, 1, 0)),
    ],
)
def test_a_batch_tells_what_it_removed(requests: list[bytes], told: tuple[int, ...]) -> None:
    assert tuple(deletions(minio.parsed(requests)).values()) == told


def test_a_token_that_is_none_of_its_own_has_no_session() -> None:
    assert [minio._session(strange) for strange in ("", "a.b", "a.e30.c", "x.!!.y")] == ["", "", "", ""]


# ---------------------------------------------------------------- the program
def test_a_named_program_is_taken_and_a_wrong_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named_program = tmp_path / "minio"
    named_program.write_text("#!/bin/sh\n")
    monkeypatch.setenv(minio.NAMED, str(named_program))
    with pytest.raises(NotProvided, match=minio.NAMED):
        minio.program(Cache(tmp_path))
    named_program.chmod(0o755)
    assert minio.program(Cache(tmp_path)) == named_program


def test_without_go_and_without_a_network_the_cure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(minio.NAMED, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotProvided, match=r"no Go; install Go 1\.16 or newer, or set ICEBERG_LAB_MINIO"):
        minio.program(Cache(tmp_path / "cache"))
    with pytest.raises(NotProvided, match="offline"):
        minio.program(Cache(tmp_path / "cache", offline=True))


def test_what_go_says_is_told_and_its_program_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(minio.NAMED, raising=False)
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho 'no such version' >&2\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(NotProvided, match="no such version"):
        minio.program(Cache(tmp_path / "cache"))
    go.write_text('#!/bin/sh\necho "$@" > "$GOBIN/minio"\n')
    built = minio.program(Cache(tmp_path / "cache"))
    assert minio.SOURCE in built.read_text()
    go.unlink()
    assert minio.program(Cache(tmp_path / "cache", offline=True)) == built, "an image has it built already"


# ---------------------------------------------------------------- the axis
def test_a_store_is_selected_and_part_of_each_cells_key() -> None:
    for store in STORES:
        assert store == named(store).NAME
        assert {case.cell.store for case in cases(select({"store": store, "behaviours": "H-read-v2"}))} == {store}


def test_what_one_store_does_otherwise_is_expected_of_it_alone() -> None:
    behaviour = BEHAVIOURS["H-delete-403-bucket"]
    found = {}
    for store in STORES:
        words = {"store": store, "behaviours": behaviour.id, "generations": "spark-3.2*"}
        (cell,) = (case.cell for case in cases(select(words)) if case.cell.variant == "granted")
        expected = behaviour.expectation(cell)
        assert expected is not None
        found[store] = expected.outcome
    assert found == {"seaweedfs": Outcome.WORKS, "minio": Outcome.ERROR}
