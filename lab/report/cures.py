"""A cure in the words of the place where a user sets it: what to paste, and where."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lab.model import Where

CATALOG = "CATALOG"  # stands for the name of the user's catalog
TABLE = "db.t"


@dataclass(frozen=True)
class Way:
    """One way to set something: where, and the lines to paste there, one per setting."""

    where: str
    lines: tuple[str, ...]


def ways(where: Where, settings: Mapping[str, str], text: str = "") -> list[Way]:
    """How to set these, the simplest way first; `text` is the way where it is no setting."""
    found = [Way(place, tuple(say(k, v) for k, v in settings.items())) for place, say in _SYNTAX[where]]
    return [way for way in found if way.lines] + ([Way("", (text,))] if text else [])


def _spark_set(key: str, value: str) -> str:
    """Spark wants back quotes around a key with a hyphen."""
    return f"SET {key}={value}" if re.fullmatch(r"[\w.:]+", key) else f"SET `{key}`={value}"


def _of_sparks_catalog(key: str) -> str:
    """The key with the user's catalog in the place of the lab's."""
    return f"spark.sql.catalog.{CATALOG}.{key.removeprefix('spark.sql.catalog.lab.')}"


_DEFAULTS = ("spark-defaults.conf", lambda key, value: f"{key} {value}")
_CONF = ("spark-submit", lambda key, value: f"--conf {key}={value}")

_SYNTAX: Mapping[Where, tuple[tuple[str, Callable[[str, str], str]], ...]] = {
    Where.SPARK_SESSION: (("Spark SQL", _spark_set), _DEFAULTS),
    Where.SPARK_START: (_DEFAULTS, _CONF),
    Where.SPARK_CATALOG: (
        ("spark-defaults.conf", lambda key, value: f"{_of_sparks_catalog(key)} {value}"),
        ("Spark SQL, before the catalog's first use", lambda key, value: _spark_set(_of_sparks_catalog(key), value)),
    ),
    Where.TRINO_SESSION: (("Trino SQL", lambda key, value: f"SET SESSION {CATALOG}.{key} = {_literal(value)}"),),
    Where.TRINO_CATALOG: ((f"etc/catalog/{CATALOG}.properties", lambda key, value: f"{key}={value}"),),
    Where.DUCKDB_SESSION: (("DuckDB SQL", lambda key, value: f"SET {key} = {_quoted(value)}"),),
    Where.DUCKDB_ATTACH: (("option of ATTACH", lambda k, v: f"{k.removeprefix('attach.')} {_quoted(v)}"),),
    Where.PYICEBERG_CATALOG: ((".pyiceberg.yaml", lambda key, value: f"{key}: {value}"),),
    Where.TABLE: (
        ("Spark SQL", lambda key, value: f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('{key}'='{value}')"),
        ("table property", lambda key, value: f"{key}={value}"),
    ),
    Where.ELSEWHERE: (),
}


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _literal(value: str) -> str:
    """Trino's session properties are typed: numbers and booleans stand bare."""
    return value if re.fullmatch(r"true|false|\d+", value) else _quoted(value)
