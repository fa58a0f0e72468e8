"""Tables partitioned by each transform: readers skip files by what a filter says of the partition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from lab.behaviours.encodings import NOTHING_PACKED
from lab.behaviours.pairs.feature import Feature, create, feature, insert, on
from lab.behaviours.pairs.filters import Filter, Row
from lab.behaviours.pairs.known import (
    DELETE_PATHS,
    DELTA_LENGTH,
    PYICEBERG_CORE,
    Wrongly,
    keeps_null,
)
from lab.behaviours.t_known import gap
from lab.model import Chain, Expect, Outcome, Step, Trap, Truth

Columns = Sequence[tuple[str, str]]
INTS = (("id", "int"), ("n", "int"))
NUMBERS = ((1, 10), (2, 20), (3, 30), (4, None), (5, -7), (6, 10))
ON_NUMBERS = (
    Filter("n", "=", 10),
    Filter("n", "<", 20),
    Filter("n", "in", (20, -7)),
    Filter("n", "null"),
    Filter("n", "not", 10),
    Filter("n", "not in", (10, 30)),
)


def partitioned(
    name: str, transform: str, columns: Columns, rows: Truth, filters: Sequence[Filter], **more: Any
) -> Feature:
    """A feature of one transform of the second column, filled by one INSERT."""
    (_, (column, _)) = columns
    return feature(
        f"partition-{name}",
        f"Partitioned by {transform} of a {columns[1][1]}",
        2,
        columns,
        rows,
        (create(columns, 2, partition=(f"{transform}({column})",)), insert([n for n, _ in columns], *rows)),
        filters=filters,
        **more,
    )


# Longer than the 16 signs that bounds keep, and told apart by the last ones: duckdb-iceberg#1048
CITIES = (
    (1, "a long name of a city: Kyoto"),
    (2, "a long name of a city: Osaka"),
    (3, None),
    (4, "Bern"),
    (5, ""),
)
TEXTS = (("id", "int"), ("city", "string"))
ON_TEXTS = (
    Filter("city", "=", "a long name of a city: Osaka"),
    Filter("city", "<", "a"),
    Filter("city", "in", ("Bern", "a long name of a city: Kyoto")),
    Filter("city", "null"),
    Filter("city", "not", "Bern"),
    Filter("city", "like", "a long name"),
)
DATES = (("id", "int"), ("day", "date"))
DAYS = (
    (1, dt.date(2026, 7, 1)),
    (2, dt.date(2026, 12, 31)),
    (3, dt.date(2027, 1, 1)),
    (4, None),
    (5, dt.date(1969, 12, 31)),
    (6, dt.date(1900, 2, 1)),
)
ON_DAYS = (
    Filter("day", "=", dt.date(1969, 12, 31)),
    Filter("day", "<", dt.date(2026, 12, 31)),
    Filter("day", ">", dt.date(2026, 7, 1)),
    Filter("day", "in", (dt.date(2027, 1, 1), dt.date(1900, 2, 1))),
    Filter("day", "null"),
    Filter("day", "not", dt.date(2026, 7, 1)),
)
INSTANTS = (("id", "int"), ("seen", "timestamptz"))


def _at(year: int, month: int, day: int, hour: int, minute: int = 0) -> dt.datetime:
    return dt.datetime(year, month, day, hour, minute, tzinfo=dt.UTC)


MOMENTS = (
    (1, _at(2026, 7, 1, 9)),
    (2, _at(2026, 7, 1, 9, 59)),
    (3, _at(2026, 7, 1, 10)),
    (4, None),
    (5, _at(1969, 12, 31, 23, 30)),
)
ON_MOMENTS = (
    Filter("seen", "=", _at(2026, 7, 1, 9, 59)),
    Filter("seen", "<", _at(2026, 7, 1, 9)),
    Filter("seen", ">", _at(2026, 7, 1, 9, 30)),
    Filter("seen", "in", (_at(2026, 7, 1, 9), _at(1969, 12, 31, 23, 30))),
    Filter("seen", "null"),
    Filter("seen", "not", _at(2026, 7, 1, 9)),
)

VOID_REFUSED = Trap(
    "void-transform",
    "An engine makes no partition field of the transform void",
    r"Transform is not supported: void|Unrecognized transform \('void'\)",
    {
        "spark-*": "org.apache.iceberg.spark.Spark3Util.toIcebergTerm",
        "duckdb-*": "duckdb::IcebergTableInformation::BuildPartitionSpec",
    },
    remedy="none needed: void says that nothing is partitioned by; leave the field out",
)
COMPUTED = (PYICEBERG_CORE,)
NULL_PARTITION = Trap(
    "trino-null-partition",
    "A filter on a partition column returns rows in which it is null",
    "",
    "io.trino.plugin.iceberg.IcebergMetadata.applyFilter",
    # IS NOT NULL beside it changes nothing: Trino leaves that to the same planning.
    remedy="compare what Trino can't leave to Iceberg, `coalesce(n, 20) < 20` for `n < 20`; or rewrite the table by an "
    "engine that counts values (Spark, Trino)",
)
IN_AND_NULL = Trap(
    "in-and-null-partition",
    "IN on a text partition column fails where one partition is null",
    r"Invalid object: null",
    "org.apache.iceberg.util.WrapperSet.contains",
    also=("Fix NPE when evaluating Iceberg IN expression with null partition values: trinodb/trino#30087",),
    remedy="in Spark write `a = 'x' OR a = 'y'`, or take Iceberg 1.12; in Trino, which makes an IN of that again, "
    "write `coalesce(a, '') IN ('x', 'y')`",
)
DELETES_MISSED = Trap(
    "deletes-under-another-spec",
    "Deleted rows come back where DuckDB deleted after a change of the partitioning",
    "",
    {
        "spark-*,trino-*": "org.apache.iceberg.DeleteFileIndex.forDataFile",
        "pyiceberg-*": "pyiceberg.table.delete_file_index.DeleteFileIndex.for_data_file",
    },
    remedy="delete with Spark or Trino, or with DuckDB from 2.0 on",
)
IN_FAILS = Expect(
    Outcome.ERROR,
    "Iceberg 1.11, which is in Trino 483 too, looks a partition's null up in the texts of IN, and its set of texts "
    "refuses null. 1.12 asks for null first (apache/iceberg#17014)",
    generations="spark-4.1*1.11*,trino-483",
    failure=Chain((("java.lang.NullPointerException", "Invalid object: null"),)),
    at="filters",
    trap=IN_AND_NULL,
)


def _every(value: Any) -> bool:
    """Of partitions of one value each: any value parts them."""
    return True


def _null_kept(starts: Callable[[Any], bool], ops: Sequence[str] = ("<",), trinos: str = "trino-*") -> Wrongly:
    """Trino on what DuckDB wrote: filters of the partition column that go by whole partitions keep null too.

    starts: whether a partition starts at this value, so that `<` goes by whole ones.
    """
    return Wrongly(
        "where a filter goes by whole partitions Trino leaves it to Iceberg's planning, to which null is less than all "
        "values (Evaluator.lt) and not equal to any; a file of nothing but nulls is left out by its counts of nulls "
        "and values alone (InclusiveMetricsEvaluator), and DuckDB writes no counts of values into its manifests",
        trinos,
        NULL_PARTITION,
        writers="duckdb-*",
        keeps=lambda filter, row: (
            filter.keeps(row) or (filter.op in ops and row[filter.column] is None and starts(filter.value))
        ),
    )


NO_VOID = (
    gap(
        "spark-*",
        "Iceberg's Spark knows void where it stands in a table, and has no word for it",
        VOID_REFUSED,
        ("java.lang.UnsupportedOperationException", "Transform is not supported: void(n)"),
        at="create",
    ),
    gap(
        "duckdb-*",
        "DuckDB has no word for it",
        VOID_REFUSED,
        ("_duckdb.NotImplementedException", "Unrecognized transform ('void')"),
        at="create",
    ),
)
STRINGS = (DELTA_LENGTH,)
ALL_NULL = Expect(
    Outcome.ERROR,
    "Trino 483 writes a file for the partition of null, whose page of texts is of nulls alone; Iceberg 1.11 reads its "
    "first length, of which there is none (apache/iceberg#17017)",
    generations="spark-4.1*1.11*",
    writers="trino-483",
    failure=Chain((("java.lang.ArrayIndexOutOfBoundsException", "Index 0 out of bounds for length 0"),)),
    at="whole",
    trap=NOTHING_PACKED[0].trap,
)

IDENTITY = partitioned(
    "identity",
    "identity",
    TEXTS,
    CITIES,
    ON_TEXTS,
    expect=(IN_FAILS, _null_kept(_every, ("<", "not", "not in"), "trino-476")),
)
BUCKET = partitioned("bucket", "bucket[4]", INTS, NUMBERS, ON_NUMBERS, cannot=COMPUTED)
TRUNCATE = partitioned(
    "truncate",
    "truncate[10]",
    INTS,
    NUMBERS,
    ON_NUMBERS,
    cannot=COMPUTED,
    expect=(_null_kept(lambda value: value % 10 == 0),),
)
TRUNCATE_TEXT = partitioned(
    "truncate-text", "truncate[4]", TEXTS, CITIES, ON_TEXTS, cannot=COMPUTED, expect=(*STRINGS, ALL_NULL, IN_FAILS)
)
YEAR = partitioned("year", "year", DATES, DAYS, ON_DAYS, cannot=COMPUTED)
MONTH = partitioned(
    "month", "month", DATES, DAYS, ON_DAYS, cannot=COMPUTED, expect=(_null_kept(lambda value: value.day == 1),)
)
DAY = partitioned(
    "day", "day", DATES, DAYS, ON_DAYS, cannot=COMPUTED, expect=(_null_kept(_every, ("<", "not", "not in")),)
)
HOUR = partitioned(
    "hour",
    "hour",
    INSTANTS,
    MOMENTS,
    ON_MOMENTS,
    cannot=COMPUTED,
    expect=(_null_kept(lambda value: value.minute == 0),),
)
VOID = partitioned("void", "void", INTS, NUMBERS, ON_NUMBERS, cannot=NO_VOID)

MORE = ((7, 10), (8, 20), (9, None))
EVOLVE = Step(
    "evolve",
    {
        "spark": "ALTER TABLE {table} REPLACE PARTITION FIELD n WITH bucket(4, id)",
        "trino": "ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['bucket(id, 4)']",
        "duckdb": "ALTER TABLE {table} SET PARTITIONED BY (bucket(4, id))",
    },
    on("partition_by", remove="n_identity", add=("id", "bucket[4]")),
)
EVOLVED = (
    create(INTS, 2, partition=("identity(n)",), properties={"write.delete.mode": "merge-on-read"}),
    insert(["id", "n"], *NUMBERS),
    EVOLVE,
    insert(["id", "n"], *MORE, name="insert-more"),
)
EVOLUTION = feature(
    "partition-evolution",
    "The partitioning changed between two INSERTs",
    2,
    INTS,
    (*NUMBERS, *MORE),
    EVOLVED,
    cannot=COMPUTED,
    filters=ON_NUMBERS,
)
EVOLVED_LEFT = tuple(row for row in (*NUMBERS, *MORE) if row[0] not in (2, 7))


def _missed(readers: str, back: Sequence[int], keeps: Callable[[Filter, Row], bool] = Filter.keeps) -> Wrongly:
    return Wrongly(
        "DuckDB 1.5 lists all its delete files under the table's current partitioning, with the values of the old one "
        "(IcebergDelete::GenerateDeleteManifestEntries): who matches deletes and files by partition, as the "
        "specification wants it, finds none for the older files. DuckDB itself goes by path",
        readers,
        DELETES_MISSED,
        writers="duckdb-*",
        seen=tuple(row for row in (*NUMBERS, *MORE) if row in EVOLVED_LEFT or row[0] in back),
        keeps=keeps,
    )


EVOLUTION_DELETED = feature(
    "partition-evolution-deletes",
    "Position deletes on both sides of a changed partitioning",
    2,
    INTS,
    EVOLVED_LEFT,
    (*EVOLVED, Step("delete", "DELETE FROM {table} WHERE id IN (2, 7)")),
    source="duckdb-iceberg#1276",
    filters=ON_NUMBERS,
    expect=(
        DELETE_PATHS,
        _missed("spark-*,trino-*", (2,)),
        _missed("pyiceberg-*", (2, 7), keeps_null),
    ),
)
