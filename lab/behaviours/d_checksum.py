"""Checksums as newer AWS SDKs send them without being asked, and what an older store makes of them.

SDKs of 2025 and later put a checksum behind the body of an upload, and leave out Content-MD5 where S3 once wanted it.
SeaweedFS takes both, the MinIO of 2021 neither: against it the lab sets what `when-required` has, for every engine.
"""

from __future__ import annotations

from lab.behaviours.h_delete import AT_ONCE, EXPIRY, REFUSED_IN_SILENCE, files_left, no_batch
from lab.behaviours.orders_steps import SSD, insert, read
from lab.model import Behaviour, Chain, Cure, Expect, Outcome, Trap, Variant, Where
from lab.tables.orders import ORDERS_V2

CALCULATION, VALIDATION = "AWS_REQUEST_CHECKSUM_CALCULATION", "AWS_RESPONSE_CHECKSUM_VALIDATION"
NOT_SET = {f"env.{CALCULATION}": None, f"env.{VALIDATION}": None}
WHEN_REQUIRED = {f"env.{CALCULATION}": "when_required", f"env.{VALIDATION}": "when_required"}
LEGACY_MD5 = {"spark.sql.catalog.lab.client.legacy-md5-plugin-enabled": "true"}
NEWER_SPARK = "spark-3.5*,spark-4*"  # the SDK of Iceberg 1.10 is 2.33; such checksums came with 2.30
SPECIFICATION = "AWS SDKs and Tools Reference, Data Integrity Protections for Amazon S3"

TRAILING_CHECKSUM = Trap(
    "trailing-checksum",
    "Reading works, every write to MinIO or another S3 look-alike fails with 411 or a wrong x-amz-content-sha256",
    r"(MissingContentLength|The provided 'x-amz-content-sha256' header does not match)",
    {
        "pyiceberg-*": "pyiceberg.io.pyarrow.PyArrowFile.create",
        "spark-*": "org.apache.iceberg.aws.s3.S3OutputStream.completeUploads",
    },
    remedy="a newer MinIO, or a store that knows STREAMING-…-TRAILER",
    also=("You must provide the Content-Length HTTP header", "XAmzContentSHA256Mismatch"),
)
_UNKNOWN_TO_MINIO = (
    "with a checksum behind the body the signature is of a sort (STREAMING-…-TRAILER) that this MinIO, of 2021, does "
    "not know (cmd.isRequestSignStreamingV4). "
)

UPLOAD = Behaviour(
    id="D-trailing-checksum",
    title="An INSERT with the checksum behind the body",
    source=SPECIFICATION,
    document=None,
    table=ORDERS_V2,
    steps=(insert(SSD), read(ORDERS_V2, *ORDERS_V2.rows, SSD)),
    variants=(
        Variant("sdk-default", "duckdb-*,pyiceberg-*,spark-*", settings=NOT_SET),
        Variant("sdk-default", "trino-*"),
        Variant(
            "when-required",
            "pyiceberg-*,spark-*",
            settings=WHEN_REQUIRED,
            cure=Cure(
                Where.ELSEWHERE,
                cost="S3 no longer checks uploads against a checksum of the client's, as before 2025",
                text=f"in the environment of the engine's processes, Spark's executors included: "
                f"`export {CALCULATION}=when_required {VALIDATION}=when_required` (in a JVM also "
                "`-Daws.requestChecksumCalculation=when_required -Daws.responseChecksumValidation=when_required`)",
                variants="sdk-default",
            ),
        ),
    ),
    expect=(
        Expect(
            Outcome.ERROR,
            f"{_UNKNOWN_TO_MINIO}PyArrow's SDK sends the body in chunks and announces no length, and MinIO wants one",
            generations="pyiceberg-*",
            variants="sdk-default",
            stores="minio",
            failure=Chain((("OSError", "(HTTP status 411) during UploadPart operation"),)),
            trap=TRAILING_CHECKSUM,
        ),
        Expect(
            Outcome.ERROR,
            f"{_UNKNOWN_TO_MINIO}MinIO takes the name of that sort for the body's SHA-256, and finds another",
            generations=NEWER_SPARK,
            variants="sdk-default",
            stores="minio",
            failure=Chain(
                (
                    ("java.io.UncheckedIOException", "Failed to close current writer"),
                    (
                        "software.amazon.awssdk.services.s3.model.S3Exception",
                        "The provided 'x-amz-content-sha256' header does not match what was computed. (Service: S3, "
                        "Status Code: 400",
                    ),
                )
            ),
            trap=TRAILING_CHECKSUM,
        ),
        Expect(Outcome.WORKS, "the SDK in Iceberg 1.4's bundle (2.20) sends none", generations="spark-3.2*"),
        Expect(Outcome.WORKS, "DuckDB speaks S3 itself, without an SDK", generations="duckdb-*"),
        Expect(
            Outcome.WORKS,
            "Trino tells its SDK itself to send such checksums only where they are required, and to keep Content-MD5 "
            "(io.trino.filesystem.s3.S3FileSystemLoader); the environment is not asked",
            generations="trino-*",
        ),
        Expect(Outcome.WORKS, "asked to, the SDK sends a checksum only where S3 demands it", variants="when-required"),
        Expect(Outcome.WORKS, "the store knows checksums behind the body"),
    ),
    tags=("v2", "write", "store"),
)

BATCH = Behaviour(
    id="D-delete-without-md5",
    title="A batch of deletions without Content-MD5",
    source=SPECIFICATION,
    document=None,
    table=ORDERS_V2,
    steps=EXPIRY,
    variants=(
        Variant("default", "spark-*"),
        Variant("default", "trino-*", settings=AT_ONCE),
        Variant(
            "legacy-md5",
            NEWER_SPARK,
            settings=LEGACY_MD5,
            cure=Cure(Where.SPARK_CATALOG, cost="a batch's body is hashed by MD5, a few kilobytes", variants="default"),
        ),
    ),
    expect=(
        Expect(
            Outcome.SILENTLY_WRONG,
            "the snapshots are gone and no file is: this MinIO answers each batch with 400 MissingContentMD5 "
            "(cmd.DeleteMultipleObjectsHandler), since newer SDKs send a CRC32 instead, and Spark says so in its log "
            f"alone. No variable cures that; Iceberg has a property of the catalog: {', '.join(LEGACY_MD5)}=true",
            generations=NEWER_SPARK,
            variants="default",
            stores="minio",
            facts=no_batch(3),
            trap=REFUSED_IN_SILENCE,
        ),
        Expect(
            Outcome.WORKS,
            "three batches, all taken: the store wants no Content-MD5, or the client sends it",
            generations="spark-*",
            facts={**files_left(0, 0), "deletes.batches": 3, "deletes.keys": 4, "deletes.refused": 0},
        ),
        Expect(
            Outcome.WORKS,
            "one batch, taken: Trino keeps Content-MD5 (S3FileSystemLoader)",
            facts={**files_left(0, 0), "deletes.batches": 1, "deletes.keys": 2, "deletes.refused": 0},
        ),
    ),
    tags=("v2", "write", "store"),
    kinds=("spark", "trino"),
)
