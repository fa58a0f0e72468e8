"""The grid behind H-delta-binary and H-delta-length: each encoding of Parquet over each type of Iceberg's, alone.

Every column of the shared, read-only tables is asked for by itself, so that one that can't be read hides no other.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from fnmatch import fnmatchcase

from lab.behaviours.known import ROW_BY_ROW, SPARK_3_2_NO_V3, VECTORIZED_ENCODING
from lab.behaviours.t_known import (
    DUCKDB_GEOGRAPHY,
    DUCKDB_UNREADABLE,
    PYICEBERG_GEOMETRY,
    SPARK_UNREADABLE,
    TRINO_GEO,
    TRINO_UNREADABLE,
    gap,
)
from lab.model import Behaviour, Call, Chain, Cure, Expect, Outcome, Step, Table, Trap, Variant, Where
from lab.tables import encodings
from lab.tables.encodings import NAMESPACE, PAIRS, V3_PAIRS, WORDS, column
from lab.tables.files import UNKNOWN

VECTORIZATION = "spark.sql.iceberg.vectorization.enabled"
OFF = "not-vectorized"
SINCE_3_5 = "spark-[34].[!2]*"


def select(table: Table, name: str) -> tuple[Step, ...]:
    """One column of a table and nothing else, and how its data file really stores it."""
    place = [known for known, _ in table.columns].index(name)
    rows = tuple((row[place],) for row in table.rows)
    texts = tuple(tuple(str(v) if isinstance(v, uuid.UUID) else v for v in row) for row in rows)
    scan = Call("scan", {"namespace": "{namespace}", "table": "{table_name}", "columns": [name]})
    return (
        Step("read", f"SELECT {name} FROM {{table}}", scan, truth={"spark": texts, "*": rows}),  # Spark has no uuid
        *([] if dict(table.columns)[name] == UNKNOWN else [Step("stored", look=f"stored:{name}", always=True)]),
    )


def variants(table: Table, columns: Sequence[str]) -> tuple[Variant, ...]:
    """For each column: as engines are, and Spark without its vectorized reader.

    Where that helps all generations but the oldest, the oldest has a variant of its own, which is no cure.
    """
    loads = table is not encodings.TIMES and table.format_version < 3  # the oldest can't even load those
    found = []
    for name in columns:
        word = name.lower().replace("_", "-")
        split = loads and any(fnmatchcase(f"{OFF}/{word}", glob) for glob in SPLIT_INTEGERS.split(","))
        steps, settings = select(table, name), {VECTORIZATION: "false"}
        cure = Cure(Where.SPARK_SESSION, ROW_BY_ROW, variants=f"default/{word}")
        found += [
            Variant(f"default/{word}", steps=steps),
            Variant(f"{OFF}/{word}", SINCE_3_5 if split else "spark-*", settings, steps=steps, cure=cure),
        ]
        if split:
            found.append(Variant(f"{OFF}-either/{word}", "spark-3.2*", settings, steps=steps))
    return tuple(sorted(found, key=lambda one: one.name.partition("/")[0]))


def variant(pair: encodings.Pair) -> str:
    """What follows the slash in the name of a pair's variants: `int-delta-binary`."""
    return column(pair).lower().replace("_", "-")


WORKS = Expect(Outcome.WORKS, "Parquet's specification has this for all its readers")
FLOATS = ("float", "double")
# Before Parquet 2.11 BYTE_STREAM_SPLIT was for floating point alone; many readers still take it so.
SPLIT_INTEGERS = ",".join(
    f"*/{variant(pair)}" for pair in (*PAIRS, *V3_PAIRS) if pair[0] == "BYTE_STREAM_SPLIT" and pair[1] not in FLOATS
)


def _no_vectorized(encoding: str, generations: str, since: str) -> Expect:
    return Expect(
        Outcome.NOT_SUPPORTED,
        f"Iceberg's vectorized reader has {encoding} {since}: VectorizedPageIterator.initDataReader",
        generations=generations,
        variants=f"default/*-{WORDS[encoding]}",
        failure=Chain(
            (
                ("org.apache.spark.SparkException", "Job aborted due to stage failure: "),
                ("java.lang.UnsupportedOperationException", f"with encoding {encoding}. Disable vectorized reads"),
            )
        ),
        trap=VECTORIZED_ENCODING,
    )


