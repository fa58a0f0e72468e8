"""A schema that changes between two INSERTs: old files know nothing of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from lab.behaviours.pairs.feature import create, feature, insert, on
from lab.behaviours.pairs.filters import Filter
from lab.behaviours.pairs.known import LONGER_DECIMAL, Wrongly, not_keeps_null
from lab.model import Chain, Expect, Outcome, Step, Trap

INTS = (("id", "int"), ("n", "int"))
NAMES = ["id", "n"]
OLD = ((1, 10), (2, 20), (3, None))


def alter(spark: str, trino: str = "", duckdb: str = "", **call: Any) -> Step:
    """One ALTER TABLE, in Spark's words where a dialect has no others."""
    words = {"spark": spark, "trino": trino or spark, "duckdb": duckdb or spark}
    said = {kind: f"ALTER TABLE {{table}} {word}" for kind, word in words.items() if word != "-"}
    return Step("alter", said, on("alter", **call) if call else None)


ADDED_ROWS = (*((*row, None) for row in OLD), (4, 40, 400))
ADDED_FILTERS = (
    Filter("m", "=", 400),
    Filter("m", "<", 500),
    Filter("m", "in", (400, 1)),
    Filter("m", "null"),
    Filter("m", "not null"),
    Filter("m", "not", 1),
)
ADD = feature(
    "schema-add",
    "A column added without a default",
    2,
    (*INTS, ("m", "int")),
    ADDED_ROWS,
    (
        create(INTS, 2),
        insert(NAMES, *OLD),
        alter("ADD COLUMN m int", "ADD COLUMN m integer", change="add", column="m", to="int"),
        insert([*NAMES, "m"], (4, 40, 400), name="insert-more"),
    ),
    filters=ADDED_FILTERS,
    expect=(not_keeps_null("m", 1, 2, 3),),
)
DROP = feature(
    "schema-drop",
    "A column dropped",
    2,
    (("id", "int"), ("m", "int")),
    ((1, 100), (2, 200), (3, None), (4, 400)),
    (
        create((*INTS, ("m", "int")), 2),
        insert([*NAMES, "m"], (1, 10, 100), (2, 20, 200), (3, 30, None)),
        alter("DROP COLUMN n", change="drop", column="n"),
        insert(["id", "m"], (4, 400), name="insert-more"),
    ),
    filters=(Filter("m", "=", 100), Filter("m", "<", 300), Filter("m", "null"), Filter("m", "not", 100)),
)
AGAIN_ROWS = ((1, None), (2, None), (3, None), (4, 40))
AGAIN_FILTERS = (Filter("n", "=", 10), Filter("n", "<", 50), Filter("n", "null"), Filter("n", "not", 10))
DROP_ADD = feature(
    "schema-drop-and-add",
    "A column dropped, and another added by the same name",
    2,
    INTS,
    AGAIN_ROWS,
    (
        create(INTS, 2),
        insert(NAMES, *OLD),
        alter("DROP COLUMN n", change="drop", column="n"),
        Step(
            "add",
            {"*": "ALTER TABLE {table} ADD COLUMN n int", "trino": "ALTER TABLE {table} ADD COLUMN n integer"},
            on("alter", change="add", column="n", to="int"),
        ),
        insert(NAMES, (4, 40), name="insert-more"),
    ),
    filters=AGAIN_FILTERS,
    expect=(not_keeps_null("n", 1, 2, 3),),
)

