"""A v2 table without anything: what the other features are held against."""

from __future__ import annotations

from decimal import Decimal

from lab.behaviours.pairs.feature import create, feature, insert
from lab.behaviours.pairs.filters import Filter
from lab.behaviours.pairs.known import DELTA_LENGTH

COLUMNS = (("id", "int"), ("n", "long"), ("price", "decimal(9, 2)"), ("v", "string"))
NAMES = [name for name, _ in COLUMNS]
ROWS = (
    (1, 10, Decimal("1.50"), "apple"),
    (2, None, Decimal("2.00"), None),
    (3, 30, None, "apricot"),
    (4, 40, Decimal("99.99"), "banana"),
)

PLAIN = feature(
    "plain",
    "A v2 table of two files",
    2,
    COLUMNS,
    ROWS,
    (create(COLUMNS, 2), insert(NAMES, *ROWS[:2]), insert(NAMES, *ROWS[2:], name="insert-more")),
    filters=(
        Filter("n", "=", 30),
        Filter("price", "<", Decimal("2.00")),
        Filter("v", "in", ("apple", "banana")),
        Filter("n", "null"),
        Filter("v", "not", "apple"),
        Filter("v", "like", "ap"),
    ),
    expect=(DELTA_LENGTH,),
)
