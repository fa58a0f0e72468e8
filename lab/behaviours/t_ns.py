"""Document T on nanoseconds: which engine has words for them, which reads them, and what becomes of the last digits."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from lab.behaviours.known import PYICEBERG_NO_V3_WRITE, SPARK_3_2_NO_V3
from lab.behaviours.t_known import (
    DUCKDB_TYPE,
    SPARKS_WITH_V3,
    create,
    duckdb_unreadable,
    gap,
    on,
    parser,
    select,
    spark_unreadable,
    trino_476,
    trino_unreadable,
)
from lab.model import Behaviour, Claim, Control, Expect, Outcome, Step, Variant
from lab.tables.types import INSTANTS, PRICED, TRADES

TYPES = dict(TRADES.columns)
WITHOUT_ZONE = {name: kind for name, kind in TRADES.columns if kind != "timestamptz_ns"}
CREATE = create(
    {
        "spark": "trade_id bigint, executed_ntz timestamp_ntz(9), executed_ltz timestamp_ltz(9), "
        "executed_ts timestamp(9), symbol string, price decimal(18,8)",
        "trino": "trade_id bigint, executed_ntz timestamp(9), executed_ltz timestamp(9) with time zone, "
        "executed_ts timestamp(9) with time zone, symbol varchar, price decimal(18,8)",
        "duckdb": "trade_id bigint, executed_ntz timestamp_ns, executed_ltz timestamptz_ns, "
        "executed_ts timestamptz_ns, symbol varchar, price decimal(18,8)",
    },
    TRADES.columns,
)
CREATE_WITHOUT_ZONE = create(
    {
        "spark": "trade_id bigint, executed_ntz timestamp_ntz(9), symbol string, price decimal(18,8)",
        "trino": "trade_id bigint, executed_ntz timestamp(9), symbol varchar, price decimal(18,8)",
        "duckdb": "trade_id bigint, executed_ntz timestamp_ns, symbol varchar, price decimal(18,8)",
    },
    tuple(WITHOUT_ZONE.items()),
)
SCHEMA = Step("schema", look="schema")
NO_TYPE = parser(SPARKS_WITH_V3, "TIMESTAMP_NTZ(9)")
NO_WORD = (
    "the vendor's Spark has timestamp_ntz(9); open source has no such type, and "
    "org.apache.iceberg.spark.SparkTypeToType none to map it from"
)
UNREADABLE = "Spark has no timestamp finer than microseconds, and Iceberg's TypeToSparkType therefore no type for it"


def _texts(instant: str) -> tuple[str, str]:
    text = instant.replace("T", " ")
    return text, f"{text} UTC"


_ALL = ", ".join(
    f"({trade}, TIMESTAMP '{ntz}', TIMESTAMP '{tz}', TIMESTAMP '{tz}', '{symbol}', {price})"
    for trade, (ntz, tz), (symbol, price) in zip((1, 2, 3), map(_texts, INSTANTS), PRICED, strict=True)
)
_NTZ = ", ".join(
    f"({trade}, {{type}} '{instant.replace('T', ' ')}', '{symbol}', {price})"
    for trade, instant, (symbol, price) in zip((1, 2, 3), INSTANTS, PRICED, strict=True)
)


def _micros(fraction: int) -> tuple[tuple[int, datetime], ...]:
    """The three instants in microseconds, the first two with this fraction."""
    near = datetime(2026, 10, 7, 9, 0, 0, fraction)
    return (1, near), (2, near), (3, datetime(2026, 10, 7, 9, 0, 1))


INSERT = Step("insert", f"INSERT INTO {{table}} VALUES {_ALL}")
INSERT_WITHOUT_ZONE = Step(
    "insert",
    {
        "*": f"INSERT INTO {{table}} VALUES {_NTZ.format(type='TIMESTAMP')}",
        "duckdb": f"INSERT INTO {{table}} VALUES {_NTZ.format(type='TIMESTAMP_NS')}",
    },
    on("append", rows=[{"trade_id": 1}]),
)
_PLACES = [place for place, (_, kind) in enumerate(TRADES.columns) if kind != "timestamptz_ns"]
OTHERS = select("others", ("trade_id", "symbol"), tuple((row[0], row[4]) for row in TRADES.rows))

NS_TYPES = Behaviour(
    id="T-ns-types",
    title="Columns of nanoseconds",
    source="T, trades: CREATE TABLE, DESCRIBE, and the refused ALTER",
    document="timestamp_ntz(9), timestamp_ltz(9) and timestamp(9) become timestamp_ns, timestamptz_ns, timestamptz_ns; "
    "timestamptz(9) is refused by the parser",
    table=TRADES,
    steps=(CREATE, SCHEMA),
    variants=(
        Variant(),
        Variant("without-zone", generations="duckdb-*,trino-483", steps=(CREATE_WITHOUT_ZONE, SCHEMA)),
        Variant(
            "timestamptz-9",
            generations="spark-*",
            steps=(create({"spark": "trade_id bigint, executed_tstz timestamptz(9)"}),),
        ),
    ),
    claims=(
        Claim("spark-4.1*", (Outcome.ERROR, Outcome.NOT_SUPPORTED), variants="timestamptz-9"),
        Claim("spark-4.1*", Outcome.WORKS, variants="default", facts={"schema.types": TYPES}),
    ),
    expect=(
        *parser(SPARKS_WITH_V3, "TIMESTAMPTZ(9)", variants="timestamptz-9"),
        *(
            replace(each, variants="default", cause=NO_WORD, control=Control(generation="trino-483"))
            for each in NO_TYPE
        ),
        trino_476(),
        gap(
            "duckdb-*",
            "DuckDB has nanoseconds without a zone only",
            DUCKDB_TYPE,
            ("_duckdb.CatalogException", "Type with name timestamptz_ns does not exist"),
            at="create",
            variants="default",
        ),
        Expect(Outcome.WORKS, "made as declared", variants="without-zone", facts={"schema.types": WITHOUT_ZONE}),
        Expect(
            Outcome.WORKS,
            "made as declared; PyIceberg makes the table, though it can't fill it",
            facts={"schema.types": TYPES},
        ),
    ),
    tags=("v3", "types"),
)

NS_VALUES = Behaviour(
    id="T-ns-values",
    title="Nine digits kept, compared and cast",
    source="T, trades: INSERT and SELECT",
    document="nine digits come back, a cast to microseconds truncates, the order is right to the nanosecond",
    table=TRADES,
    steps=(CREATE, INSERT, OTHERS, select("all", tuple(TYPES), TRADES.rows)),
    variants=(
        Variant("zoned", pairs=(("trino-483", "*"),)),
        Variant(
            "without-zone",
            pairs=(("duckdb-*", "*"),),
            steps=(
                CREATE_WITHOUT_ZONE,
                INSERT_WITHOUT_ZONE,
                OTHERS,
                select(
                    "all", tuple(WITHOUT_ZONE), tuple(tuple(row[place] for place in _PLACES) for row in TRADES.rows)
                ),
            ),
        ),
        Variant(
            "own",
            steps=(
                CREATE_WITHOUT_ZONE,
                INSERT_WITHOUT_ZONE,
                Step(
                    "later",
                    {
                        "*": "SELECT trade_id FROM {table} WHERE executed_ntz > TIMESTAMP '2026-10-07 "
                        "09:00:00.123456789'",
                        "duckdb": "SELECT trade_id FROM {table} WHERE executed_ntz > TIMESTAMP_NS '2026-10-07 "
                        "09:00:00.123456789'",
                    },
                    on("scan"),
                    truth=((2,), (3,)),
                ),
                Step(
                    "second",
                    "SELECT trade_id FROM (SELECT * FROM {table} ORDER BY executed_ntz LIMIT 2) AS t "
                    "WHERE trade_id <> 1",
                    on("scan"),
                    truth=((2,),),
                ),
                Step(
                    "cast",
                    {
                        "*": "SELECT trade_id, CAST(executed_ntz AS TIMESTAMP) FROM {table}",
                        "trino": "SELECT trade_id, CAST(executed_ntz AS TIMESTAMP(6)) FROM {table}",
                    },
                    on("scan"),
                    truth={"trino": _micros(123457), "*": _micros(123456)},  # Trino rounds, the others cut off
                ),
            ),
        ),
    ),
    claims=(Claim("spark-4.1*", Outcome.WORKS, variants="own"),),
    expect=(
        *(replace(each, variants="own", cause=NO_WORD, control=Control(generation="duckdb-1.5.5")) for each in NO_TYPE),
        SPARK_3_2_NO_V3,
        spark_unreadable("spark-*", "timestamp_ns", UNREADABLE, variants="zoned,without-zone"),
        trino_476(variants="own"),
        trino_unreadable("trino-476", "timestamp_ns"),
        duckdb_unreadable("timestamptz_ns", variants="zoned"),
        replace(PYICEBERG_NO_V3_WRITE, variants="own"),
        Expect(
            Outcome.WORKS,
            "nine digits are written, read and compared; a cast to microseconds is cut off by DuckDB, as the document "
            "says, and rounded by Trino: the same CAST gives another microsecond",
            variants="own",
        ),
        Expect(Outcome.WORKS, "nine digits are read"),
    ),
    tags=("v3", "types"),
)
