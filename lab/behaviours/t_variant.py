"""Document T on variant: values, paths and whole documents, and who reads whose files."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.encodings import VECTORIZATION
from lab.behaviours.known import NO_VECTORIZED_DELTA_LENGTH, ROW_BY_ROW, SPARK_3_2_NO_V3, VECTORIZED_ENCODING
from lab.behaviours.t_known import (
    PYICEBERG_VARIANT,
    SPARK_NO_VARIANT,
    create,
    gap,
    parser,
    select,
    trino_476,
    trino_unreadable,
)
from lab.model import Behaviour, Chain, Claim, Cure, Expect, Outcome, Step, Trap, Variant, Where
from lab.tables.types import EVENTS

COLUMNS = EVENTS.columns
ROWS = EVENTS.rows
AS_JSON = {
    "spark": "SELECT event_id, source, to_json(event_data) AS event_data FROM {table}",
    "trino": "SELECT event_id, source, json_format(CAST(event_data AS JSON)) AS event_data FROM {table}",
    "duckdb": "SELECT event_id, source, CAST(CAST(event_data AS JSON) AS VARCHAR) AS event_data FROM {table}",
}
CREATE = create(
    {
        "spark": "event_id bigint, source string, event_data variant",
        "trino": "event_id bigint, source varchar, event_data variant",
        "duckdb": "event_id bigint, source varchar, event_data variant",
    },
    COLUMNS,
)


def _inserted(cast: str) -> str:
    rows = ", ".join(f"({event}, '{source}', {cast.format(text)})" for event, source, text in ROWS)
    return f"INSERT INTO {{table}} VALUES {rows}"


INSERT = Step(
    "insert",
    {
        "spark": _inserted("parse_json('{}')"),
        "trino": _inserted("CAST(JSON '{}' AS VARIANT)"),
        "duckdb": _inserted("'{}'::JSON::VARIANT"),
    },
    optional=True,
)
PATHS = Step(
    "paths",
    {
        "spark": "SELECT event_id, variant_get(event_data, '$.user_id', 'string'), "
        "variant_get(event_data, '$.total', 'double'), variant_get(event_data, '$.items[0].sku', 'string') "
        "FROM {table}",
        "trino": "SELECT event_id, json_extract_scalar(CAST(event_data AS JSON), '$.user_id'), "
        "CAST(json_extract_scalar(CAST(event_data AS JSON), '$.total') AS double), "
        "json_extract_scalar(CAST(event_data AS JSON), '$.items[0].sku') FROM {table}",
        "duckdb": "SELECT event_id, CAST(event_data AS JSON)->>'$.user_id', "
        "CAST(CAST(event_data AS JSON)->>'$.total' AS DOUBLE), CAST(event_data AS JSON)->>'$.items[0].sku' "
        "FROM {table}",
    },
    truth=((1, "u-1234", None, None), (2, "u-5678", 49.99, "A100")),
    optional=True,
)
WHOLE = Step("whole", AS_JSON, truth=ROWS, optional=True)
SCHEMA = Step("schema", look="schema")

OTHERS = select("others", ("event_id", "source"), tuple(row[:2] for row in ROWS))
BY_ROW = {VECTORIZATION: "false"}

VARIANT_COLUMN = Trap(
    "pyiceberg-no-variant-column",
    "PyIceberg makes no variant column",
    r"validation error for NestedField",
    "pyiceberg.types.IcebergType.handle_primitive_type",
    remedy="have Spark 4, Trino 483 or DuckDB make the table",
)
SHREDDED_SPARK = Trap(
    "variant-shredded-duckdb-spark",
    "Iceberg can't read a variant that DuckDB has shredded",
    r"Cannot find field name in metadata: \w+",
    "org.apache.iceberg.variants.ShreddedObject.writeTo",
    remedy="the writer's part: DuckDB leaves the names of shredded fields out of the variant's metadata, where the "
    "Parquet specification wants them; no setting of a reader's helps",
)
SHREDDED_BATCHES = Trap(
    "variant-shredded-batches",
    "Beside a shredded variant, Spark can't read the other columns either",
    r"Unsupported variant: shredded typed_value",
    "org.apache.iceberg.arrow.vectorized.VectorizedVariantVisitor.primitive",
)
SHREDDED_TRINO = Trap(
    "variant-shredded-trino",
    "Trino can't read a shredded variant",
    r"Invalid VARIANT column, expected exactly 2 children but found: 3",
    "io.trino.plugin.iceberg.IcebergParquetColumnIOConverter.constructField",
    remedy="have the table written by Spark 4 or Trino, which store a variant in one piece",
)
PROJECTED = Trap(
    "variant-not-selected",
    "A SELECT that leaves a variant column out fails, and one with it works",
    r"\"iType\" is null",
    "org.apache.iceberg.parquet.TypeWithSchemaVisitor.visit",
    remedy="select the variant column too (SELECT *), or take Iceberg 1.11",
)
OTHERS_FAIL = Expect(
    Outcome.ERROR,
    "Iceberg 1.10 prunes the variant from the schema that it expects and not from the file's: reading other "
    "columns of the table fails, reading the variant with them does not",
    generations="spark-4.0*",
    failure=Chain((("org.apache.spark.SparkException", 'asVariantType()" because "iType" is null'),)),
    at="others",
    trap=PROJECTED,
)
RAW = Trap(
    "variant-raw-duckdb",
    "DuckDB shows a variant's stored bytes instead of its value",
    "",
    "duckdb::ParquetReader::ParseSchemaRecursive",
    remedy="none in DuckDB: Trino writes the column without Parquet's VARIANT annotation, and DuckDB takes it for the "
    "struct of two binaries that it then is",
)
NO_TYPE = (*parser("spark-3.5*", "VARIANT"), trino_476())

VARIANT = Behaviour(
    id="T-variant",
    title="A variant column, its paths and its values",
    source="T, events",
    document="parse_json, variant_get, to_json and nested paths work; the metadata has the type variant",
    table=EVENTS,
    steps=(CREATE, INSERT, PATHS, SCHEMA),
    claims=(Claim("spark-4.1*", Outcome.WORKS, facts={"schema.types": dict(COLUMNS)}),),
    expect=(
        *NO_TYPE,
        gap(
            "pyiceberg-*",
            "PyIceberg 0.12 has no such type",
            VARIANT_COLUMN,
            ("pydantic_core._pydantic_core.ValidationError", "Unsupported field type: 'variant'"),
            at="create",
        ),
        Expect(Outcome.WORKS, "written and read by path", facts={"schema.types": dict(COLUMNS)}),
    ),
    tags=("v3", "types"),
)


def _read(writer: str, name: str) -> Variant:
    return Variant(
        name,
        steps=(
            CREATE,
            INSERT,
            OTHERS,
            select("whole", ("event_id", "source", "event_data"), ROWS, AS_JSON),
        ),
        pairs=((writer, "*"),),
    )


STORED = (
    (
        1,
        "web-app",
        r'{"metadata":"\\x11\\x04\\x00\\x06\\x11\\x15\\x1Cactionduration_mspageuser_id",'
        r'"value":"\\x02\\x04\\x00\\x01\\x02\\x03\\x00\\x0A\\x0F\\x19 %page_view\\x14^'
        r'\\x01\\x00\\x00%/products\\x19u-1234"}',
    ),
    (
        2,
        "mobile-app",
        r'{"metadata":"\\x11\\x06\\x00\\x06\\x0B\\x0E\\x11\\x16\\x1Dactionitemsqtyskutotaluser_id",'
        r'"value":"\\x02\\x04\\x00\\x01\\x04\\x05\\x00\\x09\\x1E\\x27.!purchase\\x03\\x01\\x00\\x11\\x02\\x02\\x02\\x03'
        r'\\x00\\x05\\x0A\\x14\\x02\\x00\\x00\\x00\\x11A100\\x1C\\x1F\\x85\\xEBQ\\xB8\\xFEH@\\x19u-5678"}',
    ),
)
VARIANT_WHOLE = Behaviour(
    id="T-variant-whole",
    title="Every key of a variant comes back, whoever wrote it",
    source="T, events: to_json",
    document="every key inserted comes back; in the document's own output one row shows two of its four keys",
    table=EVENTS,
    steps=(CREATE, INSERT, WHOLE),
    variants=(
        Variant("own", generations="spark-4*,trino-483,duckdb-*"),
        _read("spark-4.1*1.12*", "of-spark"),
        _read("trino-483", "of-trino"),
        _read("duckdb-*", "of-duckdb"),
        Variant(
            "of-trino-by-row",
            steps=(CREATE, INSERT, OTHERS),
            pairs=(("trino-483", "spark-4.0*"),),
            second_settings=BY_ROW,
            cure=Cure(Where.SPARK_SESSION, ROW_BY_ROW, variants="of-trino"),
        ),
        Variant(
            "of-duckdb-by-row",
            steps=(CREATE, INSERT, OTHERS),
            pairs=(("duckdb-*", "spark-4.1*1.12*"),),
            second_settings=BY_ROW,
            cure=Cure(Where.SPARK_SESSION, f"the variant itself stays unreadable; {ROW_BY_ROW}", variants="of-duckdb"),
        ),
    ),
    claims=(Claim("spark-4.1*", Outcome.WORKS, variants="own"),),
    expect=(
        SPARK_3_2_NO_V3,
        gap(
            "spark-3.5*",
            "Spark 3.5 has no such type, and Iceberg's schema visitor no answer: the whole table is unreadable",
            SPARK_NO_VARIANT,
            ("java.lang.UnsupportedOperationException", "Unsupported type: variant"),
            at="others",
        ),
        trino_unreadable("trino-476", "variant"),
        gap(
            "pyiceberg-*",
            "PyIceberg 0.12 can't parse the table's metadata",
            PYICEBERG_VARIANT,
            ("pydantic_core._pydantic_core.ValidationError", "Unsupported field type: 'variant'"),
            at="others",
        ),
        replace(OTHERS_FAIL, variants="of-spark,of-duckdb"),
        Expect(
            Outcome.NOT_SUPPORTED,
            "Trino 483 stores strings as DELTA_LENGTH_BYTE_ARRAY, which the vectorized reader of 1.10 has not; with a "
            "variant in the SELECT Spark reads row by row, and all is well",
            generations="spark-4.0*",
            variants="of-trino",
            failure=NO_VECTORIZED_DELTA_LENGTH,
            at="others",
            trap=VECTORIZED_ENCODING,
        ),
        Expect(
            Outcome.NOT_SUPPORTED,
            "1.12 looks at all columns of a file before it reads some in batches, and knows no shredded variant there: "
            "the other columns of such a table are unreadable. 1.11 reads them",
            generations="spark-4.1*1.12*",
            variants="of-duckdb",
            failure=Chain((("java.lang.UnsupportedOperationException", "Unsupported variant: shredded typed_value"),)),
            at="others",
            trap=SHREDDED_BATCHES,
        ),
        Expect(
            Outcome.ERROR,
            "DuckDB shreds a variant's fields into columns of their own and leaves their names out of the variant's "
            "metadata; Iceberg wants them there",
            generations="spark-*",
            variants="of-duckdb",
            failure=Chain((("java.lang.IllegalArgumentException", "Cannot find field name in metadata: "),)),
            at="whole",
            trap=SHREDDED_SPARK,
        ),
        Expect(
            Outcome.ERROR,
            "Trino 483 reads a variant of two parts, metadata and value; DuckDB shreds it, which adds typed_value",
            generations="trino-483",
            variants="of-duckdb",
            failure=Chain((("ICEBERG_CANNOT_OPEN_SPLIT", "expected exactly 2 children but found: 3"),)),
            at="others,whole",
            trap=SHREDDED_TRINO,
        ),
        Expect(
            Outcome.SILENTLY_WRONG,
            "Trino writes the column without Parquet's VARIANT annotation; DuckDB then shows the struct of two "
            "binaries that it is stored as, without a word",
            generations="duckdb-*",
            variants="of-trino",
            rows={"whole": STORED},
            trap=RAW,
        ),
        Expect(Outcome.WORKS, "every key of both documents comes back"),
    ),
    tags=("v3", "types"),
)
