"""The x-ray of tables made here by hand, of every version and of every damage; no engine, no lab."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from click.testing import CliRunner
from rich.console import Console
from table_on_disk import LOCATION, SCHEMA, OnDisk, file, parquet

import lab.tables.inspection as inspection
from lab import labs, looking
from lab.cli import main
from lab.errors import LabError, UsageError
from lab.records.redact import MASK, Redactor
from lab.report import inspecting
from lab.tables import bounds, puffin
from lab.tables.rest import RestCatalog, RestError
from lab.tables.storage import Unreadable

LONG, TEXT = 2, 6  # Parquet's INT64 and BYTE_ARRAY
PATH_ID = 2147483546
PUBLISHED = json.loads(Path(inspection.__file__).with_name("inspection.schema.json").read_text())


def look(path: Path, snapshot: int | None = None, footers: int = 100) -> dict[str, Any]:
    return labs.inspect(None, str(path), snapshot, None, footers)


def compare(path: Path, one: int, other: int) -> dict[str, Any]:
    return labs.inspect(None, str(path), None, (one, other), 0)


def run(*words: str) -> tuple[int, str]:
    """The command in this process: exit code and all that it prints."""
    done = CliRunner().invoke(main, ["inspect", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def long(number: int) -> bytes:
    return struct.pack("<q", number)


def data(table: OnDisk, name: str, first: int, rows: int) -> dict[str, Any]:
    """A data file of ids from `first` on, written, and as a manifest describes it."""
    last = first + rows - 1
    content = parquet(
        rows, [("id", 1, LONG, long(first), long(last)), ("name", 2, TEXT, b"a", "ü".encode())], bloom=first == 1
    )
    table.put(f"data/{name}", content)
    return file(
        f"data/{name}",
        rows,
        len(content),
        value_counts={1: rows, 2: rows},
        null_value_counts={1: 0, 2: 0},
        lower_bounds={1: long(first), 2: b"a"},
        upper_bounds={1: long(last), 2: "ü".encode()},
    )


def vectors(table: OnDisk, name: str, *deleted: tuple[str, list[int]]) -> list[dict[str, Any]]:
    """A Puffin file with a deletion vector for each (data file, positions), and its manifest entries."""
    blobs, at, body, entries = [], 4, b"", []
    for path, positions in deleted:
        blob = puffin.vector(positions)
        named = {"referenced-data-file": f"{LOCATION}/data/{path}", "cardinality": str(len(positions))}
        told = {"type": puffin.VECTOR, "fields": [2147483645], "snapshot-id": -1, "sequence-number": -1}
        blobs.append({**told, "offset": at, "length": len(blob), "properties": named})
        entries.append((at, len(blob), named["referenced-data-file"], len(positions)))
        body, at = body + blob, at + len(blob)
    footer = json.dumps({"blobs": blobs, "properties": {"created-by": "hand"}}).encode()
    content = b"PFA1" + body + b"PFA1" + footer + struct.pack("<ii", len(footer), 0) + b"PFA1"
    table.put(f"data/{name}", content)
    return [
        file(
            f"data/{name}",
            count,
            len(content),
            content=1,
            content_offset=offset,
            content_size_in_bytes=size,
            referenced_data_file=path,
        )
        for offset, size, path, count in entries
    ]


@pytest.fixture
def v3(tmp_path: Path) -> OnDisk:
    """Two data files of three rows; then a row of each gone by vectors in one Puffin file."""
    table = OnDisk(tmp_path / "v3", 3)
    entries = [(1, data(table, "a.parquet", 1, 3)), (1, data(table, "b.parquet", 4, 3))]
    first = table.manifest(1, entries, first_row_id=0)
    table.metadata["next-row-id"] = 6
    table.commit(1, [first], **{"first-row-id": 0, "added-rows": 6})
    table.save("v1.metadata.json")
    gone = vectors(table, "dv.puffin", ("a.parquet", [0]), ("b.parquet", [1, 2]))
    deletes = table.manifest(2, [(1, each) for each in gone], content=1)
    table.commit(2, [first, deletes], "delete", **{"first-row-id": 6, "added-rows": 0})
    table.save("v2.metadata.json")
    return table


def last(table: OnDisk) -> Path:
    return table.folder / "metadata" / "v2.metadata.json"


# ---------------------------------------------------------------- what it shows
def test_v3_with_two_vectors_in_one_puffin_file(v3: OnDisk) -> None:
    found = look(last(v3))
    assert found["problems"] == []
    held = found["snapshot"]
    assert [f["first_row_id"] for f in held["data_files"]] == [0, 3]  # inherited, and counted on
    assert [(f["kind"], f["content_offset"], f["content_size_in_bytes"]) for f in held["delete_files"]] == [
        ("deletion-vector", 4, 42),
        ("deletion-vector", 46, 44),
    ]
    assert held["rows"] == {
        "stored": 6,
        "by_deletion_vectors": 3,
        "by_position_deletes": 0,
        "equality_deletes": 0,
        "live_at_least": 3,
        "live_at_most": 3,
    }
    (file,) = found["puffin"]
    assert [(b["offset"], b["length"], b["cardinality"]) for b in file["blobs"]] == [(4, 42, 1), (46, 44, 2)]
    chunk = found["parquet"][0]["columns"][0]
    assert (chunk["column"], chunk["field_id"], chunk["codec"], chunk["page_version"]) == ("id", 1, "ZSTD", 1)
    assert (chunk["min"], chunk["max"], chunk["bloom_filter"]) == (1, 3, True)
    assert held["data_files"][1]["columns"][1] == {
        "field_id": 2,
        "column": "name",
        "bytes": None,
        "values": 3,
        "nulls": 0,
        "nans": None,
        "lower": "a",
        "upper": "ü",
    }
    assert look(last(v3), snapshot=1)["snapshot"]["rows"]["live_at_most"] == 6


def test_v2_with_position_and_equality_deletes(tmp_path: Path) -> None:
    table = OnDisk(tmp_path / "v2", 2)
    whole = data(table, "a.parquet", 1, 5)
    table.commit(1, [one := table.manifest(1, [(1, whole)])])
    path = whole["file_path"].encode()
    aimed = file("data/p.parquet", 2, content=1, lower_bounds={PATH_ID: path}, upper_bounds={PATH_ID: path})
    table.commit(2, [one, two := table.manifest(2, [(1, aimed)], content=1)], "delete")
    wide = file("data/q.parquet", 1, content=1)
    table.commit(3, [one, two, three := table.manifest(3, [(1, wide)], content=1)], "delete")
    keyed = file("data/e.parquet", 1, content=2, equality_ids=[2, 99])
    table.commit(4, [one, two, three, table.manifest(4, [(1, keyed)], content=1)], "delete")
    at = {number: look(table.save(), number, 0)["snapshot"] for number in (2, 3, 4)}
    assert at[2]["delete_files"][0]["target_data_file"] == whole["file_path"]
    assert at[2]["delete_files"][0]["referenced_data_file"] is None
    between = {n: (held["rows"]["live_at_least"], held["rows"]["live_at_most"]) for n, held in at.items()}
    assert between == {2: (3, 3), 3: (2, 3), 4: (0, 3)}
    assert at[4]["delete_files"][2]["equality_columns"] == ["name", None]
    assert [f["sequence_number"] for f in at[4]["delete_files"]] == [2, 3, 4]
    assert [f["status"] for f in at[4]["delete_files"]] == ["existing", "existing", "added"]


def test_a_delete_does_not_count_for_files_that_are_younger(tmp_path: Path) -> None:
    table = OnDisk(tmp_path / "v2", 2)
    late = data(table, "a.parquet", 1, 5)
    path = late["file_path"].encode()
    early = file("data/p.parquet", 2, content=1, lower_bounds={PATH_ID: path}, upper_bounds={PATH_ID: path})
    deletes = table.manifest(1, [(1, early)], content=1)
    table.commit(2, [deletes, table.manifest(2, [(1, late)])])
    assert look(table.save(), footers=0)["snapshot"]["rows"]["live_at_least"] == 5


def test_v1_with_one_schema_and_manifests_in_the_metadata(tmp_path: Path) -> None:
    table = OnDisk(tmp_path / "v1", 1)
    manifest = table.manifest(7, [(1, data(table, "a.parquet", 1, 2))])
    bare = {"fields": SCHEMA["fields"], "type": "struct"}
    old = {"snapshot-id": 7, "timestamp-ms": 1, "manifests": [manifest["manifest_path"]]}
    table.metadata = {
        "format-version": 1,
        "location": LOCATION,
        "last-updated-ms": 1_782_900_000_000,
        "last-column-id": 2,
        "schema": bare,
        "partition-spec": [],
        "current-snapshot-id": 7,
        "snapshots": [old],
    }
    found = look(table.save())
    assert found["problems"] == []
    assert found["table"]["uuid"] is None
    assert found["refs"][0]["name"] == "main"
    assert found["snapshot"]["data_files"][0]["sequence_number"] is None
    assert found["snapshot"]["rows"]["live_at_most"] == 2
    jsonschema.validate(found, PUBLISHED)


def test_a_table_without_a_snapshot(tmp_path: Path) -> None:
    table = OnDisk(tmp_path / "t", 2)
    table.metadata["current-snapshot-id"] = -1
    found = look(table.save())
    assert (found["snapshot"], found["problems"]) == (None, [])
    assert "none yet" in run("--metadata", str(table.save()))[1]
    with pytest.raises(LabError, match="the table has none yet"):
        look(table.save(), 5)


def test_nested_fields_defaults_transforms_and_partition_values(tmp_path: Path) -> None:
    table = OnDisk(tmp_path / "t", 3)
    inner = {
        "type": "list",
        "element-id": 5,
        "element": {
            "type": "map",
            "key-id": 6,
            "key": "string",
            "value-id": 7,
            "value": "long",
            "value-required": False,
        },
        "element-required": False,
    }
    told = {"id": 3, "name": "s", "type": {"type": "struct", "fields": []}, "required": False}
    told["type"]["fields"] = [{"id": 4, "name": "x", "type": inner, "required": False}]  # type: ignore[index]
    day = {
        "id": 8,
        "name": "at",
        "type": "date",
        "required": False,
        "initial-default": "2026-07-01",
        "write-default": 5,
    }
    table.metadata["schemas"] = [{**SCHEMA, "fields": [*SCHEMA["fields"], told, day]}]
    fields = [
        {"source-id": 2, "field-id": 1000, "name": "name", "transform": "identity"},
        {"source-ids": [8, 1], "field-id": 1001, "name": "at_month", "transform": "month"},
    ]
    table.metadata["partition-specs"] = [{"spec-id": 0, "fields": fields}]
    whole = data(table, "a.parquet", 1, 2) | {"partition": {"name": "x", "day": -1}}
    table.commit(1, [table.manifest(1, [(1, whole)])])
    found = look(table.save())
    names = [(f["name"], f["type"]) for f in found["schemas"][0]["fields"]]
    assert names[2:8] == [
        ("s", "struct"),
        ("s.x", "list"),
        ("s.x.element", "map"),
        ("s.x.element.key", "string"),
        ("s.x.element.value", "long"),
        ("at", "date"),
    ]
    assert found["snapshot"]["data_files"][0]["partition"] == {"name": "x", "at_month": "1969-12"}
    shown = run("--metadata", str(table.save()))[1]
    assert "name; month(at, id) as at_month" in shown.replace("name as name", "name")
    assert "2026-07-01" in shown


@pytest.mark.parametrize(
    ("kind", "content", "value"),
    [
        ("boolean", b"\x01", True),
        ("int", b"\xff\xff\xff\xff", -1),
        ("long", b"\x01\0\0\0", 1),  # promoted from int
        ("long", long(2**62), 2**62),
        ("float", struct.pack("<f", 0.5), 0.5),
        ("double", struct.pack("<d", float("nan")), "nan"),
        ("date", struct.pack("<i", -1), "1969-12-31"),
        ("time", long(1), "00:00:00.000001"),
        ("timestamp", long(-1), "1969-12-31T23:59:59.999999"),
        ("timestamptz", long(0), "1970-01-01T00:00:00.000000+00:00"),
        ("timestamp_ns", long(1), "1970-01-01T00:00:00.000000001"),
        ("timestamp", struct.pack("<i", 0), "1970-01-01"),  # promoted from date
        ("string", "grün".encode(), "grün"),
        ("string", b"\xff", "0xff"),
        ("uuid", bytes(16), "00000000-0000-0000-0000-000000000000"),
        ("decimal(9, 2)", b"\xff\x38", "-2.00"),
        ("decimal(38,0)", b"\x01", "1"),
        ("fixed[2]", b"ab", "0x6162"),
        ("binary", b"", "0x"),
        ("geometry(srid:3857)", struct.pack("<2d", 1.0, -2.5), "(1.0, -2.5)"),
        ("geography", b"short", "0x73686f7274"),
        ("variant", b"\x01", "0x01"),
        ("unknown", b"", "0x"),
        ("long", b"abc", "0x616263"),
        ("timestamp", long(2**62), "0x0000000000000040"),  # beyond the calendar
        ("date", b"\xff\xff\xff\x7f", "0xffffff7f"),
        ("decimal(x)", b"\x01", "0x01"),
    ],
)
def test_bounds_are_readable_or_shown_as_bytes(kind: str, content: bytes, value: Any) -> None:
    assert bounds.decoded(kind, content) == value


def test_a_bitmap_with_every_kind_of_container() -> None:
    """Runs, an array and a bitset, as Roaring's specification lays them out."""
    bitset = b"\xff" * 1000 + bytes(8192 - 1000)
    head = struct.pack("<I", 12347 | 2 << 16) + b"\x01"  # three containers, the first one of runs
    heads = struct.pack("<6H", 0, 9, 1, 1, 2, 7999)  # key, rows less one
    body = struct.pack("<5H", 2, 0, 4, 10, 4) + struct.pack("<2H", 7, 9) + bitset
    content = b"\xd1\xd3\x39\x64" + struct.pack("<QI", 1, 0) + head + heads + body
    blob = struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))
    assert puffin.cardinality(blob) == 10 + 2 + 8000
    with pytest.raises(ValueError, match="checksum"):
        puffin.cardinality(blob[:40] + b"x" + blob[41:])
    with pytest.raises(ValueError, match="bytes long and says"):
        puffin.cardinality(blob[:-1])


