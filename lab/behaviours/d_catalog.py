"""Document D on what a catalog of Databricks, and Snowflake as its reader, refuses or leaves out."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.orders_steps import HDD, HISTORY, SSD, insert, read
from lab.behaviours.refusals import BAD_REQUEST, FORBIDDEN, LOAD, OF_INSERT, OFF, REQUEST, claims, paced, refused, ruled
from lab.model import Access, Behaviour, Call, Claim, Expect, Outcome, Step, Variant
from lab.tables.orders import ORDERS_V2

AFTER = (replace(HISTORY, always=True), Step("orphans", look="orphans", always=True))
LAG = 5
NO_LAG = "unity-uniform~lag-seconds=0"
BEHIND = f"unity-uniform~lag-seconds={LAG}~off=D-matrix"  # one session commits behind it and reads through it

MATRIX = Behaviour(
    id="D-matrix",
    title="INSERT into a managed Iceberg table and into a Delta table with UniForm",
    source="D, matrix of tables and access",
    document="managed Iceberg: external read and write; Delta with UniForm: external read only, a write is refused",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2, name="before"), insert(SSD), read(ORDERS_V2, *ORDERS_V2.rows, SSD), *AFTER),
    variants=paced(
        Variant("managed", access=Access("unity-managed")),
        Variant("uniform", access=Access(NO_LAG)),
        Variant("uniform-off", access=Access(f"{NO_LAG}~off=D-matrix")),
        Variant(
            "real-delta",
            missing="a Delta table: Spark with delta-spark, delta-iceberg and the Hive metastore that open-source "
            "UniForm writes to, as a generation of its own; here an Iceberg table stands for what UniForm shows of it",
        ),
    ),
    claims=(Claim("*", Outcome.WORKS, variants="managed"), *claims(variants="uniform")),
    expect=(
        Expect(Outcome.WORKS, "read and write", variants="managed"),
        *refused(
            "D-matrix",
            "insert",
            "A Delta table with UniForm is read-only for Iceberg clients",
            FORBIDDEN,
            left=OF_INSERT,
            variants="uniform",
        ),
        OFF,
    ),
    tags=("v2", "write", "access", "rules"),
)
LAGGING = Behaviour(
    id="D-uniform-lag",
    title="A commit seen through UniForm",
    source="D, UniForm",
    document="UniForm writes Iceberg metadata asynchronously: a reader lags",
    table=ORDERS_V2,
    steps=(
        replace(insert(SSD), wait=LAG),  # later than the seed rows by more than the lag
        read(ORDERS_V2, name="at-once"),
        replace(read(ORDERS_V2, *ORDERS_V2.rows, SSD, name="later"), wait=LAG),
    ),
    variants=paced(
        Variant("rule", access=Access(BEHIND), full=True),
        Variant(
            "rule-off",
            access=Access(f"{BEHIND}~off=D-uniform-lag"),
            steps=(insert(SSD), read(ORDERS_V2, *ORDERS_V2.rows, SSD, name="at-once")),
        ),
    ),
    claims=(Claim("*", Outcome.WORKS, variants="rule"),),
    expect=(
        Expect(
            Outcome.WORKS,
            "the reader sees the table as it was so long ago, and no error tells it so",
            variants="rule",
            facts={"at-once.amended": ["D-uniform-lag"]},
        ),
        OFF,
    ),
    tags=("v2", "read", "access", "rules"),
)
VECTORS = {"lab.delta.deletion-vectors": "on"}  # what its vendor knows of the Delta table, told to the gateway
UNIFORM_DV = Behaviour(
    id="D-uniform-dv",
    title="A Delta table with deletion vectors, through UniForm",
    source="D, UniForm",
    document="UniForm needs deletion vectors off",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2), *AFTER),
    variants=paced(
        Variant("rule", access=Access(NO_LAG), properties=VECTORS),
        Variant("rule-off", access=Access(f"{NO_LAG}~off=D-uniform-dv"), properties=VECTORS),
        Variant("vectors-off", access=Access(NO_LAG)),
    ),
    claims=claims(),
    expect=(
        *refused(
            "D-uniform-dv",
            "read",
            "The Delta table has deletion vectors enabled",
            BAD_REQUEST,
            duckdb=LOAD,
            why="the catalog has no Iceberg metadata to show of it, and no setting of a reader helps: ALTER TABLE … "
            "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false') and REORG TABLE … APPLY (PURGE), at "
            "the vendor's",
        ),
        OFF,
        Expect(Outcome.WORKS, "with deletion vectors off UniForm shows the table", variants="vectors-off"),
    ),
    tags=("v2", "read", "access", "rules"),
)
_TABLE = {"namespace": "{namespace}", "table": "{table_name}"}
PATH, VERSIONS = "write.metadata.path", "write.metadata.previous-versions-max"


def _set(key: str, value: str) -> tuple[Step, ...]:
    sql = {"spark": f"ALTER TABLE {{table}} SET TBLPROPERTIES ('{key}' = '{value}')"}
    call = Call("set_properties", {**_TABLE, "properties": {key: value}})
    return (Step("set", sql, call), read(ORDERS_V2), *AFTER)


def _unset(key: str, variants: str) -> tuple[Expect, ...]:
    says = f"The table property {key} can't be set"
    return refused("D-no-metadata-path", "set", says, BAD_REQUEST, variants=variants)


METADATA_PATH = Behaviour(
    id="D-no-metadata-path",
    title="write.metadata.path and write.metadata.previous-versions-max set on a managed table",
    source="D, managed tables",
    document="write.metadata.path and write.metadata.previous-versions-max must not be set",
    table=ORDERS_V2,
    steps=_set(PATH, "s3://lab/warehouse/elsewhere"),
    variants=paced(
        *ruled("D-no-metadata-path", "unity-managed"),
        *ruled("D-no-metadata-path", "unity-managed", name="versions", steps=_set(VERSIONS, "5")),
    ),
    claims=claims(variants="rule,versions"),
    expect=(*_unset(PATH, "rule"), *_unset(VERSIONS, "versions"), OFF),
    tags=("v2", "write", "access", "rules"),
    kinds=("pyiceberg", "spark"),
)
TRANSFORMS = Behaviour(
    id="D-transforms",
    title="A partition transform on a managed table",
    source="D, partitioning",
    document="expression partition transforms are refused for managed tables; plain columns only",
    table=ORDERS_V2,
    steps=(
        Step(
            "create",
            {
                "spark": "CREATE TABLE lab.{namespace}.PARTED (n int) USING iceberg PARTITIONED BY (bucket(4, n))",
                "trino": "CREATE TABLE lab.{namespace}.PARTED (n int) WITH (partitioning = ARRAY['bucket(n, 4)'])",
                "duckdb": "CREATE TABLE lab.{namespace}.PARTED (n int) PARTITIONED BY (bucket(4, n))",
            },
            Call(
                "create_table",
                {
                    "namespace": "{namespace}",
                    "table": "PARTED",
                    "schema": [("n", "int", False)],
                    "partition": [("n", "bucket[4]")],
                },
            ),
        ),
        Step(
            "read",
            "SELECT * FROM lab.{namespace}.PARTED",
            Call("scan", {"namespace": "{namespace}", "table": "PARTED"}),
            truth=(),
        ),
        Step("leftovers", look="leftovers", always=True),
    ),
    variants=paced(
        Variant("rule", access=Access("unity-managed")),
        Variant("rule-off", access=Access("unity-managed~off=D-transforms")),
    ),
    claims=claims(),
    expect=(
        *refused(
            "D-transforms",
            "create",
            "The partition transform bucket[4] is not supported",
            BAD_REQUEST,
            duckdb=REQUEST,
            where="leftovers",
            history=(),
        ),
        OFF,
    ),
    tags=("v2", "write", "access", "rules"),
)
COUNT = {
    "spark": "SELECT count(*) FROM {table}.snapshots",
    "trino": 'SELECT count(*) FROM lab.{namespace}."{table_name}$snapshots"',
    "duckdb": "SELECT count(*) FROM iceberg_snapshots({table})",
}
SHOWN = 2
THOUSAND = Behaviour(
    id="D-thousand-commits",
    title="What is left of a history of which only the newest commits are shown",
    source="D, Snowflake as a reader",
    document="Snowflake's catalog integration sees the last 1000 commits only",
    table=ORDERS_V2,
    steps=(
        insert(SSD),
        insert(HDD, name="insert-2"),
        insert(SSD, name="insert-3"),
        read(ORDERS_V2, *ORDERS_V2.rows, SSD, HDD, SSD, second=True),
        Step("snapshots", COUNT, truth={"duckdb": ((4,),), "*": ((SHOWN,),)}, second=True, optional=True),
    ),
    variants=paced(
        Variant("rule", second_access=Access(f"snowflake-reader~shown-commits={SHOWN}")),
        Variant(
            "rule-off",
            second_access=Access(f"snowflake-reader~shown-commits={SHOWN}~off=D-thousand-commits"),
            steps=(
                insert(SSD),
                read(ORDERS_V2, *ORDERS_V2.rows, SSD, second=True),
                Step("snapshots", COUNT, truth=((2,),), second=True, optional=True),
            ),
        ),
    ),
    claims=(Claim("*", Outcome.WORKS, variants="rule"),),
    expect=(
        Expect(
            Outcome.WORKS,
            "every row is there: a snapshot has all files, whatever is left of the history before it. Only the history "
            "is short. DuckDB's is whole: iceberg_snapshots reads the metadata file, not the catalog's answer",
            variants="rule",
            facts={"read.amended": ["D-thousand-commits"]},
        ),
        OFF,
    ),
    tags=("v2", "read", "access", "rules"),
)
