"""Document H on ORDERS_V3: who reads v3, who writes it, and what makes the documented UPDATE fail."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.h_connect import CONNECT, OVER_CONNECT
from lab.behaviours.known import (
    PYICEBERG_NO_V3_WRITE,
    SPARK_3_2_NO_V3,
    TRINO_476_NO_V3_DELETES,
    UNSUPPORTED_VERSION,
)
from lab.behaviours.orders_steps import DESK_MAT, WRITTEN, delete, insert, lineage, read, set_quantity
from lab.model import Behaviour, Chain, Claim, Control, Cure, Expect, Outcome, Trap, Variant, Where
from lab.tables.orders import ORDERS_V3, order

DESK, CHAIR = ORDERS_V3.rows
DESK_UPDATED = order(1, "desk", 2, "25000.00", "2026-07-01 09:00", "snowflake")

REFUSED = (Outcome.ERROR, Outcome.NOT_SUPPORTED)
STRUCTS_DO_NOT_MATCH = Chain(
    (
        ("org.apache.spark.SparkException", "Structs do not match: "),
        ("java.lang.IllegalArgumentException", "optional int64 _row_id = 2147483540;"),
    )
)

WITHOUT_EXTENSIONS = Trap(
    "v3-update-without-extensions",
    "UPDATE of a v3 table: Structs do not match",
    r"Structs do not match: .*",
    "org.apache.iceberg.spark.data.ParquetWithSparkSchemaVisitor.visitFields",
)
ROW_ID_LOST = Trap(
    "v3-row-id-lost",
    "UPDATE of a v3 table gives the row another _row_id, and no error tells",
    "",
    "org.apache.iceberg.spark.source.SparkPositionDeltaWrite$UnpartitionedDeltaWriter.insert",
)
EXTENSIONS = "spark.sql.extensions"
ICEBERGS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
NO_EXTENSIONS = {EXTENSIONS: None}
EXTENDED = Cure(
    Where.SPARK_START,
    "none known; it takes a session that can still be started with it: over Spark Connect it is too late "
    "(H-connect-conf)",
    settings={EXTENSIONS: ICEBERGS},
    variants="no-extensions*",
)
MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
READS_V3 = Expect(Outcome.WORKS, "v3 without deletes is read by Iceberg libraries from 1.9 on, DuckDB and PyIceberg")
WRITES_V3 = Expect(Outcome.WORKS, "v3 is written by Iceberg libraries from 1.9 on and by DuckDB")

PARSE_ERROR = Behaviour(
    id="H-v3-parse-error",
    title="An old library can't even load a v3 table",
    source="H, verification 1 steps 9 and 10",
    document="Spark 3.2 with Iceberg 1.4: SELECT and INSERT fail while parsing the catalog's answer of 200",
    table=ORDERS_V3,
    steps=(read(ORDERS_V3),),
    variants=(Variant("select"), Variant("insert", steps=(insert(DESK_MAT), read(ORDERS_V3, DESK, CHAIR, DESK_MAT)))),
    claims=(Claim("spark-3.2*", REFUSED, failure=UNSUPPORTED_VERSION),),
    expect=(
        SPARK_3_2_NO_V3,
        replace(PYICEBERG_NO_V3_WRITE, variants="insert"),
        replace(READS_V3, variants="select"),
        WRITES_V3,
    ),
    tags=("v3",),
)

READ = Behaviour(
    id="H-v3-read",
    title="Reading v3",
    source="H, verification 2 step 9",
    document="Spark 3.5 with Iceberg 1.10.0 reads v3",
    table=ORDERS_V3,
    steps=(read(ORDERS_V3),),
    claims=(Claim("spark-3.2*", REFUSED, failure=UNSUPPORTED_VERSION), Claim("spark-3.5*", Outcome.WORKS)),
    expect=(SPARK_3_2_NO_V3, READS_V3),
    tags=("v3", "read"),
)

INSERT = Behaviour(
    id="H-v3-insert",
    title="INSERT into v3",
    source="H, verification 2 step 10",
    document="succeeds on Spark 3.5 with Iceberg 1.10.0, the row is visible",
    table=ORDERS_V3,
    steps=(insert(DESK_MAT), read(ORDERS_V3, DESK, CHAIR, DESK_MAT)),
    claims=(Claim("spark-3.2*", REFUSED, failure=UNSUPPORTED_VERSION), Claim("spark-3.5*", Outcome.WORKS)),
    expect=(SPARK_3_2_NO_V3, PYICEBERG_NO_V3_WRITE, WRITES_V3),
    tags=("v3", "write"),
)

UPDATE = Behaviour(
    id="H-v3-update",
    title="UPDATE of v3",
    source="H, verification 2 step 11",
    document="fails on Spark 3.5: “Structs do not match”; blames Spark 3.5 as such, expects Spark 4 to do it",
    table=ORDERS_V3,
    steps=(set_quantity(1, 2), read(ORDERS_V3, DESK_UPDATED, CHAIR), lineage((1, 0, 2), (2, 1, 1)), WRITTEN),
    variants=(
        Variant("default", cure=EXTENDED),
        Variant("no-extensions", generations="spark-*", settings=NO_EXTENSIONS),
        Variant("connect", generations=CONNECT, settings=OVER_CONNECT),
        Variant("merge-on-read", generations="spark-*", properties=MERGE_ON_READ),
        Variant("no-extensions-merge-on-read", generations="spark-*", settings=NO_EXTENSIONS, properties=MERGE_ON_READ),
    ),
    claims=(
        Claim("spark-3.5*", REFUSED, failure=STRUCTS_DO_NOT_MATCH),
        Claim("spark-4*", Outcome.WORKS),
    ),
    expect=(
        SPARK_3_2_NO_V3,
        PYICEBERG_NO_V3_WRITE,
        TRINO_476_NO_V3_DELETES,
        Expect(
            Outcome.ERROR,
            "without Iceberg's extensions nothing adds the lineage columns to the plan of a copy-on-write UPDATE, but "
            "SparkWriteBuilder writes them: ParquetWithSparkSchemaVisitor finds six fields where the file has eight",
            generations="spark-3.5*",
            variants="no-extensions",
            failure=STRUCTS_DO_NOT_MATCH,
            at="update",
            trap=WITHOUT_EXTENSIONS,
        ),
        Expect(
            Outcome.SILENTLY_WRONG,
            "merge-on-read takes another writer, which misses no column: the UPDATE succeeds, and the updated row gets "
            "a new _row_id instead of keeping its own, as the specification demands. No error tells",
            generations="spark-3.5*",
            variants="no-extensions-merge-on-read",
            facts={"written.deletes": ["deletion-vector"]},
            rows={"lineage": ((1, 2, 2), (2, 1, 1))},
            trap=ROW_ID_LOST,
            cause="write.update.mode=merge-on-read (org.apache.iceberg.spark.source.SparkPositionDeltaWrite)",
            control=Control(variant="no-extensions"),
        ),
        Expect(
            Outcome.WORKS,
            "with Iceberg's extensions the rule RewriteUpdateTableForRowLineage adds the lineage columns to the plan",
            generations="spark-3.5*",
            cause=f"{EXTENSIONS} (its rule org.apache.spark.sql.catalyst.analysis.RewriteUpdateTableForRowLineage)",
            control=Control(variant="no-extensions"),
        ),
        Expect(
            Outcome.WORKS,
            "Spark 4 carries metadata columns through row-level operations by itself, with or without the extensions, "
            "and over Spark Connect alike",
            generations="spark-4*",
        ),
        WRITES_V3,
    ),
    tags=("v3", "write", "lineage"),
)

_MERGES_ON_READ = Expect(
    Outcome.WORKS,
    "DuckDB and Trino always merge on read: a deletion vector, even for the only row of a file",
    generations="duckdb-*,trino-*",
    facts={"written.data_removed": 0, "written.deletes": ["deletion-vector"]},
)
DELETE = Behaviour(
    id="H-v3-delete",
    title="DELETE from v3, and what it really wrote",
    source="H, verification 2 step 12",
    document="succeeds on Spark 3.5, by deletion vectors",
    table=ORDERS_V3,
    steps=(delete(2), read(ORDERS_V3, DESK), WRITTEN),
    variants=(
        Variant("whole-file", steps=(insert(DESK_MAT), delete(111), read(ORDERS_V3, DESK, CHAIR), WRITTEN)),
        Variant("one-of-two"),
        Variant(
            "one-of-two-merge-on-read",
            properties=MERGE_ON_READ,
            cure=Cure(
                Where.TABLE,
                "every reader joins the deletion vectors to the data until rewrite_data_files removes them",
                settings={"write.delete.mode": "merge-on-read"},
            ),
        ),
    ),
    claims=(Claim("spark-3.5*", Outcome.WORKS, facts={"written.deletes": ["deletion-vector"]}),),
    expect=(
        SPARK_3_2_NO_V3,
        PYICEBERG_NO_V3_WRITE,
        TRINO_476_NO_V3_DELETES,
        Expect(
            Outcome.WORKS,
            "the condition covers a whole file, as the document's did: the file is dropped from the table, no delete "
            "file and no deletion vector is written",
            generations="spark-*",
            variants="whole-file",
            facts={"written.operation": "delete", "written.data_removed": 1, "written.deletes": []},
            cause="org.apache.iceberg.spark.source.SparkTable.canDeleteWhere",
            control=Control(variant="one-of-two-merge-on-read"),
        ),
        Expect(
            Outcome.WORKS,
            "copy-on-write is Spark's default in v3 too: the file is rewritten without the row",
            generations="spark-*",
            variants="one-of-two",
            facts={
                "written.operation": "overwrite",
                "written.data_added": 1,
                "written.data_removed": 1,
                "written.deletes": [],
            },
            cause="write.delete.mode=copy-on-write, the default",
            control=Control(variant="one-of-two-merge-on-read"),
        ),
        Expect(
            Outcome.WORKS,
            "merge-on-read on v3 writes a deletion vector",
            generations="spark-*",
            variants="one-of-two-merge-on-read",
            facts={"written.operation": "delete", "written.data_removed": 0, "written.deletes": ["deletion-vector"]},
        ),
        _MERGES_ON_READ,
    ),
    tags=("v3", "write"),
)

SPARK4 = Behaviour(
    id="H-v3-spark4",
    title="v3 read and written wholly: SELECT, INSERT, UPDATE, DELETE in a row",
    source="H, verification 2, conclusion on v3",
    document="a forecast, untested: Spark 4 reads and writes v3 wholly, UPDATE included",
    table=ORDERS_V3,
    steps=(
        read(ORDERS_V3),
        insert(DESK_MAT),
        set_quantity(1, 2),
        delete(2),
        read(ORDERS_V3, DESK_UPDATED, DESK_MAT, name="read-back"),
    ),
    claims=(Claim("spark-4*", Outcome.WORKS),),
    expect=(SPARK_3_2_NO_V3, PYICEBERG_NO_V3_WRITE, TRINO_476_NO_V3_DELETES, WRITES_V3),
    tags=("v3", "write"),
)
