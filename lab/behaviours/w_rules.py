"""Document W: what Horizon refuses to external engines, and what each engine makes of the refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.behaviours.h_delete import AT_ONCE, EXPIRE
from lab.behaviours.known import PYICEBERG_NO_V3_WRITE, SPARK_3_2_NO_V3
from lab.behaviours.orders_steps import HISTORY, SSD, insert, read, set_quantity
from lab.behaviours.refusals import (
    BAD_REQUEST,
    FORBIDDEN,
    LIBRARY,
    LOAD,
    OF_INSERT,
    OFF,
    OTHER_LIBRARIES,
    REQUEST,
    claims,
    paced,
    refused,
    ruled,
)
from lab.behaviours.t_known import TRINO_VERSION, gap
from lab.behaviours.t_lineage import OLD_LIBRARY
from lab.model import Access, Behaviour, Call, Expect, Outcome, Step, Table, Trap, Variant
from lab.tables.orders import ORDERS_V2, ORDERS_V3, order

SOURCE = "W, considerations for accessing tables with external engines"
OWNER = "owner"  # may do anything, so that what is refused is refused by a rule
SQL = ("duckdb", "spark", "trino")
KEYBOARD, MOUSE, MONITOR = ORDERS_V2.rows
UPDATED = order(1, "keyboard", 9, "4500.00", "2026-07-01 09:00", "snowflake")
# Taken after a refusal too: is everything as it was, and what did the refused statement leave?
AFTER = (
    replace(HISTORY, always=True),
    Step("orphans", look="orphans", always=True),
    Step("leftovers", look="leftovers", always=True),
)
_TABLE = {"namespace": "{namespace}", "table": "{table_name}"}


def rule(
    claim: str,
    title: str,
    document: str,
    *steps: Step,
    table: Table = ORDERS_V2,
    expect: tuple[Expect, ...] = (),
    claimed: str = "*",
    variants: tuple[Variant, ...] = (),
    kinds: tuple[str, ...] = ("duckdb", "pyiceberg", "spark", "trino"),
    **more: Any,
) -> Behaviour:
    """A rule of Horizon's: these statements are refused by it and work without it, and what a refusal leaves."""
    return Behaviour(
        id=claim,
        title=title,
        source=SOURCE,
        document=document,
        table=table,
        steps=(*steps, *AFTER),
        variants=paced(*(variants or ruled(claim, "horizon", OWNER, **more))),
        expect=(*expect, OFF),
        claims=claims(claimed),
        tags=(f"v{table.format_version}", "write", "access", "rules"),
        kinds=kinds,
    )


PYICEBERG_UPGRADE = Trap(
    "pyiceberg-upgrade",
    "PyIceberg upgrades no table to v3",
    r"Unsupported table format version: 3",
    "pyiceberg.table.Transaction.upgrade_table_version",
    remedy="have Spark 3.5 or newer, or Trino 483 upgrade it",
)

