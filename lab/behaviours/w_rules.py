"""Document W: what Horizon refuses to external engines, and what each engine makes of the refusal."""

from __future__ import annotations

from typing import Any

from lab.model import Access, Behaviour, Expect, Outcome, Step, Variant
from lab.tables.orders import ORDERS_V2

SQL = ("duckdb", "spark", "trino")
LEFTOVERS = Step("leftovers", look="leftovers", always=True)


def ruled(claim: str, profile: str = "horizon", **more: Any) -> tuple[Variant, Variant]:
    """The rule, and its twin in which only this rule is off."""
    return (
        Variant("rule", access=Access(profile), **more),
        Variant("rule-off", access=Access(f"{profile}~off={claim}"), **more),
    )


NO_CTAS = Behaviour(
    id="W-no-ctas",
    title="CREATE TABLE AS SELECT",
    source="W, considerations for external engines",
    document="CREATE TABLE AS SELECT is refused",
    table=ORDERS_V2,
    steps=(
        Step(
            "ctas",
            {
                "spark": "CREATE TABLE lab.{namespace}.COPY USING iceberg AS SELECT * FROM {table}",
                "*": "CREATE TABLE lab.{namespace}.COPY AS SELECT * FROM {table}",
            },
        ),
        Step("read", "SELECT * FROM lab.{namespace}.COPY", truth=ORDERS_V2.rows),
        LEFTOVERS,
    ),
    variants=ruled("W-no-ctas"),
    expect=(Expect(Outcome.WORKS, "?"),),
    tags=("v2", "write", "access"),
    kinds=SQL,
)
