"""A table as it was: by a snapshot's id, by time, by branch and by tag; and a view over it."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.h_case import IN_ANOTHER_CASE
from lab.behaviours.pairs.feature import create, feature, insert, on
from lab.behaviours.pairs.filters import Filter
from lab.behaviours.t_known import gap
from lab.model import Call, Chain, Expect, Outcome, Step, Trap, Truth

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


NO_TRAVEL = gap(
    "spark-3.2*",
    "Spark has VERSION AS OF and TIMESTAMP AS OF since 3.3",
    Trap(
        "spark-no-time-travel",
        "Spark 3.2 has no words to travel in time",
        r"mismatched input 'AS' expecting",
        "org.apache.spark.sql.catalyst.parser.ParseException.withCommand",
        remedy='read it with spark.read.option("snapshot-id", …).table(…), or take Spark 3.3',
    ),
    ("ParseException", "mismatched input 'AS' expecting"),
    at="whole",
)
NO_REFS = gap(
    "duckdb-*",
    "DuckDB's AT takes a snapshot's id or a time",
    Trap(
        "duckdb-no-refs",
        "DuckDB reads no branch or tag by its name",
        r"Could not convert string '\w+' to INT64",
        "duckdb::IcebergSnapshotLookup::FromAtClause",
        remedy="take the id that the branch or tag leads to, from Spark's or Trino's table of refs",
    ),
    ("_duckdb.InvalidInputException", "to INT64"),
    at="whole",
)
NO_BRANCH = gap(
    "spark-3.2*",
    "Iceberg 1.4 makes branches on Spark 3.2, and writes into none there",
    Trap(
        "spark-no-branch-writes",
        "Spark 3.2 doesn't write into a branch",
        r"Table not found: \S+\.branch_",
        "org.apache.iceberg.spark.SparkCatalog.loadTable",
        remedy="take Spark 3.3 or newer",
    ),
    ("org.apache.spark.sql.AnalysisException", ".branch_audit"),
    at="insert-branch",
)
NO_PROCEDURE = gap(
    "spark-3.2*",
    "Iceberg has the procedure since 1.7",
    Trap(
        "spark-no-statistics",
        "An old Iceberg computes no statistics",
        r"Procedure system\.compute_table_stats not found",
        "org.apache.iceberg.spark.procedures.SparkProcedures.newBuilder",
        remedy="take a newer one, or ANALYZE with Trino",
    ),
    ("NoSuchProcedureException", "Procedure system.compute_table_stats not found"),
    at="analyze",
)
NO_VIEW_MADE = (
    gap(
        "duckdb-*",
        "DuckDB makes views in its own files alone",
        Trap(
            "duckdb-no-view",
            "DuckDB makes no view in an Iceberg catalog",
            r"Not implemented Error: Create View",
            "duckdb::IcebergSchemaEntry::CreateView",
            remedy="make it with Spark or Trino; DuckDB does not read it either",
        ),
        ("_duckdb.NotImplementedException", "Create View"),
        at="view",
    ),
    gap(
        "spark-3.2*",
        "Spark has views in catalogs since 3.4",
        Trap(
            "spark-no-view",
            "Spark 3.2 makes no view in an Iceberg catalog",
            r"CREATE VIEW is only supported with v1 tables",
            "org.apache.spark.sql.errors.QueryCompilationErrors$.sqlOnlySupportedWithV1TablesError",
            remedy="take Spark 3.4 or newer",
        ),
        ("org.apache.spark.sql.AnalysisException", "CREATE VIEW is only supported with v1 tables."),
        at="view",
    ),
)
NO_VIEW_READ = (
    Expect(
        Outcome.ERROR,
        "DuckDB asks an Iceberg catalog for tables alone, and takes a view for a misspelt one",
        generations="duckdb-*",
        failure=Chain((("_duckdb.CatalogException", "_seen does not exist!"),)),
        at="whole",
        trap=IN_ANOTHER_CASE,
    ),
    Expect(
        Outcome.ERROR,
        "Spark 3.2 asks a catalog for tables alone, and takes a view for a misspelt one",
        generations="spark-3.2*",
        failure=Chain((("org.apache.spark.sql.AnalysisException", "Table or view not found: lab."),)),
        at="whole",
        trap=IN_ANOTHER_CASE,
    ),
    Expect(
        Outcome.NOT_SUPPORTED,
        "a view is stored as SQL text of a dialect, and Trino reads none but its own; Spark tries any",
        generations="trino-*",
        writers="spark-*",
        failure=Chain((("io.trino.spi.TrinoException", "Cannot read unsupported dialect 'spark'"),)),
        at="whole",
        trap=Trap(
            "trino-view-dialect",
            "Trino reads no view that Spark has made",
            r"Cannot read unsupported dialect 'spark'",
            "io.trino.plugin.iceberg.catalog.rest.TrinoRestCatalog.getView",
            remedy="make the view with Trino: Spark 3.4 and newer read it as long as its SQL is Spark's too",
        ),
    ),
)
STALE = (
    Expect(
        Outcome.ERROR,
        "Spark stores a view with the types of its columns, and casts to no narrower one: it says so",
        generations="spark-*",
        failure=Chain((("AnalysisException", "[CANNOT_UP_CAST_DATATYPE]"),)),
        at="whole",
        trap=Trap(
            "spark-view-stale",
            "Spark refuses a view over a column that has become wider",
            r"\[CANNOT_UP_CAST_DATATYPE\]",
            "org.apache.spark.sql.errors.QueryCompilationErrors$.upCastFailureError",
            remedy="make the view anew",
        ),
    ),
    Expect(
        Outcome.ERROR,
        "Trino 476 compares the view's types with the table's, and says that the view is stale",
        generations="trino-476",
        failure=Chain((("io.trino.spi.TrinoException", "is stale or in invalid state"),)),
        at="whole",
        trap=Trap(
            "trino-view-stale",
            "Trino refuses a view over a column that has become wider",
            r"View '\S+' is stale or in invalid state",
            "io.trino.sql.analyzer.StatementAnalyzer$Visitor.checkViewStaleness",
            remedy="make the view anew",
        ),
    ),
    Expect(
        Outcome.ERROR,
        "Trino 483 casts the wider column to the view's type, and fails at the first value that does not fit: as long "
        "as all do, the view works (trinodb/trino#30954)",
        generations="trino-483",
        failure=Chain((("io.trino.spi.TrinoException", "Out of range for integer: "),)),
        at="whole",
        trap=Trap(
            "trino-view-narrow",
            "A view over a column that has become wider fails at the first large value",
            r"Out of range for integer: ",
            "io.trino.type.BigintOperators.castToInteger",
            remedy="make the view anew",
        ),
    ),
)
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
    expect=(NO_TRAVEL,),
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
    expect=(NO_TRAVEL,),
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
    expect=(NO_TRAVEL, NO_REFS),
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
    cannot=(NO_BRANCH,),
    expect=(NO_TRAVEL, NO_REFS),
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
                "CREATE VIEW {table}_seen AS SELECT id, n FROM {table} WHERE n > 10",
            ),
        ),
    ),
    whole=Step(
        "whole",
        dict.fromkeys(("spark", "trino", "duckdb"), "SELECT * FROM {table}_seen"),
        truth=SEEN,
        second=True,
    ),
    cannot=NO_VIEW_MADE,
    expect=NO_VIEW_READ,
)
WIDENED = feature(
    "view-widened",
    "A view over a column that became wider",
    2,
    (("id", "int"), ("n", "long")),
    ((1, 289371988312),),
    (
        create(INTS, 2),
        Step("view", dict.fromkeys(("spark", "trino"), "CREATE VIEW {table}_seen AS SELECT id, n FROM {table}")),
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
    cannot=NO_VIEW_MADE,
    expect=(*NO_VIEW_READ, *STALE),
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
    cannot=(NO_PROCEDURE,),
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
