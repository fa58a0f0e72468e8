"""Document H on ORDERS_V2: one v2 table, many engines, one history."""

from __future__ import annotations

from lab.behaviours.known import NO_VECTORIZED_DELTA_LENGTH, ROW_BY_ROW, VECTORIZED_ENCODING
from lab.behaviours.orders_steps import (
    CABLE,
    HDD,
    HISTORY,
    HUB,
    HUB_UPDATED,
    SSD,
    SSD_UPDATED,
    WRITTEN,
    delete,
    insert,
    read,
    set_quantity,
)
from lab.model import Behaviour, Call, Chain, Claim, Control, Cure, Expect, Outcome, Step, Trap, Variant, Where
from lab.tables.orders import NAMESPACE, ORDERS_V2

SEEDS = ORDERS_V2.rows

SHOW_NAMESPACES = Step(
    "namespaces",
    {
        "spark": "SHOW NAMESPACES IN lab",
        "trino": "SHOW SCHEMAS FROM lab",
        "duckdb": "SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lab'",
    },
    Call("list_namespaces"),
    truth={"trino": (("{namespace_lower}",),), "*": (("{namespace}",),)},  # Trino shows every name in lower case
    among=True,
)

COUNTS = Step(
    "counts",
    "SELECT WRITTEN_BY, count(*) AS ROW_COUNT FROM {table} GROUP BY WRITTEN_BY",
    Call("count_by", {"namespace": "{namespace}", "table": "{table_name}", "column": "WRITTEN_BY"}),
    truth=(("snowflake", 3), ("{writer}", 1)),
)

CHANGES = (insert(SSD, HDD), set_quantity(201, 2), delete(202))
CHANGED = (*SEEDS, SSD_UPDATED)

COMMITS = ["append", "overwrite", "delete"]  # of INSERT, UPDATE and DELETE
ONE_ENGINE = {"history.operations": ["append", *COMMITS]}

READ_V2 = Behaviour(
    id="H-read-v2",
    title="Every generation reads the v2 table",
    source="H, verification 1 steps 1 and 2, verification 2 steps 1 and 2",
    document="ORDERS_V2 shows its three rows, SHOW NAMESPACES shows ANALYTICS",
    table=ORDERS_V2,
    namespace=NAMESPACE,
    steps=(SHOW_NAMESPACES, read(ORDERS_V2)),
    claims=(Claim("spark-3.2*,spark-3.5*", Outcome.WORKS),),
    expect=(
        Expect(Outcome.WORKS, "v2 is read by every library here; Spark 3.2 with its setting for zone-less timestamps"),
    ),
    tags=("v2", "read"),
)

DML_V2_OLD = Behaviour(
    id="H-dml-v2-old",
    title="INSERT, UPDATE and DELETE on v2, alone",
    source="H, verification 1 steps 4 to 7",
    document="all three succeed on Spark 3.2; counts by written_by are 1 and 3",
    table=ORDERS_V2,
    steps=(*CHANGES, read(ORDERS_V2, *CHANGED), COUNTS),
    claims=(Claim("spark-3.2*", Outcome.WORKS),),
    expect=(Expect(Outcome.WORKS, "every generation here writes v2"),),
    tags=("v2", "write"),
)

PYICEBERG_DELETE_PATHS = Expect(
    Outcome.ERROR,
    "Trino 483 writes the paths in position delete files as DELTA_LENGTH_BYTE_ARRAY; PyIceberg asks for them "
    "as a dictionary (pyiceberg.io.pyarrow._read_deletes), which PyArrow can't do for this encoding. Without "
    "position deletes PyIceberg reads what Trino 483 writes",
    writers="trino-483",
    generations="pyiceberg-0.12*",
    at="read",
    failure=Chain((("OSError", "DecodeArrow of DictAccumulator for DeltaLengthByteArrayDecoder"),), whole=True),
    trap=Trap(
        "pyiceberg-delete-paths",
        "PyIceberg can't read position deletes whose paths are DELTA_LENGTH_BYTE_ARRAY",
        r"DecodeArrow of DictAccumulator for DeltaLengthByteArrayDecoder",
        "pyiceberg.io.pyarrow._read_deletes",
    ),
)

