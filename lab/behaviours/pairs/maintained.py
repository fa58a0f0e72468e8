"""A table that one engine has made and another one has tended: its rows must be the same after it."""

from __future__ import annotations

from lab.behaviours.pairs.deletes import DELETE, FILTERS, INTS, LEFT, NAMES, ROWS
from lab.behaviours.pairs.feature import Feature, feature, insert
from lab.behaviours.pairs.known import DELETE_PATHS
from lab.model import Expect, Step

# DuckDB has made the table with the first rows; what else is written before is the maintaining engine's.
CHANGED = (insert(NAMES, *ROWS[4:], name="insert-more"), DELETE)


def _maintained(name: str, title: str, *steps: Step, expect: tuple[Expect, ...] = ()) -> Feature:
    return feature(
        f"maintained-{name}",
        f"A table that DuckDB has made, {title}",
        2,
        INTS,
        LEFT,
        (*CHANGED, *steps),
        table={"given": True, "rows": ROWS[:4]},
        filters=FILTERS,
        expect=expect,
    )


COMPACT = Step(
    "compact",
    {
        "spark": "CALL lab.system.rewrite_data_files(table => '{namespace}.{table_name}', "
        "options => map('rewrite-all', 'true'))",
        "trino": "ALTER TABLE {table} EXECUTE optimize",
    },
)
# Of Trino seven days are the least, unless its session says otherwise; the table is some seconds old.
AT_ONCE = tuple(
    Step(f"{what}-at-once", {"trino": f"SET SESSION lab.{what}_min_retention = '0s'"}, optional=True)
    for what in ("expire_snapshots", "remove_orphan_files")
)
EXPIRE = Step(
    "expire",
    {
        "spark": "CALL lab.system.expire_snapshots(table => '{namespace}.{table_name}', "
        "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)",
        "trino": "ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')",
    },
)
ONE_LEFT = Step(
    "history",
    {
        "spark": "SELECT CAST(count(*) AS int) FROM {table}.snapshots",
        "trino": 'SELECT CAST(count(*) AS integer) FROM lab.{namespace}."{table_name}$snapshots"',
    },
    truth=((1,),),
)
MANIFESTS = Step(
    "manifests",
    {
        "spark": "CALL lab.system.rewrite_manifests('{namespace}.{table_name}')",
        "trino": "ALTER TABLE {table} EXECUTE optimize_manifests",
    },
)
# Spark lists files by Hadoop's own file systems, which have none for s3:// here: it is given names instead.
ORPHANS = (
    Step(
        "lost",
        {
            "spark": "CREATE TEMPORARY VIEW lost AS SELECT data_file.file_path, TIMESTAMP '2020-01-01 00:00:00' AS "
            "last_modified FROM {table}.all_entries",
        },
        optional=True,
    ),
    Step(
        "remove",
        {
            "spark": "CALL lab.system.remove_orphan_files(table => '{namespace}.{table_name}', "
            "file_list_view => 'lost')",
            "trino": "ALTER TABLE {table} EXECUTE remove_orphan_files(retention_threshold => '0s')",
        },
    ),
)
COMPACTION = _maintained("compaction", "compacted by another engine", COMPACT)
EXPIRY = _maintained("expiry", "its snapshots expired by another engine", COMPACT, *AT_ONCE, EXPIRE, ONE_LEFT)
MANIFEST_REWRITE = _maintained(
    "manifests", "its manifests rewritten by another engine", MANIFESTS, expect=(DELETE_PATHS,)
)
ORPHAN_REMOVAL = _maintained(
    "orphans",
    "rid of orphan files by another engine",
    *(*AT_ONCE, EXPIRE, ONE_LEFT, *ORPHANS),
    expect=(DELETE_PATHS,),
)