@pytest.mark.parametrize("positions", [[0], [1, 70_000, 2**32 - 1], list(range(4096))])
def test_a_vector_that_is_written_here_is_counted(positions: list[int]) -> None:
    assert puffin.cardinality(puffin.vector(positions)) == len(positions)


# ---------------------------------------------------------------- what does not add up
def test_a_flipped_bit_in_a_vector_is_found(v3: OnDisk) -> None:
    path = v3.folder / "data" / "dv.puffin"
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(content)
    (problem,) = look(last(v3))["problems"]
    assert problem.endswith("data/dv.puffin at 4: the deletion vector is damaged: its checksum does not match")


def wrong(v3: OnDisk, **changed: Any) -> list[str]:
    """The problems of the v3 table when one of its vectors is described otherwise."""
    gone = vectors(v3, "dv.puffin", ("a.parquet", [0]))[0] | changed
    deletes = v3.manifest(3, [(1, gone)], content=1)
    first = v3.manifest(1, [(1, data(v3, "a.parquet", 1, 3))], first_row_id=0)
    v3.commit(3, [first, deletes], **{"first-row-id": 6})
    return cast(list[str], look(v3.save())["problems"])


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"content_offset": 5}, "the Puffin footer does not"),
        ({"content_size_in_bytes": 41}, "42 bytes by the Puffin footer, 41 by the manifest"),
        ({"record_count": 9}, "holds 1 rows, its Puffin footer says 1, its manifest 9"),
        ({"referenced_data_file": "s3://x/y"}, "name two different data files"),
        ({"file_format": "PARQUET"}, "a position delete file written in v3"),
        ({"file_path": f"{LOCATION}/data/none.puffin"}, "copy the table's folder there as a whole"),
    ],
)
def test_a_vector_that_is_not_as_it_is_described(v3: OnDisk, changed: dict[str, Any], says: str) -> None:
    assert any(says in problem for problem in wrong(v3, **changed))


