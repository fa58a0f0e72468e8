"""Declared files: what can be declared, what is written, what the catalog is told, and what bad input leaves behind."""

from __future__ import annotations

import datetime as dt
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lab import registering
from lab.behaviours import committed
from lab.engines import Session
from lab.errors import LabError
from lab.model import Answer, Behaviour, Call, Cause, DataFile, DeleteFile, Failure, Rows, Statement, Statistics, Table
from lab.provision import Cache, NotProvided
from lab.registering import WRITER, Writer, register
from lab.runtime import folder as folders
from lab.runtime.host import Host
from lab.tables import encodings, files, orders, puffin, theta
from lab.tables.parquet import Footer, footer
from lab.tables.rest import RestCatalog
from lab.values import Nanoseconds

T = Table("T", 2, (("I", "int"), ("S", "string")), ((1, "a"), (None, None)), files=(DataFile(),))
NOT_THIS = "a comma-separated file, never a Parquet one\n" * 3


# ---------------------------------------------------------------- declarations
def test_an_encoding_is_declared_for_every_type_that_parquet_lets_it_hold_and_no_other() -> None:
    pairs = {(encoding, word) for encoding, word in encodings.PAIRS}
    assert len(pairs) == 60
    for encoding, word in (
        ("RLE", "boolean"),
        ("DELTA_BINARY_PACKED", "timestamptz"),
        ("DELTA_BINARY_PACKED", "decimal8"),
        ("DELTA_BYTE_ARRAY", "uuid"),
        ("BYTE_STREAM_SPLIT", "int"),
    ):
        assert (encoding, word) in pairs
    for encoding, word in (
        ("RLE", "int"),
        ("RLE_DICTIONARY", "boolean"),
        ("DELTA_BINARY_PACKED", "double"),
        ("DELTA_BINARY_PACKED", "decimal16"),
        ("DELTA_LENGTH_BYTE_ARRAY", "fixed"),
        ("BYTE_STREAM_SPLIT", "string"),
    ):
        assert (encoding, word) not in pairs


