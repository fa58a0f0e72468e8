"""DuckDB in its worker: the catalog attached as `lab`, one in-memory instance per session."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb

from lab.values import Nanoseconds

import_module("pytz")  # DuckDB wants it for zoned timestamps only: missing, it must not look like a failed query

ATTACH = "attach."  # settings with this prefix are options of ATTACH
EXTENSIONS = ["httpfs", "avro", "iceberg"]  # in this order: each needs those before it
OFFLINE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}


class Session:
    """A fresh instance: neither settings nor what DuckDB remembers of the catalog outlive a session."""

    def __init__(self, catalog: dict[str, str], settings: dict[str, str]) -> None:
        _signatures_checked()
        self._connection = _instance(allow_unsigned_extensions="true")
        store = urlsplit(catalog["s3_endpoint"])
        addresses = {
            "s3_endpoint": store.netloc,
            "s3_use_ssl": str(store.scheme == "https"),
            "s3_url_style": "path",
            "s3_region": catalog["region"],
        }
        options = {"TYPE": "iceberg", "ENDPOINT": catalog["uri"]}
        for name, value in {**addresses, **settings}.items():
            if name.startswith(ATTACH):
                options[name.removeprefix(ATTACH)] = value
            else:
                self._connection.execute(f"SET {name} = {_quoted(value)}")
        listed = ", ".join(f"{name} {_quoted(value)}" for name, value in options.items())
        self._connection.execute(f"ATTACH {_quoted(catalog['warehouse'])} AS lab ({listed})")

    def execute(self, text: str) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        """Run the text's statements in order; the last one's answer counts."""
        columns: list[tuple[str, str]] = []
        rows: list[tuple[Any, ...]] = []
        for statement in self._connection.extract_statements(text):
            self._connection.execute(statement)
            described = self._connection.description or []
            columns = [(name, str(kind)) for name, kind, *_ in described]
            if any("TIMESTAMP_NS" in kind for _, kind in columns):
                rows = self._exact(statement.query, [kind for _, kind, *_ in described])
            else:
                rows = self._connection.fetchall()
            if duckdb.ExpectedResultType.NOTHING in statement.expected_result_type:
                columns, rows = [], []  # a DDL statement's empty "Count" is no result
        return columns, rows

    def _exact(self, query: str, kinds: list[Any]) -> list[tuple[Any, ...]]:
        """The query's rows with nanoseconds whole: DuckDB's client cuts them, its cast to text does not."""
        casts = ", ".join(
            f"CAST(#{place} AS {str(kind).replace('TIMESTAMP_NS', 'VARCHAR')})"
            for place, kind in enumerate(kinds, start=1)
        )
        answer = self._connection.sql(query).project(casts)
        return [
            tuple(_nanoseconds(value, kind) for value, kind in zip(row, kinds, strict=True))
            for row in answer.fetchall()
        ]

    def close(self) -> None:
        self._connection.close()


def versions() -> dict[str, str]:
    """DuckDB's version, and of each loaded extension the build."""
    connection = _signatures_checked()
    ((version,),) = connection.execute("SELECT version()").fetchall()
    extensions = connection.execute(
        "SELECT extension_name, extension_version FROM duckdb_extensions() WHERE extension_name IN $names",
        {"names": EXTENSIONS},
    )
    return {"duckdb": version.removeprefix("v"), **dict(extensions.fetchall())}


@cache
def _signatures_checked() -> Any:
    """An instance that loaded the extensions with their signatures checked.

    Once per worker: hashing 85 MB takes a quarter of a second, which later sessions on the same files save.
    """
    return _instance()


def _instance(**config: str) -> Any:
    connection = duckdb.connect(":memory:", config={**OFFLINE, **config})
    packages = Path(duckdb.__file__).parents[1]
    for extension in EXTENSIONS:
        (file,) = packages.glob(f"duckdb_extension_{extension}/extensions/*/{extension}.duckdb_extension")
        connection.execute(f"LOAD {_quoted(str(file))}")
    return connection


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _nanoseconds(value: Any, kind: Any) -> Any:
    """A value of a cast column as its type says: the text of each nanosecond timestamp becomes one again."""
    if value is None or "TIMESTAMP_NS" not in str(kind):
        return value
    children: Iterable[tuple[str, Any]] = [] if kind.id == "timestamp_ns" else kind.children
    match kind.id:
        case "timestamp_ns":
            seconds, _, fraction = value.replace(" ", "T").partition(".")
            return Nanoseconds(f"{seconds}.{fraction:0<9}")
        case "list" | "array":
            child = next(iter(children))[1]
            return [_nanoseconds(item, child) for item in value]
        case "struct":
            return {name: _nanoseconds(value[name], child) for name, child in children}
        case "map":
            (_, key), (_, item) = children
            return {_nanoseconds(k, key): _nanoseconds(v, item) for k, v in value.items()}
    return value
