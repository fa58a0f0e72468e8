"""Document T on what stands around the rows: metadata tables and the codec that new tables carry."""

from __future__ import annotations

from lab.behaviours.known import SPARK_3_2_NO_V3
from lab.behaviours.refusals import paced, ruled
from lab.behaviours.t_known import create, trino_476
from lab.model import Behaviour, Claim, Expect, Outcome, Step, Variant
from lab.tables.types import ORDERS

COLUMNS = {
    "spark": "order_id bigint, amount decimal(10,2), currency string",
    "trino": "order_id bigint, amount decimal(10,2), currency varchar",
    "duckdb": "order_id bigint, amount decimal(10,2), currency varchar",
}
MADE = create(COLUMNS, ORDERS.columns)
INSERTS = tuple(Step(f"insert-{key}", f"INSERT INTO {{table}} VALUES ({key}, 1000.00, NULL)") for key in (1, 2, 3))
FILES = Step(
    "files",
    {
        "spark": "SELECT file_format, record_count FROM {table}.files",
        "trino": 'SELECT file_format, record_count FROM lab.{namespace}."orders$files"',
        "duckdb": "SELECT upper(file_format), record_count FROM iceberg_metadata({table})",
    },
    truth=(("PARQUET", 1),) * 3,
)
SNAPSHOTS = Step(
    "snapshots",
    {
        "spark": "SELECT operation, summary['added-records'] FROM {table}.snapshots",
        "trino": "SELECT operation, element_at(summary, 'added-records') FROM lab.{namespace}.\"orders$snapshots\"",
        "duckdb": "SELECT operation, '1' FROM iceberg_snapshots({table})",
    },
    truth={"trino": (("append", None), *(("append", "1"),) * 3), "*": (("append", "1"),) * 3},
)
METADATA_TABLES = Behaviour(
    id="T-metadata-tables",
    title="The tables files and snapshots",
    source="T, what the files and snapshots tables show",
    document="one file per inserted row and task; operation append and added-records 1 for each of three inserts",
    table=ORDERS,
    steps=(MADE, *INSERTS, FILES, SNAPSHOTS),
    variants=(
        Variant("three-inserts"),
        Variant(
            "one-insert",
            steps=(
                MADE,
                Step("insert", "INSERT INTO {table} VALUES (1, 1.00, NULL), (2, 2.00, NULL), (3, 3.00, NULL)"),
                Step(
                    "files",
                    FILES.sql,
                    truth={"spark": (("PARQUET", 1), ("PARQUET", 2)), "*": (("PARQUET", 3),)},
                ),
            ),
        ),
    ),
    kinds=("duckdb", "spark", "trino"),
    claims=(Claim("spark-4.1*", Outcome.WORKS),),
    expect=(
        SPARK_3_2_NO_V3,
        trino_476(),
        Expect(
            Outcome.WORKS,
            "a file for each task: three rows of one INSERT are two files here, where Spark has two cores, and three "
            "on the document's",
            generations="spark-*",
        ),
        Expect(
            Outcome.WORKS,
            "a file for each INSERT; Trino's CREATE TABLE is a snapshot of its own, which adds nothing. DuckDB's "
            "snapshots show no summary",
        ),
    ),
    tags=("v3", "metadata"),
)

CODEC = Behaviour(
    id="T-codec",
    title="The codec that a new table carries as a property",
    source="T, vehicle_telemetry: SHOW TBLPROPERTIES",
    document="tables created there carry write.parquet.compression-codec = zstd",
    table=ORDERS,
    steps=(MADE, Step("schema", look="schema")),
    variants=(Variant(), *paced(*ruled("T-codec", "s3tables"))),
    claims=(Claim("spark-4.1*", Outcome.WORKS, variants="default,rule", facts={"schema.codec": "zstd"}),),
    expect=(
        SPARK_3_2_NO_V3,
        trino_476(),
        Expect(
            Outcome.WORKS,
            "the vendor's catalog gives the property to a table whose client names none, as Iceberg's library does",
            generations="duckdb-*,pyiceberg-*,spark-*",
            variants="rule",
            facts={"schema.codec": "zstd", "create.amended": ["T-codec"]},
        ),
        Expect(
            Outcome.WORKS,
            "Trino's request names a property for every default of the catalog's, and this one it takes away",
            generations="trino-483",
            facts={"schema.codec": None},
        ),
        Expect(
            Outcome.WORKS,
            "Iceberg's library gives a new table the property since 1.4; here it is the catalog that does so, whoever "
            "creates",
            facts={"schema.codec": "zstd"},
        ),
    ),
    tags=("v3", "metadata"),
)