def test_every_primitive_type_has_a_column_in_every_encoding_that_takes_it() -> None:
    declared = [name for table in (encodings.GRID, encodings.TIMES) for name, _ in table.columns]
    assert sorted(declared) == sorted(map(encodings.column, encodings.PAIRS))
    assert {word for _, word in encodings.PAIRS} == set(encodings.TYPES)


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (
            DataFile({"I": "DELTA_LENGTH_BYTE_ARRAY"}),
            "T, data file 1: column I: DELTA_LENGTH_BYTE_ARRAY can't hold int, stored as INT32; take PLAIN",
        ),
        (DataFile({"I": "DELTA"}), "Parquet has no encoding 'DELTA'; there are PLAIN"),
        (DataFile({"X": "PLAIN"}), "T, data file 1: there is no column X; take I, S"),
        (DataFile(codec="lzo"), "there is no codec 'lzo' here; take none, snappy"),
        (DataFile(codec={"I": "brotli"}), "column I: there is no codec 'brotli'"),
        (
            DataFile(codec={"I": "hadoop-lz4"}),
            "T, data file 1: column I: hadoop-lz4 is a whole file's codec; take it for",
        ),
        (DataFile(page_version=3), "version 1 or 2, not 3"),
        (DeleteFile("vector"), "no delete file of kind 'vector'"),
        (DataFile(bounds={"I": (0, 2**40)}), "T, data file 1: bounds of column I: 1099511627776 is beyond int; give"),
        (DataFile(bounds={"I": ("0", "1")}), "bounds of column I: '0' is no value of int; give a Python int"),
        (DataFile(bounds={"I": (True, True)}), "bounds of column I: True is no value of int"),
        (DataFile(bounds={"I": (1,)}), "bounds of column I: (1,) is no pair of values; give (lowest, highest)"),  # type: ignore[dict-item]
        (DataFile(nulls={"I": -1}), "column I: -1 is no count of nulls; give a whole number"),
        (DataFile(rows=((1,),)), "row 0 has 1 values; give one for each of 2 columns"),
        (DataFile(rows=((1, 2),)), "row 0, column S: 2 is no value of string; give a Python str"),
        (DataFile(without=("I", "S")), "one column at least"),
        (
            DeleteFile("position-delete", file=1),
            "T, delete file 0: there is no data file 1 to delete from; there are 1",
        ),
        (DeleteFile("deletion-vector", positions=("a",)), "'a' is no position of a row"),  # type: ignore[arg-type]
        (DeleteFile("deletion-vector", positions=(1 << 32,)), "delete file 0: a declared deletion vector takes"),
        (DeleteFile("equality-delete", columns=("X",)), "no column X"),
        (DeleteFile("equality-delete", columns=("I",), keys=(("a",),)), "column I: 'a' is no value of int"),
        (DeleteFile("equality-delete", columns=("I",), keys=((1, 2),)), "in each key a value for each of them"),
        (DeleteFile("equality-delete", columns=("I",), keys=((1,),), equal=("S",)), "S: an equality delete goes by"),
    ],
)
def test_what_cannot_be_is_told_with_what_can(file: DataFile | DeleteFile, told: str) -> None:
    with pytest.raises(LabError) as refused:
        files.check(replace(T, files=(DataFile(), file)))
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("decimal", None, "T: column I: 'decimal' can't be declared; write it like decimal(9, 2)"),
        ("fixed[x]", None, "'fixed[x]' can't be declared; write it like fixed[4]"),
        ("int(4)", None, "'int(4)' can't be declared; write it like int"),
        ("list<int>", None, "list<int> is no type that a data file can be declared with here; take boolean"),
        ("long", 2**63, "default of column I: 9223372036854775808 is beyond long"),
        ("decimal(4, 2)", Decimal("1.234"), "1.234 does not fit decimal(4, 2); give one of 2 decimals and 4 digits"),
        ("decimal(4, 2)", Decimal("100"), "100 does not fit decimal(4, 2)"),
        ("fixed[2]", b"abc", "b'abc' has 3 bytes; give the 2 of fixed[2]"),
        ("date", dt.datetime(2026, 7, 1), "is no value of date; give a Python date"),
        ("timestamp", dt.datetime(2026, 7, 1, tzinfo=dt.UTC), "is no value of timestamp; give one without a zone"),
        ("timestamptz", dt.datetime(2026, 7, 1), "is no value of timestamptz; give one with a zone"),
        ("timestamp_ns", Nanoseconds("2026-07-01"), "is no value of timestamp_ns; give a text like 2026-07-01T09"),
        (
            "timestamptz_ns",
            Nanoseconds("2026-07-01T09:00:00.000000001"),
            "give a text like 2026-07-01T09:00:00.000000001+",
        ),
        ("geometry(srid:3857)", None, "write it like geometry (a file of another reference system can't be written"),
        ("unknown", 1, "1 can't be in a column of type unknown; give None"),
    ],
)
def test_types_and_values_that_cannot_be_are_told_by_their_column(kind: str, value: Any, told: str) -> None:
    table = Table("T", 3, (("I", kind),), (), files=(DataFile(),), defaults={"I": value})
    with pytest.raises(LabError) as refused:
        files.check(table)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (DataFile({"U": "PLAIN"}), "column U: a column of type unknown stands in no data file; leave it out"),
        (DataFile(bounds={"G": (b"", b"")}), "bounds of column G: bounds of shapes are corners and no values"),
    ],
)
def test_what_v3s_types_lack_is_told(file: DataFile, told: str) -> None:
    table = Table("T", 3, (("I", "int"), ("U", "unknown"), ("G", "geometry")), (), files=(file,))
    with pytest.raises(LabError) as refused:
        files.check(table)
    assert told in str(refused.value)
    with pytest.raises(LabError, match="T: column U: unknown needs format version 3, not 2"):
        files.check(replace(table, format_version=2))


def test_a_column_of_no_type_is_in_no_file(writer: Writer, tmp_path: Path) -> None:
    found = written(writer, encodings.UNKNOWN, tmp_path / "f.parquet")
    assert [chunk.column for chunk in found.chunks] == ["INT_PLAIN"]


def test_a_default_of_no_column_is_told() -> None:
    with pytest.raises(LabError, match="T: there is no column X; take I, S"):
        files.check(replace(T, defaults={"X": 1}))