BEFORE_1_11 = "spark-3.2*,spark-3.5*,spark-4.0*"
GAPS = (
    _no_vectorized("RLE", "spark-*", "in no release up to 1.12, so that a boolean column of v2 pages stops it"),
    _no_vectorized("DELTA_BINARY_PACKED", "spark-3.2*", "since 1.10"),
    _no_vectorized("DELTA_LENGTH_BYTE_ARRAY", BEFORE_1_11, "since 1.11"),
    _no_vectorized("DELTA_BYTE_ARRAY", BEFORE_1_11, "since 1.11"),
    _no_vectorized("BYTE_STREAM_SPLIT", BEFORE_1_11, "since 1.11"),
    Expect(
        Outcome.NOT_SUPPORTED,
        "the Parquet library within Iceberg 1.4 (1.13) decodes BYTE_STREAM_SPLIT of FLOAT and DOUBLE only, vectorized "
        "or not: nothing but another encoding helps",
        generations="spark-3.2*",
        variants=SPLIT_INTEGERS,
        failure=Chain(
            (
                ("org.apache.spark.SparkException", "Job aborted due to stage failure: "),
                ("ParquetDecodingException", "no byte stream split reader for type "),
            )
        ),
        trap=Trap(
            "byte-stream-split-old-parquet",
            "An old Parquet library splits the bytes of floating point alone",
            r"no byte stream split reader for type ",
            "org.apache.iceberg.shaded.org.apache.parquet.column.Encoding.getValuesReader",
            remedy="write such columns in another encoding, or read them with Iceberg 1.10 or newer",
        ),
    ),
    Expect(
        Outcome.NOT_SUPPORTED,
        "DuckDB 1.5 decodes BYTE_STREAM_SPLIT of FLOAT and DOUBLE only",
        generations="duckdb-*",
        variants=SPLIT_INTEGERS,
        failure=Chain((("_duckdb.Error", "BYTE_STREAM_SPLIT encoding is only supported for FLOAT or DOUBLE data"),)),
        trap=Trap(
            "byte-stream-split-duckdb",
            "DuckDB splits the bytes of floating point alone",
            r"BYTE_STREAM_SPLIT encoding is only supported for FLOAT or DOUBLE data",
            "duckdb::ByteStreamSplitDecoder::Read",
            remedy="write such columns in another encoding",
        ),
    ),
    Expect(
        Outcome.NOT_SUPPORTED,
        "Trino decodes BYTE_STREAM_SPLIT of FLOAT and DOUBLE only",
        generations="trino-*",
        variants=SPLIT_INTEGERS,
        failure=Chain(
            (
                ("GENERIC_INTERNAL_ERROR", "Wrong encoding BYTE_STREAM_SPLIT for column "),
                ("java.lang.IllegalArgumentException", "Wrong encoding BYTE_STREAM_SPLIT for column "),
            )
        ),
        trap=Trap(
            "byte-stream-split-trino",
            "Trino splits the bytes of floating point alone",
            r"Wrong encoding BYTE_STREAM_SPLIT for column ",
            "io.trino.parquet.reader.decoders.ValueDecoders.wrongEncoding",
            remedy="write such columns in another encoding",
        ),
    ),
    Expect(
        Outcome.ERROR,
        "before 1.10 the vectorized reader takes a UUID for text where it is a dictionary's, and has no text to give: "
        "ArrowVectorAccessor.getUTF8String",
        generations="spark-3.2*",
        variants="default/uuid-dictionary",
        failure=Chain(
            (
                ("org.apache.spark.SparkException", "Job aborted due to stage failure: "),
                ("java.lang.UnsupportedOperationException", "Unsupported type: UTF8String"),
            )
        ),
        trap=Trap(
            "uuid-dictionary",
            "Spark's vectorized reader fails on a UUID in a dictionary",
            r"Unsupported type: UTF8String",
            "org.apache.iceberg.arrow.vectorized.ArrowVectorAccessor.getUTF8String",
        ),
    ),
)
TIMES = (
    Expect(
        Outcome.NOT_SUPPORTED,
        "Spark has no time of day: TypeToSparkType refuses the table's schema, so that no column of it can be read",
        generations="spark-*",
        failure=Chain((("java.lang.UnsupportedOperationException", "Spark does not support time fields"),)),
        trap=Trap(
            "time-of-day",
            "Spark reads no table that has a time of day",
            r"Spark does not support time fields",
            "org.apache.iceberg.spark.TypeToSparkType.primitive",
            remedy="drop the column, or keep it as a string or as microseconds in a long",
        ),
    ),
)
NOTHING_PACKED = (
    Expect(
        Outcome.ERROR,
        "a page of nulls alone has no value, and 1.11 writes the first one all the same into an array of none; 1.12 "
        "asks first (apache/iceberg#17017): VectorizedDeltaEncodedValuesReader.readValues. Integers escape, as their "
        "vector has room",
        generations="spark-*+iceberg-1.11*",
        variants="default/string-delta-*",
        failure=Chain(
            (
                ("org.apache.spark.SparkException", "Job aborted due to stage failure: "),
                ("java.lang.ArrayIndexOutOfBoundsException", "Index 0 out of bounds for length 0"),
            )
        ),
        trap=Trap(
            "all-null-delta-page",
            "A page of nulls alone stops Spark's vectorized reader",
            r"Index 0 out of bounds for length 0",
            "org.apache.iceberg.arrow.vectorized.parquet.VectorizedDeltaEncodedValuesReader.readValues",
        ),
    ),
)
LZ4_RAW = (
    Expect(
        Outcome.NOT_SUPPORTED,
        "Trino reads the deprecated LZ4 and not LZ4_RAW, which replaced it: ParquetCompressionUtils.decompress",
        generations="trino-*",
        variants="*-lz4",
        failure=Chain(
            (
                ("GENERIC_INTERNAL_ERROR", "Could not decompress page"),
                ("io.trino.parquet.ParquetCorruptionException", "Codec not supported in Parquet: LZ4_RAW"),
            )
        ),
        trap=Trap(
            "lz4-raw-trino",
            "Trino calls a file of LZ4_RAW malformed",
            r"Codec not supported in Parquet: LZ4_RAW",
            "io.trino.parquet.ParquetCompressionUtils.decompress",
            remedy="write with zstd or snappy, e.g. the table property write.parquet.compression-codec=zstd",
        ),
    ),
)
LZ4_FRAMED = (
    Expect(
        Outcome.NOT_SUPPORTED,
        "DuckDB reads LZ4_RAW and not the deprecated codec, whose framing Parquet never specified",
        generations="duckdb-*",
        failure=Chain((("_duckdb.InvalidInputException", 'Unsupported compression codec "LZ4"'),)),
        trap=Trap(
            "lz4-duckdb",
            "DuckDB reads no LZ4 in Hadoop's framing",
            r'Unsupported compression codec "LZ4"',
            "duckdb::ColumnReader::DecompressInternal",
            remedy="write with zstd or snappy, e.g. the table property write.parquet.compression-codec=zstd",
        ),
    ),
)


