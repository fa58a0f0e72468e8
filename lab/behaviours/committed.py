"""Files committed as they are, through Iceberg's own API: what no SQL of these engines writes, and who reads it."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.known import DEFAULT_OVERLOOKED, MUST_BE_NAMED, PYICEBERG_NO_V3_WRITE, SPARK_3_2_NO_V3
from lab.behaviours.orders_steps import read
from lab.model import Behaviour, Call, Chain, Expect, Outcome, Step, Table, Trap
from lab.tables import orders
from lab.tables.orders import order
from lab.tables.theta import BLOB

NAMESPACE = "COMMITTED"
READ = Expect(Outcome.WORKS, "part of the specification of that version, and read")


def _reads(id: str, title: str, table: Table, *expect: Expect, steps: tuple[Step, ...] = ()) -> Behaviour:
    return Behaviour(
        id=id,
        title=title,
        source="the lab's own question",
        document=None,
        table=table,
        namespace=NAMESPACE,
        steps=steps or (read(table),),
        expect=(*expect, READ),
        tags=("committed", f"v{table.format_version}", "read"),
    )


PYICEBERG_NO_EQUALITY_DELETES = Expect(
    Outcome.NOT_SUPPORTED,
    "PyIceberg refuses to plan a scan in which an equality delete stands (ManifestGroupPlanner.plan_files)",
    generations="pyiceberg-*",
    failure=Chain((("ValueError", "PyIceberg does not yet support equality deletes"),)),
    trap=Trap(
        "pyiceberg-equality-deletes",
        "PyIceberg reads no table that has an equality delete",
        r"PyIceberg does not yet support equality deletes",
        "pyiceberg.table.ManifestGroupPlanner.plan_files",
        remedy="have an engine that reads them rewrite the table: CALL lab.system.rewrite_data_files in Spark",
    ),
)
TRINO_476_NO_VECTORS = Expect(
    Outcome.NOT_SUPPORTED,
    "Trino 476 takes a v3 table until it meets a deletion vector, whose Puffin file it can't open",
    generations="trino-476",
    failure=Chain(
        (
            ("ICEBERG_BAD_DATA", "Unexpected PUFFIN file format"),
            ("java.lang.IllegalArgumentException", "Unexpected PUFFIN file format"),
        )
    ),
    trap=Trap(
        "trino-deletion-vector",
        "Trino finds a Puffin file where it expects a delete file",
        r"Unexpected PUFFIN file format",
        "io.trino.plugin.iceberg.IcebergPageSourceProvider.openDeletes",
        remedy="read with Trino 483, or have the writer copy on write so that no deletion vector arises",
    ),
)

POSITION = _reads("F-position-delete", "A position delete file on v2", orders.POSITIONED_V2)
EQUALITY = _reads(
    "F-equality-delete",
    "An equality delete on v2",
    orders.KEYED_V2,
    PYICEBERG_NO_EQUALITY_DELETES,
)
VECTOR = _reads(
    "F-deletion-vector",
    "A deletion vector on v3",
    orders.DELETED_V3,
    SPARK_3_2_NO_V3,
    TRINO_476_NO_VECTORS,
)
DEFAULT = _reads(
    "F-default",
    "An initial default that fills in a missing column",
    orders.DEFAULTED_V3,
    SPARK_3_2_NO_V3,
    Expect(
        Outcome.SILENTLY_WRONG,
        "Trino 476 takes a v3 table and overlooks the column's initial default: rows of files without the column come "
        "back as null, without a word",
        generations="trino-476",
        rows={"read": tuple((*row[:5], None) for row in orders.DEFAULTED_V3.rows)},
        trap=DEFAULT_OVERLOOKED,
    ),
)


ORDER_IDS = {"namespace": "{namespace}", "table": "{table_name}", "columns": ["ORDER_ID"]}
ALL = Step("read", "SELECT ORDER_ID FROM {table}", Call("scan", ORDER_IDS), truth=((1,), (2,), (3,)))


def _filtered(name: str, where: str, filter: str, *ids: int) -> Step:
    """The ORDER_IDs that a filter leaves, in SQL and in PyIceberg's grammar."""
    sql = f"SELECT ORDER_ID FROM {{table}} WHERE {where}"
    return Step(name, sql, Call("scan", {**ORDER_IDS, "filter": filter}), truth=tuple((id,) for id in ids))


def _metrics(column: str) -> Step:
    return Step("metrics", look=f"metrics:{column}", always=True)