def test_a_vector_as_it_is_described_is_no_problem(v3: OnDisk) -> None:
    assert wrong(v3) == []


def test_row_ids_given_twice_and_beyond_the_next(v3: OnDisk) -> None:
    both = [
        v3.manifest(number, [(1, data(v3, name, 1, 3))], first_row_id=2)
        for number, name in ((3, "a.parquet"), (4, "b.parquet"))
    ]
    v3.metadata["next-row-id"] = 4
    v3.commit(4, both, **{"first-row-id": 2, "added-rows": 3})
    problems = "\n".join(look(v3.save())["problems"])
    assert "row ids from 2 on are given twice" in problems
    assert "row ids up to 4 are given and the table's next-row-id is 4" in problems
    assert "snapshot 4 gives row ids from 2 on, earlier ones up to 5" in problems


def test_counts_that_differ_between_summary_list_manifest_and_file(tmp_path: Path) -> None:
    table = OnDisk(tmp_path / "t", 2)
    whole = data(table, "a.parquet", 1, 3) | {"record_count": 4, "file_size_in_bytes": 1}
    listed = table.manifest(1, [(1, whole)]) | {"added_files_count": 2}
    table.commit(1, [listed], summary={"total-records": "3", "total-data-files": "1", "total-delete-files": "0"})
    problems = "\n".join(look(table.save())["problems"])
    assert "the summary says total-records=3, the manifests hold 4" in problems
    assert "its list says 2 added files, it has 1" in problems
    assert "a.parquet holds 3 rows and its manifest says 4" in problems
    assert "its manifest says 1" in problems.splitlines()[-1]


