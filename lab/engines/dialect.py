"""How each kind of engine says the few things in which dialects differ: a table's making and its seed rows.

Everything else a behaviour says itself, in SQL that all kinds understand or per kind where they do not.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from lab.errors import UsageError
from lab.model import Call, Statement, Table

CATALOG = "lab"  # its name in every engine

# Iceberg's primitive types in the words of each dialect, where the words differ from Iceberg's own.
_TYPES: Mapping[str, Mapping[str, str]] = {
    "duckdb": {"string": "VARCHAR", "long": "BIGINT", "timestamptz": "TIMESTAMPTZ", "binary": "BLOB"},
    "spark": {"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"},
    "trino": {
        "string": "varchar",
        "int": "integer",
        "long": "bigint",
        "float": "real",
        "timestamp": "timestamp(6)",
        "timestamptz": "timestamp(6) with time zone",
        "timestamp_ns": "timestamp(9)",
        "timestamptz_ns": "timestamp(9) with time zone",
        "binary": "varbinary",
    },
}


def create(kind: str, namespace: str, table: Table, properties: Mapping[str, str | None]) -> list[Statement]:
    """The statements that make an empty table of `table.format_version` with these properties.

    Raises UsageError for a kind that can't keep the names as they are declared.
    """
    name = f"{CATALOG}.{namespace}.{table.name}"
    settings = {"format-version": str(table.format_version), **table.properties, **properties}
    if None in settings.values():
        raise UsageError(f"{table.name}: only a table of declared files can lack a property that the catalog gives")
    if kind == "pyiceberg":
        schema = [(column, kind_of, False) for column, kind_of in table.columns]
        args = {"namespace": namespace, "table": table.name, "schema": schema, "properties": settings}
        return [Call("create_table", args)]
    if kind == "trino" or kind not in _TYPES:
        raise UsageError(
            f"{kind} can't make the lab's tables: it stores names in lower case. Seed with duckdb, spark or pyiceberg."
        )
    columns = ", ".join(f"{column} {type_name(kind, of)}" for column, of in table.columns)
    pairs = ", ".join(f"'{k}'='{v}'" for k, v in settings.items())
    tail = f"USING iceberg TBLPROPERTIES ({pairs})" if kind == "spark" else f"WITH ({pairs})"
    return [f"CREATE TABLE {name} ({columns}) {tail}"]


def type_name(kind: str, of: str) -> str:
    """An Iceberg type in the words of a SQL dialect; what is no primitive type comes back as it is."""
    return _TYPES[kind].get(of, of)


def create_namespace(kind: str, namespace: str) -> Statement:
    """Makes a namespace, of one level."""
    if kind == "pyiceberg":
        return Call("create_namespace", {"namespace": namespace})
    return f"CREATE SCHEMA IF NOT EXISTS {CATALOG}.{namespace}"


def insert(kind: str, namespace: str, table: Table, rows: Sequence[Sequence[Any]]) -> Statement:
    """One statement that appends rows."""
    if kind == "pyiceberg":
        names = [name for name, _ in table.columns]
        records = [dict(zip(names, row, strict=True)) for row in rows]
        return Call("append", {"namespace": namespace, "table": table.name, "rows": records})
    return f"INSERT INTO {CATALOG}.{namespace}.{table.name} VALUES {values(rows)}"


def values(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as a VALUES list that every SQL dialect here reads alike."""
    return ", ".join(f"({', '.join(map(literal, row))})" for row in rows)


def literal(value: Any) -> str:
    """A value as a SQL literal. Raises TypeError for a type that has none here."""
    if value is None:
        return "NULL"
    for kind, render in _LITERALS.items():
        if isinstance(value, kind):
            return render(value)
    raise TypeError(f"no SQL literal for {type(value).__name__}")


_LITERALS: Mapping[type, Callable[[Any], str]] = {  # in this order: bool is an int, datetime is a date
    bool: lambda v: str(v).upper(),
    int: str,
    float: repr,
    Decimal: str,
    str: lambda v: "'" + v.replace("'", "''") + "'",
    dt.datetime: lambda v: f"TIMESTAMP '{v.isoformat(sep=' ')}'",
    dt.date: lambda v: f"DATE '{v.isoformat()}'",
}
