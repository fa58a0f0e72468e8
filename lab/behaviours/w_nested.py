"""The lab's own question, next to document W on grants: a namespace within a namespace, and who may do what in there.

All its levels are one part of a request's path, with %1F between them: whatever decodes that on the way, or looks for a
dot in it, makes another namespace of it. Each engine has its own way to write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.behaviours.refusals import OFF, not_loaded
from lab.model import Access, Behaviour, Call, Chain, Cure, Expect, Outcome, Step, Table, Trap, Variant, Where

HORIZON = "horizon"
OUTER, INNER = "{namespace_lower}_outer", "inner"  # in lower case, which no engine folds
BOTH = f"{OUTER}.{INNER}"
# Of Trino's catalog: without it a dot in a schema's name is refused.
ENABLED = {"iceberg.rest-catalog.nested-namespace-enabled": "true"}
TRINO_NESTED = Trap(
    "trino-nested-namespace",
    "Trino refuses a schema with a dot in its name",
    r"Nested namespace is not enabled for this catalog",
    "io.trino.plugin.iceberg.catalog.rest.TrinoRestCatalog.toNamespace",
)
ORDERS = Table("orders", 2, columns=(("n", "int"), ("v", "string")), rows=((1, "a"), (2, "b")), given=False)


def _said(statement: str, table: str = "", level: str = INNER) -> Mapping[str, str]:
    """A statement per dialect; `{inner}` is the namespace of two levels, `{t}` the table in it."""
    inner = {"spark": f"lab.{OUTER}.`{level}`", "*": f'lab."{OUTER}.{level}"'}
    quoted = {"spark": f"`{table}`", "*": f'"{table}"'}
    return {
        kind: statement.replace("{inner}", inner[kind]).replace("{t}", f"{inner[kind]}.{quoted[kind]}")
        for kind in inner
    }


def _on(op: str, **more: Any) -> Call:
    return Call(op, {"namespace": BOTH, **more})


def _steps(table: str = ORDERS.name, level: str = INNER) -> tuple[Step, ...]:
    """Both namespaces and a table are made and filled; a second session reads and lists it."""
    create = _said("CREATE TABLE {t} (n int, v varchar)", table, level)
    return (
        Step("outer", f"CREATE SCHEMA lab.{OUTER}", Call("create_namespace", {"namespace": OUTER})),
        Step("inner", _said("CREATE SCHEMA {inner}", level=level), _on("create_namespace")),
        Step(
            "create",
            {**create, "spark": create["spark"].replace("varchar", "string") + " USING iceberg"},
            _on("create_table", table=table, schema=[(*column, False) for column in ORDERS.columns]),
        ),
        Step(
            "insert",
            _said("INSERT INTO {t} VALUES {rows}", table, level),
            _on("append", table=table, rows="{rows}"),
            insert=ORDERS.rows,
        ),
        Step(
            "read", _said("SELECT * FROM {t}", table, level), _on("scan", table=table), truth=ORDERS.rows, second=True
        ),
        Step(
            "list",
            _said("SHOW TABLES FROM {inner}", level=level),
            _on("list_tables"),
            truth={"spark": ((f"{OUTER}.{level}", table, False),), "*": ((table,),)},
            second=True,
        ),
        Step("nested", look="nested"),
    )


def _by_all(name: str, **more: Any) -> tuple[Variant, ...]:
    """With what Trino needs."""
    return (
        Variant(name, "duckdb-*,pyiceberg-*,spark-*", full=True, **more),
        Variant(name, "trino-*", ENABLED, ENABLED, full=True, **more),
    )


# All are `full`: where a catalog lists such a namespace beside those of the first level, as SeaweedFS' does, a Trino
# that is not told of them can't list a schema from then on, whosever case it is.
NESTED = Behaviour(
    id="W-nested-namespaces",
    title="A table in a namespace within a namespace",
    source="the lab's own question, next to W, grants",
    document=None,
    table=ORDERS,
    steps=_steps(),
    variants=(
        Variant(full=True),
        Variant(
            "enabled",
            "trino-*",
            ENABLED,
            ENABLED,
            full=True,
            cure=Cure(
                Where.TRINO_CATALOG,
                cost="a dot in a schema's name parts two levels: a namespace with a dot of its own is out of reach",
                variants="default",
            ),
        ),
        *_by_all("dotted-table", steps=_steps("or.ders")),
        Variant("dotted-level", "spark-*", steps=_steps(level="in.ner"), full=True),
        *_by_all("granted", access=Access(HORIZON), second_access=Access(HORIZON, "later-analyst")),
        *_by_all("not-granted", access=Access(HORIZON), second_access=Access(HORIZON, "stranger")),
        *_by_all(
            "not-granted-off",
            access=Access(HORIZON),
            second_access=Access(f"{HORIZON}~off=H-privileges", "stranger"),
        ),
    ),
    expect=(
        Expect(
            Outcome.NOT_SUPPORTED,
            "Trino makes one schema's name of all levels, with dots, and does so only where its catalog is told to",
            generations="trino-*",
            variants="default",
            failure=Chain((("NOT_SUPPORTED", "Nested namespace is not enabled for this catalog"),)),
            at="inner",
            trap=TRINO_NESTED,
        ),
        *not_loaded(
            "read",
            "not-granted",
            "no grant on tables of this name is a grant on such a table within another namespace",
        ),
        OFF,
        Expect(
            Outcome.WORKS,
            "a dot in a table's name is no level",
            variants="dotted-table",
            facts={"nested.within": [INNER], "nested.tables": ["or.ders"]},
        ),
        Expect(
            Outcome.WORKS,
            "Spark keeps a dot within its level, and so does what is on the way. The reference catalog does not: it "
            "stores all levels with dots between them (JdbcUtil.namespaceToString), finds the table by that, and lists "
            "one level more",
            variants="dotted-level",
            catalogs="reference",
            facts={"nested.within": ["in"], "nested.tables": []},
        ),
        Expect(
            Outcome.WORKS,
            "every engine makes, fills, reads and lists it, and a grant on a schema's tables covers what is within it",
            variants="default,enabled,granted",
            facts={"nested.within": [INNER], "nested.tables": [ORDERS.name]},
        ),
    ),
    tags=("v2", "names", "access"),
)
