"""A table as it was: by a snapshot's id, by time, by branch and by tag; and a view over it."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.pairs.feature import create, feature, insert, on
from lab.behaviours.pairs.filters import Filter
from lab.model import Call, Step, Truth

INTS = (("id", "int"), ("n", "int"))
NAMES = ["id", "n"]
FIRST = ((1, 10), (2, 20))
AFTER = insert(NAMES, (3, 30), name="insert-more")
MADE = (create(INTS, 2), insert(NAMES, *FIRST))


def _at(rows: Truth, trino: str, spark: str, duckdb: str = "", call: Call | None = None) -> Step:
    """The reader's SELECT of an earlier state."""
    sql = {"trino": f"SELECT * FROM {trino}", "spark": f"SELECT * FROM {spark}"}
    if duckdb:
        sql["duckdb"] = f"SELECT * FROM {duckdb}"
    return Step("whole", sql, call, truth=rows, second=True)


BY_ID = feature(
    "travel-by-id",
    "The table as of a snapshot's id",
    2,
    INTS,
    FIRST,
    (*MADE, AFTER),
    whole=_at(
        FIRST,
        "{table} FOR VERSION AS OF {filled}",
        "{table} VERSION AS OF {filled}",
        "{table} AT (VERSION => {filled})",
        on("scan", snapshot="{filled}"),
    ),
)
BY_TIME = feature(
    "travel-by-time",
    "The table as of a time",
    2,
    INTS,
    FIRST,
    (*MADE, AFTER),
    whole=_at(
        FIRST,
        "{table} FOR TIMESTAMP AS OF TIMESTAMP '{filled_at} UTC'",
        "{table} TIMESTAMP AS OF '{filled_at}'",
        "{table} AT (TIMESTAMP => TIMESTAMP '{filled_at}')",
    ),
)
BY_TAG = feature(
    "travel-by-tag",
    "The table as of a tag",
    2,
    INTS,
    FIRST,
    (
        *MADE,
        Step("tag", {"spark": "ALTER TABLE {table} CREATE TAG old"}, on("set_ref", ref="old", kind="tag")),
        AFTER,
    ),
    whole=_at(
        FIRST,
        "{table} FOR VERSION AS OF 'old'",
        "{table} VERSION AS OF 'old'",
        "{table} AT (VERSION => 'old')",
        on("scan", ref="old"),
    ),
)
BRANCHED = (*FIRST, (4, 40))
BY_BRANCH = feature(
    "travel-by-branch",
    "A branch with rows of its own",
    2,
    INTS,
    BRANCHED,
    (
        *MADE,
        Step("branch", {"spark": "ALTER TABLE {table} CREATE BRANCH audit"}, on("set_ref", ref="audit", kind="branch")),
        Step(
            "insert-branch",
            {"spark": "INSERT INTO {table}.branch_audit VALUES (4, 40)"},
            on("append", rows=[{"id": 4, "n": 40}], branch="audit"),
        ),
        AFTER,
    ),
    whole=_at(
        BRANCHED,
        "{table} FOR VERSION AS OF 'audit'",
        "{table} VERSION AS OF 'audit'",
        "{table} AT (VERSION => 'audit')",
        on("scan", ref="audit"),
    ),
)
SEEN = ((2, 20), (3, 30))
VIEW = feature(
    "view",
    "A view over the table",
    2,
    INTS,
    SEEN,
    (
        *MADE,
        AFTER,
        Step(
            "view",
            dict.fromkeys(
                ("spark", "trino", "duckdb"),
                "CREATE VIEW lab.{namespace}.seen AS SELECT id, n FROM {table} WHERE n > 10",
            ),
        ),
    ),
    whole=Step(
        "whole",
        dict.fromkeys(("spark", "trino", "duckdb"), "SELECT * FROM lab.{namespace}.seen"),
        truth=SEEN,
        second=True,
    ),
)
WIDENED = feature(
    "view-widened",
    "A view over a column that became wider",
    2,
    (("id", "int"), ("n", "long")),
    ((1, 289371988312),),
    (
        create(INTS, 2),
        Step(
            "view", dict.fromkeys(("spark", "trino"), "CREATE VIEW lab.{namespace}.seen AS SELECT id, n FROM {table}")
        ),
        Step(
            "widen",
            {
                "spark": "ALTER TABLE {table} ALTER COLUMN n TYPE bigint",
                "trino": "ALTER TABLE {table} ALTER COLUMN n SET DATA TYPE bigint",
            },
        ),
        insert(NAMES, (1, 289371988312)),
    ),
    source="trinodb/trino#30954",
    whole=replace(VIEW.steps[-1], truth=((1, 289371988312),)),
)
MANY = tuple((id, f"{'even' if id % 2 == 0 else 'odd'}-{id % 5}") for id in range(1, 21))
TEXTS = (("id", "int"), ("v", "string"))
ON_TEXTS = (
    Filter("v", "=", "even-4"),
    Filter("v", "=", "none"),
    Filter("v", "in", ("odd-1", "even-2")),
    Filter("v", "in", ("none", "even-0")),
    Filter("v", "not", "odd-1"),
    Filter("v", "like", "even"),
)
STATISTICS = feature(
    "statistics",
    "Statistics of a table, as its engine analyses it",
    2,
    TEXTS,
    MANY,
    (
        create(TEXTS, 2),
        insert(["id", "v"], *MANY),
        Step(
            "analyze",
            {
                "spark": "CALL lab.system.compute_table_stats(table => '{namespace}.{table_name}')",
                "trino": "ANALYZE {table}",
            },
        ),
    ),
    filters=ON_TEXTS,
)
BLOOM = "write.parquet.bloom-filter-enabled.column.v"
_made = create(TEXTS, 2, properties={BLOOM: "true"}).sql
assert not isinstance(_made, str)
BLOOM_FILTER = feature(
    "bloom-filter",
    "A bloom filter in the data file",
    2,
    TEXTS,
    MANY,
    (
        Step(
            "create",
            {
                "spark": _made["spark"],
                "trino": _made["trino"].replace("WITH (", "WITH (parquet_bloom_filter_columns = ARRAY['v'], "),
            },
        ),
        insert(["id", "v"], *MANY),
    ),
    source="apache/iceberg#12458",
    filters=ON_TEXTS,
)
