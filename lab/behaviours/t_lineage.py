"""Document T on row lineage, and the lab's own question: what each v3 writer's operations do to it.

Every operation stands between two readings of (order_id, _row_id, _last_updated_sequence_number); what must hold
between them is the specification's, whoever writes and by whichever files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.behaviours.h_v3 import EXTENDED, NO_EXTENSIONS, ROW_ID_LOST, STRUCTS_DO_NOT_MATCH, WITHOUT_EXTENSIONS
from lab.behaviours.known import SPARK_3_2_NO_V3
from lab.behaviours.t_known import SPARKS_WITH_V3, TRINO_VERSION, create, gap, trino_476
from lab.model import Behaviour, Claim, Expect, Lineage, Outcome, Step, Trap, Variant
from lab.tables.types import ORDERS

TRACKING = ("duckdb-*", "spark-4.1*1.12*", "trino-483")  # each kind's newest, to read what another has written
MODES = ("delete", "update", "merge")
COLUMNS = {
    "spark": "order_id int, currency string",
    "trino": "order_id integer, currency varchar",
    "duckdb": "order_id integer, currency varchar",
}


def made(version: int = 3, *, merge_on_read: bool = False) -> Step:
    step = create(COLUMNS, version=version)
    modes = ", ".join(f"'write.{mode}.mode'='merge-on-read'" for mode in MODES)
    assert isinstance(step.sql, Mapping)
    spark = step.sql["spark"].replace("TBLPROPERTIES (", f"TBLPROPERTIES ({modes}, ") if merge_on_read else ""
    return Step("create", {**step.sql, **({"spark": spark} if spark else {})})


def insert(name: str, *keys: int) -> Step:
    """One INSERT, one file: Spark would make one for each of its tasks."""
    rows = ", ".join(f"({key}, 'JPY')" for key in keys)
    return Step(
        name,
        {
            "spark": f"INSERT INTO {{table}} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows} AS t(order_id, currency)",
            "*": f"INSERT INTO {{table}} VALUES {rows}",
        },
    )


def seen(name: str, since: str = "", *, second: bool = False, **more: Any) -> Step:
    """The lineage of all rows as the writer itself shows it, or the second engine."""
    return Step(
        name,
        {
            "trino": 'SELECT order_id, "$row_id", "$last_updated_sequence_number" FROM {table}',
            "*": "SELECT order_id, _row_id, _last_updated_sequence_number FROM {table}",
        },
        lineage=Lineage(since, **more) if since else None,
        second=second,
    )


UPDATE = Step("update", "UPDATE {table} SET currency = 'USD' WHERE order_id = 2")
DELETE = Step("delete", "DELETE FROM {table} WHERE order_id = 3")
_SOURCE = "USING (SELECT 1 AS order_id, 'EUR' AS currency UNION ALL SELECT 9, 'CHF') s ON t.order_id = s.order_id"
MERGE = Step(
    "merge",
    f"MERGE INTO {{table}} t {_SOURCE} WHEN MATCHED THEN UPDATE SET currency = s.currency "
    "WHEN NOT MATCHED THEN INSERT (order_id, currency) VALUES (s.order_id, s.currency)",
)
COMPACT = Step(
    "compact",
    {
        "spark": "CALL lab.system.rewrite_data_files(table => '{namespace}.{table_name}', "
        "options => map('rewrite-all', 'true'))",
        "trino": "ALTER TABLE {table} EXECUTE optimize",
    },
    optional=True,
)
MANIFESTS = Step(
    "manifests",
    {
        "spark": "CALL lab.system.rewrite_manifests('{namespace}.{table_name}')",
        "trino": "ALTER TABLE {table} EXECUTE optimize_manifests",
    },
    optional=True,
)
UPGRADE = Step(
    "upgrade",
    {
        "spark": "ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='3')",
        "trino": "ALTER TABLE {table} SET PROPERTIES format_version = 3",
        "duckdb": "CALL set_iceberg_table_properties({table}, {'format-version': '3'})",
    },
)
ROW_IDS = Step("row-ids", look="row_ids")
START = (insert("insert", 1, 2, 3, 4), seen("start"))
UPDATED = (UPDATE, seen("updated", "start", updated=(2,)))
DELETED = (DELETE, seen("deleted", "updated", deleted=(3,)))
MERGED = (MERGE, seen("merged", "deleted", updated=(1,), inserted=(9,)))
INSERTED = (insert("insert-more", 20), seen("inserted", "merged", inserted=(20,)))
DML = (*START, *UPDATED, *DELETED, *MERGED, *INSERTED, ROW_IDS)
MAINTAINED = (
    *START,
    *UPDATED,
    DELETE,
    seen("deleted", "updated", deleted=(3,)),
    COMPACT,
    seen("compacted", "deleted"),
    MANIFESTS,
    seen("listed", "compacted"),
    insert("insert-more", 20),
    seen("inserted", "listed", inserted=(20,)),
    ROW_IDS,
)
UPGRADED = (
    insert("insert", 1, 2),
    insert("insert-again", 3, 4),
    DELETE,
    UPGRADE,
    seen("before"),
    insert("insert-more", 5),
    seen("upgraded", "before", inserted=(5,), upgraded=True),
    UPDATE,
    seen("updated", "upgraded", updated=(2,)),
    ROW_IDS,
)
KEPT: Mapping[str, Any] = {"row-ids.breaches": []}

MERGE_IDS = Trap(
    "duckdb-merge-row-ids",
    "DuckDB's MERGE leaves row ids and next-row-id out of step, and no error tells",
    "",
    "duckdb::IcebergMergeInto::FinalizeCopyToInsert",
    remedy="use UPDATE and INSERT instead of MERGE, which DuckDB counts right",
)
OLD_LIBRARY = Trap(
    "upgrade-by-an-old-library",
    "An old Iceberg library can't upgrade a table to v3",
    r"Cannot upgrade table to unsupported format version: v3",
    "org.apache.iceberg.TableMetadata.upgradeToFormatVersion",
    remedy="upgrade with a newer one, and only when nobody with the old one needs the table any more",
)
NO_UPGRADE = Trap(
    "duckdb-no-upgrade",
    "DuckDB takes format-version 3 as a property and leaves the table at version 2",
    "",
    "duckdb::IcebergFunctions::SetIcebergTablePropertiesFunctions",
    remedy="upgrade with Spark, Trino 483 or Iceberg's Java API",
)
LOST_ON_READ = Expect(
    Outcome.SILENTLY_WRONG,
    "without Iceberg's extensions nothing hands the row's id to the merge-on-read writer: updated rows get new ids, "
    "in UPDATE and MERGE alike",
    generations="spark-3.5*",
    variants="no-extensions-merge-on-read",
    rows={
        "updated": ((1, 0, 1), (2, 4, 2), (3, 2, 1), (4, 3, 1)),
        "merged": ((1, 5, 4), (2, 4, 2), (4, 3, 1), (9, 6, 4)),
    },
    trap=ROW_ID_LOST,
)
LINEAGE = Behaviour(
    id="T-lineage",
    title="Row ids and sequence numbers over three inserts",
    source="T, orders: SELECT of _row_id and _last_updated_sequence_number, and next-row-id",
    document="_row_id 0, 1, 2 and _last_updated_sequence_number 1, 2, 3; next-row-id 3",
    table=ORDERS,
    steps=(
        made(),
        insert("insert-1", 1),
        insert("insert-2", 2),
        insert("insert-3", 3),
        Step(
            "read",
            seen("read").sql,
            truth={
                "trino": ((1, 0, 2), (2, 1, 3), (3, 2, 4)),  # its CREATE TABLE is a commit of its own
                "*": ((1, 0, 1), (2, 1, 2), (3, 2, 3)),
            },
        ),
        ROW_IDS,
    ),
    kinds=("duckdb", "spark", "trino"),
    claims=(Claim("spark-4.1*", Outcome.WORKS, facts={"row-ids.next": 3}),),
    expect=(
        SPARK_3_2_NO_V3,
        trino_476(),
        Expect(Outcome.WORKS, "as the specification says, and the document", facts={**KEPT, "row-ids.next": 3}),
    ),
    tags=("v3", "lineage"),
)

LINEAGE_DML = Behaviour(
    id="T-lineage-dml",
    title="What INSERT, UPDATE, DELETE and MERGE do to row lineage",
    source="the lab's own question, next to T, orders: _row_id",
    document=None,
    table=ORDERS,
    steps=(made(), *DML),
    variants=(
        Variant("default", cure=EXTENDED),
        Variant("merge-on-read", generations=SPARKS_WITH_V3, steps=(made(merge_on_read=True), *DML)),
        Variant("no-extensions", generations=SPARKS_WITH_V3, settings=NO_EXTENSIONS, full=True),
        Variant(
            "no-extensions-merge-on-read",
            generations=SPARKS_WITH_V3,
            settings=NO_EXTENSIONS,
            steps=(made(merge_on_read=True), *DML),
            full=True,
        ),
        Variant(
            "seen-by-others",
            steps=(made(), *DML[:-1], seen("seen-by-second", "inserted", second=True)),
            pairs=tuple((writer, reader) for writer in TRACKING for reader in TRACKING if reader != writer),
        ),
    ),
    kinds=("duckdb", "spark", "trino"),
    expect=(
        SPARK_3_2_NO_V3,
        trino_476(),
        LOST_ON_READ,
        Expect(
            Outcome.WORKS,
            "another engine shows the very ids and sequence numbers that the writer shows",
            variants="seen-by-others",
        ),
        Expect(
            Outcome.ERROR,
            "without Iceberg's extensions nothing adds the lineage columns to the plan of a copy-on-write UPDATE: "
            "H-v3-update",
            generations="spark-3.5*",
            variants="no-extensions",
            failure=STRUCTS_DO_NOT_MATCH,
            at="update",
            trap=WITHOUT_EXTENSIONS,
        ),
        Expect(
            Outcome.SILENTLY_WRONG,
            "DuckDB commits a MERGE as two snapshots, an overwrite and an append. The second one's first-row-id lies "
            "beyond the table's next-row-id, which then falls behind it; the files' own ids do not collide, and other "
            "engines show the same ones (seen-by-others)",
            generations="duckdb-*",
            facts={
                "row-ids.breaches": [
                    "snapshot 5 (append) begins at row id 9, and 6 is the next",
                    "snapshot 6 (append) begins at row id 7, and 10 is the next",
                ]
            },
            trap=MERGE_IDS,
        ),
        Expect(Outcome.WORKS, "every row's lineage is as the specification says", facts=KEPT),
    ),
    tags=("v3", "lineage", "write"),
)

LINEAGE_MAINTENANCE = Behaviour(
    id="T-lineage-maintenance",
    title="What compaction and a rewrite of manifests do to row lineage",
    source="the lab's own question, next to T, orders: _row_id",
    document=None,
    table=ORDERS,
    steps=(made(), *MAINTAINED),
    variants=(
        Variant("default", generations="spark-3.2*,trino-*"),  # Trino merges on read in any case
        Variant("merge-on-read", generations=SPARKS_WITH_V3, steps=(made(merge_on_read=True), *MAINTAINED)),
    ),
    kinds=("spark", "trino"),
    expect=(
        SPARK_3_2_NO_V3,
        trino_476(),
        Expect(Outcome.WORKS, "files and manifests are new, ids and sequence numbers are the old ones", facts=KEPT),
    ),
    tags=("v3", "lineage", "write"),
)

LINEAGE_UPGRADE = Behaviour(
    id="T-lineage-upgrade",
    title="What an upgrade from v2 does to the rows of a table with history",
    source="the lab's own question, next to T, orders: _row_id",
    document=None,
    table=ORDERS,
    steps=(made(2, merge_on_read=True), *UPGRADED),
    kinds=("duckdb", "spark", "trino"),
    expect=(
        gap(
            "spark-3.2*",
            "Iceberg 1.4 knows format versions up to 2",
            OLD_LIBRARY,
            ("java.lang.IllegalArgumentException", "Cannot upgrade table to unsupported format version: v3"),
            at="upgrade",
        ),
        gap(
            "trino-476",
            "Trino 476 reads v3 in part, and upgrades no table to it",
            TRINO_VERSION,
            ("INVALID_TABLE_PROPERTY", "format_version must be between 1 and 2"),
            at="upgrade",
        ),
        Expect(
            Outcome.SILENTLY_WRONG,
            "set_iceberg_table_properties says that it succeeded; the table stays at version 2, and no row gets an id",
            generations="duckdb-*",
            rows={
                "upgraded": ((1, None, 1), (2, None, 1), (4, None, 2), (5, None, 4)),
                "updated": ((1, None, 1), (2, None, 5), (4, None, 2), (5, None, 4)),
            },
            trap=NO_UPGRADE,
        ),
        Expect(
            Outcome.WORKS,
            "rows of v2 have no id until the first commit in v3, which gives every one of them its own",
            facts=KEPT,
        ),
    ),
    tags=("v3", "lineage", "write"),
)