def test_files_that_are_missing_leave_the_rest_to_be_seen(v3: OnDisk) -> None:
    (v3.folder / "data" / "a.parquet").unlink()
    found = look(last(v3))
    (problem,) = found["problems"]
    assert f"{LOCATION}/data/a.parquet is not at" in problem
    assert len(found["parquet"]) == 1
    (v3.folder / "metadata" / "snap-2.avro").unlink()
    found = look(last(v3))
    assert found["snapshot"] is None
    assert "so the snapshot's files are not shown" in found["problems"][0]
    assert [s["id"] for s in found["snapshots"]] == [1, 2]


def test_footers_are_opened_as_far_as_asked(v3: OnDisk) -> None:
    found = look(last(v3), footers=1)
    assert (len(found["parquet"]), found["puffin"], found["unopened"]) == (1, [], 2)
    assert "Footers of 2 files were not opened" in run("--metadata", str(last(v3)), "--footers", "1")[1]


def test_references_to_nowhere_and_an_unknown_version(tmp_path: Path) -> None:
    table = OnDisk(tmp_path / "t", 2)
    table.metadata |= {"format-version": 4, "current-snapshot-id": 9, "refs": {"b": {"snapshot-id": 8, "type": "tag"}}}
    problems = "\n".join(look(table.save())["problems"])
    assert "format version 4 is none that this x-ray knows" in problems
    assert "the current snapshot 9 is not among" in problems
    assert "tag b names snapshot 8, which is not there" in problems


