"""The lab's tables of any size: rows made of their numbers, by an engine itself, so that their truth is a formula.

Row n, from 1 on, is the same in every engine. Each dialect declares how it counts and how it adds to a timestamp; all
else is SQL that they share.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lab.tables.orders import ORDERS_V2, ORDERS_V3

LIKE = {table.name: table for table in (ORDERS_V2, ORDERS_V3)}
MOST_ROWS = 2**31 - 1  # ORDER_ID is an int
MOST_FILES = 10_000
_PRODUCTS = ("keyboard", "mouse", "monitor", "desk", "chair")
_QUANTITIES = 9
_PRICES, _LEAST = 99_900, 100  # cents
_START, _SECONDS = dt.datetime(2026, 1, 1), 365 * 24 * 3600  # a row each second of a year, then from its start again


@dataclass(frozen=True)
class Counting:
    """What differs by dialect: numbers from {first} to {last} as `n`, in {files} parts, and a timestamp from them.

    at_once: one statement writes as many files as it counts in parts. Else each statement writes one, as far as the
    engine does not split what is large.
    """

    numbers: str
    ordered_at: str
    at_once: bool = False


DIALECTS: Mapping[str, Counting] = {
    "duckdb": Counting(
        "(SELECT range AS n FROM range({first}, {last} + 1))",
        "TIMESTAMP '{start}' + to_seconds(n % {seconds})",
    ),
    "spark": Counting(
        "(SELECT id AS n FROM range({first}, {last} + 1, 1, {files}))",
        "timestampadd(SECOND, n % {seconds}, TIMESTAMP_NTZ '{start}')",
        at_once=True,
    ),
    "trino": Counting(
        "(SELECT sequential_number AS n FROM TABLE(sequence(start => {first}, stop => {last})))",
        "date_add('second', n % {seconds}, TIMESTAMP '{start}')",
    ),
}
_CHOICE = " ".join(f"WHEN {place} THEN '{product}'" for place, product in enumerate(_PRODUCTS))
CHECK = (
    "SELECT count(*), sum(ORDER_ID), min(ORDER_ID), max(ORDER_ID), sum(QUANTITY), sum(UNIT_PRICE), "
    "min(ORDERED_AT), max(ORDERED_AT), count(DISTINCT PRODUCT) FROM {table}"
)
CHECKED = (
    *("rows", "sum of ORDER_ID", "lowest ORDER_ID", "highest ORDER_ID", "sum of QUANTITY", "sum of UNIT_PRICE"),
    *("first ORDERED_AT", "last ORDERED_AT", "products"),
)


def inserts(kind: str, table: str, rows: int, files: int) -> Iterator[tuple[int, str]]:
    """Statements that append rows 1 to `rows` in `files` files, each with the number of rows there are after it."""
    dialect = DIALECTS[kind]
    parts = 1 if dialect.at_once else files
    for part in range(parts):
        first, last = rows * part // parts + 1, rows * (part + 1) // parts
        words = {"first": first, "last": last, "files": files, "start": str(_START), "seconds": _SECONDS}
        numbers, ordered_at = dialect.numbers.format(**words), dialect.ordered_at.format(**words)
        yield (
            last,
            f"INSERT INTO {table} SELECT CAST(n AS INTEGER), CASE n % {len(_PRODUCTS)} {_CHOICE} END, "
            f"CAST(1 + n % {_QUANTITIES} AS INTEGER), CAST(({_LEAST} + n % {_PRICES}) * 0.01 AS DECIMAL(10, 2)), "
            f"{ordered_at}, 'generator' FROM {numbers}",
        )


def truth(rows: int) -> tuple[Any, ...]:
    """What `CHECK` must return."""
    first = _START if rows >= _SECONDS else _START + dt.timedelta(seconds=1)
    return (
        rows,
        rows * (rows + 1) // 2,
        1,
        rows,
        rows + _sum_of_remainders(rows, _QUANTITIES),
        Decimal(_LEAST * rows + _sum_of_remainders(rows, _PRICES)) / 100,
        first,
        _START + dt.timedelta(seconds=min(rows, _SECONDS - 1)),
        min(rows, len(_PRODUCTS)),
    )


def _sum_of_remainders(rows: int, by: int) -> int:
    """Of n % by, for n from 1 to rows."""
    rounds, rest = divmod(rows, by)
    return rounds * (by * (by - 1) // 2) + rest * (rest + 1) // 2