METRICS_WRONG = Trap(
    "metrics-wrong",
    "A filter finds no row that is there without it",
    "",
    {
        "spark-*,trino-*": "org.apache.iceberg.expressions.InclusiveMetricsEvaluator.eval",
        "pyiceberg-*": "pyiceberg.expressions.visitors._InclusiveMetricsEvaluator.eval",
        "duckdb-*": "duckdb::IcebergPredicate::MatchBounds",
    },
    remedy="have the files written anew, with metrics of their own, by an engine that reads them without a filter: "
    "CALL lab.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true')) in Spark; then mend "
    "the writer that told what is not so",
)
LAST = _filtered("read-last", "ORDER_ID = 3", "ORDER_ID == 3", 3)
NULL = _filtered("read-null", "WRITTEN_BY IS NULL", "WRITTEN_BY is null", 2)
NOT_NULL = _filtered("read-not-null", "WRITTEN_BY IS NOT NULL", "WRITTEN_BY is not null", 1, 3)
BOUNDS = _reads(
    "F-bounds",
    "Bounds in the manifest, and filters at their very edges",
    orders.BOUNDED_V2,
    replace(READ, facts={"metrics.lowest": [1, 2, 3], "metrics.highest": [1, 2, 3]}),
    steps=(
        LAST,
        _filtered("read-2", "PRODUCT = 'keyboard'", "PRODUCT == 'keyboard'", 1),
        _filtered("read-3", "UNIT_PRICE >= 32000.00", "UNIT_PRICE >= 32000.00", 3),
        _filtered("read-4", "ORDERED_AT <= TIMESTAMP '2026-07-01 09:00:00'", "ORDERED_AT <= '2026-07-01T09:00:00'", 1),
        _filtered("read-5", "QUANTITY > 5", "QUANTITY > 5"),
        _metrics("ORDER_ID"),
    ),
)
MISBOUNDS = _reads(
    "F-bounds-wrong",
    "Bounds that are wrong, and who goes by them",
    orders.MISBOUNDED_V2,
    Expect(
        Outcome.SILENTLY_WRONG,
        "goes by the bounds in the manifest, as the specification lets it: a file that can't hold what is asked for is "
        "not opened, so that wrong bounds lose its rows without a word",
        rows={"read-last": ()},
        facts={"metrics.lowest": [1, 2, 1], "metrics.highest": [1, 2, 1]},
        trap=METRICS_WRONG,
    ),
    steps=(ALL, LAST, _metrics("ORDER_ID")),
)
NULL_COUNTS = _reads(
    "F-null-counts",
    "Counts of nulls in the manifest, and filters on null",
    orders.COUNTED_V2,
    replace(READ, facts={"metrics.nulls": [0, 1, 0]}),
    steps=(NULL, NOT_NULL, _metrics("WRITTEN_BY")),
)
MISCOUNTS = _reads(
    "F-null-counts-wrong",
    "Counts of nulls that are wrong, and who goes by them",
    orders.MISCOUNTED_V2,
    Expect(
        Outcome.WORKS,
        "DuckDB 1.5 skips a file for its bounds and never for its count of nulls, so that a wrong one does no harm",
        generations="duckdb-*",
        facts={"metrics.nulls": [0, 0, 1]},
    ),
    Expect(
        Outcome.SILENTLY_WRONG,
        "goes by the counts of nulls in the manifest, as the specification lets it: a file said to hold none, or "
        "nothing else, is not opened, so that wrong counts lose its rows without a word",
        rows={"read-null": (), "read-not-null": ((1,),)},
        facts={"metrics.nulls": [0, 0, 1]},
        trap=METRICS_WRONG,
    ),
    steps=(ALL, NULL, NOT_NULL, _metrics("WRITTEN_BY")),
)

STATISTICS = _reads(
    "F-statistics",
    "Statistics of the table and of its partitions, and who goes by them",
    orders.TOLD_V2,
    replace(
        READ,
        facts={
            "statistics.blobs": [[BLOB, "ORDER_ID", 4, 4], [BLOB, "QUANTITY", 2, 3]],
            "statistics.partitions": [2],
        },
    ),
    steps=(
        read(orders.TOLD_V2),
        Step(
            "show",
            {"trino": "SHOW STATS FOR (SELECT QUANTITY FROM {table})"},
            truth=(("QUANTITY", None, 2.0, 0.0, None, None, None), (None, None, None, None, 4.0, None, None)),
            optional=True,
        ),
        Step("statistics", look="statistics", always=True),
    ),
)

NEW = order(111, "desk-mat", 1, "2200.00", "2026-07-02 11:10", "somebody")
WRITE_DEFAULT = replace(
    _reads(
        "F-write-default",
        "An INSERT without the column whose default has changed",
        orders.REDEFAULTED_V3,
        SPARK_3_2_NO_V3,
        PYICEBERG_NO_V3_WRITE,
        Expect(
            Outcome.SILENTLY_WRONG,
            "Trino 476 takes a v3 table and overlooks both defaults of the column: null in old rows and in new ones",
            generations="trino-476",
            rows={"read": tuple((*row[:5], None) for row in (*orders.REDEFAULTED_V3.rows, NEW))},
            trap=DEFAULT_OVERLOOKED,
        ),
        Expect(
            Outcome.NOT_SUPPORTED,
            "before 4.1 an INSERT gives a value for every column, and Iceberg tells Spark of no default",
            generations="spark-3.5*,spark-4.0*",
            at="insert",
            failure=Chain((("AnalysisException", "Cannot find data for the output column `WRITTEN_BY`"),)),
            trap=MUST_BE_NAMED,
        ),
        steps=(
            Step(
                "insert",
                "INSERT INTO {table} (ORDER_ID, PRODUCT, QUANTITY, UNIT_PRICE, ORDERED_AT) "
                "VALUES (111, 'desk-mat', 1, 2200.00, TIMESTAMP '2026-07-02 11:10:00')",
                Call(
                    "append",
                    {
                        "namespace": "{namespace}",
                        "table": "{table_name}",
                        "rows": [{name: v for (name, _), v in zip(orders.COLUMNS, NEW, strict=True) if v != NEW[5]}],
                    },
                ),
            ),
            read(orders.REDEFAULTED_V3, *orders.REDEFAULTED_V3.rows, NEW),
        ),
    ),
    namespace=None,
    tags=("committed", "v3", "write"),
)
