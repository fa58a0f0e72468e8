"""Document D on clustered tables: external engines see partition fields, and read no file that these rule out."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.refusals import paced
from lab.model import Access, Behaviour, Call, Claim, Expect, Outcome, Step, Table, Variant
from lab.tables.orders import TOLD_V2

# Two files without bounds in their manifest, so that nothing but a partition's value can rule one out unread.
CLUSTERED = replace(TOLD_V2, name="CLUSTERED_V2", statistics=None)
PLAIN = replace(CLUSTERED, name="PLAIN_V2", partition=None)
FILTERED = Step(
    "filtered",
    "SELECT ORDER_ID FROM {table} WHERE WRITTEN_BY = 'lab'",
    Call(
        "scan",
        {
            "namespace": "{namespace}",
            "table": "{table_name}",
            "columns": ["ORDER_ID"],
            "filter": "WRITTEN_BY == 'lab'",
        },
    ),
    truth=((4,),),
)
PARTITIONS = Step(
    "partitions",
    {
        "spark": "SELECT count(*) FROM {table}.partitions",
        "trino": 'SELECT count(*) FROM lab.{namespace}."{table_name}$partitions"',
    },
    truth=((2,),),
    optional=True,
)
OPENED = Step("opened", look="opened")


def _layout(id: str, title: str, document: str | None, table: Table, *steps: Step, expect: Expect) -> Behaviour:
    return Behaviour(
        id=id,
        title=title,
        source="D, liquid clustering and external engines",
        document=document,
        table=table,
        steps=(FILTERED, *steps, OPENED),
        variants=paced(Variant(access=Access("unity-managed"))),
        claims=(Claim("*", Outcome.WORKS, facts=expect.facts),) if document else (),
        expect=(expect,),
        tags=("v2", "read", "access"),
    )


CLUSTER_PARTITION = _layout(
    "D-cluster-partition",
    "A filter on the column by which a table is clustered",
    "a clustered table shows external engines ordinary partition fields, and they prune by them",
    CLUSTERED,
    PARTITIONS,
    expect=Expect(
        Outcome.WORKS,
        "the store's own record has no read of the file whose partition is another: it was ruled out by the manifest",
        facts={"opened.files": 1},
    ),
)
NOT_CLUSTERED = _layout(
    "D-cluster-partition-none",
    "The same filter and files, and a table that is not partitioned",
    None,
    PLAIN,
    expect=Expect(
        Outcome.WORKS,
        "the control: the same two files, told no bounds and in no partition, are both opened",
        facts={"opened.files": 2},
    ),
)
