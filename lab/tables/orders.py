"""ORDERS_V2 and ORDERS_V3 of document H: identical but for format version and seed rows."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from lab.model import Table

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