# ---------------------------------------------------------------- how a table is made
NO_CTAS = rule(
    "W-no-ctas",
    "CREATE TABLE AS SELECT",
    "CREATE TABLE AS SELECT is refused",
    Step(
        "ctas",
        {
            "spark": "CREATE TABLE lab.{namespace}.COPY USING iceberg AS SELECT * FROM {table}",
            "*": "CREATE TABLE lab.{namespace}.COPY AS SELECT * FROM {table}",
        },
    ),
    Step("read", "SELECT * FROM lab.{namespace}.COPY", truth=ORDERS_V2.rows),
    kinds=SQL,
    variants=(
        *ruled("W-no-ctas", "horizon", OWNER),
        Variant(
            "plain-create",
            access=Access("horizon", OWNER),
            steps=(
                Step(
                    "create",
                    {
                        "spark": "CREATE TABLE lab.{namespace}.PLAIN (n int) USING iceberg",
                        "*": "CREATE TABLE lab.{namespace}.PLAIN (n int)",
                    },
                ),
                Step("insert", "INSERT INTO lab.{namespace}.PLAIN VALUES (1)"),
                Step("read", "SELECT * FROM lab.{namespace}.PLAIN", truth=((1,),)),
                *AFTER,
            ),
        ),
    ),
    expect=(
        *refused(
            "W-no-ctas",
            "ctas",
            "CREATE TABLE AS SELECT is not supported",
            BAD_REQUEST,
            left={"spark-*": (1, 0), "trino-476": (1, 0), "trino-483": (1, 1), "duckdb-*": (0, 2)},
            where="leftovers",
        ),
        Expect(
            Outcome.WORKS,
            "a plain CREATE TABLE is told apart, though Trino and DuckDB stage it like a CREATE TABLE AS SELECT: the "
            "commit that creates adds no data file",
            variants="plain-create",
        ),
    ),
)
ELSEWHERE = "s3://lab/warehouse/{namespace}/chosen"
NO_LOCATION = rule(
    "W-no-location",
    "CREATE TABLE with a location",
    "CREATE TABLE may not choose a base location",
    Step(
        "create",
        {
            "spark": f"CREATE TABLE lab.{{namespace}}.PLACED (n int) USING iceberg LOCATION '{ELSEWHERE}'",
            "trino": f"CREATE TABLE lab.{{namespace}}.PLACED (n int) WITH (location = '{ELSEWHERE}')",
            "duckdb": f"CREATE TABLE lab.{{namespace}}.PLACED (n int) WITH ('location' = '{ELSEWHERE}')",
        },
        Call(
            "create_table",
            {"namespace": "{namespace}", "table": "PLACED", "schema": [("n", "int", False)], "location": ELSEWHERE},
        ),
    ),
    Step(
        "read",
        "SELECT * FROM lab.{namespace}.PLACED",
        Call("scan", {"namespace": "{namespace}", "table": "PLACED"}),
        truth=(),
    ),
    expect=refused("W-no-location", "create", "location can't be chosen", BAD_REQUEST, duckdb=REQUEST),
)
NO_REGISTER = rule(
    "W-no-register",
    "Registering a table from its metadata",
    "no register table",
    Step(
        "metadata",
        {
            "spark": "SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1",
        },
        gives="metadata",
        optional=True,
    ),
    Step(
        "register",
        {
            "spark": "CALL lab.system.register_table(table => '{namespace}.AGAIN', metadata_file => '{metadata}')",
        },
        Call("register", {**_TABLE, "name": "AGAIN"}),
    ),
    Step(
        "read",
        "SELECT * FROM lab.{namespace}.AGAIN",
        Call("scan", {"namespace": "{namespace}", "table": "AGAIN"}),
        truth=ORDERS_V2.rows,
    ),
    kinds=("pyiceberg", "spark"),
    expect=refused("W-no-register", "register", "REGISTER_TABLE is not supported", BAD_REQUEST, where="leftovers"),
)

