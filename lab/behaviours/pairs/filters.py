"""Filters as data: their truth is computed here from the rows that were inserted, and they are asked in every dialect.

Three-valued like SQL: a comparison with null keeps no row, nor does its negation.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lab.engines import dialect
from lab.model import Call, Step, Truth
from lab.values import Nanoseconds

KEY = "id"  # the column of every feature's table by which its rows are told apart

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Filter:
    """`column op value`; a dotted column is a struct's field. `op`: see `OPERATORS`; of `in` the value is a tuple."""

    column: str
    op: str
    value: Any = None

    def __str__(self) -> str:
        """In the lab's own words, the same for every dialect: what a row of the answer names it by."""
        return f"{self.column} {OPERATORS[self.op].sql}".format(_plain(self.value)).strip()

    def keeps(self, row: Row) -> bool:
        """Whether this row passes."""
        value: Any = row
        for name in self.column.split("."):
            value = None if value is None else value[name]
        if self.op in ("null", "not null"):
            return (value is None) is (self.op == "null")
        return value is not None and OPERATORS[self.op].test(value, self.value)

    def said(self, kind: str) -> str:
        """As a condition in an engine's dialect, or in PyIceberg's grammar."""
        value = (
            f"({', '.join(_literal(kind, item) for item in self.value)})"
            if self.op in ("in", "not in")
            else _literal(kind, f"{self.value}%" if self.op.endswith("like") else self.value)
        )
        return OPERATORS[self.op].form.format(column=self.column, value=value)


@dataclass(frozen=True)
class _Operator:
    sql: str  # how a filter is named
    form: str
    test: Callable[[Any, Any], bool] = lambda value, asked: False  # of two values, neither null


OPERATORS: Mapping[str, _Operator] = {
    "=": _Operator("= {}", "{column} = {value}", operator.eq),
    "<": _Operator("< {}", "{column} < {value}", operator.lt),
    ">": _Operator("> {}", "{column} > {value}", operator.gt),
    "in": _Operator("in ({})", "{column} IN {value}", lambda value, asked: value in asked),
    "not in": _Operator("not in ({})", "{column} NOT IN {value}", lambda value, asked: value not in asked),
    "null": _Operator("is null", "{column} IS NULL"),
    "not null": _Operator("is not null", "{column} IS NOT NULL"),
    "not": _Operator("not = {}", "NOT ({column} = {value})", operator.ne),
    "like": _Operator("like {}%", "{column} LIKE {value}", lambda value, asked: value.startswith(asked)),
    "not like": _Operator(
        "not like {}%", "{column} NOT LIKE {value}", lambda value, asked: not value.startswith(asked)
    ),
}


def asked(columns: Sequence[str], rows: Truth, filters: Sequence[Filter], kinds: Sequence[str]) -> Step:
    """All filters in one statement: (filter, key) of each row that passes."""
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    return Step(
        "filters",
        {
            kind: " UNION ALL ".join(
                f"SELECT '{filter}' AS filtered, {KEY} FROM {{table}} WHERE {filter.said(kind)}" for filter in filters
            )
            for kind in kinds
        },
        Call(
            "filters",
            {
                "namespace": "{namespace}",
                "table": "{table_name}",
                "key": KEY,
                "filters": {str(filter): filter.said("pyiceberg") for filter in filters},
            },
        ),
        truth=tuple((str(filter), row[KEY]) for filter in filters for row in records if filter.keeps(row)),
        second=True,
    )


def every(columns: Sequence[tuple[str, str]], rows: Truth) -> Iterator[Filter]:
    """Each operator on each primitive column, with a value that stands in the middle of the rows'."""
    for place, (column, kind) in enumerate(columns):
        values = sorted({row[place] for row in rows if row[place] is not None and _comparable(row[place])})
        yield Filter(column, "null")
        yield Filter(column, "not null")
        if not values or kind == "variant":
            continue
        middle = values[len(values) // 2]
        for op in ("=", "<", ">", "not"):
            yield Filter(column, op, middle)
        for op in ("in", "not in"):
            yield Filter(column, op, (values[0], values[-1]))
        if kind == "string":
            for op in ("like", "not like"):
                yield Filter(column, op, middle[:2])


def _comparable(value: Any) -> bool:
    return isinstance(value, int | float | str | Decimal | dt.date | Nanoseconds) and not isinstance(value, bool)


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_plain, value))
    return "" if value is None else str(value)


def _literal(kind: str, value: Any) -> str:
    """A value in a dialect's words; its zone is written where the column has one."""
    if isinstance(value, Nanoseconds):
        moment, zone = value.text[:29].replace("T", " "), value.text[29:]
        if kind == "pyiceberg":
            return f"'{value.text}'"
        return f"TIMESTAMP_NS '{moment}'" if kind == "duckdb" else f"TIMESTAMP '{moment}{' UTC' if zone else ''}'"
    if isinstance(value, dt.datetime):
        zone = "" if value.tzinfo is None else {"trino": " UTC", "spark": "Z"}.get(kind, "+00:00")
        text = value.replace(tzinfo=None).isoformat(sep="T" if kind == "pyiceberg" else " ")
        word = (
            "TIMESTAMPTZ "
            if zone and kind == "duckdb"
            else "TIMESTAMP_NTZ "
            if not zone and kind == "spark"
            else "TIMESTAMP "
        )
        return f"'{text}{zone}'" if kind == "pyiceberg" else f"{word}'{text}{zone}'"
    if isinstance(value, dt.date) and kind == "pyiceberg":
        return f"'{value.isoformat()}'"
    return dialect.literal(value)
