"""Types that v3 adds, and the columns of row lineage."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.known import SPARK_3_2_NO_V3
from lab.behaviours.pairs.feature import create, feature, insert, read
from lab.behaviours.pairs.filters import Filter
from lab.behaviours.pairs.known import Wrongly
from lab.behaviours.t_geo import SWITCHED_OFF
from lab.behaviours.t_known import (
    DUCKDB_GEOGRAPHY,
    PYICEBERG_GEOMETRY,
    SPARK_NO_VARIANT,
    TRINO_GEO,
    duckdb_unreadable,
    gap,
    parser,
    spark_unreadable,
    trino_unreadable,
)
from lab.behaviours.t_variant import (
    AS_JSON,
    OTHERS_FAIL,
    RAW,
    SHREDDED_BATCHES,
    SHREDDED_SPARK,
    SHREDDED_TRINO,
    STORED,
)
from lab.behaviours.t_void import NO_TYPE
from lab.model import Chain, DataFile, Expect, Outcome, Step, Trap
from lab.tables.types import DOCUMENTS, INSTANTS, POINTS
from lab.values import Nanoseconds

INTS = (("id", "int"), ("n", "int"))
NUMBERS = ((1, 10), (2, 20), (3, None), (4, -7))
ON_NUMBERS = (
    Filter("n", "=", 10),
    Filter("n", "<", 20),
    Filter("n", "in", (20, -7)),
    Filter("n", "null"),
    Filter("n", "not", 10),
)
PLAIN = feature(
    "v3-plain",
    "A v3 table without anything",
    3,
    INTS,
    NUMBERS,
    (create(INTS, 3), insert(["id", "n"], *NUMBERS[:2]), insert(["id", "n"], *NUMBERS[2:], name="insert-more")),
    filters=ON_NUMBERS,
)
LINEAGE = feature(
    "row-lineage",
    "The columns of row lineage: ids in the order of the INSERTs, numbers of the commits",
    3,
    (("id", "int"), ("_row_id", "long"), ("commit", "long")),
    ((1, 0, 0), (2, 1, 1), (3, 2, 2)),
    (create((("id", "int"),), 3), *(insert(["id"], (id,), name=f"insert-{id}") for id in (1, 2, 3))),
    new=("_row_id", "commit"),
    expect=(
        gap(
            "trino-476",
            "Trino 476 knows of no row ids",
            Trap(
                "trino-row-ids",
                "Trino 476 can't show row ids",
                r"Column '\$row_id' cannot be resolved",
                "io.trino.sql.analyzer.SemanticExceptions.missingAttributeException",
                remedy="read them with Spark, Trino 483 or DuckDB",
            ),
            ("io.trino.spi.TrinoException", "Column '$row_id' cannot be resolved"),
            at="whole",
        ),
        gap(
            "pyiceberg-*",
            "PyIceberg 0.12 knows of no columns but the schema's",
            Trap(
                "pyiceberg-row-ids",
                "PyIceberg can't show row ids",
                r"Could not find column: '_row_id'",
                "pyiceberg.schema.Schema.select",
                remedy="read them with Spark, Trino 483 or DuckDB",
            ),
            ("KeyError", "_row_id"),
            at="whole",
        ),
    ),
    whole=Step(
        "whole",
        {
            "trino": 'SELECT id, "$row_id", "$last_updated_sequence_number" - min("$last_updated_sequence_number") '
            "OVER () FROM {table}",
            "*": "SELECT id, _row_id, _last_updated_sequence_number - min(_last_updated_sequence_number) OVER () "
            "FROM {table}",
        },
        read("whole", ["id", "_row_id"], ((1, 0), (2, 1), (3, 2)), ["id", "_row_id"]).call,
        truth=((1, 0, 0), (2, 1, 1), (3, 2, 2)),
        second=True,
    ),
)

# ---------------------------------------------------------------- variant
VARIANTS = (("id", "int"), ("event_data", "variant"))
DOCUMENTED = ((1, DOCUMENTS[0]), (2, DOCUMENTS[1]), (3, None))
SHOWN = {kind: sql.replace("event_id, source", "id") for kind, sql in AS_JSON.items()}
# A cast of DuckDB's makes JSON's null of SQL's.
SHOWN["duckdb"] = SHOWN["duckdb"].replace(
    "CAST(CAST(event_data AS JSON) AS VARCHAR)",
    "CASE WHEN event_data IS NOT NULL THEN CAST(CAST(event_data AS JSON) AS VARCHAR) END",
)
MADE = {
    "spark": "id int, event_data variant",
    "trino": "id integer, event_data variant",
    "duckdb": "id int, event_data variant",
}


def _documents(cast: str) -> str:
    rows = ", ".join(f"({id}, {cast.format(text) if text else 'NULL'})" for id, text in DOCUMENTED)
    return f"INSERT INTO {{table}} VALUES {rows}"


INSERT_DOCUMENTS = Step(
    "insert",
    {
        "spark": _documents("parse_json('{}')"),
        "trino": _documents("CAST(JSON '{}' AS VARIANT)"),
        "duckdb": _documents("'{}'::JSON::VARIANT"),
    },
)
WHOLE_DOCUMENTS = Step("whole", SHOWN, truth=DOCUMENTED, second=True)
SPARK_4_0_WRONG = Trap(
    "variant-not-null-filtered-away",
    "IS NOT NULL on a variant column loses all rows",
    "",
    "org.apache.iceberg.parquet.ParquetMetricsRowGroupFilter$MetricsEvalVisitor.notNull",
    remedy="take Iceberg 1.11",
)


def _no_variant(shredding: str) -> tuple[Expect | Wrongly, ...]:
    """What is known of readers, where these writers shred."""
    batches = Expect(
        Outcome.NOT_SUPPORTED,
        "1.12 looks at all columns of a file before it reads some in batches, and knows no shredded variant there: "
        "the other columns of such a table are unreadable, its own included. 1.11 reads them",
        generations="spark-4.1*1.12*",
        writers=shredding,
        failure=Chain((("java.lang.UnsupportedOperationException", "Unsupported variant: shredded typed_value"),)),
        at="others",
        trap=SHREDDED_BATCHES,
    )
    trino = Expect(
        Outcome.ERROR,
        "Trino 483 reads a variant of two parts, metadata and value; a shredded one has typed_value beside them",
        generations="trino-483",
        writers=shredding,
        failure=Chain((("ICEBERG_CANNOT_OPEN_SPLIT", "expected exactly 2 children but found: 3"),)),
        at="whole",
        trap=SHREDDED_TRINO,
    )
    return (SPARK_3_2_NO_V3, batches, trino, *NO_VARIANT)


NO_VARIANT: tuple[Expect | Wrongly, ...] = (
    gap(
        "spark-3.5*",
        "Spark 3.5 has no such type, and Iceberg's schema visitor no answer: the whole table is unreadable",
        SPARK_NO_VARIANT,
        ("java.lang.UnsupportedOperationException", "Unsupported type: variant"),
        at="others",
    ),
    trino_unreadable("trino-476", "variant"),
    replace(OTHERS_FAIL, writers="duckdb-*,spark-*"),
    Wrongly(
        "Iceberg 1.10 looks for the column's counts among the file's leaves, where a variant is a group of several: it "
        "finds none and takes the column for one that the file lacks, hence for all null",
        "spark-4.0*",
        SPARK_4_0_WRONG,
        writers="trino-483",
        keeps=lambda filter, row: filter.keeps(row) and (filter.column, filter.op) != ("event_data", "not null"),
    ),
    Expect(
        Outcome.ERROR,
        "DuckDB shreds a variant's fields into columns of their own and leaves their names out of the variant's "
        "metadata; Iceberg wants them there",
        generations="spark-*",
        writers="duckdb-*",
        failure=Chain((("java.lang.IllegalArgumentException", "Cannot find field name in metadata: "),)),
        at="whole",
        trap=SHREDDED_SPARK,
    ),
    Wrongly(
        "Trino writes the column without Parquet's VARIANT annotation; DuckDB then shows the struct of two binaries "
        "that it is stored as, without a word",
        "duckdb-*",
        RAW,
        writers="trino-483",
        seen=(*((event, text) for event, _, text in STORED), (3, None)),
    ),
)
VARIANT = feature(
    "variant",
    "A variant column, as its writer stores it by itself",
    3,
    VARIANTS,
    DOCUMENTED,
    (create((), 3, words=MADE), INSERT_DOCUMENTS),
    new=("event_data",),
    whole=WHOLE_DOCUMENTS,
    filters=(Filter("id", "=", 2), Filter("event_data", "null"), Filter("event_data", "not null")),
    cannot=parser("spark-3.5*", "VARIANT"),
    expect=_no_variant("duckdb-*"),
)
SHREDDED = feature(
    "variant-shredded",
    "A variant column that is shredded",
    3,
    VARIANTS,
    DOCUMENTED,
    (
        create(
            (),
            3,
            words={kind: said for kind, said in MADE.items() if kind != "trino"},
            properties={"write.parquet.shred-variants": "true"},
        ),
        INSERT_DOCUMENTS,
    ),
    source="apache/iceberg#15087",
    new=("event_data",),
    whole=WHOLE_DOCUMENTS,
    filters=(Filter("id", "=", 2), Filter("event_data", "null"), Filter("event_data", "not null")),
    cannot=parser("spark-3.5*", "VARIANT"),
    without="spark-4.0*",  # Iceberg 1.10 shreds nothing, whatever that property says
    expect=_no_variant("duckdb-*,spark-4.1*"),
)

# ---------------------------------------------------------------- unknown, nanoseconds, shapes
UNKNOWNS = (("id", "int"), ("reserved", "unknown"))
UNKNOWN = feature(
    "unknown",
    "A column of no type",
    3,
    UNKNOWNS,
    ((1, None), (2, None)),
    (
        create(
            (),
            3,
            words={
                "spark": "id int, reserved void",
                "trino": "id integer, reserved unknown",
                "duckdb": 'id int, reserved "NULL"',
            },
        ),
        Step("insert", dict.fromkeys(("spark", "trino", "duckdb"), "INSERT INTO {table} VALUES (1, NULL), (2, NULL)")),
    ),
    new=("reserved",),
    filters=(Filter("reserved", "not null"), Filter("id", "=", 2)),
    cannot=NO_TYPE,
    expect=(
        spark_unreadable("spark-3.5*", "unknown", "Iceberg knows unknown on Spark 3.5 since 1.11"),
        trino_unreadable("trino-476", "unknown"),
        trino_unreadable("trino-483", "unknown"),
        duckdb_unreadable("unknown"),
    ),
)
UNREADABLE = "Spark has no timestamp finer than microseconds, and Iceberg's TypeToSparkType therefore no type for it"
NS_FILTER = Trap(
    "pyiceberg-ns-filter",
    "PyIceberg reads nanoseconds and can't filter by them",
    r"Cannot convert StringLiteral into timestamp(?:tz)?_ns",
    "pyiceberg.expressions.literals.StringLiteral.to",
    remedy="filter in Arrow what scan() returns",
)


def _unreadable(kind: str) -> tuple[Expect, ...]:
    return (
        SPARK_3_2_NO_V3,
        spark_unreadable("spark-*", kind, UNREADABLE),
        trino_unreadable("trino-476", kind),
        gap(
            "pyiceberg-*",
            "PyIceberg 0.12 makes no literal of nanoseconds of a text; without the filter all nine digits are read",
            NS_FILTER,
            ("TypeError", f"Cannot convert StringLiteral into {kind}"),
            at="filters",
        ),
    )


ZONELESS = tuple((id, Nanoseconds(text)) for id, text in enumerate(INSTANTS, start=1))
ZONED = tuple((id, Nanoseconds(f"{text}+00:00")) for id, text in enumerate(INSTANTS, start=1))
LATER = "2026-10-07T09:00:00.123456789"
TIMESTAMP_NS = feature(
    "timestamp-ns",
    "Nanoseconds without a zone",
    3,
    (("id", "int"), ("seen", "timestamp_ns")),
    ZONELESS,
    files=(DataFile(rows=ZONELESS[:2]), DataFile(rows=ZONELESS[2:])),
    new=("seen",),
    expect=_unreadable("timestamp_ns"),
    filters=(
        Filter("seen", "=", Nanoseconds(LATER)),
        Filter("seen", ">", Nanoseconds(LATER)),
        Filter("seen", "<", Nanoseconds("2026-10-07T09:00:01.000000000")),
        Filter("seen", "in", (Nanoseconds(INSTANTS[1]), Nanoseconds(INSTANTS[2]))),
        Filter("seen", "null"),
        Filter("seen", "not", Nanoseconds(LATER)),
    ),
)
TIMESTAMPTZ_NS = feature(
    "timestamptz-ns",
    "Nanoseconds with a zone",
    3,
    (("id", "int"), ("seen", "timestamptz_ns")),
    ZONED,
    files=(DataFile(rows=ZONED[:2]), DataFile(rows=ZONED[2:])),
    new=("seen",),
    expect=(*_unreadable("timestamptz_ns"), duckdb_unreadable("timestamptz_ns")),
    filters=(
        Filter("seen", "=", Nanoseconds(f"{LATER}+00:00")),
        Filter("seen", ">", Nanoseconds(f"{LATER}+00:00")),
        Filter("seen", "null"),
        Filter("seen", "not", Nanoseconds(f"{LATER}+00:00")),
    ),
)
SHAPES = (*((id, bytes.fromhex(point)) for id, point in enumerate(POINTS, start=1)), (4, None))


def _shown(name: str) -> Step:
    """Shapes as well-known binary, in hexadecimal digits."""
    return Step(
        "whole",
        {
            "spark": f"SELECT id, hex(ST_AsBinary({name})) FROM {{table}}",
            "trino": f"SELECT id, to_hex(ST_AsBinary({name})) FROM {{table}}",
            "duckdb": f"SELECT id, hex(ST_AsWKB({name})) FROM {{table}}",
        },
        read("whole", ["id", name], (), ["id", name]).call,
        truth={"pyiceberg": SHAPES, "*": tuple((id, shape and shape.hex().upper()) for id, shape in SHAPES)},
        second=True,
    )


def _no_shape(kind: str, trinos: str) -> tuple[Expect, ...]:
    return (
        SPARK_3_2_NO_V3,
        gap(
            "spark-4.1*1.12*",
            "Spark 4.1 has the type, switched off by default: the other columns are read",
            SWITCHED_OFF,
            ("AnalysisException", "[UNSUPPORTED_FEATURE.GEOSPATIAL_DISABLED]"),
            at="whole,filters",
        ),
        spark_unreadable("spark-*", kind, "Iceberg has a type of Spark's for it since 1.12"),
        trino_unreadable("trino-476", kind),
        gap(
            "trino-483",
            "its geospatial plugin, which has the type, is not part of the server as assembled here",
            TRINO_GEO,
            ("TYPE_NOT_FOUND", f"Unknown type: {trinos}"),
            at="others",
        ),
        gap(
            "pyiceberg-*",
            "PyIceberg takes the column for binary, as it is stored, and then promotes it to no shape",
            PYICEBERG_GEOMETRY,
            ("pyiceberg.exceptions.ResolveError", f"Cannot promote an binary to {kind}"),
            at="whole",
        ),
    )


GEOMETRY = feature(
    "geometry",
    "A geometry column",
    3,
    (("id", "int"), ("shape", "geometry")),
    SHAPES,
    files=(DataFile(rows=SHAPES),),
    new=("shape",),
    whole=_shown("shape"),
    expect=_no_shape("geometry", "Geometry"),
    filters=(Filter("shape", "null"), Filter("shape", "not null"), Filter("id", "=", 2)),
)
GEOGRAPHY = feature(
    "geography",
    "A geography column",
    3,
    (("id", "int"), ("shape", "geography")),
    SHAPES,
    files=(DataFile(rows=SHAPES),),
    new=("shape",),
    whole=_shown("shape"),
    expect=(
        gap(
            "duckdb-*",
            "DuckDB takes on a table's columns before it reads any, and has no geography",
            DUCKDB_GEOGRAPHY,
            ("_duckdb.NotImplementedException", "Geography support"),
            at="others",
        ),
        *_no_shape("geography", "SphericalGeography"),
    ),
    filters=(Filter("shape", "null"), Filter("shape", "not null"), Filter("id", "=", 2)),
)
