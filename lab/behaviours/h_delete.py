"""Document H on credentials without s3:DeleteObject: who sends deletes, for what, and what a refusal costs.

The policy is the catalog's: the table's property `lab.vending.deny` has the lab's gateway vend what catalogs vend
whose external volume allows Put, Get and List alone. No engine is told anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lab.behaviours.orders_steps import HISTORY, SSD, WRITTEN, delete, insert, read, set_quantity
from lab.behaviours.refusals import paced
from lab.catalogs import DENY, GRANT
from lab.model import (
    Access,
    Behaviour,
    Call,
    Chain,
    Claim,
    Control,
    Cure,
    Expect,
    Outcome,
    Step,
    Table,
    Trap,
    Variant,
    Where,
)
from lab.tables.orders import ORDERS_V2, order

KEYBOARD, MOUSE, MONITOR = ORDERS_V2.rows
KEYBOARD_UPDATED = order(1, "keyboard", 9, "4500.00", "2026-07-01 09:00", "snowflake")

DELETE_OBJECT = "s3:DeleteObject"
DENIED = {DENY: DELETE_OBJECT}
# What is left of a session then: GetObject and PutObject.
ALL_BUT_GET_AND_PUT = {
    DENY: "s3:AbortMultipartUpload,s3:DeleteObject,s3:ListBucket,s3:ListMultipartUploadParts",
}
PARTITIONS = "spark.sql.shuffle.partitions"
AS_DOCUMENTED = {PARTITIONS: None}  # the lab's own 2 taken away: Spark's default of 200, where there is a Spark
ADAPTIVE = "spark.sql.adaptive.enabled"

# Taken after a refusal too: is the table as it was, and what did the refused statement leave?
LOOKS = (
    replace(HISTORY, always=True),
    Step("deletes", look="deletes", always=True),
    Step("orphans", look="orphans", always=True),
)

UPDATE = (insert(SSD), set_quantity(1, 9), read(ORDERS_V2, KEYBOARD_UPDATED, MOUSE, MONITOR, SSD), *LOOKS)
DELETE = (insert(SSD), delete(1), read(ORDERS_V2, MOUSE, MONITOR, SSD), *LOOKS)
MERGE = (
    insert(SSD),
    Step(
        "merge",
        "MERGE INTO {table} t USING (SELECT 1 AS ID) s ON t.ORDER_ID = s.ID WHEN MATCHED THEN UPDATE SET QUANTITY = 9",
    ),
    *UPDATE[2:],
)
NO_LEFTOVERS = {"orphans.data": 0, "orphans.metadata": 0}
NO_DELETES = {"deletes.requests": 0, **NO_LEFTOVERS}
UNCHANGED = {"history.operations": ["append", "append"]}  # of the seed rows and the case's INSERT


def empty_files(requests: int, *, refused: bool = False) -> dict[str, Any]:
    """Facts of that many DeleteObject requests, each for an object that never existed."""
    return {
        "deletes.requests": requests,
        "deletes.batches": 0,
        "deletes.of_nothing": requests,
        "deletes.refused": requests if refused else 0,
        **NO_LEFTOVERS,
    }


ACCESS_DENIED = Chain(
    (
        ("org.apache.spark.SparkException", "Writing job aborted"),
        ("org.apache.spark.SparkException", "Job aborted due to stage failure: "),
        (
            "software.amazon.awssdk.services.s3.model.S3Exception",
            "Access Denied. (Service: S3, Status Code: 403, Request ID: ",
        ),
    ),
    whole=True,
)
DELETE_403 = Trap(
    "delete-403",
    "UPDATE or DELETE fails with 403 on s3:DeleteObject, though INSERT works",
    # SeaweedFS's wording, AWS's short one and AWS's long one, which names the user and the resource
    r"S3Exception: (?:Access Denied|User: \S+ is not authorized to perform: s3:DeleteObject\b).*"
    r"\(Service: S3, Status Code: 403\b",
    "org.apache.iceberg.io.RollingFileWriter.closeCurrentWriter",
    remedy="Spark 3.5 with Iceberg 1.10: its writes go on when such a delete is refused",
    also=(
        "is not authorized to perform: s3:DeleteObject on resource",
        "because no session policy allows the s3:DeleteObject action",
    ),
)
EMPTY_TASKS = (
    "Spark 3.2 repartitions a copy-on-write UPDATE or DELETE by file into as many tasks as shuffle partitions, and "
    "adaptive execution may not join them (ExtendedDistributionAndOrderingUtils asks for a fixed number); a task "
    "without a row deletes the file that it never wrote (RollingFileWriter.closeCurrentWriter), one request each. "
    "Iceberg before 1.10 takes the refusal for the task's failure. The table stays as it was. To do without a cure "
    "the session needs s3:GetObject, s3:PutObject and s3:DeleteObject"
)
REFUSED_3_2 = Expect(
    Outcome.ERROR, EMPTY_TASKS, generations="spark-3.2*", failure=ACCESS_DENIED, facts=UNCHANGED, trap=DELETE_403
)
NO_EMPTY_FILES = Expect(
    Outcome.WORKS,
    "no statement here makes these engines send a delete, so s3:GetObject and s3:PutObject suffice: newer Spark joins "
    "empty shuffle partitions before they become tasks, the others open a file when they have a row",
    facts=NO_DELETES,
)
ONE_TASK = "the one task has the rows of every file: no empty file, no delete"
ALLOWED_3_2 = "199 of 200 tasks have no row: each deletes an object that never existed, which S3 answers with 204"

ONE = {PARTITIONS: "1"}
ONE_PARTITION = Cure(
    Where.SPARK_SESSION,
    cost="every shuffle of the session runs in one task: set it for the statement, then set it back",
    settings=ONE,
)

POSITION_DELETES = "readers apply position deletes until the table is rewritten"
MANY_FILES = "rows are not brought together by file: many tasks that read write many small files"
OF_DELETE = "delete,delete-by-updates-settings"


def by_property(
    name: str, key: str, value: str, cost: str, cures: str, steps: tuple[Step, ...] | None = None
) -> Variant:
    """Spark 3.2 under the policy, cured by a property of the table; `cures` are the variants that fail without it."""
    own = {key: value}
    cure = Cure(Where.TABLE, cost=cost, settings=own, variants=cures)
    return Variant(name, "spark-3.2*", AS_DOCUMENTED, properties={**DENIED, **own}, steps=steps, cure=cure)


DELETE_403_OLD = Behaviour(
    id="H-delete-403",
    title="UPDATE and DELETE under vended credentials without s3:DeleteObject",
    source="H, verification 1, UPDATE fails with 403 on s3:DeleteObject",
    document="INSERT succeeds; a copy-on-write UPDATE on Spark 3.2 fails with 403 on s3:DeleteObject, because tasks "
    "that wrote no row delete their empty file",
    table=ORDERS_V2,
    steps=UPDATE,
    variants=(
        Variant("update", settings=AS_DOCUMENTED, properties=DENIED),
        Variant("update-allowed", "spark-3.2*", settings=AS_DOCUMENTED),
        Variant("delete", settings=AS_DOCUMENTED, properties=DENIED, steps=DELETE),
        Variant("delete-allowed", "spark-3.2*", settings=AS_DOCUMENTED, steps=DELETE),
        Variant(
            "merge",
            "spark-3.2*",
            settings=AS_DOCUMENTED,
            properties=DENIED,
            steps=MERGE,
            cure=Cure(
                Where.ELSEWHERE,
                cost="another statement; it joins the table with its source",
                text="MERGE INTO t USING (SELECT 1 AS id) s ON t.order_id = s.id WHEN MATCHED THEN UPDATE SET …",
                variants="update",
            ),
        ),
        by_property("merge-on-read", "write.update.mode", "merge-on-read", POSITION_DELETES, "update"),
        by_property("no-distribution", "write.update.distribution-mode", "none", MANY_FILES, "update"),
        Variant(  # what is set for UPDATE does nothing for DELETE, which has its own settings
            "delete-by-updates-settings",
            "spark-3.2*",
            settings=AS_DOCUMENTED,
            properties={**DENIED, "write.update.mode": "merge-on-read", "write.update.distribution-mode": "none"},
            steps=DELETE,
        ),
        by_property("delete-merge-on-read", "write.delete.mode", "merge-on-read", POSITION_DELETES, OF_DELETE, DELETE),
        by_property("delete-no-distribution", "write.delete.distribution-mode", "none", MANY_FILES, OF_DELETE, DELETE),
        Variant(
            "delete-partitions-1",
            "spark-3.2*",
            settings=ONE,
            properties=DENIED,
            steps=DELETE,
            cure=replace(ONE_PARTITION, variants="delete,delete-by-updates-settings"),
        ),
    ),
    claims=(
        Claim(
            "spark-3.2*",
            Outcome.ERROR,
            variants="update",
            failure=Chain((("software.amazon.awssdk.services.s3.model.S3Exception", "Status Code: 403"),)),
        ),
    ),
    expect=(
        replace(REFUSED_3_2, variants="update,delete,delete-by-updates-settings"),
        Expect(
            Outcome.WORKS,
            ALLOWED_3_2,
            generations="spark-3.2*",
            variants="*-allowed",
            facts={"history.operations": ["append", "append", "overwrite"], **empty_files(199)},
        ),
        Expect(
            Outcome.WORKS,
            "no task is without a row: MERGE joins first and adaptive execution joins its empty partitions, "
            "merge-on-read writes few rows where they are read, without a distribution nothing is shuffled, and one "
            "partition is one task, which has the rows",
            generations="spark-3.2*",
            facts=NO_DELETES,
        ),
        NO_EMPTY_FILES,
    ),
    tags=("v2", "write", "access"),
)

# ---------------------------------------------------------------- 20,000 rows
ORDERS_20000 = Table(
    "ORDERS_20000",
    format_version=2,
    columns=(("ORDER_ID", "int"), ("QUANTITY", "int")),
    rows=tuple((n, n % 7) for n in range(1, 20_001)),
)

ROWS = Behaviour(
    id="H-delete-403-rows",
    title="20,000 rows in one file do not help",
    source="H, verification 1, first remedy",
    document="the number of rows does not matter: a table of 20,000 rows in one file fails alike",
    table=ORDERS_20000,
    steps=(replace(WRITTEN, always=True), set_quantity(1, 9), *LOOKS),
    variants=(
        Variant("default", settings=AS_DOCUMENTED, properties=DENIED),
        Variant("allowed", "spark-3.2*", settings=AS_DOCUMENTED),
        Variant("partitions-1", "spark-3.2*", settings=ONE, properties=DENIED, cure=ONE_PARTITION),
    ),
    claims=(Claim("spark-3.2*", Outcome.ERROR, variants="default"),),
    expect=(
        replace(
            REFUSED_3_2,
            reason=f"rows are brought together by the file they come from, and it is one. {EMPTY_TASKS}",
            variants="default",
            facts={"history.operations": ["append"], "written.data_added": 1},
        ),
        Expect(Outcome.WORKS, ALLOWED_3_2, generations="spark-3.2*", variants="allowed", facts=empty_files(199)),
        Expect(Outcome.WORKS, ONE_TASK, variants="partitions-1", facts=NO_DELETES),
        NO_EMPTY_FILES,
    ),
    tags=("v2", "write", "access"),
)

SHUFFLE = Behaviour(
    id="H-delete-403-shuffle",
    title="One shuffle partition, no empty task",
    source="H, verification 1, first remedy",
    document=f"{PARTITIONS}=1 avoids the 403",
    table=ORDERS_V2,
    steps=UPDATE,
    variants=(
        Variant("partitions-200", "spark-3.2*", settings=AS_DOCUMENTED, properties=DENIED),
        Variant("partitions-1", "spark-*", settings=ONE, properties=DENIED, cure=ONE_PARTITION),
        Variant("no-such-setting", "duckdb-*,pyiceberg-*,trino-*", properties=DENIED),
    ),
    claims=(
        Claim("spark-3.2*", Outcome.ERROR, variants="partitions-200"),
        Claim("spark-3.2*", Outcome.WORKS, variants="partitions-1"),
    ),
    expect=(
        replace(REFUSED_3_2, variants="partitions-200"),
        Expect(
            Outcome.WORKS,
            ONE_TASK,
            variants="partitions-1",
            facts=NO_DELETES,
        ),
        NO_EMPTY_FILES,
    ),
    tags=("v2", "write", "access"),
)

BUCKET = Behaviour(
    id="H-delete-403-bucket",
    title="A bucket policy that grants s3:DeleteObject to the session's principal",
    source="H, verification 1, second remedy",
    document="a grant to the session's principal is not bounded by the session policy, so the UPDATE works",
    table=ORDERS_V2,
    steps=UPDATE,
    variants=(
        Variant("not-granted", "spark-3.2*", settings=AS_DOCUMENTED, properties=DENIED),
        Variant(
            "granted",
            settings=AS_DOCUMENTED,
            properties={**DENIED, GRANT: DELETE_OBJECT},
            cure=Cure(
                Where.ELSEWHERE,
                cost="it widens what the catalog narrowed on purpose: whoever holds the table's session may delete its "
                "files",
                text='bucket policy: {"Effect": "Allow", "Principal": {"AWS": "arn:aws:sts::<account>:assumed-role/'
                '<role>/<session>"}, "Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::<bucket>/<table>/*"}',
            ),
        ),
    ),
    claims=(Claim("spark-3.2*", Outcome.WORKS, variants="granted"),),
    expect=(
        replace(REFUSED_3_2, variants="not-granted"),
        replace(
            REFUSED_3_2,
            reason="MinIO asks a bucket's policy for anonymous requests alone (checkRequestAuthTypeCredential): what "
            "it grants to a principal is stored and never read, so the session's own policy decides",
            variants="granted",
            stores="minio",
            cause="MinIO's cmd.checkRequestAuthTypeCredential",
            control=Control(behaviour="H-delete-403", variant="update-allowed"),
        ),
        Expect(
            Outcome.WORKS,
            "the store has AWS's rule: the bucket's grant to the session's principal holds beside the session policy "
            "(one to its role does not), and all 199 deletes of nothing are answered with 204",
            generations="spark-3.2*",
            facts=empty_files(199),
        ),
        NO_EMPTY_FILES,
    ),
    tags=("v2", "write", "access"),
)

VOLUME = "horizon-no-delete~off=W-cow-only"  # so that who copies on write and who does not are both asked
HORIZON = Behaviour(
    id="H-delete-403-horizon",
    title="UPDATE at a catalog whose volume allows no s3:DeleteObject",
    source="H, verification 1, UPDATE fails with 403 on s3:DeleteObject",
    document="INSERT succeeds; a copy-on-write UPDATE on Spark 3.2 fails with 403 on s3:DeleteObject",
    table=ORDERS_V2,
    steps=UPDATE,
    variants=paced(
        Variant("rule", settings=AS_DOCUMENTED, access=Access(VOLUME)),
        Variant("rule-off", settings=AS_DOCUMENTED, access=Access(f"{VOLUME}~off=H-delete-403")),
        Variant(
            "partitions-1",
            "spark-3.2*",
            settings=ONE,
            access=Access(VOLUME),
            cure=replace(ONE_PARTITION, variants="rule"),
        ),
    ),
    claims=(Claim("spark-3.2*", Outcome.REFUSED_BY_RULE, variants="rule"),),
    expect=(
        replace(
            REFUSED_3_2,
            outcome=Outcome.REFUSED_BY_RULE,
            variants="rule",
            at="update",
            facts={**UNCHANGED, "insert.narrowed": ["H-delete-403"], "update.rules": []},
        ),
        Expect(
            Outcome.WORKS,
            ALLOWED_3_2,
            generations="spark-3.2*",
            variants="rule-off",
            facts={"insert.narrowed": [], **empty_files(199)},
        ),
        Expect(Outcome.WORKS, ONE_TASK, variants="partitions-1", facts=NO_DELETES),
        replace(NO_EMPTY_FILES, variants="rule", facts={**NO_DELETES, "insert.narrowed": ["H-delete-403"]}),
        NO_EMPTY_FILES,
    ),
    tags=("v2", "write", "access", "rules"),
)

# ---------------------------------------------------------------- newer engines, maintenance
_TABLE = {"namespace": "{namespace}", "table": "{table_name}"}
EXPIRE = Step(
    "expire",
    {
        "spark": "CALL lab.system.expire_snapshots(table => '{namespace}.{table_name}', "
        "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)",
        "trino": "ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')",
    },
    Call("expire_snapshots", _TABLE),
)
REWRITE = Step(
    "rewrite",
    {
        "spark": "CALL lab.system.rewrite_data_files(table => '{namespace}.{table_name}', "
        "options => map('min-input-files', '2'))",
        "trino": "ALTER TABLE {table} EXECUTE optimize",
    },
)
# Spark lists files by Hadoop's own file systems, which have none for s3:// here, and spares what is younger than a
# day: it is given the file's name instead.
LOST = Step(
    "lost",
    {
        "spark": "CREATE TEMPORARY VIEW lost AS SELECT data_file.file_path, TIMESTAMP '2020-01-01 00:00:00' AS "
        "last_modified FROM {table}.entries WHERE status = 2",
    },
)
REMOVE = Step(
    "remove",
    {
        "spark": "CALL lab.system.remove_orphan_files(table => '{namespace}.{table_name}', file_list_view => 'lost')",
        "trino": "ALTER TABLE {table} EXECUTE remove_orphan_files(retention_threshold => '0s')",
    },
)
# Every generation meets the policy; that its absence is the only difference, the first and the last Spark show.
FIRST_AND_LAST, BETWEEN = "spark-3.2*,spark-4.1*iceberg-1.12*", "spark-3.5*,spark-4.0*,spark-4.1*iceberg-1.11*"
NOT_ADAPTIVE = {PARTITIONS: "20", ADAPTIVE: "false"}
A_FILE_GONE = (insert(SSD), delete(201))  # the table's last snapshot lacks a file that an earlier one has
# Maintenance has done its work when no file is left that no snapshot leads to, whatever it answers.
CLEAN = tuple(replace(look, truth=(("data", 0), ("metadata", 0))) if look.look == "orphans" else look for look in LOOKS)
EXPIRY = (*A_FILE_GONE, EXPIRE, *CLEAN)
REMOVAL = (*A_FILE_GONE, EXPIRE, LOST, REMOVE, *CLEAN)
AT_ONCE = {"lab.expire_snapshots_min_retention": "0s", "lab.remove_orphan_files_min_retention": "0s"}
EXPIRED = {"history.operations": ["delete"]}  # one snapshot left


def twins(name: str, generations: str = "*", **case: Any) -> tuple[Variant, Variant]:
    """The same under the policy and without it."""
    return Variant(name, generations, properties=DENIED, **case), Variant(f"{name}-allowed", generations, **case)


def files_left(data: int, metadata: int) -> Mapping[str, Any]:
    return {**EXPIRED, "orphans.data": data, "orphans.metadata": metadata}


def no_batch(batches: int) -> Mapping[str, Any]:
    """Facts of that many batches of deletions, none of them taken."""
    return {**files_left(1, 3), "deletes.batches": batches, "deletes.refused": batches}


VEND_DELETE = "vend s3:DeleteObject to who maintains the table, or leave maintenance to the catalog"
TRINO_REFUSED = Trap(
    "delete-403-trino",
    "Trino's maintenance fails with AccessDenied on files that are no longer the table's",
    r"IOException: Failed to delete one or more files: \{.*(?:Access ?Denied|is not authorized to perform: )",
    "io.trino.filesystem.s3.S3FileSystem.deleteObjects",
    remedy=VEND_DELETE,
)
REFUSED_IN_SILENCE = Trap(
    "delete-refused-in-silence",
    "Maintenance is refused its deletes, answers success, and the files stay in the store",
    "",
    {
        "spark-*": "org.apache.iceberg.spark.actions.BaseSparkAction.deleteFiles",
        "trino-*": "io.trino.plugin.iceberg.IcebergMetadata.executeExpireSnapshots",
    },
    remedy=f"{VEND_DELETE}; compare the store's listing with the table's files afterwards, not the procedure's answer",
    also=("Failed to delete object at path", "Failed to delete some or all of files"),  # in logs: Spark's, Trino's
)

NO_MD5 = Expect(
    Outcome.SILENTLY_WRONG,
    "with the permission or without it: this MinIO answers each batch with 400 MissingContentMD5, Spark says so in its "
    "log alone, and the files stay (see D-delete-without-md5)",
    generations="spark-3.5*,spark-4*",
    stores="minio",
    trap=REFUSED_IN_SILENCE,
)

NEW = Behaviour(
    id="H-delete-403-new",
    title="Newer engines under credentials without s3:DeleteObject, maintenance included",
    source="H, verification 2, comparison of workarounds",
    document="the 403 is not seen on Spark 3.5 with Iceberg 1.10",
    table=ORDERS_V2,
    steps=(
        insert(SSD),
        set_quantity(1, 9),
        delete(201),
        read(ORDERS_V2, KEYBOARD_UPDATED, MOUSE, MONITOR),
        *LOOKS,
    ),
    variants=(
        Variant("dml", settings=AS_DOCUMENTED, properties=DENIED),
        Variant("get-and-put-alone", settings=AS_DOCUMENTED, properties=ALL_BUT_GET_AND_PUT),
        Variant(
            "get-and-put-alone-partitions-1",
            "spark-3.2*",
            settings=ONE,
            properties=ALL_BUT_GET_AND_PUT,
            cure=replace(ONE_PARTITION, variants="dml,get-and-put-alone"),
        ),
        *twins("empty-tasks", "spark-3.5*", settings=NOT_ADAPTIVE, steps=UPDATE),
        Variant("empty-tasks", "spark-4*", settings=NOT_ADAPTIVE, properties=DENIED, steps=UPDATE),
        *twins("expire-snapshots", FIRST_AND_LAST, steps=EXPIRY),
        Variant("expire-snapshots", BETWEEN, properties=DENIED, steps=EXPIRY),
        *twins("expire-snapshots", "trino-*", settings=AT_ONCE, steps=EXPIRY),
        *twins("expire-metadata", "pyiceberg-*", steps=(*A_FILE_GONE, EXPIRE, *LOOKS)),
        *twins("remove-orphan-files", FIRST_AND_LAST, steps=REMOVAL),
        Variant("remove-orphan-files", BETWEEN, properties=DENIED, steps=REMOVAL),
        *twins(  # PyIceberg's expiry leaves Trino something to remove
            "remove-orphan-files",
            pairs=(("pyiceberg-*", "trino-*"),),
            second_settings=AT_ONCE,
            steps=(*A_FILE_GONE, EXPIRE, replace(REMOVE, second=True), *CLEAN),
        ),
        Variant(
            "rewrite-data-files",
            "spark-*,trino-*",
            properties=ALL_BUT_GET_AND_PUT,
            steps=(insert(SSD), REWRITE, *LOOKS),
        ),
    ),
    claims=(Claim("spark-3.5*", Outcome.WORKS, variants="dml"),),
    expect=(
        replace(REFUSED_3_2, variants="dml,get-and-put-alone"),
        Expect(
            Outcome.WORKS,
            "without adaptive execution 19 of 20 tasks are empty here too and send their deletes, all refused; since "
            "1.10 RollingFileWriter notes that in the log and goes on. Two causes of the document's “not seen”: on "
            "Spark 3.5 adaptive execution leaves no empty task, and 1.10 minds none",
            variants="empty-tasks",
            facts=empty_files(19, refused=True),
        ),
        Expect(Outcome.WORKS, "19 empty tasks, 19 deletes of nothing", variants="empty-tasks-*", facts=empty_files(19)),
        Expect(
            Outcome.WORKS,
            "PyIceberg takes snapshots out of the metadata and never deletes a file: what they alone held stays in the "
            "store, with or without the permission. So it needs none, and is not the expiry of the other engines",
            generations="pyiceberg-*",
            variants="expire-metadata*",
            facts={**files_left(1, 3), "deletes.requests": 0},
        ),
        replace(NO_MD5, variants="expire-snapshots*", facts=no_batch(3)),
        replace(NO_MD5, variants="remove-orphan-files*", facts=no_batch(4)),
        Expect(
            Outcome.SILENTLY_WRONG,
            "the snapshots are gone, the files are not: Spark sends its batches, is refused, says so in the log alone "
            "and answers success with counts of 0; the files stay in the store and no snapshot leads to them. Expiry "
            "needs s3:DeleteObject",
            generations="spark-*",
            variants="expire-snapshots",
            facts=no_batch(3),
            trap=REFUSED_IN_SILENCE,
        ),
        Expect(
            Outcome.WORKS,
            "three batches, of the data file, the manifest and the manifest lists that only expired snapshots had",
            generations="spark-*",
            variants="expire-snapshots-allowed",
            facts={**files_left(0, 0), "deletes.batches": 3, "deletes.keys": 4, "deletes.of_nothing": 0},
        ),
        Expect(
            Outcome.ERROR,
            "Trino 476 commits the expiry, then fails to delete: the snapshots are gone, the manifest lists stay. "
            "Expiry needs s3:DeleteObject",
            generations="trino-476",
            variants="expire-snapshots",
            failure=Chain(
                (
                    ("ICEBERG_FILESYSTEM_ERROR", "Failed to delete files during snapshot expiration"),
                    ("java.io.IOException", "Failed to delete one or more files: {s3://"),
                )
            ),
            facts={**files_left(0, 2), "deletes.batches": 1, "deletes.refused": 1},
            trap=TRINO_REFUSED,
        ),
        Expect(
            Outcome.SILENTLY_WRONG,
            "Trino 483 answers success and says nothing of the refusal: the snapshots are gone, the manifest lists "
            "stay. Expiry needs s3:DeleteObject",
            generations="trino-483",
            variants="expire-snapshots",
            facts={**files_left(0, 2), "deletes.batches": 1, "deletes.refused": 1},
            trap=REFUSED_IN_SILENCE,
        ),
        Expect(
            Outcome.WORKS,
            "one batch, of the manifest lists that only expired snapshots had: Trino's DELETE keeps the data file",
            generations="trino-*",
            variants="expire-snapshots-allowed",
            facts={**files_left(0, 0), "deletes.batches": 1, "deletes.keys": 2, "deletes.of_nothing": 0},
        ),
        Expect(
            Outcome.SILENTLY_WRONG,
            "remove_orphan_files answers with the file's name, as if it had removed it; the refusal stands in the log "
            "alone, and the file is still there. It needs s3:DeleteObject",
            generations="spark-*",
            variants="remove-orphan-files",
            facts=no_batch(4),
            trap=REFUSED_IN_SILENCE,
        ),
        Expect(
            Outcome.WORKS,
            "the expiry before it deleted the file, so that this one deletes nothing, and S3 does not mind",
            generations="spark-*",
            variants="remove-orphan-files-allowed",
            facts={**files_left(0, 0), "deletes.batches": 4, "deletes.keys": 5, "deletes.of_nothing": 1},
        ),
        Expect(
            Outcome.ERROR,
            "Trino lists the files, deletes them in a batch and fails on the refusal; nothing is changed. It needs "
            "s3:DeleteObject and s3:ListBucket",
            generations="trino-*",
            variants="remove-orphan-files",
            failure=Chain(
                (
                    ("ICEBERG_FILESYSTEM_ERROR", " table: "),
                    ("java.io.IOException", "Failed to delete one or more files: {s3://"),
                )
            ),
            facts={**files_left(1, 3), "deletes.batches": 1, "deletes.refused": 1},
            trap=TRINO_REFUSED,
        ),
        Expect(
            Outcome.WORKS,
            "the four files that PyIceberg's expiry left are removed",
            generations="trino-*",
            variants="remove-orphan-files-allowed",
            facts={**files_left(0, 0), "deletes.keys": 4, "deletes.of_nothing": 0},
        ),
        Expect(
            Outcome.WORKS,
            "compaction adds a file and leaves the old ones to expiry: s3:GetObject and s3:PutObject suffice",
            variants="rewrite-data-files",
            facts=NO_DELETES,
        ),
        Expect(Outcome.WORKS, ONE_TASK, variants="get-and-put-alone-partitions-1", facts=NO_DELETES),
        NO_EMPTY_FILES,
    ),
    tags=("v2", "write", "access"),
)
