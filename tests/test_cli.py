"""The command's words, exit codes and errors. Nothing is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "record.jsonl"
PAIRS = RECORD.with_name("record-pairs.jsonl")


@pytest.fixture
def command(tmp_path: Path):  # type: ignore[no-untyped-def]
    """The command as a user types it, in a home of its own. Returns exit code, standard output and error."""

    def run(*words: str, state: Path = tmp_path / "state") -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "lab", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            env={
                **os.environ,
                "ICEBERG_LAB_STATE": str(state),
                "ICEBERG_LAB_CACHE": str(tmp_path / "cache"),
            },
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("matrix", "--generations", "trino-477"), "near: trino-4"),
        (("matrix", "--behaviours", "H-v3-reed"), "near: H-v3-read"),
        (("matrix", "--runtime", "container"), "near: containers"),
        (("matrix", "--seed", "duckdb"), "near: duckdb-1.5.5"),
        (("matrix", "--format", "xml"), "--format"),
        (("sql", "spark*", "SELECT 1"), "names 5 generations"),
        (("cache", "--all"), "--all goes with --prune"),
        (("why", "no such message"), "iceberg-lab list behaviours"),
        (("why", ""), "give some words of an error message"),
        (("why", " "), "give some words of an error message"),
        (("why", "."), "give some words of an error message"),
        (("matrix", "--remote", "nowhere@x.toml"), "No such file"),
        (("generate", "T", "--like", "ORDERS_V3", "--rows", "1"), "take NAMESPACE.TABLE"),
        (("generate", "B.T", "--like", "ORDERS_V3", "--rows", "-1"), "--rows takes 1 to"),
        (("generate", "B.T", "--like", "ORDERS_V3", "--rows", "1", "--generation", "spark*"), "names 5 generations"),
        (("door", "horizn"), "there are: glue-federation, horizon"),
        (("door", "horizon~off=W-no-cats"), "it has H-delete-403, H-privileges, "),
        (("door", "horizon", "--as", "nobody"), "there are: engineer, owner"),
        (("door", "horizon", "--by", "magic"), "--by"),
        (("nonsense",), "No such command"),
    ],
)
def test_wrong_words_exit_2_with_one_line_that_helps(command, words, says) -> None:  # type: ignore[no-untyped-def]
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert says in err


def test_a_selection_without_any_pair_could_not_run(command) -> None:  # type: ignore[no-untyped-def]
    code, _, err = command("matrix", "--generations", "trino-483", "--behaviours", "H-ntz-old", "--record", "nowhere")
    assert code == 3
    assert "no record at nowhere" in err


def test_help_of_every_command_says_what_it_does(command) -> None:  # type: ignore[no-untyped-def]
    _, out, _ = command("--help")
    names = [line.split()[0] for line in out.split("Commands:")[1].splitlines() if line.startswith("  ")]
    assert {"matrix", "generate", "up", "status", "down", "sql", "list", "doctor", "cache", "why", "inspect"} <= set(
        names
    )
    assert "Exit codes" in out


def test_declarations_are_listed_for_programs(command) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = command("list", "generations", "--format", "json")
    assert code == 0
    assert {"spark-3.5.6+iceberg-1.10.0", "trino-476"} <= {g["name"] for g in json.loads(out)}
    code, out, _ = command("list", "behaviours", "--format", "json")
    assert "H-v3-update" in {b["id"] for b in json.loads(out)}


def test_a_record_is_shown_again_and_narrowed(command) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = command("matrix", "--record", str(RECORD), "--format", "json", "--behaviours", "H-v3-update")
    assert code == 0
    assert {line["cell"]["behaviour"] for line in json.loads(out)} == {"H-v3-update"}
    code, out, _ = command("matrix", "--record", str(RECORD))
    assert "H-v3-update" in out
    assert "WRONG ≠" in out


def test_a_message_leads_to_its_cause_and_cure(command) -> None:  # type: ignore[no-untyped-def]
    code, out, err = command("why", "Cannot handle timestamp without timezone")
    assert (code, err) == (0, "")
    assert "SET `spark.sql.iceberg.handle-timestamp-without-timezone`=true" in out
    assert "org.apache.iceberg.spark.source.SparkScan.readSchema" in out
    code, out, _ = command("why", "H-v3-update", "--format", "json")
    assert {"v3-row-id-lost", "v3-update-without-extensions"} <= {page["id"] for page in json.loads(out)}
    for words, id_ in (("h-v3-update", "H-v3-update"), ("Delete-403", "delete-403")):
        assert command("why", words, "--format", "json") == command("why", id_, "--format", "json")
    code, out, _ = command("why", "v3")
    assert "iceberg-lab why v3-position-deletes" in " ".join(out.split())
    code, _, err = command("why", "v3", "--record", "nowhere")
    assert (code, "no record at nowhere" in err) == (3, True)


def test_a_record_edited_by_hand_is_refused_in_one_line(command, tmp_path) -> None:  # type: ignore[no-untyped-def]
    first, second = RECORD.read_text("utf-8").splitlines()[:2]
    edited = tmp_path / "edited.jsonl"
    edited.write_text(first + "\n" + second.replace('"outcome"', '"outcom"') + "\n", "utf-8")
    code, out, err = command("matrix", "--record", str(edited))
    assert (code, out) == (3, "")
    assert "line 2 does not obey" in err


def test_a_folder_that_cannot_be_made_is_told_in_one_line(command, tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "file").touch()
    code, out, err = command("matrix", "--generations", "duckdb*", state=tmp_path / "file" / "below")
    assert (code, out) == (3, "")
    assert "ICEBERG_LAB_STATE" in err


def test_a_record_that_was_tampered_with_fails(command, tmp_path) -> None:  # type: ignore[no-untyped-def]
    lines = RECORD.read_text("utf-8").splitlines()
    changed = [line.replace('"outcome": "not-supported"', '"outcome": "works"') for line in lines]
    tampered = tmp_path / "tampered.jsonl"
    tampered.write_text("\n".join(changed) + "\n", "utf-8")
    code, _, err = command("matrix", "--record", str(tampered))
    assert code == 1
    assert "judges otherwise" in err


def test_a_record_of_pairs_that_was_tampered_with_fails(command, tmp_path) -> None:  # type: ignore[no-untyped-def]
    tampered = tmp_path / "tampered.jsonl"
    of_view = [line for line in PAIRS.read_text("utf-8").splitlines() if '"behaviour": "P-view"' in line]
    tampered.write_text("\n".join(of_view).replace('"outcome": "error"', '"outcome": "works"') + "\n", "utf-8")
    code, _, err = command("pairs", "--record", str(tampered), "--feature", "view")
    assert code == 1
    assert "judges otherwise" in err


@pytest.mark.parametrize("words", [("matrix", "--behaviours", "H-v3-update"), ("pairs", "--feature", "plain")])
def test_a_record_without_a_cell_of_the_selection_is_told_in_one_line(command, tmp_path, words) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "empty.jsonl").touch()
    code, out, err = command(*words, "--record", str(tmp_path / "empty.jsonl"))
    assert (code, out, len(err.splitlines())) == (3, "", 1)
    assert "the record has no cell of the selection" in err


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b'{"type": "cell", "schema": "x"}\n', b"[1]\n", b"no json\n\n"])
def test_what_is_no_record_is_told_in_one_line(command, tmp_path, content: bytes) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "r").write_bytes(content)
    code, out, err = command("matrix", "--record", str(tmp_path / "r"))
    assert (code, out) == (3, "")
    assert err.startswith("could not run: ")


@pytest.mark.parametrize(
    "state", ["garbage", '{"x": 1}', '{"pid": 1e999, "started": 1, "folder": "/x"}', '{"pid": 5, "started": 1}']
)
def test_a_damaged_state_of_the_lab_that_is_up_counts_as_none(command, tmp_path, state: str) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "supervisor.json").write_text(state)
    assert command("status")[:2] == (0, "no lab is up; start one with: iceberg-lab up\n")


def test_an_ascii_terminal_shows_a_sign_less(command, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    assert command("matrix", "--record", str(RECORD))[0] == 0


def test_no_lab_is_up(command) -> None:  # type: ignore[no-untyped-def]
    assert command("status") == (0, "no lab is up; start one with: iceberg-lab up\n", "")
    assert command("status", "--format", "json")[1].strip() == "null"
    assert command("down")[1] == "no lab is up\n"


def test_doctor_shows_settings_without_their_secrets(command, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:hunter2secret@mirror.example/simple")
    code, out, err = command("doctor")
    assert code == 0
    assert "mirror.example" in out
    assert "hunter2secret" not in out + err
    assert "full JDK 25" in out


def test_an_empty_cache_is_shown_and_pruned(command) -> None:  # type: ignore[no-untyped-def]
    assert command("cache") == (0, "nothing\n", "")
    assert command("cache", "--prune", "--all")[0] == 0