# ---------------------------------------------------------------- two snapshots
def test_a_diff_tells_files_rows_schema_and_properties(v3: OnDisk) -> None:
    renamed = {**SCHEMA["fields"][1], "name": "title"}  # type: ignore[dict-item]
    added = {"id": 3, "name": "price", "type": "decimal(9, 2)", "required": False, "initial-default": "1.50"}
    v3.metadata["schemas"].append({**SCHEMA, "schema-id": 1, "fields": [SCHEMA["fields"][0], renamed, added]})
    v3.metadata |= {"current-schema-id": 1, "properties": {"write.delete.mode": "copy-on-write"}}
    v3.save("v3.metadata.json")
    fresh = v3.manifest(3, [(1, data(v3, "c.parquet", 1, 3)), (2, data(v3, "a.parquet", 1, 3))], first_row_id=6)
    kept = v3.manifest(1, [(1, data(v3, "b.parquet", 4, 3))], first_row_id=3)
    v3.metadata["next-row-id"] = 9
    v3.commit(3, [kept, fresh], "overwrite", **{"first-row-id": 6, "added-rows": 3})
    v3.save("v4.metadata.json")
    v3.metadata["properties"] = {}
    path = v3.save("v5.metadata.json")
    found = compare(path, 2, 3)
    assert [f["path"].rpartition("/")[2] for f in found["data_files"]["added"]] == ["c.parquet"]
    assert [f["path"].rpartition("/")[2] for f in found["data_files"]["removed"]] == ["a.parquet"]
    assert found["data_files"]["kept"] == 1
    assert len(found["delete_files"]["removed"]) == 2
    changes = {(c["change"], c["column"]) for c in found["changes"]["schema"]}
    assert changes == {("renamed", "title"), ("added", "price")}
    assert found["changes"]["properties"] == {"write.delete.mode": {"from": None, "to": "copy-on-write"}}
    assert found["since"]["properties"] == {"write.delete.mode": {"from": "copy-on-write", "to": None}}
    assert (found["ancestor"], [s["id"] for s in found["between"]]) == (True, [3])
    assert not compare(path, 3, 2)["ancestor"]
    jsonschema.validate(found, PUBLISHED)
    words = run("--metadata", str(path), "--diff", "2", "3")[1]
    assert "rows: 3 → 6" in words
    assert "column name is now called title (id 2 stays" in words
    assert "column price added (id 3, decimal(9, 2)): rows from before read as 1.50" in words
    words = run("--metadata", str(path), "--diff", "1", "2", "--format", "markdown")[1]
    assert "a deletion vector takes 2 rows from b.parquet (44 bytes at 46 in its Puffin file)" in words