def test_every_declared_table_can_be() -> None:
    declared = [*vars(encodings).values(), *vars(orders).values()]
    tables = [value for value in declared if isinstance(value, Table) and value.files]
    assert len(tables) > 10
    for table in tables:
        files.check(table)


# ---------------------------------------------------------------- what the catalog is told
def test_a_schema_counts_its_columns_and_holds_their_defaults() -> None:
    table = replace(T, defaults={"I": 7})
    assert files.schema(table)["fields"] == [
        {"id": 1, "name": "I", "type": "int", "required": False, "initial-default": 7, "write-default": 7},
        {"id": 2, "name": "S", "type": "string", "required": False},
    ]


@pytest.mark.parametrize(
    ("kind", "value", "hex"),
    [
        ("boolean", True, "01"),
        ("int", -2, "feffffff"),
        ("long", 1, "0100000000000000"),
        ("float", 1.0, "0000803f"),
        ("double", 1.0, "000000000000f03f"),
        ("decimal(9, 2)", Decimal("14.20"), "058c"),  # the specification's own example
        ("decimal(9, 2)", Decimal("1.28"), "0080"),
        ("decimal(9, 2)", Decimal("-1.28"), "80"),
        ("decimal(38, 2)", Decimal("1" + "0" * 35 + ".01"), (10**37 + 1).to_bytes(16, "big").hex()),  # not rounded
        ("date", dt.date(1970, 1, 2), "01000000"),
        ("time", dt.time(0, 0, 1), "40420f0000000000"),
        ("timestamp", dt.datetime(1970, 1, 1, 0, 0, 1), "40420f0000000000"),
        ("timestamptz", dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), "0000000000000000"),
        ("string", "ß", "c39f"),
        ("binary", b"\x00\xff", "00ff"),
        ("timestamp_ns", Nanoseconds("1969-12-31T23:59:59.999999999"), "ffffffffffffffff"),
        ("timestamptz_ns", Nanoseconds("1970-01-01T00:00:01.000000001+00:00"), "01ca9a3b00000000"),
    ],
)
def test_bounds_are_serialized_as_the_specification_says(kind: str, value: Any, hex: str) -> None:
    assert files.serialized(kind, value).hex() == hex
    assert files.deserialized(kind, bytes.fromhex(hex)) == value


def test_a_data_file_is_told_with_counts_of_its_footer_and_bounds_as_declared() -> None:
    file = DataFile(bounds={"I": (1, 9)}, nulls={"S": 5})
    told = files.data_file(T, file, "s3://b/f", 10, Footer(2, "w", ()))
    assert told["lower-bounds"] == {"keys": [1], "values": ["01000000"]}
    assert told["upper-bounds"] == {"keys": [1], "values": ["09000000"]}
    assert told["null-value-counts"] == {"keys": [2], "values": [5]}


@pytest.mark.parametrize("behaviour", [committed.BOUNDS, committed.MISBOUNDS], ids=lambda one: one.id)
def test_the_bounds_that_a_behaviour_expects_in_the_manifest_are_those_declared(behaviour: Behaviour) -> None:
    table = behaviour.table
    told = [
        files.data_file(table, f, "s3://b/f", 1, Footer(1, "w", ())) for f in table.files if isinstance(f, DataFile)
    ]
    for end in ("lower", "upper"):
        seen = [bytes.fromhex(dict(zip(*file[f"{end}-bounds"].values(), strict=True))[1]) for file in told]
        fact = f"metrics.{'lowest' if end == 'lower' else 'highest'}"
        for expect in behaviour.expect[:-1]:
            assert expect.facts[fact] == [files.deserialized("int", content) for content in seen]


def test_the_default_of_an_insert_may_differ_from_that_of_old_rows() -> None:
    column = files.schema(replace(T, defaults={"S": "old"}, write_defaults={"S": "new"}))["fields"][1]
    assert (column["initial-default"], column["write-default"]) == ("old", "new")