def _over_types(encoding: str) -> Behaviour:
    pairs = [pair for pair in PAIRS if pair[0] == encoding and pair[1] != "time"]
    title = f"{encoding} over every type that it can hold"
    return _behaviour(f"E-{WORDS[encoding]}", title, encodings.GRID, GAPS, [column(pair) for pair in pairs])


def _over_few(id: str, title: str, table: Table, expect: tuple[Expect, ...] = GAPS) -> Behaviour:
    return _behaviour(id, title, table, expect, [name for name, _ in table.columns])


def _behaviour(id: str, title: str, table: Table, expect: tuple[Expect, ...], columns: Sequence[str]) -> Behaviour:
    return Behaviour(
        id=id,
        title=title,
        source="the lab's own question",
        document=None,
        table=table,
        namespace=NAMESPACE,
        steps=(),
        variants=variants(table, columns),
        expect=(*expect, WORKS),
        tags=("encodings",),
    )


PLAIN = _over_types("PLAIN")
DICTIONARY = _over_types("RLE_DICTIONARY")
RLE = _over_types("RLE")
DELTA_BINARY = _over_types("DELTA_BINARY_PACKED")
DELTA_LENGTH = _over_types("DELTA_LENGTH_BYTE_ARRAY")
DELTA_BYTE_ARRAY = _over_types("DELTA_BYTE_ARRAY")
BYTE_STREAM_SPLIT = _over_types("BYTE_STREAM_SPLIT")
TIME = _over_few("E-time", "A time of day in every encoding", encodings.TIMES, (*TIMES, *GAPS))
PAGE_V2 = _over_few("E-page-v2", "Data pages of version 2", encodings.PAGES_V2)
FORMAT_V3 = _over_few("E-format-v3", "The same file in a v3 table", encodings.FORMAT_V3, (SPARK_3_2_NO_V3, *GAPS))
NO_NULLS = _over_few("E-no-nulls", "Columns without a null", encodings.NO_NULLS)
ALL_NULLS = _over_few("E-all-nulls", "Columns of nothing but nulls", encodings.ALL_NULLS, (*NOTHING_PACKED, *GAPS))
CODEC = _over_few("E-codec", "Every codec, lz4 being LZ4_RAW", encodings.CODECS, LZ4_RAW)
HADOOP_LZ4 = _over_few(
    "E-hadoop-lz4", "LZ4 in Hadoop's framing, the codec that Parquet deprecated", encodings.HADOOP, LZ4_FRAMED
)