# ---------------------------------------------------------------- how rows are changed
COW_ONLY = rule(
    "W-cow-only",
    "UPDATE by merge-on-read",
    "only copy-on-write may change rows; row-level (merge-on-read) writes are refused",
    set_quantity(1, 9),
    read(ORDERS_V2, UPDATED, MOUSE, MONITOR),
    variants=(
        *ruled("W-cow-only", "horizon", OWNER, properties={"write.update.mode": "merge-on-read"}),
        Variant("copy-on-write", access=Access("horizon", OWNER), properties={"write.update.mode": "copy-on-write"}),
    ),
    expect=(
        Expect(
            Outcome.WORKS,
            "copy-on-write, Spark's default, is what the rule lets pass",
            generations="spark-*",
            variants="copy-on-write",
        ),
        *refused(
            "W-cow-only",
            "update",
            "Row-level deletes are not supported (copy-on-write only)",
            BAD_REQUEST,
            left={"spark-*": (0, 0), "trino-*": (2, 0), "duckdb-*": (0, 3)},
            variants="rule,copy-on-write",
            why="the catalog's rule, by what the manifests add. Trino and DuckDB have no copy-on-write at all, so that "
            "no property of the table helps them",
        )[:3],
        Expect(Outcome.WORKS, "PyIceberg rewrites files, whatever the table asks for", generations="pyiceberg-*"),
    ),
    claimed="duckdb-*,spark-*,trino-*",
)
# The writer is Iceberg's own library: of the engines here none writes an equality delete.
NO_EQ_DELETE = rule(
    "W-no-eq-delete",
    "An equality delete",
    "equality deletes are refused",
    Step("delete", call=Call("delete_equal", {**_TABLE, "column": "ORDER_ID", "value": 1})),
    Step("read", call=Call("scan", _TABLE), truth=(MOUSE, MONITOR)),
    kinds=("iceberg",),
    variants=(
        *(
            # By a token: with a credential 1.7 and 1.8 get no keys here (H-vending-renewal).
            Variant(name, generations, access=Access(door, OWNER, by="token"), full=seldom)
            for generations, seldom in ((LIBRARY, False), (OTHER_LIBRARIES, True))
            for name, door in (("rule", "horizon"), ("rule-off", "horizon~off=W-no-eq-delete"))
        ),
        Variant(
            "flink",
            missing="Apache Flink, whose upserts are equality deletes: flink-sql-gateway and iceberg-flink-runtime "
            "from Maven Central, as an adapter in lab/engines. Iceberg's library writes the same file here",
        ),
    ),
    expect=refused(
        "W-no-eq-delete",
        "delete",
        "Writing with equality-delete files is not supported",
        BAD_REQUEST,
        left={"iceberg-*": (1, 0)},
    ),
)
NO_V3_WRITE = rule(
    "W-no-v3-write",
    "INSERT into v3",
    "v3 tables were read-only before general availability",
    read(ORDERS_V3, name="before"),
    insert(SSD),
    read(ORDERS_V3, *ORDERS_V3.rows, SSD),
    table=ORDERS_V3,
    variants=ruled("W-no-v3-write", "horizon-preview", OWNER),
    expect=(
        SPARK_3_2_NO_V3,
        PYICEBERG_NO_V3_WRITE,
        *refused("W-no-v3-write", "insert", "Writing format version 3 is not supported", BAD_REQUEST, left=OF_INSERT),
    ),
    claimed="duckdb-*,spark-3.5*,spark-4*,trino-*",
)
POLICIES = rule(
    "W-policies",
    "INSERT into a table under a masking policy",
    "masked, row-filtered or tagged tables cannot be written",
    read(ORDERS_V2, name="before"),
    insert(SSD),
    read(ORDERS_V2, *ORDERS_V2.rows, SSD),
    variants=(
        *ruled("W-policies", "horizon", OWNER, properties={"lab.horizon.policy": "masking"}),
        Variant(
            "masked-read",
            missing="a Snowflake account with a masking policy, to see what Spark is shown of a masked column: the "
            "catalog of the lab knows no column's values",
        ),
    ),
    expect=refused("W-policies", "insert", "A table under a policy can't be written", FORBIDDEN, left=OF_INSERT),
)
NOT_WRITABLE = rule(
    "W-not-writable",
    "INSERT into a table on a KMS-encrypted volume, and an externally managed one",
    "no writes to tables on KMS-encrypted volumes, dynamic, shared or converted tables; no reads of externally managed "
    "ones",
    read(ORDERS_V2, name="before"),
    insert(SSD),
    read(ORDERS_V2, *ORDERS_V2.rows, SSD),
    variants=(
        *ruled("W-not-writable", "horizon", OWNER, properties={"lab.horizon.read-only": "kms"}),
        *ruled("W-not-writable", "horizon", OWNER, "external", properties={"lab.horizon.external": "true"}),
        Variant(
            "vendor",
            missing="a Snowflake account with tables on a KMS-encrypted volume, dynamic, shared, converted and "
            "externally managed ones: here a property of the table stands for what the account knows of it",
        ),
    ),
    expect=(
        *refused(
            "W-not-writable", "insert", "The table is read-only for external engines: kms", FORBIDDEN, left=OF_INSERT
        ),
        *refused(
            "W-not-writable",
            "before",
            "An externally managed table can't be read",
            FORBIDDEN,
            duckdb=LOAD,
            variants="external",
        ),
    ),
)

