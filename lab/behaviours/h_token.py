"""Document H on tokens: which engine goes on when one has expired, and what each says when it can't."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.orders_steps import read
from lab.model import Access, Behaviour, Expect, Outcome, Variant
from lab.tables.orders import ORDERS_V2

SECONDS = 10  # long enough for any engine's first statement
TERMS = f"horizon~token-seconds={SECONDS}"
LATER = replace(read(ORDERS_V2, name="later"), wait=SECONDS + 0.5)

TOKEN_EXPIRY = Behaviour(
    id="H-token-expiry",
    title="A bearer token expires between two statements",
    source="H, verification 3, the federation's connection",
    document="a token lives about an hour; a federation that stores one stops working until it is replaced",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2), LATER),
    variants=(
        Variant("stored-token", access=Access(TERMS, by="token")),
        Variant("stored-token-off", access=Access(f"{TERMS}~off=H-token-expiry", by="token")),
        Variant("credential", access=Access(TERMS)),
        Variant("pat", access=Access(TERMS, by="pat"), steps=(read(ORDERS_V2),)),
    ),
    expect=(Expect(Outcome.WORKS, "?"),),
    tags=("v2", "read", "access"),
)
