"""Rows taken away beside their data files: by position, by equality, by a vector."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.pairs.feature import create, feature, insert, on
from lab.behaviours.pairs.filters import Filter
from lab.behaviours.pairs.known import DELETE_PATHS, DROPPED_COLUMN_TRINO, NO_EQUALITY, NO_VECTORS, dropped_column
from lab.behaviours.t_known import gap, trino_476
from lab.behaviours.t_lineage import OLD_LIBRARY
from lab.model import DataFile, DeleteFile, Step

INTS = (("id", "int"), ("n", "int"))
NAMES = ["id", "n"]
ROWS = tuple((id, id * 10) for id in range(1, 9))
LEFT = tuple(row for row in ROWS if row[0] not in (2, 7))
MERGE_ON_READ = {f"write.{mode}.mode": "merge-on-read" for mode in ("delete", "update", "merge")}
FILTERS = (
    Filter("n", "=", 20),
    Filter("n", "<", 40),
    Filter("n", "in", (20, 30, 70)),
    Filter("n", "null"),
    Filter("n", "not", 30),
)
DELETE = Step("delete", "DELETE FROM {table} WHERE id IN (2, 7)")
FILES = (DataFile(rows=ROWS[:4]), DataFile(rows=ROWS[4:]))


def _made(version: int, *steps: Step) -> tuple[Step, ...]:
    return (
        create(INTS, version, properties=MERGE_ON_READ),
        insert(NAMES, *ROWS[:4]),
        insert(NAMES, *ROWS[4:], name="insert-more"),
        *steps,
    )


POSITION = feature(
    "position-deletes",
    "Position deletes of two data files, on v2",
    2,
    INTS,
    LEFT,
    _made(2, DELETE),
    filters=FILTERS,
    expect=(DELETE_PATHS,),
)
VECTORS = feature(
    "deletion-vectors",
    "Deletion vectors of two data files by one DELETE, in one Puffin file or two",
    3,
    INTS,
    LEFT,
    _made(3, DELETE),
    source="duckdb-iceberg#1182",
    expect=(NO_VECTORS,),
    filters=FILTERS,
)
VECTOR_AGAIN = feature(
    "deletion-vector-grown",
    "A second DELETE from the same data file, whose vector takes in the first",
    3,
    INTS,
    tuple(row for row in LEFT if row[0] not in (1, 8)),
    _made(3, DELETE, Step("delete-more", "DELETE FROM {table} WHERE id IN (1, 8)")),
    expect=(NO_VECTORS,),
    filters=FILTERS,
)
UPGRADED = feature(
    "upgraded-with-deletes",
    "v2 with position deletes, upgraded to v3, then deleted from",
    3,
    INTS,
    tuple(row for row in LEFT if row[0] != 8),
    _made(
        2,
        DELETE,
        Step(
            "upgrade",
            {
                "spark": "ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='3')",
                "trino": "ALTER TABLE {table} SET PROPERTIES format_version = 3",
            },
        ),
        Step("delete-more", "DELETE FROM {table} WHERE id = 8"),
    ),
    cannot=(
        gap(
            "spark-3.2*",
            "Iceberg 1.4 knows format versions up to 2, and upgrades to no other",
            OLD_LIBRARY,
            ("java.lang.IllegalArgumentException", "Cannot upgrade table to unsupported format version: v3"),
            at="upgrade",
        ),
        replace(trino_476(), at="upgrade"),
    ),
    expect=(DELETE_PATHS, NO_VECTORS),
    filters=FILTERS,
)
EQUALITY = feature(
    "equality-deletes",
    "An equality delete, on v2",
    2,
    INTS,
    LEFT,
    files=(*FILES, DeleteFile("equality-delete", columns=("id",), keys=((2,), (7,)))),
    expect=(NO_EQUALITY,),
    filters=FILTERS,
)
EQUALITY_EXTRA = feature(
    "equality-deletes-extra-columns",
    "An equality delete by one column whose file has others too",
    2,
    INTS,
    LEFT,
    files=(*FILES, DeleteFile("equality-delete", columns=("id", "n"), keys=((2, 999), (7, None)), equal=("id",))),
    source="duckdb-iceberg#1217",
    expect=(NO_EQUALITY,),
    filters=FILTERS,
)
NULLS = ((1, 10), (2, None), (3, 30), (4, None), (5, 50))
EQUALITY_NULL = feature(
    "equality-deletes-null-key",
    "An equality delete of null, which takes the rows that have null",
    2,
    INTS,
    ((1, 10), (5, 50)),
    files=(DataFile(rows=NULLS), DeleteFile("equality-delete", columns=("n",), keys=((None,), (30,)))),
    source="duckdb-iceberg#491",
    expect=(NO_EQUALITY,),
    filters=(Filter("n", "null"), Filter("n", "=", 30), Filter("n", "<", 50), Filter("n", "not", 10)),
)
EQUALITY_DROPPED = feature(
    "equality-deletes-dropped-column",
    "An equality delete by a column that was dropped after it",
    2,
    INTS,
    LEFT,
    (Step("drop", call=on("alter", change="drop", column="m")),),
    files=(
        DataFile(rows=tuple((*row, row[0]) for row in ROWS[:4])),
        DataFile(rows=tuple((*row, row[0]) for row in ROWS[4:])),
        DeleteFile("equality-delete", columns=("m",), keys=((2,), (7,))),
    ),
    table={"columns": (*INTS, ("m", "int")), "rows": tuple((*row, row[0]) for row in LEFT)},
    expect=(
        NO_EQUALITY,
        dropped_column(
            "spark-3.2*",
            "Iceberg 1.4 looks for the deletes' columns in the table's schema alone, and the column is gone from it",
            "java.lang.IllegalArgumentException",
            "Cannot find required field for ID 3",
        ),
        dropped_column(
            "spark-3.5*,spark-4.0*,trino-476",
            "Iceberg 1.10 compares the bounds of the deletes with the file's, by a field of the current schema that is "
            "not there: planning fails. 1.11 looks into earlier schemas",
            "java.lang.NullPointerException",
            'Types$NestedField.type()" because "field" is null',
        ),
        dropped_column(
            "trino-483",
            "Trino 483 plans the scan, and then makes a column of its own of a field that is not in the schema",
            "java.lang.NullPointerException",
            'Types$NestedField.fieldId()" because "column" is null',
            DROPPED_COLUMN_TRINO,
        ),
        dropped_column(
            "duckdb-*",
            "DuckDB's optimizer counts a column more than the table has: an internal error",
            "_duckdb.InternalException",
            "Attempted to access index 3 within vector of size 3",
        ),
    ),
    source="apache/iceberg#15268",
    filters=FILTERS,
)