def test_a_diff_without_the_earlier_metadata_says_what_it_can_not_know(v3: OnDisk) -> None:
    (v3.folder / "metadata" / "v1.metadata.json").unlink()
    assert compare(last(v3), 1, 2)["changes"] is None
    assert "the metadata file of that time is gone" in run("--metadata", str(last(v3)), "--diff", "1", "2")[1]


def test_a_cut_log_of_metadata_files_is_not_taken_for_the_whole_one(v3: OnDisk) -> None:
    v3.metadata["properties"] = {"a": "b"}
    v3.save("v3.metadata.json")
    assert compare(v3.folder / "metadata" / "v3.metadata.json", 1, 2)["changes"]["properties"] == {}
    v3.metadata["metadata-log"] = v3.metadata["metadata-log"][2:]
    assert compare(v3.save("v4.metadata.json"), 1, 2)["changes"] is None


# ---------------------------------------------------------------- how it is shown
def test_programs_get_what_is_published(v3: OnDisk) -> None:
    code, out = run("--metadata", str(last(v3)), "--format", "json")
    assert code == 0
    jsonschema.validate(json.loads(out), PUBLISHED)
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)


def test_people_get_tables_that_fit_and_explain_themselves(v3: OnDisk) -> None:
    out = io.StringIO()
    Console(file=out, width=100).print(inspecting.shown(look(last(v3))))
    assert max(map(len, out.getvalue().splitlines())) <= 100
    for word in (
        "a bitmap of row numbers gone from one data file",
        "V2",
        "44 bytes at 46",
        "a … ü",
        "3 left",
        "adds up",
    ):
        assert word in out.getvalue()