# ---------------------------------------------------------------- deletion vectors
def test_a_deletion_vector_is_a_framed_roaring_bitmap_with_its_checksum() -> None:
    blob = puffin.vector((70000, 1, 3))
    length, magic = struct.unpack(">I4s", blob[:8])
    assert (length, magic) == (len(blob) - 8, b"\xd1\xd3\x39\x64")
    assert struct.unpack(">I", blob[-4:])[0] == zlib.crc32(blob[4:-4])
    assert struct.unpack("<QIII", blob[8:28]) == (1, 0, 12346, 2)
    assert struct.unpack("<4H", blob[28:36]) == (0, 1, 1, 0)  # (key, cardinality - 1) of each container
    first, second = struct.unpack("<2I", blob[36:44])
    bitmap = blob[20:-4]
    assert struct.unpack("<2H", bitmap[first : first + 4]) == (1, 3)
    assert struct.unpack("<H", bitmap[second:]) == (70000 - 65536,)


@pytest.mark.parametrize("positions", [(-1,), (1 << 32,), tuple(range(4097))])
def test_a_deletion_vector_beyond_what_can_be_declared_is_refused(positions: tuple[int, ...]) -> None:
    with pytest.raises(LabError, match="declared deletion vector"):
        puffin.vector(positions)


# ---------------------------------------------------------------- statistics
def test_a_sketch_is_byte_for_byte_that_of_datasketches() -> None:
    texts = (b"keyboard", b"mouse", b"a text that is longer than sixteen bytes")
    # of UpdateSketch.builder().setFamily(ALPHA), compact and ordered, by datasketches-java 6.0.0
    assert theta.theta(texts).hex() == (
        "02030300001acc93030000000000803f2cebdf115114dd5e33656d1ebcdc9561d82752eb332c017f"
    )
    assert theta.counted(theta.theta(texts)) == 3
    with pytest.raises(LabError, match="2 to 4096 distinct values, not 1"):
        theta.theta((b"a", b"a"))


def test_blobs_have_a_sketch_of_what_the_files_hold_and_the_number_that_is_told() -> None:
    (first, second) = files.blobs(orders.TOLD_V2, {"ORDER_ID": 4, "PRODUCT": 42})
    assert (first["fields"], first["properties"], theta.counted(first["content"])) == ([1], {"ndv": "4"}, 4)
    assert (second["fields"], second["properties"], theta.counted(second["content"])) == ([2], {"ndv": "42"}, 4)


def test_a_puffin_file_shows_its_blobs() -> None:
    ((blob, content),) = puffin.blobs(puffin.puffin((1, 3), "s3://b/f"), "f")
    assert (blob["type"], content) == ("deletion-vector-v1", puffin.vector((1, 3)))
    for broken in (b"", b"PFA1" * 5, b"x" * 40):
        with pytest.raises(LabError, match="f is no Puffin file"):
            puffin.blobs(broken, "f")


def test_a_file_stands_in_the_partition_of_its_rows() -> None:
    table = replace(T, rows=((1, "a"), (2, "a"), (3, "b")), partition="S")
    file = DataFile(rows=table.rows[:2])
    assert files.data_file(table, file, "s3://b/f", 1, Footer(2, "w", ()))["partition"] == ["a"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"partition": "X"}, "T: there is no column X"),
        ({"partition": "S"}, "data file 0: column S: the table is partitioned by it; give one value in each"),
        ({"statistics": Statistics({"X": 1})}, "T: there is no column X"),
        ({"statistics": Statistics({"I": -1})}, "T: column I: -1 is no count of values"),
        ({"statistics": Statistics({"I": 1})}, "T: column I: a declared sketch takes 2 to 4096 distinct values"),
        ({"statistics": Statistics(partitions=True)}, "T: partition statistics need a partitioned table"),
        ({"statistics": Statistics(), "files": ()}, "T: statistics are told of a snapshot; declare a data file"),
    ],
)
def test_statistics_and_partitions_that_cannot_be_are_told(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(LabError) as refused:
        files.check(replace(T, **changed))
    assert told in str(refused.value)


def test_statistics_are_set_after_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Copier, "write", lambda self, library, table, file, to: to.write_bytes(b"x") and Footer(2, "", ())
    )
    library = Library()
    made(orders.TOLD_V2, library, monkeypatch)
    assert library.did[-3:] == ["commit", "set_statistics", "set_partition_statistics"]


