"""Document T on columns of no type yet: void in Spark, unknown in Iceberg."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.known import PYICEBERG_NO_V3_WRITE, SPARK_3_2_NO_V3
from lab.behaviours.refusals import paced, ruled
from lab.behaviours.t_known import (
    NO_ICEBERG_TYPE,
    TRINO_TYPE,
    create,
    duckdb_unreadable,
    gap,
    on,
    select,
    spark_unreadable,
    trino_476,
    trino_unreadable,
)
from lab.model import Behaviour, Call, Chain, Claim, Expect, Outcome, Step, Trap, Variant
from lab.tables.types import STAGING_EVENTS

COLUMNS = STAGING_EVENTS.columns
ROWS = STAGING_EVENTS.rows
REFUSED = (Outcome.ERROR, Outcome.NOT_SUPPORTED)
WORDS = {
    "spark": "event_id bigint, payload string, reserved void",
    "trino": "event_id bigint, payload varchar, reserved unknown",
    "duckdb": 'event_id bigint, payload varchar, reserved "NULL"',
}
CREATE = create(WORDS, COLUMNS)
INSERT = Step(
    "insert",
    "INSERT INTO {table} VALUES (1, 'first', NULL), (2, 'second', NULL)",
    on("append", rows=[{"event_id": 1, "payload": "first"}]),
)
SCHEMA = Step("schema", look="schema")
READ = (
    select("others", ("event_id", "payload"), tuple(row[:2] for row in ROWS)),
    select("all", tuple(name for name, _ in COLUMNS), ROWS),
)
DUCKDB_NULL = Trap(
    "duckdb-null-column",
    "DuckDB makes no Iceberg column of its type NULL",
    r"Column type NULL is not a valid Iceberg Type",
    "duckdb::IcebergCreateTableRequest::CreateIcebergSchema",
    remedy="have Spark 4 or PyIceberg make the table",
)
REQUIRED = Trap(
    "unknown-required",
    "A column of no type can't be required",
    r"^(?:java\S+: )?Cannot create required field with unknown type",
    "org.apache.iceberg.types.Types$NestedField.<init>",
    remedy="leave NOT NULL out: such a column holds nothing but nulls",
)
REQUIRED_ASKED = Trap(
    "pyiceberg-unknown-required",
    "PyIceberg asks for a required column of no type, and the catalog's answer is no JSON",
    r"Received unexpected JSON Payload: (?s:.*)Cannot create required field with unknown type",
    "pyiceberg.catalog.rest.RestCatalog.create_table",
    remedy="declare the column optional: it holds nothing but nulls",
)
PROMOTED = Trap(
    "unknown-promoted",
    "A column of no type can't be given one",
    r"Cannot change column type: \w+: unknown -> \w+",
    "org.apache.iceberg.SchemaUpdate.updateColumn",
    remedy="drop the column and add it anew with its type: it holds nothing but nulls",
)

NO_TYPE = (
    gap(
        "spark-3.2*,spark-3.5*",
        "Iceberg knows unknown on Spark 3.5 since 1.11; before, SparkTypeToType has none for void",
        NO_ICEBERG_TYPE,
        ("java.lang.UnsupportedOperationException", "Not a supported type: void"),
        at="create",
    ),
    trino_476(),
    gap(
        "trino-483",
        "Trino has no name for it",
        TRINO_TYPE,
        ("COLUMN_TYPE_UNKNOWN", "Unknown type 'unknown' for column 'reserved'"),
        at="create",
    ),
    gap(
        "duckdb-*",
        "DuckDB's NULL is a type of values, not of Iceberg columns",
        DUCKDB_NULL,
        ("_duckdb.InvalidInputException", "Column type NULL is not a valid Iceberg Type"),
        at="create",
    ),
)

VOID = Behaviour(
    id="T-void",
    title="A column of no type yet",
    source="T, staging_events",
    document="a void column becomes unknown in the metadata, and reads as null",
    table=STAGING_EVENTS,
    steps=(CREATE, INSERT, *(replace(step, second=False) for step in READ), SCHEMA),
    variants=(Variant("own"), Variant("read", steps=(CREATE, INSERT, *READ), pairs=(("spark-4.1*1.12*", "*"),))),
    claims=(Claim("spark-4.1*", Outcome.WORKS, variants="own", facts={"schema.types": dict(COLUMNS)}),),
    expect=(
        *(replace(each, variants="own") for each in NO_TYPE),
        replace(PYICEBERG_NO_V3_WRITE, variants="own"),
        Expect(
            Outcome.WORKS,
            "void is Iceberg's unknown, as documented",
            variants="own",
            facts={"schema.types": dict(COLUMNS)},
        ),
        SPARK_3_2_NO_V3,
        spark_unreadable(
            "spark-3.5*",
            "unknown",
            "Iceberg 1.10 knows the type on Spark 4 and not on 3.5, whose TypeToSparkType has nothing for it",
        ),
        trino_unreadable("trino-476", "unknown"),
        trino_unreadable("trino-483", "unknown"),
        duckdb_unreadable("unknown"),
        Expect(Outcome.WORKS, "nothing is stored of such a column, and it reads as null"),
    ),
    tags=("v3", "types"),
)

VOID_REQUIRED = Behaviour(
    id="T-void-required",
    title="NOT NULL on a column of no type",
    source="T, staging_events: neg_unknown_required",
    document="refused: Cannot create required field with unknown type",
    table=STAGING_EVENTS,
    steps=(
        create(
            {
                "spark": "id int, reserved void NOT NULL",
                "trino": "id integer, reserved unknown NOT NULL",
                "duckdb": 'id integer, reserved "NULL" NOT NULL',
            }
        ),
    ),
    variants=(
        Variant(generations="duckdb-*,spark-*,trino-*"),
        Variant(
            "by-catalog",
            generations="pyiceberg-*",
            steps=(
                Step(
                    "create",
                    call=Call(
                        "create_table",
                        {
                            "namespace": "{namespace}",
                            "table": "{table_name}",
                            "schema": [("id", "int", False), ("reserved", "unknown", True)],
                            "properties": {"format-version": "3"},
                        },
                    ),
                ),
            ),
        ),
    ),
    claims=(Claim("spark-4.1*", REFUSED),),
    expect=(
        *NO_TYPE,
        Expect(
            Outcome.ERROR,
            "as the specification demands (a column of type unknown is optional), refused by Iceberg's library itself",
            generations="spark-*",
            failure=Chain((("java.lang.IllegalArgumentException", "Cannot create required field with unknown type"),)),
            at="create",
            trap=REQUIRED,
        ),
        Expect(
            Outcome.ERROR,
            "PyIceberg lets it pass, and the catalog's library refuses it, in an answer that is no JSON",
            generations="pyiceberg-*",
            failure=Chain(
                (
                    ("pyiceberg.exceptions.ServerError", "Cannot create required field with unknown type: reserved"),
                    ("requests.exceptions.HTTPError", "500 Server Error"),
                )
            ),
            at="create",
            trap=REQUIRED_ASKED,
        ),
    ),
    tags=("v3", "types"),
)

ALTER = Step(
    "alter",
    "ALTER TABLE {table} ALTER COLUMN reserved TYPE string",
    on("alter", change="widen", column="reserved", to="string"),
)
# PyIceberg writes no row into v3; the column alone is altered.
BY_PYICEBERG = (CREATE, ALTER, replace(SCHEMA, always=True))
VOID_ALTER = Behaviour(
    id="T-void-alter",
    title="A type for a column of none",
    source="T, staging_events: ALTER COLUMN reserved TYPE string",
    document="refused by the catalog (S3 Tables): Malformed request: The specified metadata is not valid",
    table=STAGING_EVENTS,
    steps=(CREATE, INSERT, ALTER),
    variants=(
        Variant(generations="spark-*"),
        Variant(generations="pyiceberg-*", steps=BY_PYICEBERG),
        *paced(*ruled("T-void-alter", "s3tables", generations="spark-*")),
        *paced(*ruled("T-void-alter", "s3tables", generations="pyiceberg-*", steps=BY_PYICEBERG)),
    ),
    claims=(
        Claim("spark-4.1*", REFUSED, variants="default,rule"),
        Claim("pyiceberg-*", Outcome.REFUSED_BY_RULE, variants="rule"),
    ),
    kinds=("pyiceberg", "spark"),
    expect=(
        NO_TYPE[0],
        Expect(
            Outcome.REFUSED_BY_RULE,
            "PyIceberg follows the specification and asks for the new type; the vendor's catalog refuses it",
            generations="pyiceberg-*",
            variants="rule",
            failure=Chain((("BadRequestError", "Malformed request: The specified metadata is not valid"),)),
            at="alter",
            facts={"alter.rules": ["T-void-alter"], "schema.types": dict(COLUMNS)},
        ),
        Expect(
            Outcome.WORKS,
            "the specification lets unknown become any type; PyIceberg and the reference catalog follow it",
            generations="pyiceberg-*",
            facts={"schema.types": {**dict(COLUMNS), "reserved": "string"}},
        ),
        Expect(
            Outcome.ERROR,
            "the specification lets unknown become any type; Iceberg's SchemaUpdate does not, so the request never "
            "reaches a catalog: refused as documented, and by another party",
            failure=Chain((("java.lang.IllegalArgumentException", "Cannot change column type: reserved: unknown"),)),
            at="alter",
            trap=PROMOTED,
        ),
    ),
    tags=("v3", "types"),
)
