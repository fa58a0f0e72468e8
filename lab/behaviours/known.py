"""Known gaps of engine generations, once for all behaviours that meet them: the engine's own error and why."""

from __future__ import annotations

from lab.model import Chain, Expect, Outcome

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

SPARK_3_2_NO_V3 = Expect(
    Outcome.NOT_SUPPORTED,
    "Iceberg 1.4 knows format versions up to 2: TableMetadataParser.fromJson refuses the catalog's valid answer",
    generations="spark-3.2*",
    failure=UNSUPPORTED_VERSION,
)
PYICEBERG_NO_V3_WRITE = Expect(
    Outcome.NOT_SUPPORTED,
    "PyIceberg 0.12 reads v3 but has no writer of v3 manifests (pyiceberg.manifest.write_manifest)",
    generations="pyiceberg-0.12*",
    at="insert,update,delete",
    failure=Chain((("ValueError", "Cannot write manifest for table version: 3"),), whole=True),
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
)
