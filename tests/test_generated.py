"""Tables of any size: the truth as a formula, statements that cover every row once, orders that can't be filled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

import pytest

from lab.engines import GENERATIONS
from lab.errors import UsageError
from lab.generating import Order, speaks
from lab.tables import generated
from lab.tables.generated import inserts, truth


@pytest.mark.parametrize("rows", [1, 4, 5, 9, 10, 1000, 99_899, 99_901])
def test_the_truth_is_that_of_the_rows(rows: int) -> None:
    numbers = range(1, rows + 1)
    told = truth(rows)
    assert told[:4] == (rows, sum(numbers), 1, rows)
    assert told[4] == sum(1 + n % 9 for n in numbers)
    assert told[5] == Decimal(sum(100 + n % 99_900 for n in numbers)) / 100
    assert told[8] == len({n % 5 for n in numbers})


def test_a_year_is_gone_through_again() -> None:
    year = 365 * 24 * 3600
    assert [str(told) for told in truth(year - 1)[6:8]] == ["2026-01-01 00:00:01", "2026-12-31 23:59:59"]
    assert [str(told) for told in truth(year)[6:8]] == ["2026-01-01 00:00:00", "2026-12-31 23:59:59"]


@pytest.mark.parametrize("kind", generated.DIALECTS)
def test_statements_cover_every_row_once(kind: str) -> None:
    said = list(inserts(kind, "lab.B.T", 10, 3))
    assert said[-1][0] == 10
    bounds: Mapping[str, str] = {
        "duckdb": r"range\((\d+), (\d+) \+ 1\)",
        "spark": r"range\((\d+), (\d+) \+ 1, 1, 3\)",
        "trino": r"start => (\d+), stop => (\d+)\)",
    }
    found = [tuple(map(int, re.search(bounds[kind], statement).groups())) for _, statement in said]  # type: ignore[union-attr]
    assert [n for first, last in found for n in range(first, last + 1)] == list(range(1, 11))
    assert len(found) == (1 if generated.DIALECTS[kind].at_once else 3)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"table": "T"}, "NAMESPACE.TABLE"),
        ({"table": "a.b;c"}, "NAMESPACE.TABLE"),
        ({"like": "ORDERS"}, "ORDERS_V2, ORDERS_V3"),
        ({"rows": 0}, "1 to 2,147,483,647"),
        ({"rows": 2**31}, "ORDER_ID is an int"),
        ({"files": 0}, "--files takes 1"),
        ({"files": 11}, "no more than there are rows"),
        ({"rows": 10**6, "files": 10**5}, "1 to 10,000"),
    ],
)
def test_nonsense_is_refused_before_anything_is_made(changed: dict[str, object], told: str) -> None:
    asked: dict[str, object] = {"table": "B.T", "like": "ORDERS_V3", "rows": 10, "files": 2}
    Order(**asked)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=told):
        Order(**{**asked, **changed})  # type: ignore[arg-type]


def test_who_has_no_sql_makes_no_rows() -> None:
    speaks(GENERATIONS["trino-483"])
    with pytest.raises(UsageError, match="take a generation of duckdb, spark, trino"):
        speaks(GENERATIONS["pyiceberg-0.12.0"])
