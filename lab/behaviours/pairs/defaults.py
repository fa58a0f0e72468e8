"""A column that is younger than some data files, and has a default for their rows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from lab.behaviours.known import DEFAULT_OVERLOOKED
from lab.behaviours.pairs.feature import create, feature, insert
from lab.behaviours.pairs.filters import KEY, Filter
from lab.behaviours.pairs.known import DELTA_LENGTH, Wrongly
from lab.behaviours.t_default import ADD_REFUSED, FILTERED
from lab.behaviours.t_known import gap
from lab.model import Chain, Expect, Outcome, Step, Trap, Truth

BEFORE = (("id", "int"),)


def _add(column: str, kind: str, value: str) -> Step:
    """Spark refuses it, and PyIceberg has no words for it."""
    said = f"ALTER TABLE {{table}} ADD COLUMN {column} {kind} DEFAULT {value}"
    return Step("add", {"trino": said, "duckdb": said, "spark": said})


DECIMAL_DEFAULT = Trap(
    "decimal-default",
    "A decimal column with a default can't be read by Spark",
    r"Cannot cast default value to int: ",
    "org.apache.iceberg.arrow.vectorized.VectorizedArrowReader.getPhysicalType",
    remedy="SET spark.sql.iceberg.vectorization.enabled=false, or take Iceberg 1.12",
)
SPARK_REFUSES = gap(
    "spark-3.5*,spark-4*",
    "Iceberg refuses a default in ALTER TABLE from Spark",
    ADD_REFUSED,
    ("java.lang.UnsupportedOperationException", "since setting default values in Spark is currently"),
    at="add",
)


# Row 1 is older than the column, and gets lost wherever the column is filtered.
LOST = Wrongly(
    "a file without the column has no statistics of it, which Iceberg before 1.12 takes for all null: filters skip "
    "the file, the very row that a SELECT without a filter shows with its default",
    "spark-3.5*,spark-4.0*,spark-4.1*1.11*",
    FILTERED,
    keeps=lambda filter, row: filter.keeps(row) and (filter.column == KEY or row[KEY] != 1),
)


def _overlooked(rows: Truth) -> Wrongly:
    """Row 1 comes back with null."""
    return Wrongly(
        "Trino 476 overlooks the default: rows of files without the column come back as null, and filters see null",
        "trino-476",
        DEFAULT_OVERLOOKED,
        seen=tuple((id, None if id == 1 else value) for id, value in rows),
    )


STRINGS = ((1, "US"), (2, "US"), (3, "DE"))
ON_STRINGS = (
    Filter("c", "=", "US"),
    Filter("c", "<", "F"),
    Filter("c", "in", ("US", "FR")),
    Filter("c", "null"),
    Filter("c", "not", "DE"),
    Filter("c", "like", "U"),
)
NUMBERS = ((1, 7), (2, 7), (3, None))
ON_NUMBERS = (
    Filter("k", "=", 7),
    Filter("k", "<", 8),
    Filter("k", "in", (7, 9)),
    Filter("k", "null"),
    Filter("k", "not null"),
    Filter("k", "not", 9),
)
DECIMALS = ((1, Decimal("1.50")), (2, Decimal("2.50")))
CHANGED = ((1, 7), (2, 8), (3, 9))
ON_CHANGED = (
    Filter("k", "=", 7),
    Filter("k", "=", 8),
    Filter("k", "in", (7, 9)),
    Filter("k", "null"),
    Filter("k", "<", 9),
    Filter("k", "not", 7),
)
STRING = feature(
    "default-string",
    "A string column added with a default, filtered",
    3,
    (("id", "int"), ("c", "string")),
    STRINGS,
    (
        create(BEFORE, 3),
        insert(["id"], (1,)),
        Step("add", dict.fromkeys(("trino", "duckdb"), "ALTER TABLE {table} ADD COLUMN c varchar DEFAULT 'US'")),
        insert(["id", "c"], *STRINGS[1:], name="insert-more"),
    ),
    source="apache/iceberg#16690",
    new=("c",),
    filters=ON_STRINGS,
    expect=(
        replace(DELTA_LENGTH, generations="spark-3.5*,spark-4.0*"),
        LOST,
        _overlooked(STRINGS),
    ),
    pairs=(("duckdb-*", "*"),),
)
NUMBER = feature(
    "default-number",
    "An integer column added with a default, filtered",
    3,
    (("id", "int"), ("k", "int")),
    NUMBERS,
    (
        create(BEFORE, 3),
        insert(["id"], (1,)),
        _add("k", "integer", "7"),
        insert(["id", "k"], (2, 7), (3, None), name="insert-more"),
    ),
    source="apache/iceberg#16690",
    new=("k",),
    filters=ON_NUMBERS,
    cannot=(SPARK_REFUSES,),
    expect=(LOST, _overlooked(NUMBERS)),
)
DECIMAL = feature(
    "default-decimal",
    "A decimal column added with a default, not filtered",
    3,
    (("id", "int"), ("d", "decimal(9, 2)")),
    DECIMALS,
    (
        create(BEFORE, 3),
        insert(["id"], (1,)),
        _add("d", "decimal(9,2)", "1.50"),
        insert(["id", "d"], (2, Decimal("2.50")), name="insert-more"),
    ),
    source="apache/iceberg#16501",
    new=("d",),
    cannot=(SPARK_REFUSES,),
    expect=(
        Expect(
            Outcome.ERROR,
            "Iceberg's vectorized reader makes an int column of a decimal that Parquet stores as one, default "
            "included, and 1.50 is no int. The vectorized reader of 1.12 leaves the default out",
            generations="spark-3.5*,spark-4.0*,spark-4.1*1.11*",
            failure=Chain((("java.lang.IllegalArgumentException", "Cannot cast default value to int: 1.50"),)),
            at="whole",
            trap=DECIMAL_DEFAULT,
        ),
        _overlooked(DECIMALS),
    ),
)
WRITE = feature(
    "default-changed",
    "A default changed after the column was added: old rows keep the first, new ones get the second",
    3,
    (("id", "int"), ("k", "int")),
    CHANGED,
    (
        create(BEFORE, 3),
        insert(["id"], (1,)),
        _add("k", "integer", "7"),
        Step("set", "ALTER TABLE {table} ALTER COLUMN k SET DEFAULT 8"),
        Step("insert-bare", "INSERT INTO {table} (id) VALUES (2)"),
        insert(["id", "k"], (3, 9), name="insert-more"),
    ),
    new=("k",),
    filters=ON_CHANGED,
    cannot=(SPARK_REFUSES,),
    expect=(LOST, _overlooked(CHANGED)),
)