def test_what_a_table_says_does_not_become_markup_or_control_signs(v3: OnDisk) -> None:
    v3.metadata["properties"] = {"a|b": "<b>[red]x[/red]\x1b[31m", "c": "`d`\n# e"}
    path = v3.save()
    for form in ("table", "markdown"):
        code, out = run("--metadata", str(path), "--format", form)
        assert code == 0
        assert "\x1b" not in out
        assert "[red]" in out.replace("\\", "")
    assert "\n# e" not in out


def test_secrets_are_struck_out_everywhere(v3: OnDisk) -> None:
    hidden = ["hunter2hunter2", "s3cr3tvalue", "abcdefgh12345678"]
    v3.metadata["properties"] = {
        "s3.secret-access-key": hidden[0],
        "adls.sas-token.account": hidden[1],
        "write.x": f"https://me:{hidden[2]}@host/x",
        "write.metadata.token-of-love.enabled": "true",
    }
    v3.metadata["snapshots"][0]["summary"]["password"] = hidden[0]
    v3.metadata["encryption-keys"] = [{"key-id": "k1", "encrypted-key-metadata": hidden[1], "encrypted-by-id": "kms"}]
    sealed = file("data/a.parquet", 3, key_metadata=hidden[2].encode())
    v3.commit(3, [v3.manifest(3, [(1, sealed)], first_row_id=6)])
    path = v3.save()
    for words in ([], ["--format", "json"], ["--format", "markdown"], ["--diff", "1", "3"]):
        out = run("--metadata", str(path), *words)[1]
        assert not [secret for secret in hidden if secret in out]
    found = look(path)
    assert found["properties"]["s3.secret-access-key"] == MASK
    assert found["properties"]["write.metadata.token-of-love.enabled"] == "true"
    assert found["snapshot"]["data_files"][0]["key_metadata_bytes"] == len(hidden[2])
    assert Redactor().properties({"client-secret": {"from": None, "to": "x"}}) == {
        "client-secret": {"from": None, "to": MASK}
    }


# ---------------------------------------------------------------- nasty input
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"{", "is cut short"),
        (b'{"format-version": 2, "location": "s3', "is cut short"),
        (b'{"format-version": 2, "snapshots": [{"a": 1', "is cut short"),
        (b"PAR1", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"\x1f\x8b\x08", "can't be unpacked"),
        (gzip.compress(b'{"format-version": 2}')[:-9], "can't be unpacked"),
        (b"[1]", "no table metadata"),
        (b"{}", "it has no format-version"),
        (b'{"format-version": "2"}', 'its format-version is "2"'),
        (b'{"format-version": 2} more', "is not JSON (Extra data: "),
        (b'{"format-version": 2}', "no table metadata that makes sense"),
        (b'{"format-version": 2, "schemas": [{"fields": 5}]}', "makes sense"),
        (b'{"format-version": 2, "schemas": [{"fields": []}], "snapshots": 7}', "makes sense"),
        (b'{"format-version": 2, "schemas": [{"fields": []}], "snapshots": [{}]}', "makes sense"),
        (b'{"format-version": 2, "schemas": [{"fields": []}], "location": null}', "location is null"),
        (b"[" * 100_000, "nests too deep"),
    ],
)
def test_what_is_no_metadata_is_told_in_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "m.metadata.json").write_bytes(content)
    code, out = run("--metadata", str(tmp_path / "m.metadata.json"))
    assert (code, len(out.splitlines())) == (3, 1)
    assert out.startswith("could not run: ") and says in out


def test_compressed_metadata_is_read(v3: OnDisk) -> None:
    path = v3.folder / "metadata" / "v9.gz.metadata.json"
    path.write_bytes(gzip.compress(last(v3).read_bytes()))
    assert look(path)["snapshot"]["id"] == 2


