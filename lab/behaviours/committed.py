"""Files committed as they are, through Iceberg's own API: what no SQL of these engines writes, and who reads it."""

from __future__ import annotations

from lab.behaviours.known import DEFAULT_OVERLOOKED, SPARK_3_2_NO_V3
from lab.behaviours.orders_steps import read
from lab.model import Behaviour, Call, Chain, Expect, Outcome, Step, Table, Trap
from lab.tables import orders

NAMESPACE = "COMMITTED"
READ = Expect(Outcome.WORKS, "part of the specification of that version, and read")


def _reads(id: str, title: str, table: Table, *expect: Expect, steps: tuple[Step, ...] = ()) -> Behaviour:
    return Behaviour(
        id=id,
        title=title,
        source="the lab's own question",
        document=None,
        table=table,
        namespace=NAMESPACE,
        steps=steps or (read(table),),
        expect=(*expect, READ),
        tags=("committed", f"v{table.format_version}", "read"),
    )


POSITION = _reads("F-position-delete", "A position delete file on v2", orders.POSITIONED_V2)
EQUALITY = _reads(
    "F-equality-delete",
    "An equality delete on v2",
    orders.KEYED_V2,
    Expect(
        Outcome.NOT_SUPPORTED,
        "PyIceberg refuses to plan a scan in which an equality delete stands (ManifestGroupPlanner.plan_files)",
        generations="pyiceberg-*",
        failure=Chain((("ValueError", "PyIceberg does not yet support equality deletes"),)),
        trap=Trap(
            "pyiceberg-equality-deletes",
            "PyIceberg reads no table that has an equality delete",
            r"PyIceberg does not yet support equality deletes",
            "pyiceberg.table.ManifestGroupPlanner.plan_files",
            remedy="have an engine that reads them rewrite the table: CALL lab.system.rewrite_data_files in Spark",
        ),
    ),
)
VECTOR = _reads(
    "F-deletion-vector",
    "A deletion vector on v3",
    orders.DELETED_V3,
    SPARK_3_2_NO_V3,
    Expect(
        Outcome.NOT_SUPPORTED,
        "Trino 476 takes a v3 table until it meets a deletion vector, whose Puffin file it can't open",
        generations="trino-476",
        failure=Chain(
            (
                ("ICEBERG_BAD_DATA", "Unexpected PUFFIN file format"),
                ("java.lang.IllegalArgumentException", "Unexpected PUFFIN file format"),
            )
        ),
        trap=Trap(
            "trino-deletion-vector",
            "Trino finds a Puffin file where it expects a delete file",
            r"Unexpected PUFFIN file format",
            "io.trino.plugin.iceberg.IcebergPageSourceProvider.openDeletes",
            remedy="read with Trino 483, or have the writer copy on write so that no deletion vector arises",
        ),
    ),
)
DEFAULT = _reads(
    "F-default",
    "An initial default that fills in a missing column",
    orders.DEFAULTED_V3,
    SPARK_3_2_NO_V3,
    Expect(
        Outcome.SILENTLY_WRONG,
        "Trino 476 takes a v3 table and overlooks the column's initial default: rows of files without the column come "
        "back as null, without a word",
        generations="trino-476",
        rows={"read": tuple((*row[:5], None) for row in orders.DEFAULTED_V3.rows)},
        trap=DEFAULT_OVERLOOKED,
    ),
)
BOUNDS = _reads(
    "F-bounds",
    "Bounds in the manifest, and filters at their very edges",
    orders.BOUNDED_V2,
    steps=tuple(
        Step(
            f"read-{place}",
            f"SELECT ORDER_ID FROM {{table}} WHERE {where}",
            Call(
                "scan",
                {"namespace": "{namespace}", "table": "{table_name}", "columns": ["ORDER_ID"], "filter": filter},
            ),
            truth=truth,
        )
        for place, (where, filter, truth) in enumerate(
            (
                ("ORDER_ID = 3", "ORDER_ID == 3", ((3,),)),
                ("PRODUCT = 'keyboard'", "PRODUCT == 'keyboard'", ((1,),)),
                ("UNIT_PRICE >= 32000.00", "UNIT_PRICE >= 32000.00", ((3,),)),
                (
                    "ORDERED_AT <= TIMESTAMP '2026-07-01 09:00:00'",
                    "ORDERED_AT <= '2026-07-01T09:00:00'",
                    ((1,),),
                ),
                ("QUANTITY > 5", "QUANTITY > 5", ()),
            ),
            start=1,
        )
    ),
)