RENAMED_ROWS = ((1, 10, None), (2, 20, None), (3, None, None), (4, 40, 5))
RENAMED_FILTERS = (
    Filter("m", "=", 10),
    Filter("m", "<", 30),
    Filter("m", "null"),
    Filter("n", "=", 10),
    Filter("n", "null"),
    Filter("n", "not", 6),
)
RENAME = feature(
    "schema-rename",
    "A column renamed, and its old name given to a new one",
    2,
    (("id", "int"), ("m", "int"), ("n", "int")),
    RENAMED_ROWS,
    (
        create(INTS, 2),
        insert(NAMES, *OLD),
        alter("RENAME COLUMN n TO m", change="rename", column="n", to="m"),
        Step(
            "add",
            {"*": "ALTER TABLE {table} ADD COLUMN n int", "trino": "ALTER TABLE {table} ADD COLUMN n integer"},
            on("alter", change="add", column="n", to="int"),
        ),
        insert(["id", "m", "n"], (4, 40, 5), name="insert-more"),
    ),
    filters=RENAMED_FILTERS,
    expect=(not_keeps_null("n", 1, 2, 3),),
)
REORDER = feature(
    "schema-reorder",
    "A column moved to the front",
    2,
    (("n", "int"), ("id", "int")),
    ((10, 1), (20, 2), (None, 3), (40, 4)),
    (
        create(INTS, 2),
        insert(NAMES, *OLD),
        alter("ALTER COLUMN n FIRST", "-", "-", change="first", column="n"),
        insert(["n", "id"], (40, 4), name="insert-more"),
    ),
    filters=(Filter("id", "=", 3), Filter("id", "<", 3), Filter("n", "null"), Filter("n", "not", 10)),
)
BIG = 3_000_000_000
PRECISE = 123456789.125  # more than a float holds
WIDEN = feature(
    "schema-widen",
    "An int become a long, a decimal longer",
    2,
    (("id", "int"), ("n", "long"), ("d", "decimal(12, 2)")),
    ((1, 10, Decimal("1.50")), (2, 20, Decimal("2.50")), (3, None, None), (4, BIG, Decimal("1234567890.25"))),
    (
        create((*INTS, ("d", "decimal(9, 2)")), 2),
        insert([*NAMES, "d"], (1, 10, Decimal("1.50")), (2, 20, Decimal("2.50")), (3, None, None)),
        alter(
            "ALTER COLUMN n TYPE bigint",
            "ALTER COLUMN n SET DATA TYPE bigint",
            "ALTER COLUMN n SET DATA TYPE bigint",
            change="widen",
            column="n",
            to="long",
        ),
        Step(
            "alter-decimal",
            {
                "spark": "ALTER TABLE {table} ALTER COLUMN d TYPE decimal(12,2)",
                "*": "ALTER TABLE {table} ALTER COLUMN d SET DATA TYPE decimal(12,2)",
            },
            on("alter", change="widen", column="d", to="decimal(12, 2)"),
        ),
        insert([*NAMES, "d"], (4, BIG, Decimal("1234567890.25")), name="insert-more"),
    ),
    source="trinodb/trino#29802; apache/iceberg#16343",
    expect=(
        LONGER_DECIMAL,
        Expect(
            Outcome.ERROR,
            "DuckDB annotates its integers in Parquet as INT(32, signed), which Iceberg's own writer leaves out; the "
            "vectorized reader then takes a vector of the column's new type for the file's old one. 1.12 takes the "
            "file's",
            generations="spark-3*,spark-4.0*,spark-4.1*1.11*",
            writers="duckdb-*",
            failure=Chain((("java.lang.ClassCastException", "BigIntVector cannot be cast to class"),)),
            at="whole",
            trap=Trap(
                "int-to-long",
                "A column that became a long can't be read from files in which it is an int",
                r"BigIntVector cannot be cast to class \S+IntVector",
                {
                    "spark-3.2*": "org.apache.iceberg.arrow.vectorized.VectorizedArrowReader."
                    "allocateVectorBasedOnOriginalType",
                    "spark-*": "org.apache.iceberg.arrow.vectorized.VectorizedArrowReader."
                    "allocateVectorBasedOnLogicalType",
                },
                remedy="SET spark.sql.iceberg.vectorization.enabled=false, or take Iceberg 1.12",
            ),
        ),
    ),
    filters=(
        Filter("n", "=", 20),
        Filter("n", ">", BIG - 1),
        Filter("n", "in", (10, BIG)),
        Filter("d", "<", Decimal("2.00")),
        Filter("d", "in", (Decimal("2.50"), Decimal("1234567890.25"))),
        Filter("n", "not", BIG),
    ),
)
FLOAT = feature(
    "schema-widen-float",
    "A float become a double",
    2,
    (("id", "int"), ("x", "double")),
    ((1, 0.5), (2, -2.25), (3, None), (4, PRECISE)),
    (
        create((("id", "int"), ("x", "float")), 2),
        insert(["id", "x"], (1, 0.5), (2, -2.25), (3, None)),
        alter(
            "ALTER COLUMN x TYPE double",
            "ALTER COLUMN x SET DATA TYPE double",
            "ALTER COLUMN x SET DATA TYPE double",
            change="widen",
            column="x",
            to="double",
        ),
        insert(["id", "x"], (4, PRECISE), name="insert-more"),
    ),
    filters=(
        Filter("x", "=", 0.5),
        Filter("x", "<", 0.0),
        Filter("x", ">", 1.0),
        Filter("x", "in", (0.25, PRECISE)),
        Filter("x", "null"),
        Filter("x", "not", 0.5),
    ),
    source="trinodb/trino#15650",
    expect=(
        Expect(
            Outcome.ERROR,
            "Trino holds a filter on the double against the statistics of a file in which it is a float, and takes "
            "those for doubles: it calls the file corrupt. Without a filter all is read",
            generations="trino-*",
            failure=Chain(
                (
                    ("io.trino.parquet.ParquetCorruptionException", "Corrupted statistics for column"),
                    ("java.lang.ClassCastException", "class java.lang.Float cannot be cast to class java.lang.Double"),
                )
            ),
            at="filters",
            trap=Trap(
                "trino-float-to-double",
                "Trino calls a file corrupt when a column that became a double is filtered",
                r"Corrupted statistics for column|class java\.lang\.Float cannot be cast to class java\.lang\.Double",
                "io.trino.parquet.predicate.TupleDomainParquetPredicate.getDomain",
                remedy="have the files written anew: OPTIMIZE in Trino, rewrite_data_files with rewrite-all in Spark",
            ),
        ),
    ),
)
STRUCT = {
    "spark": "id int, s struct<x: int>",
    "trino": "id integer, s row(x integer)",
    "duckdb": "id int, s struct(x int)",
}
NESTED_ROWS = ((1, {"y": None}), (2, {"y": None}), (3, None), (4, {"y": 7}))
NESTED_FILTERS = (
    Filter("s.y", "=", 7),
    Filter("s.y", "<", 9),
    Filter("s.y", "null"),
    Filter("s.y", "not", 1),
    Filter("s", "null"),
    Filter("s", "not null"),
)
MISSING = Wrongly(
    "a struct none of whose fields a file has is left out of what is read of the file, and comes back as null, as if "
    "the row had none; its one field is null, the struct is not. 1.12 reads it right",
    "spark-3*,spark-4.0*,spark-4.1*1.11*,trino-*",
    Trap(
        "struct-of-new-fields",
        "A struct comes back as null where a file has none of its fields",
        "",
        {
            "spark-*": "org.apache.iceberg.parquet.PruneColumns.struct",
            "trino-*": "io.trino.plugin.iceberg.IcebergParquetColumnIOConverter.constructField",
        },
        remedy="keep one field of each struct for ever, or read with Iceberg 1.12 or DuckDB",
    ),
    seen=((1, None), (2, None), (3, None), (4, {"y": 7})),
)