NO_NANOSECONDS = (
    SPARK_3_2_NO_V3,
    gap(
        "spark-*",
        "Spark has no timestamp finer than microseconds, and Iceberg's TypeToSparkType therefore no type for it",
        SPARK_UNREADABLE,
        ("java.lang.UnsupportedOperationException", "type to Spark: timestamp"),
        at="read",
    ),
    gap(
        "trino-476",
        "Trino 476 has no type for the column, and so no table",
        TRINO_UNREADABLE,
        ("GENERIC_INTERNAL_ERROR", "from Iceberg type 'timestamp"),
        at="read",
    ),
)
NO_NANOSECONDS_UTC = (
    *NO_NANOSECONDS,
    gap(
        "duckdb-*",
        "DuckDB takes on a table's columns before it reads any, and does not know this type",
        DUCKDB_UNREADABLE,
        ("_duckdb.Error", "Unrecognized primitive type: timestamptz_ns"),
        at="read",
    ),
)


def _no_type(kind: str, trino_483: tuple[str, str], trap_483: Trap, sparks: str, why: str) -> tuple[Expect, ...]:
    """Who can't load a table with a column of this type: one column, and no other can be read either."""
    return (
        SPARK_3_2_NO_V3,
        gap(
            sparks,
            why,
            SPARK_UNREADABLE,
            ("java.lang.UnsupportedOperationException", f"type to Spark: {kind}"),
            at="read",
        ),
        gap(
            "trino-476",
            "Trino 476 has no type for the column, and so no table",
            TRINO_UNREADABLE,
            ("GENERIC_INTERNAL_ERROR", f"from Iceberg type '{kind}"),
            at="read",
        ),
        gap(
            "trino-483",
            "Trino 483 has no type for the column, and so no table"
            if kind == "unknown"
            else "its geospatial plugin, which has the type, is not part of the server as assembled here",
            trap_483,
            trino_483,
            at="read",
        ),
    )


SINCE_1_12 = "Iceberg maps the type to Spark's since 1.12, on Spark 4.1 alone"
NO_UNKNOWN = (
    *_no_type(
        "unknown",
        ("NOT_SUPPORTED", "from Iceberg type 'unknown"),
        TRINO_UNREADABLE,
        "spark-3.5*",
        "Iceberg 1.10 knows the type on Spark 4 and not on 3.5, whose TypeToSparkType has nothing for it",
    ),
    gap(
        "duckdb-*",
        "DuckDB takes on a table's columns before it reads any, and does not know this type",
        DUCKDB_UNREADABLE,
        ("_duckdb.Error", "Unrecognized primitive type: unknown"),
        at="read",
    ),
)
NO_GEOMETRY = (
    *_no_type(
        "geometry",
        ("TYPE_NOT_FOUND", "Unknown type: Geometry"),
        TRINO_GEO,
        "spark-3.5*,spark-4.0*,spark-4.1*1.11*",
        SINCE_1_12,
    ),
    gap(
        "pyiceberg-*",
        "PyIceberg takes the column for binary, as it is stored, and then promotes it to no geometry",
        PYICEBERG_GEOMETRY,
        ("pyiceberg.exceptions.ResolveError", "Cannot promote an binary to geometry"),
        at="read",
    ),
)
NO_GEOGRAPHY = (
    *_no_type(
        "geography",
        ("TYPE_NOT_FOUND", "Unknown type: SphericalGeography"),
        TRINO_GEO,
        "spark-3.5*,spark-4.0*,spark-4.1*1.11*",
        SINCE_1_12,
    ),
    gap(
        "duckdb-*",
        "DuckDB knows the type by name only, and so refuses the whole table",
        DUCKDB_GEOGRAPHY,
        ("_duckdb.NotImplementedException", "Geography support"),
        at="read",
    ),
    gap(
        "pyiceberg-*",
        "PyIceberg takes the column for binary, as it is stored, and then promotes it to no geography",
        PYICEBERG_GEOMETRY,
        ("pyiceberg.exceptions.ResolveError", "Cannot promote an binary to geography"),
        at="read",
    ),
)
NANOSECONDS = _over_few(
    "E-timestamp-ns", "Nanoseconds in every encoding", encodings.NANOSECONDS, (*NO_NANOSECONDS, *GAPS)
)
NANOSECONDS_UTC = _over_few(
    "E-timestamptz-ns", "Nanoseconds in UTC in every encoding", encodings.NANOSECONDS_UTC, (*NO_NANOSECONDS_UTC, *GAPS)
)
GEOMETRY = _over_few("E-geometry", "A geometry in every encoding", encodings.GEOMETRY, (*NO_GEOMETRY, *GAPS))
GEOGRAPHY = _over_few("E-geography", "A geography in every encoding", encodings.GEOGRAPHY, (*NO_GEOGRAPHY, *GAPS))
NOTHING = _over_few("E-unknown", "A column of no type at all", encodings.UNKNOWN, (*NO_UNKNOWN, *GAPS))