@pytest.mark.parametrize("name", ["metadata/snap-2.avro", "metadata/m-2.avro", "data/dv.puffin", "data/a.parquet"])
def test_a_file_cut_short_or_garbled_anywhere_is_a_problem_and_never_a_crash(v3: OnDisk, name: str) -> None:
    path = v3.folder / name
    whole = path.read_bytes()
    for at in range(0, len(whole), 41):
        path.write_bytes(whole[:at])
        assert look(last(v3))["problems"], at
    for at in range(0, len(whole), 19):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        look(last(v3))


def test_files_of_a_table_are_found_wherever_it_was_moved(v3: OnDisk, tmp_path: Path) -> None:
    v3.metadata["location"] = "s3://a/third/place"  # while its manifests still name the second one
    assert look(v3.save())["problems"] == []
    moved = tmp_path / "flat"
    moved.mkdir()
    path = moved / "v2.metadata.json"
    path.write_bytes(last(v3).read_bytes())
    (problem,) = look(path)["problems"]
    assert "copy the table's folder there as a whole" in problem


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "name a table (NAMESPACE.TABLE)"),
        (["A.B", "--metadata", "x"], 2, "and not both"),
        (["A.B", "--snapshot", "1", "--diff", "1", "2"], 2, "take one of them"),
        (["A.B", "--snapshot", "x"], 2, "not a valid integer"),
        (["A.B"], 3, "iceberg-lab up"),
        (["--metadata", "s3://lab/x.json"], 3, "iceberg-lab up"),
        (["--metadata", "/nowhere/x.json"], 2, "there is no file /nowhere/x.json"),
    ],
)
def test_wrong_words_are_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, says: str
) -> None:
    monkeypatch.setenv("ICEBERG_LAB_STATE", str(tmp_path))
    monkeypatch.setenv("ICEBERG_LAB_CACHE", str(tmp_path / "cache"))
    got, out = run(*words)
    assert (got, says in out) == (code, True), out


def test_unknown_names_lead_to_near_ones(v3: OnDisk) -> None:
    folder = v3.folder / "metadata"
    assert "near: v2.metadata.json" in run("--metadata", str(folder / "v7.metadata.json"))[1]
    (folder / "v10.metadata.json").touch()
    assert f"take {folder / 'v10.metadata.json'}" in run("--metadata", str(v3.folder))[1]
    code, out = run("--metadata", str(last(v3)), "--snapshot", "22")
    assert code == 3
    assert "there is no snapshot 22 (it may have expired); the last ones are 1, 2" in out
    assert "there is no snapshot 5" in run("--metadata", str(last(v3)), "--diff", "1", "5")[1]


class Catalog:
    """One that knows two tables, and loads none."""

    def load_table(self, namespace: str, table: str) -> None:
        raise RestError(404, "NoSuchTableException", "no")

    def namespaces(self) -> list[str]:
        return ["ANALYTICS"]

    def tables(self, namespace: str) -> list[str]:
        return ["ORDERS_V2", "ORDERS_V3"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ANALYTICS.ORDERS_V4", "near: ANALYTICS.ORDERS_V"),
        ("analytics.orders_v3", "near: ANALYTICS.ORDERS_V3"),
        ("orders_v3", "near: ANALYTICS.ORDERS_V3"),
        ("zzz", "there are: ANALYTICS.ORDERS_V2, ANALYTICS.ORDERS_V3"),
        (".", "there are: "),
    ],
)
def test_a_table_that_the_catalog_has_not_leads_to_those_it_has(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=r"^no table") as told:
        looking.in_catalog(cast(RestCatalog, Catalog()), name)
    assert says in str(told.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"PFA1", b"PFA1" * 5, b"PFA1PFA1{}" + struct.pack("<ii", 2, 1) + b"PFA1"],
)
def test_what_is_no_puffin_footer(content: bytes) -> None:
    with pytest.raises(Unreadable, match=r"^x\.puffin "):
        puffin.footer(content, "x.puffin")
