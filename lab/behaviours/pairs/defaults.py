"""A column that is younger than some data files, and has a default for their rows."""

from __future__ import annotations

from lab.behaviours.pairs.feature import create, feature, insert
from lab.behaviours.pairs.filters import Filter
from lab.model import Step

BEFORE = (("id", "int"),)
COLUMNS = (("id", "int"), ("c", "string"))
ROWS = ((1, "US"), (2, "US"))

STRING = feature(
    "default-string",
    "A string column added with a default, filtered",
    3,
    COLUMNS,
    ROWS,
    (
        create(BEFORE, 3),
        insert(["id"], (1,)),
        Step(
            "add",
            {
                "trino": "ALTER TABLE {table} ADD COLUMN c varchar DEFAULT 'US'",
                "duckdb": "ALTER TABLE {table} ADD COLUMN c varchar DEFAULT 'US'",
            },
        ),
        insert(["id", "c"], (2, "US"), name="insert-more"),
    ),
    source="apache/iceberg#16690",
    new=("c",),
    filters=(
        Filter("c", "=", "US"),
        Filter("c", "<", "Z"),
        Filter("c", "in", ("US", "DE")),
        Filter("c", "null"),
        Filter("c", "not", "DE"),
        Filter("c", "like", "U"),
    ),
    pairs=(("duckdb-*", "*"),),
)
