"""Document H on tokens: which engine goes on when one has expired, and what each says when it can't."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.orders_steps import read
from lab.behaviours.refusals import LOAD, OFF, UNAUTHORIZED, paced, refused
from lab.model import Access, Behaviour, Claim, Expect, Outcome, Variant
from lab.tables.orders import ORDERS_V2

SECONDS = 10  # long enough for any engine's first statement
TERMS = f"horizon~token-seconds={SECONDS}"
LATER = replace(read(ORDERS_V2, name="later"), wait=SECONDS + 2)  # a token ends at a whole second

TOKEN_EXPIRY = Behaviour(
    id="H-token-expiry",
    title="A bearer token expires between two statements",
    source="H, verification 3, the federation's connection",
    document="a token lives about an hour; a federation that stores one stops working until it is replaced",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2), LATER),
    variants=paced(
        Variant("stored-token", access=Access(TERMS, by="token"), full=True),
        Variant("stored-token-off", access=Access(f"{TERMS}~off=H-token-expiry", by="token")),
        Variant("credential", access=Access(TERMS), full=True),
        Variant("pat", access=Access(TERMS, by="pat"), steps=(read(ORDERS_V2),)),
    ),
    claims=(Claim("trino-*", Outcome.REFUSED_BY_RULE, variants="stored-token"),),
    expect=(
        Expect(
            Outcome.WORKS,
            "Iceberg's Java client reads `exp` of the token that it was given and exchanges it for a new one shortly "
            "before (OAuth2Util.AuthSession): as long as the session lives and the token endpoint answers, a stored "
            "token never expires",
            generations="spark-*",
            variants="stored-token",
        ),
        *refused(
            "H-token-expiry",
            "later",
            "Not authorized: ",
            UNAUTHORIZED,
            duckdb=LOAD,
            where="",
            history=(),
            variants="stored-token",
            why="the token has expired, and the session has nothing by which to get another",
        ),
        OFF,
        Expect(
            Outcome.WORKS,
            "who holds the credential gets a new token, before the old one expires or when it is refused",
            variants="credential",
        ),
        Expect(Outcome.WORKS, "a PAT is no token of seconds", variants="pat"),
    ),
    tags=("v2", "read", "access"),
)