# ---------------------------------------------------------------- bad input leaves no table behind
class Library:
    """Stands for the library's session: remembers what was done, and fails at one operation."""

    settings: dict[str, str] = {}

    def __init__(self, fails_at: str = "") -> None:
        self.fails_at, self.did = fails_at, list[str]()

    def execute(self, statement: Statement) -> Answer:
        assert isinstance(statement, Call)
        self.did.append(statement.op)
        if statement.op != self.fails_at:
            return Rows()
        told = "Cannot add this\nfor that"
        return Failure((Cause("RESTException", "outer"), Cause("java.lang.IllegalArgumentException", told)))

    def close(self) -> None:
        pass


class Catalog:
    def load_table(self, namespace: str, table: str) -> Any:
        return SimpleNamespace(credentials={}, metadata={"location": "s3://bucket/t"})


class Store:
    def __init__(self, credentials: object) -> None:
        pass

    def write(self, location: str, content: bytes) -> None:
        assert location.startswith("s3://bucket/t/data/")


class Copier(Writer):
    """Takes files that were made elsewhere, and starts no process."""

    def __init__(self) -> None:
        pass


def made(table: Table, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registering, "Store", Store)
    register(cast(Session, library), Copier(), cast(RestCatalog, Catalog()), "N", table, {})


@pytest.mark.parametrize(
    "file", [DataFile({"I": "RLE"}), DataFile(codec="lzo"), DataFile(path=Path("/nowhere/file.parquet"))]
)
def test_no_table_is_made_for_what_cannot_be_written(file: DataFile, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    with pytest.raises(LabError):
        made(replace(T, files=(file,)), library, monkeypatch)
    assert library.did == []


def test_a_file_that_is_not_parquet_is_told_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "orders.csv"
    file.write_text(NOT_THIS)
    library = Library()
    with pytest.raises(LabError, match=r"orders\.csv is not a Parquet file"):
        made(replace(T, files=(DataFile(path=file),)), library, monkeypatch)
    assert library.did == []


def test_a_commit_that_fails_takes_the_table_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Copier, "write", lambda self, library, table, file, to: to.write_bytes(b"x") and Footer(2, "", ())
    )
    library = Library(fails_at="commit")
    with pytest.raises(LabError) as told:
        made(T, library, monkeypatch)
    assert str(told.value) == (
        "T can't be made as declared: commit failed of java.lang.IllegalArgumentException: "
        "Cannot add this for that; change its declaration"
    )
    assert library.did == ["create_namespace", "create_table", "commit", "drop_table"]


@pytest.mark.parametrize("broken", [OSError("the store\nis gone"), IndexError("a fault of the lab's own")])
def test_whatever_fails_takes_the_table_with_it(broken: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, location: str, content: bytes) -> None:
        raise broken

    monkeypatch.setattr(
        Copier, "write", lambda self, library, table, file, to: to.write_bytes(b"x") and Footer(2, "", ())
    )
    monkeypatch.setattr(Store, "write", fails)
    library = Library(fails_at="drop_table")
    with pytest.raises(LabError) as told:
        made(T, library, monkeypatch)
    assert str(told.value).startswith("T can't be registered: ")
    assert "\n" not in str(told.value)
    assert library.did[-1] == "drop_table"


def test_an_equality_delete_goes_by_fewer_columns_than_its_file_has() -> None:
    whole = DeleteFile("equality-delete", columns=("I", "S"), keys=((1, "a"),))
    for file, ids in ((whole, [1, 2]), (replace(whole, equal=("S",)), [2])):
        assert files.delete_file(T, file, "s3://b/t/d.parquet", 9, "")["equality-ids"] == ids


def test_an_equality_delete_needs_no_data_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Copier, "write_deletes", lambda self, table, file, data, to: to.write_bytes(b"x"))
    library = Library()
    made(replace(T, files=(DeleteFile("equality-delete", columns=("I",), keys=((1,),)),)), library, monkeypatch)
    assert library.did == ["create_namespace", "create_table", "commit"]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(40) + b"PAR1", b"PAR1" + b"\xff" * 40 + b"PAR1"])
def test_a_damaged_footer_is_one_line(content: bytes) -> None:
    with pytest.raises(LabError) as told:
        footer(content, "x.parquet")
    assert str(told.value).startswith("x.parquet is not a Parquet file")


# ---------------------------------------------------------------- files as PyArrow writes them
@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    cache = Cache(offline=True)
    try:
        cache.environment(WRITER.name)
    except (NotProvided, LabError) as missing:
        pytest.skip(f"needs env:{WRITER.name} in the cache: {missing}")
    folder = tmp_path_factory.mktemp("runs") / "run"
    folders.claim(folder)
    host = Host(cache, folder)
    writer = Writer(host)
    yield writer
    writer.close()
    host.stop()


