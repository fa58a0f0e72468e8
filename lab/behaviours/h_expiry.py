"""Vended keys that end: between two statements, in the middle of a scan, and before a write has done its work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.behaviours.orders_steps import HISTORY, WRITER, read
from lab.model import Access, Behaviour, Call, DataFile, Expect, Outcome, Step, Variant
from lab.stores.seaweedfs import SHORTEST_SECONDS as SECONDS
from lab.tables.orders import ORDERS_V2, order

LONG = "horizon"
SHORT = f"{LONG}~vended-seconds={SECONDS}"
UNTOLD = f"{SHORT}~vended-refresh=none"
KEPT_BY_SPARK = {"spark.sql.catalog.lab.cache-enabled": "true"}  # Spark's own default, which the lab takes away

PACE = 5  # seconds that each of four files takes: the last is opened when the keys have ended
ROWS = tuple(order(n, f"part-{n}", n, "1.00", f"2026-07-0{n} 09:00", "lab") for n in range(1, 5))
IN_PIECES = replace(
    ORDERS_V2,
    rows=ROWS,
    files=tuple(DataFile(rows=(row,)) for row in ROWS),
    properties={"read.split.adaptive-size.enabled": "false"},  # all in one task of Spark's, one after the other
)
WRITTEN = tuple(order(n, "slow", 1, "1.00", "2026-07-02 10:00", WRITER) for n in (201, 202))
VALUES = "CAST(201 + id AS int), 'slow', 1, CAST(1.00 AS decimal(10, 2)), TIMESTAMP '2026-07-02 10:00:00', '{writer}'"

SLEEP = "java_method('java.lang.Thread', 'sleep', {millis}) = 'null'"
# Trino has nothing that waits, but a loop that takes longer; where the work is a join's other side, no file is opened
# before it is done.
ROUNDS = 500_000_000
LOOP = """WITH FUNCTION work(n bigint) RETURNS bigint BEGIN
DECLARE i bigint DEFAULT 0;
WHILE i < n DO SET i = i + 1; END WHILE;
RETURN i; END """


def _called(op: str, **args: Any) -> Call:
    return Call(op, {"namespace": "{namespace}", "table": "{table_name}", **args})


SCAN = Step(
    "scan",
    {
        "spark": f"SELECT * FROM {{table}} WHERE {SLEEP.format(millis=f'{PACE * 1000}L')}",
        "duckdb": f"SET threads = 1; SELECT * FROM {{table}} WHERE sleep_ms({PACE * 1000} + 0 * ORDER_ID) IS NULL",
        "trino": f"{LOOP} SELECT t.* FROM {{table}} AS t "
        f"CROSS JOIN (SELECT sum(work({ROUNDS} * id)) AS done FROM UNNEST(sequence(0, 1)) AS r(id)) WHERE done > 0",
    },
    _called("scan_later", after="plan", seconds=SECONDS + 1),
    truth=ROWS,
)
# The first row's file is written in time, the second's when the keys have ended.
INSERT = Step(
    "insert",
    {
        "spark": f"INSERT INTO {{table}} SELECT {VALUES} FROM range(0, 2, 1, 2) "
        f"WHERE {SLEEP.format(millis=f'IF(id = 0, 1000L, {(SECONDS + 2) * 1000}L)')}",
        "duckdb": f"INSERT INTO {{table}} SELECT {VALUES} FROM range(2) AS r(id) "
        f"WHERE sleep_ms({(SECONDS + 2) * 500} + 0 * id) IS NULL",
        "trino": f"INSERT INTO {{table}} {LOOP} SELECT {VALUES} FROM UNNEST(sequence(0, 1)) AS r(id) "
        f"WHERE work({ROUNDS} * id) >= 0",
    },
    _called("append_later", rows="{rows}", seconds=SECONDS + 1),
)
KEPT = (Step("later", call=_called("scan_later", after="load", seconds=SECONDS + 1), truth=ORDERS_V2.rows),)


def _doors(name: str = "", generations: str = "*", **more: Any) -> tuple[Variant, ...]:
    """Short keys with and without a word of where to get new ones, and the control: keys that live."""
    doors = {"told-where": SHORT, "not-told": UNTOLD, "long": LONG}
    return tuple(
        Variant(f"{name}{how}", generations, access=Access(door), full=True, **more) for how, door in doors.items()
    )


BETWEEN = Behaviour(
    id="H-vending-expiry",
    title="Vended keys end between two statements of a session",
    source="H, connection settings",
    document=None,
    table=ORDERS_V2,
    steps=(read(ORDERS_V2), replace(read(ORDERS_V2, name="later"), wait=SECONDS + 1)),
    variants=(
        *_doors(),
        *_doors("kept-", "spark-*", settings=KEPT_BY_SPARK),
        *_doors("kept-", "pyiceberg-*", steps=KEPT),
    ),
    expect=(Expect(Outcome.WORKS, "?"),),
    tags=("v2", "read", "access"),
)
IN_A_SCAN = Behaviour(
    id="H-vending-expiry-scan",
    title="Vended keys end in the middle of a scan",
    source="H, connection settings",
    document=None,
    table=IN_PIECES,
    steps=(SCAN,),
    variants=_doors(),
    expect=(Expect(Outcome.WORKS, "?"),),
    tags=("v2", "read", "access"),
)
IN_A_WRITE = Behaviour(
    id="H-vending-expiry-write",
    title="Vended keys end before an INSERT has written all of its files",
    source="H, connection settings",
    document=None,
    table=ORDERS_V2,
    steps=(
        replace(INSERT, insert=WRITTEN),
        read(ORDERS_V2, *ORDERS_V2.rows, *WRITTEN),
        replace(HISTORY, always=True),
        Step("orphans", look="orphans", always=True),
    ),
    variants=_doors(),
    expect=(Expect(Outcome.WORKS, "?"),),
    tags=("v2", "write", "access"),
)
