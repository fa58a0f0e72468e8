"""Document T on column defaults: where the clause goes, what old rows read, what new rows get, who filters wrong."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from lab.behaviours.known import DEFAULT_OVERLOOKED, MUST_BE_NAMED, PYICEBERG_NO_V3_WRITE, SPARK_3_2_NO_V3
from lab.behaviours.refusals import BAD_REQUEST, claims, paced, refused, ruled
from lab.behaviours.t_known import create, gap, on, select, trino_476
from lab.model import Behaviour, Claim, Control, Expect, Outcome, Step, Trap, Variant
from lab.tables.types import ORDERS

REFUSED = (Outcome.ERROR, Outcome.NOT_SUPPORTED)
FIRST = (1, Decimal("1000.00"), "EUR")
SCHEMA = Step("schema", look="schema")
WITH_DEFAULT = {
    "spark": "order_id bigint, amount decimal(10,2), currency string DEFAULT 'JPY'",
    "trino": "order_id bigint, amount decimal(10,2), currency varchar DEFAULT 'JPY'",
    "duckdb": "order_id bigint, amount decimal(10,2), currency varchar DEFAULT 'JPY'",
}
BARE = {
    "spark": "order_id bigint, amount decimal(10,2)",
    "trino": "order_id bigint, amount decimal(10,2)",
    "duckdb": "order_id bigint, amount decimal(10,2)",
}
INSERT_BARE = Step("insert", "INSERT INTO {table} VALUES (1, 1000.00)", on("append", rows=[{"order_id": 1}]))
INSERT_FIRST = Step("insert", "INSERT INTO {table} VALUES (1, 1000.00, 'EUR')")


def leave_out(key: int, *, second: bool = False) -> Step:
    return Step(
        "leave-out",
        f"INSERT INTO {{table}} (order_id, amount) VALUES ({key}, 1000.00)",
        on("append", rows=[{"order_id": key, "amount": Decimal("1000.00")}]),
        second=second,
    )


def say_default(key: int, *, second: bool = False) -> Step:
    """DuckDB and Spark have the word DEFAULT among values, Trino and PyIceberg have not."""
    sql = f"INSERT INTO {{table}} VALUES ({key}, 2000.00, DEFAULT)"
    return Step("say-default", {"spark": sql, "duckdb": sql}, optional=True, second=second)


ADD = Step(
    "add",
    {
        "spark": "ALTER TABLE {table} ADD COLUMN channel string DEFAULT 'web'",
        "*": "ALTER TABLE {table} ADD COLUMN channel varchar DEFAULT 'web'",
    },
)
SET = Step("set", "ALTER TABLE {table} ALTER COLUMN currency SET DEFAULT 'USD'")

CREATE_REFUSED = Trap(
    "spark-default-create",
    "Spark refuses DEFAULT in CREATE TABLE of an Iceberg table",
    r"does not support column default value",
    "org.apache.spark.sql.catalyst.util.ResolveDefaultColumns$.validateCatalogForDefaultValue",
    remedy="have Trino 483, DuckDB or Iceberg's Java API give the column its default; Spark 4.1 then fills it in, "
    "Spark 3.5 and 4.0 do not",
)
ADD_REFUSED = Trap(
    "spark-default-add",
    "Spark refuses DEFAULT in ADD COLUMN of an Iceberg table",
    r"Cannot add column \w+ since setting default values in Spark is currently unsupported",
    "org.apache.iceberg.spark.Spark3Util.apply",
    remedy="have Trino 483, DuckDB or Iceberg's Java API add the column",
)
SET_REFUSED = Trap(
    "spark-default-set",
    "Spark refuses SET DEFAULT of an Iceberg column",
    r"Cannot apply unknown table change: .*UpdateColumnDefaultValue",
    "org.apache.iceberg.spark.Spark3Util.applySchemaChanges",
    remedy="have Trino 483, DuckDB or Iceberg's Java API set it",
)
PARSER = Trap(
    "default-parser",
    "An old engine's parser doesn't know DEFAULT",
    r"mismatched input 'DEFAULT'|no viable alternative at input .*DEFAULT",
    {
        "spark-3.2*": "org.apache.spark.sql.catalyst.parser.ParseException.withCommand",
        "trino-*": "io.trino.sql.parser.SqlParser.createStatement",
    },
    remedy="take a newer engine",
)
WRITTEN_AS_NULL = Trap(
    "default-written-as-null",
    "A new row gets null where the column has a default, and no error tells",
    "",
    {
        "spark-*": "org.apache.spark.sql.catalyst.util.ResolveDefaultColumns$.getDefaultValueExprOrNullLit",
        "trino-*": "io.trino.sql.planner.LogicalPlanner.getInsertPlan",
    },
    remedy="write the value, or write with Spark 4.1, Trino 483 or DuckDB",
)
TAKEN_AWAY = Trap(
    "default-taken-away",
    "The catalog takes a column's default away and answers that all went well",
    "",
    {  # who asks and does not look at the answer: the vendor's own code is not to be seen
        "duckdb-*": "duckdb::IcebergCreateTableRequest::CreateIcebergSchema",
        "trino-*": "io.trino.plugin.iceberg.IcebergMetadata.addColumn",
    },
    remedy="look at the schema that the table has after CREATE or ALTER; write the value with each row",
)
FILTERED = Trap(
    "default-filtered-away",
    "A filter on a column with a default loses the rows that have it from the default",
    "",
    "org.apache.iceberg.parquet.ParquetMetricsRowGroupFilter$MetricsEvalVisitor.eq",
    also=("filter on a column added with a default loses old rows: apache/iceberg#16690",),
    remedy="take Iceberg 1.12; until then rewrite the data files, so that each has the column",
)


def _no_words(at: str) -> tuple[Expect, ...]:
    return (
        gap(
            "spark-3.2*",
            "Spark has DEFAULT since 3.4",
            PARSER,
            ("ParseException", "'DEFAULT'"),
            at=at,
        ),
        gap(
            "trino-476",
            "Trino has DEFAULT since 480",
            PARSER,
            ("SYNTAX_ERROR", "mismatched input 'DEFAULT'"),
            at=at,
        ),
    )


NO_CODEC = "s3tables~off=T-codec"  # so that what the catalog amends is the default alone
SAY_DEFAULT = "duckdb-*,trino-483"  # who says a default to a catalog
NULLS = Control("say-default", "spark-4.0.1+iceberg-1.10.0", "T-default-write", writer="duckdb-1.5.5")
CREATE = Behaviour(
    id="T-default-create",
    title="DEFAULT in CREATE TABLE",
    source="T, orders: CREATE TABLE, two INSERTs and SELECT",
    document="the clause vanishes without a word: the column has no default, rows get null",
    table=ORDERS,
    steps=(
        create(WITH_DEFAULT),
        leave_out(1),
        say_default(2),
        Step(
            "read",
            "SELECT * FROM {table}",
            truth={"trino": ((1, Decimal("1000.00"), "JPY"),), "*": ((1, Decimal("1000.00"), "JPY"), ORDERS.rows[1])},
        ),
        SCHEMA,
    ),
    kinds=("duckdb", "spark", "trino"),
    variants=(Variant(), *paced(*ruled("T-default-create", NO_CODEC, generations=SAY_DEFAULT))),
    claims=(
        Claim("spark-4.1*", Outcome.SILENTLY_WRONG),
        Claim("*", Outcome.SILENTLY_WRONG, variants="rule"),
    ),
    expect=(
        Expect(
            Outcome.SILENTLY_WRONG,
            "the catalog takes the defaults out of the request and answers that the table is made: new rows get null",
            variants="rule",
            facts={"create.amended": ["T-default-create"], "schema.defaults": {}},
            generations="duckdb-*",
            rows={"read": ((1, Decimal("1000.00"), None), (2, Decimal("2000.00"), None))},
            trap=TAKEN_AWAY,
        ),
        Expect(
            Outcome.SILENTLY_WRONG,
            "the catalog takes the defaults out of the request and answers that the table is made: new rows get null",
            variants="rule",
            facts={"create.amended": ["T-default-create"], "schema.defaults": {}},
            rows={"read": ((1, Decimal("1000.00"), None),)},
            trap=TAKEN_AWAY,
        ),
        *_no_words("create"),
        gap(
            "spark-*",
            "open-source Spark asks the catalog whether it keeps defaults, and Iceberg's does not say so: no silence",
            CREATE_REFUSED,
            ("AnalysisException", "[UNSUPPORTED_FEATURE.TABLE_OPERATION]"),
            at="create",
            cause="Iceberg's catalog has not the capability SUPPORT_COLUMN_DEFAULT_VALUE "
            "(ResolveDefaultColumns.validateCatalogForDefaultValue); the vendor's must have it. What the document saw "
            "then, null for a default, is what Spark 4.0 writes where there is a default",
            control=NULLS,
        ),
        Expect(
            Outcome.WORKS,
            "the default stands in the metadata, and new rows get it",
            facts={"schema.defaults": {"currency": ["JPY", "JPY"]}},
        ),
    ),
    tags=("v3", "defaults"),
)

ADDED = Behaviour(
    id="T-default-add",
    title="DEFAULT in ADD COLUMN, and rows from before",
    source="T, orders: ALTER TABLE ADD COLUMN channel",
    document="existing rows read null instead of the default",
    table=ORDERS,
    steps=(
        create(BARE),
        INSERT_BARE,
        ADD,
        Step("read", "SELECT * FROM {table}", truth=((1, Decimal("1000.00"), "web"),)),
        SCHEMA,
    ),
    kinds=("duckdb", "spark", "trino"),
    variants=(Variant(), *paced(*ruled("T-default-add", NO_CODEC, generations=SAY_DEFAULT))),
    claims=(
        Claim("spark-4.1*", Outcome.SILENTLY_WRONG),
        Claim("*", Outcome.SILENTLY_WRONG, variants="rule"),
    ),
    expect=(
        Expect(
            Outcome.SILENTLY_WRONG,
            "the catalog takes the initial default out of the request: rows from before read null, new ones get the "
            "default",
            variants="rule",
            facts={"add.amended": ["T-default-add"], "schema.defaults": {"channel": [None, "web"]}},
            rows={"read": ((1, Decimal("1000.00"), None),)},
            trap=TAKEN_AWAY,
        ),
        SPARK_3_2_NO_V3,
        trino_476(),
        gap(
            "spark-*",
            "Iceberg refuses the clause, so that nothing is silently wrong",
            ADD_REFUSED,
            ("java.lang.UnsupportedOperationException", "since setting default values in Spark is currently"),
            at="add",
            cause="org.apache.iceberg.spark.Spark3Util.apply; the vendor's Spark drops the clause. An engine that "
            "overlooks the default shows the same nulls",
            control=Control(behaviour="F-default", generation="trino-476"),
        ),
        Expect(
            Outcome.WORKS,
            "the default stands in the metadata, and old rows read it",
            facts={"schema.defaults": {"channel": ["web", "web"]}},
        ),
    ),
    tags=("v3", "defaults"),
)

SET_DEFAULT = Behaviour(
    id="T-default-set",
    title="SET DEFAULT of a column",
    source="T, orders: ALTER COLUMN currency SET DEFAULT",
    document="refused by the catalog (S3 Tables): Malformed request: The specified metadata is not valid",
    table=ORDERS,
    steps=(
        create({kind: words.replace(" DEFAULT 'JPY'", "") for kind, words in WITH_DEFAULT.items()}),
        INSERT_FIRST,
        SET,
        leave_out(2),
        Step(
            "read",
            "SELECT order_id, currency FROM {table}",
            truth=((1, "EUR"), (2, "USD")),
        ),
        SCHEMA,
    ),
    kinds=("duckdb", "spark", "trino"),
    variants=(Variant(), *paced(*ruled("T-default-set", "s3tables", generations=SAY_DEFAULT))),
    claims=(Claim("spark-4.1*", REFUSED), *claims(SAY_DEFAULT)),
    expect=(
        *refused(
            "T-default-set",
            "set",
            "Malformed request: The specified metadata is not valid",
            BAD_REQUEST,
            where="",
            history=(),
            why="the engines that say SET DEFAULT to a catalog meet the documented words",
        ),
        SPARK_3_2_NO_V3,
        trino_476(),
        gap(
            "spark-*",
            "refused as documented, and by Iceberg itself: the request never reaches a catalog",
            SET_REFUSED,
            ("java.lang.UnsupportedOperationException", "Cannot apply unknown table change: "),
            at="set",
        ),
        Expect(
            Outcome.WORKS,
            "a default for new rows alone: the write default changes, the initial one stays as it is",
            facts={"schema.defaults": {"currency": [None, "USD"]}},
        ),
    ),
    tags=("v3", "defaults"),
)

# A table whose default DuckDB has set: what each engine then writes, shows and finds.
GIVEN = (
    create({"duckdb": "order_id bigint, amount decimal(10,2)"}),
    INSERT_BARE,
    Step("add", {"duckdb": "ALTER TABLE {table} ADD COLUMN currency varchar DEFAULT 'JPY'"}),
    Step("set", {"duckdb": "ALTER TABLE {table} ALTER COLUMN currency SET DEFAULT 'USD'"}),
)
BY_DUCKDB = (("duckdb-*", "*"),)
OLD = (1, "JPY")


def _back(*rows: tuple[int, str]) -> Step:
    return select("back", ("order_id", "currency"), rows)


WRITE = Behaviour(
    id="T-default-write",
    title="What a new row gets where another engine has set a default",
    source="the lab's own question, next to T, orders: INSERT",
    document=None,
    table=ORDERS,
    steps=(*GIVEN, leave_out(2, second=True), _back(OLD, (2, "USD"))),
    variants=(
        Variant("left-out", pairs=BY_DUCKDB),
        Variant(
            "say-default",
            steps=(*GIVEN, say_default(2, second=True), _back(OLD, (2, "USD"))),
            pairs=(("duckdb-*", "duckdb-*"), ("duckdb-*", "spark-3.5*"), ("duckdb-*", "spark-4*")),
        ),
    ),
    expect=(
        SPARK_3_2_NO_V3,
        gap(
            "spark-3.5*,spark-4.0*",
            "before 4.1 an INSERT gives a value for every column, and Iceberg tells Spark of no default",
            MUST_BE_NAMED,
            ("AnalysisException", "Cannot find data for the output column `currency`"),
            at="leave-out",
            variants="left-out",
        ),
        Expect(
            Outcome.SILENTLY_WRONG,
            "Iceberg tells Spark of no default before 4.1, and Spark makes null of the word DEFAULT where it knows of "
            "none: a null is stored, without a word",
            generations="spark-3.5*,spark-4.0*",
            variants="say-default",
            rows={"back": (OLD, (2, None))},
            trap=WRITTEN_AS_NULL,
        ),
        Expect(
            Outcome.SILENTLY_WRONG,
            "Trino 476 overlooks both defaults: the old row reads null, and the new one gets it",
            generations="trino-476",
            rows={"back": ((1, None), (2, None))},
            trap=WRITTEN_AS_NULL,
        ),
        replace(PYICEBERG_NO_V3_WRITE, at="leave-out"),
        Expect(Outcome.WORKS, "the write default of today for the new row, the initial one for the old"),
    ),
    tags=("v3", "defaults"),
)

SHOW = Behaviour(
    id="T-default-show",
    title="SHOW CREATE TABLE of a table with defaults",
    source="T, orders: SHOW CREATE TABLE",
    document="no default is shown",
    table=ORDERS,
    steps=(
        *GIVEN,
        Step(
            "show",
            {
                "*": "SHOW CREATE TABLE {table}",
                "duckdb": "FROM {table} LIMIT 0; "  # DuckDB lists what it has loaded
                "SELECT sql FROM duckdb_tables() WHERE schema_name = '{namespace}' AND table_name = 'orders'",
            },
            second=True,
        ),
    ),
    variants=(Variant(pairs=BY_DUCKDB),),
    kinds=("duckdb", "spark", "trino"),
    claims=(Claim("spark-4.1*", Outcome.WORKS, facts={"show.defaults": []}),),
    expect=(
        SPARK_3_2_NO_V3,
        Expect(
            Outcome.WORKS,
            "not shown: before 4.1 Iceberg tells Spark of no default, and Trino 476 knows of none",
            generations="spark-3.5*,spark-4.0*,trino-476",
            facts={"show.defaults": []},
        ),
        Expect(
            Outcome.WORKS,
            "what new rows will get is shown; the document's table had no default to show",
            generations="spark-4.1*",
            facts={"show.defaults": ["USD"]},
            cause="org.apache.iceberg.spark.TypeToSparkType, which tells Spark 4.1 of defaults",
            control=Control(generation="spark-4.0.1+iceberg-1.10.0"),
        ),
        Expect(Outcome.WORKS, "what new rows will get is shown", facts={"show.defaults": ["USD"]}),
    ),
    tags=("v3", "defaults"),
)


def _filter(name: str, where: str, filter: str, *keys: int) -> Step:
    return Step(
        name,
        f"SELECT order_id FROM {{table}} WHERE {where}",
        on("scan", columns=["order_id"], filter=filter),
        truth=tuple((key,) for key in keys),
        second=True,
    )


FILTERS = (
    _filter("equal", "currency = 'JPY'", "currency == 'JPY'", 1),
    _filter("not-null", "currency IS NOT NULL", "currency is not null", 1),
    _filter("null", "currency IS NULL", "currency is null"),
    _filter("other", "currency <> 'EUR'", "currency != 'EUR'", 1),
)
FILTER = Behaviour(
    id="T-default-filter",
    title="A filter on a column that old files lack, its default known",
    source="the lab's own question, next to T, orders: ADD COLUMN; apache/iceberg#16690",
    document=None,
    table=ORDERS,
    steps=(*GIVEN, _back(OLD), *FILTERS),
    variants=(
        Variant("filters", pairs=BY_DUCKDB),
        Variant(
            "by-row",
            pairs=(("duckdb-*", "spark-3.5*"), ("duckdb-*", "spark-4.0*"), ("duckdb-*", "spark-4.1*1.11*")),
            second_settings={"spark.sql.iceberg.vectorization.enabled": "false"},
        ),
    ),
    expect=(
        SPARK_3_2_NO_V3,
        Expect(
            Outcome.SILENTLY_WRONG,
            "Trino 476 overlooks the default",
            generations="trino-476",
            rows={"back": ((1, None),), "equal": (), "not-null": (), "null": ((1,),), "other": ()},
            trap=DEFAULT_OVERLOOKED,
        ),
        Expect(
            Outcome.SILENTLY_WRONG,
            "a file without the column has no statistics of it, which Iceberg before 1.12 takes for all null: filters "
            "skip the file, the very rows that a SELECT without a filter shows with their default",
            generations="spark-3.5*,spark-4.0*,spark-4.1*1.11*",
            rows={"equal": (), "not-null": (), "other": ()},
            trap=FILTERED,
        ),
        Expect(Outcome.WORKS, "the default is what filters see too"),
    ),
    tags=("v3", "defaults"),
)
