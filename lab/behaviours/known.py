"""Known gaps of engine generations, once for all behaviours that meet them: the engine's own error and why."""

from __future__ import annotations

from lab.model import Chain, Expect, Outcome, Trap

UNSUPPORTED_VERSION = Chain(
    (
        (
            "org.apache.iceberg.exceptions.RESTException",
            "Received a success response code of 200, but failed to parse response body into LoadTableResponse",
        ),
        (
            "org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonMappingException",
            "Cannot read unsupported version 3 (through reference chain: org.apache.iceberg.rest.responses."
            'LoadTableResponse["metadata"])',
        ),
        ("java.lang.IllegalArgumentException", "Cannot read unsupported version 3"),
    ),
    whole=True,
)

V3_FOR_AN_OLD_LIBRARY = Trap(
    "v3-for-an-old-library",
    "An old Iceberg library can't even load a v3 table",
    r"Cannot read unsupported version 3",
    "org.apache.iceberg.TableMetadataParser.fromJson",
)
SPARK_3_2_NO_V3 = Expect(
    Outcome.NOT_SUPPORTED,
    "Iceberg 1.4 knows format versions up to 2: TableMetadataParser.fromJson refuses the catalog's valid answer",
    generations="spark-3.2*",
    failure=UNSUPPORTED_VERSION,
    trap=V3_FOR_AN_OLD_LIBRARY,
)
PYICEBERG_NO_V3_WRITE = Expect(
    Outcome.NOT_SUPPORTED,
    "PyIceberg 0.12 reads v3 but has no writer of v3 manifests (pyiceberg.manifest.write_manifest)",
    generations="pyiceberg-0.12*",
    at="insert,update,delete",
    failure=Chain((("ValueError", "Cannot write manifest for table version: 3"),), whole=True),
    trap=Trap(
        "pyiceberg-v3-write",
        "PyIceberg reads v3 and can't write it",
        r"Cannot write manifest for table version: 3",
        "pyiceberg.manifest.write_manifest",
    ),
)
NO_VECTORIZED_DELTA_LENGTH = Chain(
    (
        ("org.apache.spark.SparkException", "Job aborted due to stage failure: "),
        (
            "java.lang.UnsupportedOperationException",
            "with encoding DELTA_LENGTH_BYTE_ARRAY. Disable vectorized reads to read this table/file",
        ),
    )
)
ROW_BY_ROW = "Spark reads row by row instead of in batches of columns: here 1.4 to 2.8 times slower (docs/encodings.md)"
VECTORIZED_ENCODING = Trap(
    "vectorized-encoding",
    "Spark's vectorized reader doesn't know the encoding of a Parquet column",
    r"Cannot support vectorized reads for column .* with encoding (\w+)",
    "org.apache.iceberg.arrow.vectorized.parquet.VectorizedPageIterator.initDataReader",
)
TRINO_476_NO_V3_DELETES = Expect(
    Outcome.NOT_SUPPORTED,
    "Trino 476 inserts into v3, but its UPDATE and DELETE write v2 position delete files, which Iceberg 1.9's own "
    "commit check refuses for v3 (MergingSnapshotProducer.validateNewDeleteFile)",
    generations="trino-476",
    at="update,delete",
    failure=Chain(
        (
            ("GENERIC_INTERNAL_ERROR", "Must use DVs for position deletes in V3: s3://"),
            ("java.lang.IllegalArgumentException", "Must use DVs for position deletes in V3: s3://"),
        ),
        whole=True,
    ),
    trap=Trap(
        "v3-position-deletes",
        "An engine writes v2 position deletes into a v3 table",
        r"Must use DVs for position deletes in V3",
        "org.apache.iceberg.MergingSnapshotProducer.validateNewDeleteFile",
    ),
)
DEFAULT_OVERLOOKED = Trap(
    "default-overlooked",
    "A column's default comes back as null, without a word",
    "",
    {
        "iceberg-java-*": "org.apache.iceberg.parquet.ParquetValueReaders.nulls",
        "trino-*": "io.trino.plugin.iceberg.IcebergPageSourceProvider.createParquetPageSource",
    },
    remedy="read with Iceberg 1.8 or newer, with Trino 483, or write the column into every data file",
)
MUST_BE_NAMED = Trap(
    "spark-insert-all-columns",
    "Spark refuses an INSERT that leaves a column out",
    r"Cannot find data for the output column `\w+`",
    "org.apache.spark.sql.catalyst.analysis.TableOutputResolver$.resolveOutputColumns",
    remedy="name every column and give its value; Spark 4.1 takes such an INSERT",
)