NESTED = feature(
    "schema-nested",
    "A struct's field added, another dropped",
    2,
    (("id", "int"), ("s", "struct<y: int>")),
    NESTED_ROWS,
    (
        create((), 2, words=STRUCT),
        Step(
            "insert",
            {
                "spark": "INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, named_struct('x', 1)), "
                "(2, named_struct('x', 2)), (3, NULL) AS v(id, s)",
                "trino": "INSERT INTO {table} VALUES (1, row(1)), (2, row(2)), (3, NULL)",
                "duckdb": "INSERT INTO {table} VALUES (1, {'x': 1}), (2, {'x': 2}), (3, NULL)",
            },
        ),
        alter("ADD COLUMN s.y int", "ADD COLUMN s.y integer"),
        Step("drop", "ALTER TABLE {table} DROP COLUMN s.x"),
        Step(
            "insert-more",
            {
                "spark": "INSERT INTO {table} VALUES (4, named_struct('y', 7))",
                "trino": "INSERT INTO {table} VALUES (4, row(7))",
                "duckdb": "INSERT INTO {table} VALUES (4, {'y': 7})",
            },
        ),
    ),
    source="trinodb/trino#15822",
    filters=NESTED_FILTERS,
    expect=(not_keeps_null("s.y", 1, 2, 3), MISSING),
)