DML_V2_NEW = Behaviour(
    id="H-dml-v2-new",
    title="The rows of every writer are seen by every reader at once",
    source="H, verification 2 steps 4 to 7",
    document="INSERT, UPDATE, DELETE succeed on Spark 3.5; every engine's rows are seen by every other at once",
    table=ORDERS_V2,
    steps=(*CHANGES, read(ORDERS_V2, *CHANGED, second=True)),
    variants=(
        Variant(),
        Variant(
            "no-vectorization",
            second_settings={"spark.sql.iceberg.vectorization.enabled": "false"},
            pairs=(("trino-483", "spark-*"),),
            cure=Cure(Where.SPARK_SESSION, ROW_BY_ROW),
        ),
    ),
    pairs=(("*", "*"),),
    claims=(Claim("spark-3.2*,spark-3.5*", Outcome.WORKS),),
    expect=(
        Expect(
            Outcome.ERROR,
            "Trino 483 writes strings as DELTA_LENGTH_BYTE_ARRAY, which Iceberg's vectorized reader "
            "(VectorizedPageIterator) has since 1.11 only; the document's engines wrote none",
            writers="trino-483",
            generations="spark-3.2*,spark-3.5*,spark-4.0*",
            variants="default",
            failure=NO_VECTORIZED_DELTA_LENGTH,
            at="read",
            trap=VECTORIZED_ENCODING,
            cause="spark.sql.iceberg.vectorization.enabled=true, the default",
            control=Control(variant="no-vectorization"),
        ),
        PYICEBERG_DELETE_PATHS,
        Expect(Outcome.WORKS, "v2 data files and position deletes are read by every other generation"),
    ),
    tags=("v2", "write", "pairs"),
)

ONE_HISTORY = Behaviour(
    id="H-one-history",
    title="Commits of different engines stand in one snapshot history",
    source="H, verification 1 step 8, verification 2 step 8",
    document="append (the seed), then append, overwrite, delete; the second engine adds append, overwrite, delete",
    table=ORDERS_V2,
    steps=(*CHANGES, HISTORY, WRITTEN, read(ORDERS_V2, *CHANGED)),
    variants=(
        Variant("one-engine"),
        Variant(
            "two-engines",
            steps=(
                *CHANGES,
                insert(HUB, CABLE, second=True, name="second-insert"),
                set_quantity(301, 2, second=True),
                delete(302, second=True),
                read(ORDERS_V2, *CHANGED, HUB_UPDATED, second=True),
                HISTORY,
            ),
            pairs=(("spark-3.2*", "spark-3.5*"), ("*", "duckdb-*")),
        ),
    ),
    claims=(
        Claim(
            "spark-3.2*,spark-3.5*",
            Outcome.WORKS,
            variants="one-engine",
            facts=ONE_ENGINE,
        ),
        Claim(
            "spark-3.5*",
            Outcome.WORKS,
            variants="two-engines",
            facts={"history.operations": ["append", *COMMITS * 2]},
        ),
    ),
    expect=(
        Expect(
            Outcome.WORKS,
            "PyIceberg's update is an overwrite without the row and an append with it: one commit more",
            variants="one-engine",
            generations="pyiceberg-*",
            facts={"history.operations": ["append", "append", "overwrite", "append", "delete"]},
        ),
        Expect(
            Outcome.WORKS,
            "Spark's default is copy-on-write, and a DELETE that covers a whole file only drops the file",
            variants="one-engine",
            generations="spark-*",
            facts={**ONE_ENGINE, "written.data_removed": 1, "written.deletes": []},
        ),
        Expect(
            Outcome.WORKS,
            "Trino and DuckDB merge on read: the row's file stays and a position delete file is added",
            variants="one-engine",
            facts={**ONE_ENGINE, "written.data_removed": 0, "written.deletes": ["position-delete"]},
        ),
        Expect(
            Outcome.WORKS,
            "each engine adds its own three commits to the one history; PyIceberg four, as its update is two",
            variants="two-engines",
            writers="pyiceberg-*",
            facts={"history.operations": ["append", "append", "overwrite", "append", "delete", *COMMITS]},
        ),
        Expect(
            Outcome.WORKS,
            "each engine adds its own three commits to the one history",
            variants="two-engines",
            facts={"history.operations": ["append", *COMMITS * 2]},
        ),
    ),
    tags=("v2", "write", "history"),
)
