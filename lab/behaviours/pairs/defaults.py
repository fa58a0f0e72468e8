"""A column that is younger than some data files, and has a default for their rows."""

from __future__ import annotations

from decimal import Decimal

from lab.behaviours.pairs.feature import create, feature, insert
from lab.behaviours.pairs.filters import Filter
from lab.model import Step

BEFORE = (("id", "int"),)


def _add(column: str, kind: str, value: str) -> Step:
    """Spark refuses it, and PyIceberg has no words for it."""
    said = f"ALTER TABLE {{table}} ADD COLUMN {column} {kind} DEFAULT {value}"
    return Step("add", {"trino": said, "duckdb": said, "spark": said})


STRING = feature(
    "default-string",
    "A string column added with a default, filtered",
    3,
    (("id", "int"), ("c", "string")),
    ((1, "US"), (2, "US")),
    (
        create(BEFORE, 3),
        insert(["id"], (1,)),
        Step("add", dict.fromkeys(("trino", "duckdb"), "ALTER TABLE {table} ADD COLUMN c varchar DEFAULT 'US'")),
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
NUMBER = feature(
    "default-number",
    "An integer column added with a default, filtered",
    3,
    (("id", "int"), ("k", "int")),
    ((1, 7), (2, 7), (3, None)),
    (
        create(BEFORE, 3),
        insert(["id"], (1,)),
        _add("k", "integer", "7"),
        insert(["id", "k"], (2, 7), (3, None), name="insert-more"),
    ),
    source="apache/iceberg#16690",
    new=("k",),
    filters=(
        Filter("k", "=", 7),
        Filter("k", "<", 8),
        Filter("k", "in", (7, 9)),
        Filter("k", "null"),
        Filter("k", "not null"),
        Filter("k", "not", 9),
    ),
)
DECIMAL = feature(
    "default-decimal",
    "A decimal column added with a default, not filtered",
    3,
    (("id", "int"), ("d", "decimal(9, 2)")),
    ((1, Decimal("1.50")), (2, Decimal("2.50"))),
    (
        create(BEFORE, 3),
        insert(["id"], (1,)),
        _add("d", "decimal(9,2)", "1.50"),
        insert(["id", "d"], (2, Decimal("2.50")), name="insert-more"),
    ),
    source="apache/iceberg#16501",
    new=("d",),
)
WRITE = feature(
    "default-changed",
    "A default changed after the column was added: old rows keep the first, new ones get the second",
    3,
    (("id", "int"), ("k", "int")),
    ((1, 7), (2, 8), (3, 9)),
    (
        create(BEFORE, 3),
        insert(["id"], (1,)),
        _add("k", "integer", "7"),
        Step("set", "ALTER TABLE {table} ALTER COLUMN k SET DEFAULT 8"),
        Step("insert-bare", "INSERT INTO {table} (id) VALUES (2)"),
        insert(["id", "k"], (3, 9), name="insert-more"),
    ),
    new=("k",),
    filters=(
        Filter("k", "=", 7),
        Filter("k", "=", 8),
        Filter("k", "in", (7, 9)),
        Filter("k", "null"),
        Filter("k", "not null"),
        Filter("k", "not", 7),
    ),
)