# ---------------------------------------------------------------- snapshots
NO_REFS = rule(
    "W-no-refs",
    "A tag",
    "no tags or branches",
    Step("tag", {"spark": "ALTER TABLE {table} CREATE TAG first"}, Call("tag", {**_TABLE, "name": "first"})),
    Step("refs", {"spark": "SELECT count(*) FROM {table}.refs"}, truth=((2,),), optional=True),
    read(ORDERS_V2),
    kinds=("pyiceberg", "spark"),
    expect=refused("W-no-refs", "tag", "Branches and tags are not supported: first", BAD_REQUEST),
)
NO_ROLLBACK = rule(
    "W-no-rollback",
    "Rollback to the snapshot before",
    "no rollback to an earlier snapshot",
    Step(
        "first",
        {
            "spark": "SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1",
            "trino": 'SELECT max_by(snapshot_id, committed_at) FROM lab.{namespace}."{table_name}$snapshots"',
        },
        gives="first",
        optional=True,
    ),
    insert(SSD),
    Step(
        "rollback",
        {
            "spark": "CALL lab.system.rollback_to_snapshot('{namespace}.{table_name}', {first})",
            "trino": "ALTER TABLE {table} EXECUTE rollback_to_snapshot({first})",
        },
        Call("rollback", _TABLE),
    ),
    read(ORDERS_V2),
    kinds=("pyiceberg", "spark", "trino"),
    expect=refused(
        "W-no-rollback", "rollback", "Rollback is not supported: ", BAD_REQUEST, history=("append", "append")
    ),
)
NO_EXPIRY = rule(
    "W-no-expiry",
    "Expiry of snapshots",
    "no snapshot expiry",
    insert(SSD),
    EXPIRE,
    read(ORDERS_V2, *ORDERS_V2.rows, SSD),
    kinds=("pyiceberg", "spark", "trino"),
    variants=(
        *ruled("W-no-expiry", "horizon", OWNER, generations="pyiceberg-*,spark-*"),
        *ruled("W-no-expiry", "horizon", OWNER, generations="trino-*", settings=AT_ONCE),
    ),
    expect=refused(
        "W-no-expiry", "expire", "Snapshot expiry is not supported", BAD_REQUEST, history=("append", "append")
    ),
)
NO_UPGRADE = rule(
    "W-no-upgrade",
    "Upgrade from v2 to v3",
    "no upgrade from v2 to v3",
    Step(
        "upgrade",
        {
            "spark": "ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '3')",
            "trino": "ALTER TABLE {table} SET PROPERTIES format_version = 3",
        },
        Call("upgrade", {**_TABLE, "version": 3}),
    ),
    read(ORDERS_V2),
    kinds=("pyiceberg", "spark", "trino"),
    expect=(
        gap(
            "spark-3.2*",
            "Iceberg 1.4 knows format versions up to 2, and asks no catalog",
            OLD_LIBRARY,
            ("java.lang.IllegalArgumentException", "Cannot upgrade table to unsupported format version: v3"),
            at="upgrade",
        ),
        gap(
            "trino-476",
            "Trino 476 knows format versions up to 2, and asks no catalog",
            TRINO_VERSION,
            ("INVALID_TABLE_PROPERTY", "format_version must be between 1 and 2"),
            at="upgrade",
        ),
        gap(
            "pyiceberg-*",
            "PyIceberg upgrades to v2 at most, and asks no catalog",
            PYICEBERG_UPGRADE,
            ("ValueError", "Unsupported table format version: 3"),
            at="upgrade",
        ),
        *refused("W-no-upgrade", "upgrade", "Upgrading a table's format version is not supported: 2 to 3", BAD_REQUEST),
    ),
    claimed="spark-3.5*,spark-4*,trino-483",
)

# ---------------------------------------------------------------- credentials
CLONE_VENDING = rule(
    "W-clone-vending",
    "Reading a cloned table with vended credentials",
    "no vended credentials for cloned or converted tables",
    read(ORDERS_V2),
    properties={"lab.horizon.cloned": "true"},
    expect=refused(
        "W-clone-vending", "read", "Credential vending is not supported for a cloned", FORBIDDEN, duckdb=LOAD
    ),
)
OWNER_VOLUME = rule(
    "W-owner-volume",
    "Reading a table whose owner lost its storage volume",
    "if the owner's role loses the storage volume, every request that asks for vended credentials fails",
    read(ORDERS_V2),
    properties={"lab.horizon.volume-revoked": "true"},
    expect=refused("W-owner-volume", "read", "Credentials can't be vended: the table owner's", FORBIDDEN, duckdb=LOAD),
)
