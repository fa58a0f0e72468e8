"""Documents W and D on changes as a stream: Iceberg's own changelog as the analogue of what the vendors show."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.known import SPARK_3_2_NO_V3
from lab.behaviours.orders_steps import SSD, WRITTEN, delete, insert, set_quantity
from lab.behaviours.refusals import paced
from lab.model import Access, Behaviour, Chain, Claim, Cure, Expect, Outcome, Step, Table, Trap, Truth, Variant, Where
from lab.tables.orders import ORDERS_V2, ORDERS_V3, Order

HORIZON = Access("horizon")
BY_VECTORS = Access("horizon~off=W-cow-only")  # which lets merge-on-read pass
MERGE_ON_READ = {"write.update.mode": "merge-on-read"}
SEEN = "SELECT ORDER_ID, QUANTITY, _change_type FROM "  # of all commits: a filter on _change_ordinal is refused

NO_DELETE_FILES = Trap(
    "changelog-delete-files",
    "Spark shows no changelog of a table that was changed by delete files",
    r"Delete files are currently not supported in changelog scans",
    "org.apache.iceberg.BaseIncrementalChangelogScan.orderedChangelogSnapshots",
    remedy="have UPDATE, DELETE and MERGE copy on write: write.update.mode, write.delete.mode and write.merge.mode",
)


FILTERED = Trap(
    "changelog-filter",
    "A changelog table can't be filtered by the columns that tell of the change",
    r"Cannot find field '_change_ordinal' in struct",
    "org.apache.iceberg.expressions.NamedReference.bind",
)


OF_UPDATE = " WHERE _change_ordinal = 1"  # the commit after the first


def changes(truth: Truth) -> Step:
    """What the commits changed as the changelog table shows it: relocated rows too."""
    return Step("changes", f"{SEEN}{{table}}.changes", truth=truth)


def view(truth: Truth, more: str = "", name: str = "changes") -> tuple[Step, Step]:
    """The same by the view that a procedure makes, without rows that were relocated alone."""
    of = "table => '{namespace}.{table_name}', changelog_view => 'seen'"
    return (
        Step(f"view-of-{name}", f"CALL lab.system.create_changelog_view({of}{more})"),
        Step(name, f"{SEEN}seen", truth=truth),
    )


def inserted(*rows: Order) -> Truth:
    return tuple((row[0], row[2], "INSERT") for row in rows)


BY_ID = ", identifier_columns => array('ORDER_ID'), compute_updates => true"
NO_CHANGELOG = Expect(
    Outcome.ERROR,
    "the delete files of a merge-on-read UPDATE are what a changelog scan refuses: copy-on-write is the only way to "
    "have one at all, at the price of relocated rows",
    variants="merge-on-read",
    failure=Chain((("java.lang.UnsupportedOperationException", "Delete files are currently not supported"),)),
    at="changes",
    trap=NO_DELETE_FILES,
)
AS_TWO = Expect(
    Outcome.WORKS,
    "copy-on-write takes the file away and writes another: each of its rows, changed or merely moved, is a delete and "
    "an insert. An analogue: this is Iceberg's changelog table, not Snowflake's stream",
    variants="stream",
    facts={"written.deletes": [], "written.data_removed": 1},
)


def _stream(id: str, title: str, table: Table, *expect: Expect) -> Behaviour:
    first, *others = table.rows
    before, after = (first[0], first[2]), (first[0], 9)
    moved = tuple((row[0], row[2], kind) for row in others for kind in ("DELETE", "INSERT"))
    as_two = ((*before, "DELETE"), (*after, "INSERT"))
    update, made = set_quantity(1, 9), inserted(*table.rows)
    return Behaviour(
        id=id,
        title=title,
        source="W, considerations: standard streams on v2 tables",
        document="on v2, copy-on-write makes a standard stream show updated or relocated rows as delete and insert",
        table=table,
        steps=(update, changes((*made, *as_two, *moved)), WRITTEN),
        variants=paced(
            Variant("stream", access=HORIZON),
            Variant(
                "filtered",
                access=HORIZON,
                steps=(
                    update,
                    Step("changes", f"{SEEN}{{table}}.changes{OF_UPDATE}", truth=(*as_two, *moved)),
                ),
            ),
            Variant(
                "filtered-view",
                access=HORIZON,
                steps=(update, view(())[0], Step("changes", f"{SEEN}seen{OF_UPDATE}", truth=as_two)),
                cure=Cure(
                    Where.ELSEWHERE,
                    cost="rows that were merely relocated are not shown",
                    text="CALL lab.system.create_changelog_view(table => 'db.t', changelog_view => 'seen'); "
                    "SELECT * FROM seen WHERE _change_ordinal = 1",
                    variants="filtered",
                ),
            ),
            Variant("carry-overs-removed", access=HORIZON, steps=(update, *view((*made, *as_two)))),
            Variant(
                "update-images",
                access=HORIZON,
                steps=(update, *view((*made, (*before, "UPDATE_BEFORE"), (*after, "UPDATE_AFTER")), BY_ID)),
            ),
            Variant("merge-on-read", access=BY_VECTORS, properties=MERGE_ON_READ),
            Variant(
                "vendor",
                missing="a Snowflake account with a stream on a table that an external engine writes; Iceberg's own "
                "changelog stands in for it",
            ),
        ),
        kinds=("spark",),
        claims=(Claim("*", Outcome.WORKS, variants="stream"),) if table.format_version == 2 else (),
        expect=(
            *expect,
            AS_TWO,
            Expect(
                Outcome.ERROR,
                "Spark pushes the filter down, and BaseIncrementalChangelogScan.doPlanFiles has it bound to the "
                "table's own columns, of which _change_ordinal is none",
                variants="filtered",
                failure=Chain((("ValidationException", "Cannot find field '_change_ordinal' in struct"),)),
                at="changes",
                trap=FILTERED,
            ),
            Expect(
                Outcome.WORKS,
                "the procedure drops pairs of a delete and an insert whose rows are equal: what was merely moved is "
                "gone, what was updated still counts as two",
                variants="carry-overs-removed,filtered-view",
            ),
            Expect(
                Outcome.WORKS,
                "told which columns identify a row, the procedure makes one update of the two",
                variants="update-images",
            ),
            NO_CHANGELOG,
        ),
        tags=(f"v{table.format_version}", "write", "access"),
    )


STREAM = _stream("W-stream-delete-insert", "An UPDATE in the changelog of a v2 table", ORDERS_V2)
STREAM_V3 = replace(
    _stream("W-stream-delete-insert-v3", "An UPDATE in the changelog of a v3 table", ORDERS_V3, SPARK_3_2_NO_V3),
    document=None,
)

MANAGED = Access("unity-managed")
INSERTED = inserted(*ORDERS_V2.rows, SSD)
NO_CDF = Behaviour(
    id="D-no-cdf",
    title="Changes of a managed Iceberg table",
    source="D, limitations of managed Iceberg",
    document="no change data feed on managed Iceberg",
    table=ORDERS_V2,
    steps=(insert(SSD), *view(INSERTED), delete(1), *view((*INSERTED, (1, 2, "DELETE")), name="after")),
    variants=(
        *paced(Variant("iceberg-changelog", access=MANAGED)),
        Variant(
            "vendor",
            missing="a Databricks workspace, to ask table_changes() of a managed Iceberg table; beside it Iceberg's "
            "own changelog view runs here",
        ),
    ),
    kinds=("spark",),
    expect=(
        Expect(
            Outcome.WORKS,
            "Iceberg's own changelog view needs no feature of the vendor's: it compares snapshots, in any catalog",
        ),
    ),
    tags=("v2", "write", "access"),
)