def written(writer: Writer, table: Table, to: Path) -> Footer:
    (file,) = table.files
    assert isinstance(file, DataFile)
    return writer.write(cast(Session, Library()), table, file, to)


@pytest.mark.parametrize(
    "table",
    [
        encodings.GRID,
        encodings.TIMES,
        encodings.PAGES_V2,
        encodings.FORMAT_V3,
        encodings.NO_NULLS,
        encodings.ALL_NULLS,
        encodings.CODECS,
        encodings.NANOSECONDS,
        encodings.NANOSECONDS_UTC,
        encodings.GEOMETRY,
        encodings.GEOGRAPHY,
        orders.SNOWFLAKE_V2,
    ],
    ids=lambda table: table.name,
)
def test_a_written_file_has_what_was_declared(writer: Writer, table: Table, tmp_path: Path) -> None:
    (file,) = table.files
    assert isinstance(file, DataFile)
    found = written(writer, table, tmp_path / "f.parquet")
    assert found.rows == len(table.rows)
    assert "parquet-cpp" in found.created_by
    by_name = {chunk.column: chunk for chunk in found.chunks}
    for place, (name, kind) in enumerate(table.columns):
        chunk = by_name[name]
        assert chunk.encoding == file.encodings.get(name, "PLAIN")
        assert chunk.codec == files.CODECS[files.codec_of(file, name)]
        assert chunk.page_version == file.page_version
        assert chunk.type == files.physical(kind)
        assert chunk.field_id == place + 1
        if not kind.startswith("geo"):  # of shapes the writer tells no statistics
            assert chunk.nulls == sum(row[place] is None for row in table.rows)


def test_a_file_made_elsewhere_is_taken_as_it_is_if_its_field_ids_are_the_tables(
    writer: Writer, tmp_path: Path
) -> None:
    made_there = tmp_path / "there.parquet"
    written(writer, T, made_there)
    taken = replace(T, files=(DataFile(path=made_there, codec="gzip"),))
    assert written(writer, taken, tmp_path / "here.parquet").rows == 2
    other = replace(taken, columns=(("S", "string"), ("I", "int")))
    with pytest.raises(LabError, match="has field id 1 in the file and 2 in the table"):
        written(writer, other, tmp_path / "other.parquet")


def test_a_file_that_is_not_as_declared_is_refused(writer: Writer, tmp_path: Path) -> None:
    found = written(writer, T, tmp_path / "f.parquet")
    with pytest.raises(LabError, match="declared as DELTA_BINARY_PACKED, ZSTD, 1 and written as PLAIN, ZSTD, 1"):
        files.compare(T, DataFile({"I": "DELTA_BINARY_PACKED"}), found)


def test_a_file_made_elsewhere_has_the_tables_columns_and_types(writer: Writer, tmp_path: Path) -> None:
    there = tmp_path / "there.parquet"
    texts = replace(T, columns=(("I", "binary"), ("X", "string")), rows=((b"1", "a"),))
    written(writer, texts, there)
    file = DataFile(path=there)
    with pytest.raises(LabError, match="T: the file has no column S; name it in `without` if it may lack it"):
        written(writer, replace(T, files=(file,)), tmp_path / "here.parquet")
    with pytest.raises(LabError, match="T, column X: the file has it and its declaration does not"):
        written(writer, replace(T, columns=(("I", "binary"),), files=(file,)), tmp_path / "here.parquet")
    with pytest.raises(LabError, match="T, column I: is stored as BYTE_ARRAY, which is no int; write it as INT32"):
        written(writer, replace(T, columns=(("I", "int"), ("X", "string")), files=(file,)), tmp_path / "here.parquet")


def test_a_file_made_elsewhere_may_have_a_type_that_is_promoted(writer: Writer, tmp_path: Path) -> None:
    there = tmp_path / "there.parquet"
    written(writer, T, there)
    wider = replace(T, columns=(("I", "long"), ("S", "string")), files=(DataFile(path=there),))
    assert written(writer, wider, tmp_path / "here.parquet").rows == 2
