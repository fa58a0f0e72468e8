"""ORDERS_V2 and ORDERS_V3 of document H: identical but for format version and seed rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from lab.model import DataFile, DeleteFile, Statistics, Table

NAMESPACE = "ANALYTICS"

COLUMNS = (
    ("ORDER_ID", "int"),
    ("PRODUCT", "string"),
    ("QUANTITY", "int"),
    ("UNIT_PRICE", "decimal(10, 2)"),
    ("ORDERED_AT", "timestamp"),  # without zone, microseconds
    ("WRITTEN_BY", "string"),
)

Order = tuple[int, str, int, Decimal, datetime, str]


def order(order_id: int, product: str, quantity: int, price: str, ordered_at: str, written_by: str) -> Order:
    """A row, its price and time given as text: `order(1, "desk", 1, "25000.00", "2026-07-01 09:00", "x")`."""
    return (order_id, product, quantity, Decimal(price), datetime.fromisoformat(ordered_at), written_by)


ORDERS_V2 = Table(
    "ORDERS_V2",
    format_version=2,
    columns=COLUMNS,
    rows=(
        order(1, "keyboard", 2, "4500.00", "2026-07-01 09:00", "snowflake"),
        order(2, "mouse", 5, "1980.00", "2026-07-01 10:30", "snowflake"),
        order(3, "monitor", 1, "32000.00", "2026-07-01 14:15", "snowflake"),
    ),
)
ORDERS_V3 = Table(
    "ORDERS_V3",
    format_version=3,
    columns=COLUMNS,
    rows=(
        order(1, "desk", 1, "25000.00", "2026-07-01 09:00", "snowflake"),
        order(2, "chair", 2, "18000.00", "2026-07-01 11:45", "snowflake"),
    ),
)

# The same tables as Snowflake writes them. Document H shows the encodings of integers and strings; of decimals and
# timestamps it tells nothing, and as 64-bit integers they are taken to be packed like the others.
SNOWFLAKE_NAMESPACE = "SNOWFLAKE"
SNOWFLAKE = DataFile(
    encodings={
        name: "DELTA_LENGTH_BYTE_ARRAY" if kind == "string" else "DELTA_BINARY_PACKED" for name, kind in COLUMNS
    },
    page_version=2,
)
SNOWFLAKE_V2 = replace(ORDERS_V2, files=(SNOWFLAKE,))
SNOWFLAKE_V3 = replace(ORDERS_V3, files=(SNOWFLAKE,))

# What v3 adds: a row gone by a deletion vector, a column that old files lack and its default fills.
DELETED_V3 = replace(
    ORDERS_V3,
    name="DELETED_V3",
    rows=ORDERS_V3.rows[1:],
    files=(DataFile(rows=ORDERS_V3.rows), DeleteFile("deletion-vector", positions=(0,))),
)
DEFAULTED_V3 = replace(
    ORDERS_V3,
    name="DEFAULTED_V3",
    rows=tuple((*row[:5], "unknown") for row in ORDERS_V3.rows),
    files=(DataFile(without=("WRITTEN_BY",)),),
    defaults={"WRITTEN_BY": "unknown"},
)

# Deletes and bounds as no SQL of the engines here makes them, on v2.
KEYED_V2 = replace(
    ORDERS_V2,
    name="EQUALITY_DELETES_V2",
    rows=(ORDERS_V2.rows[0], ORDERS_V2.rows[2]),
    files=(DataFile(rows=ORDERS_V2.rows), DeleteFile("equality-delete", columns=("ORDER_ID",), keys=((2,),))),
)
POSITIONED_V2 = replace(
    ORDERS_V2,
    name="POSITION_DELETES_V2",
    rows=ORDERS_V2.rows[:2],
    files=(DataFile(rows=ORDERS_V2.rows), DeleteFile("position-delete", positions=(2,))),
)


def _alone(order: Order, **told: Any) -> DataFile:
    """A file of one row; `told` is what the manifest says of it."""
    return DataFile(rows=(order,), **told)


# A file for each row, so that bounds tell the one that a filter needs from those it does not.
BOUNDED_V2 = replace(
    ORDERS_V2,
    name="BOUNDED_V2",
    files=tuple(
        _alone(row, bounds={name: (value, value) for (name, _), value in zip(COLUMNS, row, strict=True)})
        for row in ORDERS_V2.rows
    ),
)
COUNTED_V2 = replace(
    ORDERS_V2,
    name="COUNTED_V2",
    rows=(ORDERS_V2.rows[0], (*ORDERS_V2.rows[1][:5], None), ORDERS_V2.rows[2]),
)
COUNTED_V2 = replace(COUNTED_V2, files=tuple(_alone(row) for row in COUNTED_V2.rows))
# The same, and its manifest lies: who skips files by what it says misses rows, which shows that it does.
MISBOUNDED_V2 = replace(
    BOUNDED_V2,
    name="MISBOUNDED_V2",
    files=(*BOUNDED_V2.files[:2], _alone(ORDERS_V2.rows[2], bounds={"ORDER_ID": (1, 1)})),
)
MISCOUNTED_V2 = replace(
    COUNTED_V2,
    name="MISCOUNTED_V2",
    files=(
        COUNTED_V2.files[0],
        _alone(COUNTED_V2.rows[1], nulls={"WRITTEN_BY": 0}),
        _alone(COUNTED_V2.rows[2], nulls={"WRITTEN_BY": 1}),
    ),
)

# The column's default has changed since: old rows keep the initial one, new ones take the other.
REDEFAULTED_V3 = replace(DEFAULTED_V3, name="REDEFAULTED_V3", write_defaults={"WRITTEN_BY": "somebody"})

# Two partitions, each with a file; what is told of QUANTITY is not so, which shows who goes by it.
TOLD_V2 = replace(
    ORDERS_V2,
    name="TOLD_V2",
    rows=(*ORDERS_V2.rows, order(4, "desk", 1, "25000.00", "2026-07-01 15:00", "lab")),
    files=(DataFile(rows=ORDERS_V2.rows), _alone(order(4, "desk", 1, "25000.00", "2026-07-01 15:00", "lab"))),
    partition="WRITTEN_BY",
    statistics=Statistics({"ORDER_ID": 4, "QUANTITY": 2}, partitions=True),
)
