"""The statements of document H on its tables, once for all behaviours that use them."""

from __future__ import annotations

from lab.model import Call, Step, Table
from lab.tables.orders import Order, order

WRITER, READER = "{writer}", "{reader}"  # filled in with the cell's generations, so that a row tells who wrote it


def _on(op: str, **args: object) -> Call:
    return Call(op, {"namespace": "{namespace}", "table": "{table_name}", **args})


def read(table: Table, *rows: Order, name: str = "read", second: bool = False) -> Step:
    """All rows of the table: its seed rows where none are given."""
    return Step(name, "SELECT * FROM {table}", _on("scan"), truth=rows or table.rows, second=second)


def insert(*rows: Order, name: str = "insert", second: bool = False) -> Step:
    """One INSERT of these rows."""
    return Step(name, "INSERT INTO {table} VALUES {rows}", _on("append", rows="{rows}"), insert=rows, second=second)


def set_quantity(order_id: int, quantity: int, *, second: bool = False) -> Step:
    """UPDATE of one row. PyIceberg has no UPDATE: it reads the row and overwrites it."""
    return Step(
        "update",
        f"UPDATE {{table}} SET QUANTITY = {quantity} WHERE ORDER_ID = {order_id}",
        _on("update", filter=f"ORDER_ID == {order_id}", set={"QUANTITY": quantity}),
        second=second,
    )


def delete(order_id: int, *, second: bool = False) -> Step:
    """DELETE of one row."""
    return Step(
        "delete",
        f"DELETE FROM {{table}} WHERE ORDER_ID = {order_id}",
        _on("delete", filter=f"ORDER_ID == {order_id}"),
        second=second,
    )


def lineage(*rows: tuple[int, int, int]) -> Step:
    """Row lineage, by the engines that show it: (ORDER_ID, _row_id, _last_updated_sequence_number) of each row.

    The truth is the specification's: a row keeps its id for ever, and an update gives it the commit's number.
    """
    sql = {
        "spark": "SELECT ORDER_ID, _row_id, _last_updated_sequence_number FROM {table}",
        "duckdb": "SELECT ORDER_ID, _row_id, _last_updated_sequence_number FROM {table}",
        "trino": 'SELECT ORDER_ID, "$row_id", "$last_updated_sequence_number" FROM {table}',
    }
    return Step("lineage", sql, truth=rows, optional=True)


HISTORY = Step("history", look="history")
WRITTEN = Step("written", look="written")

SSD = order(201, "ssd-1tb", 1, "12800.00", "2026-07-02 10:00", WRITER)
SSD_UPDATED = order(201, "ssd-1tb", 2, "12800.00", "2026-07-02 10:00", WRITER)
HDD = order(202, "hdd-4tb", 1, "9800.00", "2026-07-02 10:05", WRITER)
HUB = order(301, "usb-hub", 1, "3400.00", "2026-07-02 11:00", READER)
HUB_UPDATED = order(301, "usb-hub", 2, "3400.00", "2026-07-02 11:00", READER)
CABLE = order(302, "cable", 1, "900.00", "2026-07-02 11:05", READER)
DESK_MAT = order(111, "desk-mat", 1, "2200.00", "2026-07-02 11:10", WRITER)
