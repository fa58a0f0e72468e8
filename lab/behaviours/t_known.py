"""What document T's behaviours share: the statements that make a v3 table, and who can't say or read a type of v3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab.model import Call, Chain, Expect, Outcome, Step, Trap, Truth

SPARKS_WITH_V3 = "spark-3.5*,spark-4*"
GEOSPATIAL = {"spark.sql.geospatial.enabled": "true"}  # off by default, as Spark's own geospatial types are young


def on(op: str, **args: object) -> Call:
    return Call(op, {"namespace": "{namespace}", "table": "{table_name}", **args})


def create(
    columns: Mapping[str, str], schema: Sequence[tuple[str, str]] = (), *, version: int = 3, name: str = "create"
) -> Step:
    """Makes `{table}`: columns in each dialect's own words, `schema` in Iceberg's for PyIceberg."""
    tail = {
        "spark": f"USING iceberg TBLPROPERTIES ('format-version'='{version}')",
        "trino": f"WITH (format_version = {version})",
        "duckdb": f"WITH ('format-version'='{version}')",
    }
    call = on("create_table", schema=[(*column, False) for column in schema], properties={"format-version": "3"})
    sql = {kind: f"CREATE TABLE {{table}} ({words}) {tail[kind]}" for kind, words in columns.items()}
    return Step(name, sql, call if schema else None)


def select(name: str, columns: Sequence[str], truth: Truth, sql: Mapping[str, str] | None = None) -> Step:
    """What the second engine reads: these columns, in its own words where they differ."""
    plain = f"SELECT {', '.join(columns)} FROM {{table}}"
    return Step(name, {"*": plain, **(sql or {})}, on("scan", columns=list(columns)), truth=truth, second=True)


def gap(generations: str, reason: str, trap: Trap, *causes: tuple[str, str], at: str, **more: Any) -> Expect:
    """What a generation does not do, in its own words."""
    return Expect(
        Outcome.NOT_SUPPORTED, reason, generations=generations, failure=Chain(causes), at=at, trap=trap, **more
    )


# ---------------------------------------------------------------- a type that an engine has no words for
DATATYPE = Trap(
    "spark-datatype",
    "Spark's parser doesn't know the name of a type",
    r"Unsupported data type \"?(\w+)|DataType (\w+)(?:\(\d+\))? is not supported",
    "org.apache.spark.sql.errors.QueryParsingErrors$.dataTypeUnsupportedError",
    remedy="have an engine that has the type make the table; which ones can read it then, tells T-ns-values, T-variant "
    "and T-geo-types",
)
NO_ICEBERG_TYPE = Trap(
    "spark-no-iceberg-type",
    "Spark knows the type and its Iceberg has none for it",
    r"Not a supported type: (\w+)",
    "org.apache.iceberg.spark.SparkTypeToType.atomic",
    remedy="take a newer Iceberg: void needs 1.11 on Spark 3.5 and any on Spark 4, geometry needs 1.12",
)
TRINO_VERSION = Trap(
    "trino-format-version",
    "Trino makes no table of format version 3",
    r"format_version must be between 1 and 2",
    "io.trino.plugin.iceberg.IcebergTableProperties.validateFormatVersion",
    remedy="take Trino 483",
)
TRINO_TYPE = Trap(
    "trino-type-name",
    "Trino has no name for a column of no type",
    r"Unknown type 'unknown' for column",
    "io.trino.execution.CreateTableTask.internalExecute",
    remedy="have Spark 4 or PyIceberg make the table; Trino does not read it either",
)
DUCKDB_TYPE = Trap(
    "duckdb-type-name",
    "DuckDB has no nanoseconds with a zone",
    r"Type with name timestamptz_ns does not exist",
    "duckdb::Catalog::CreateMissingEntryException",
    remedy="take TIMESTAMP_NS, which has no zone",
)


def parser(generations: str, word: str, **more: Any) -> tuple[Expect, Expect]:
    """Spark's own parser refuses a type's name; 3.2 words it otherwise."""
    return (
        gap(
            "spark-3.2*",
            "the parser of Spark 3.2 has no such type",
            DATATYPE,
            ("ParseException", f"DataType {word.lower()} is not supported."),
            at="create",
            **more,
        ),
        gap(
            generations,
            "open-source Spark's parser has no such type: what takes it is a vendor's own Spark",
            DATATYPE,
            ("ParseException", f'[UNSUPPORTED_DATATYPE] Unsupported data type "{word}"'),
            at="create",
            **more,
        ),
    )


def trino_476(**more: Any) -> Expect:
    return gap(
        "trino-476",
        "Trino 476 reads v3 in part, and makes no table of it",
        TRINO_VERSION,
        ("INVALID_TABLE_PROPERTY", "format_version must be between 1 and 2"),
        at="create",
        **more,
    )


# ---------------------------------------------------------------- a table that has such a column
SPARK_UNREADABLE = Trap(
    "spark-unknown-type",
    "One column of a new type makes a whole table unreadable for Spark",
    r"Cannot convert un(?:known|supported) type to Spark: (\w+)",
    "org.apache.iceberg.spark.TypeToSparkType.primitive",
    remedy="read the table with another engine (Trino 483, DuckDB and PyIceberg read nanoseconds), or have it drop the "
    "column: DESCRIBE, count(*) and a SELECT of the other columns fail as well",
)
SPARK_NO_VARIANT = Trap(
    "spark-no-variant",
    "A variant column makes a whole table unreadable for Spark 3.5",
    r"Unsupported type: variant",
    "org.apache.iceberg.types.TypeUtil$SchemaVisitor.variant",
    remedy="take Spark 4",
)
TRINO_UNREADABLE = Trap(
    "trino-unknown-type",
    "One column of a new type makes a whole table unreadable for Trino",
    r"Cannot convert from Iceberg type '[^']+' \((\w+)\)",
    "io.trino.plugin.iceberg.TypeConverter.toTrinoType",
    remedy="take Trino 483, which knows variant and nanoseconds; unknown it does not know either",
)
TRINO_GEO = Trap(
    "trino-geospatial",
    "Trino without its geospatial plugin can't load a table with a geometry",
    r"Unknown type: (Geometry|SphericalGeography)",
    "io.trino.metadata.TypeRegistry.getType",
    remedy="install the geospatial plugin beside the iceberg one",
)
DUCKDB_UNREADABLE = Trap(
    "duckdb-unknown-type",
    "One column of a new type makes a whole table unreadable for DuckDB",
    r"Unrecognized primitive type: (\w+)",
    "duckdb::IcebergColumnDefinition::ParseType",
    remedy="have another engine drop the column",
)
DUCKDB_GEOGRAPHY = Trap(
    "duckdb-geography",
    "A geography column makes a whole table unreadable for DuckDB",
    r"Not implemented Error: Geography support",
    "duckdb::IcebergColumnDefinition::ParseType",
    remedy="use geometry, which DuckDB reads",
)
PYICEBERG_VARIANT = Trap(
    "pyiceberg-variant",
    "A variant column makes a whole table unreadable for PyIceberg",
    r"validation error for TableResponse(?s:.*)Unsupported field type: 'variant'",
    "pyiceberg.types.IcebergType.handle_primitive_type",
    remedy="read with Spark 4, Trino 483 or DuckDB",
)
PYICEBERG_GEOMETRY = Trap(
    "pyiceberg-geometry",
    "PyIceberg loads a table with a geometry or geography and can't read that column",
    r"Cannot promote an binary to geo(?:metry|graphy)",
    "pyiceberg.schema.promote",
    remedy="select the other columns",
)
PYICEBERG_GEOGRAPHY = Trap(
    "pyiceberg-geography",
    "PyIceberg can't load a table whose geography names its algorithm",
    r"Could not parse geography\(.*\) into a GeographyType",
    "pyiceberg.types._parse_geography_type",
    remedy="no reader's setting: `spherical` is the specification's default and Iceberg's Java library writes it out",
)


def spark_unreadable(generations: str, kind: str, reason: str, **more: Any) -> Expect:
    return gap(
        generations,
        reason,
        SPARK_UNREADABLE,
        ("java.lang.UnsupportedOperationException", f"type to Spark: {kind}"),
        at="others",
        **more,
    )


def trino_unreadable(generations: str, kind: str, **more: Any) -> Expect:
    return gap(
        generations,
        "Trino has no type for the column, and so no table: a SELECT of other columns fails as well",
        TRINO_UNREADABLE,
        ("NOT_SUPPORTED" if "483" in generations else "GENERIC_INTERNAL_ERROR", f"from Iceberg type '{kind}"),
        at="others",
        **more,
    )


def duckdb_unreadable(kind: str, **more: Any) -> Expect:
    return gap(
        "duckdb-*",
        "DuckDB takes on a table's columns before it reads any, and does not know this type",
        DUCKDB_UNREADABLE,
        ("_duckdb.Error", f"Unrecognized primitive type: {kind}"),
        at="others",
        **more,
    )
