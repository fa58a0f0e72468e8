"""What engines make of a refusal by a vendor's rule: their errors, and what they leave in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lab.model import Access, Chain, Claim, Expect, Outcome, Variant

FORBIDDEN, BAD_REQUEST, UNAUTHORIZED = 403, 400, 401
# By kind of engine, the class of the error that tells of such an answer.
_JAVA = {FORBIDDEN: "ForbiddenException", BAD_REQUEST: "BadRequestException", UNAUTHORIZED: "NotAuthorizedException"}
_PYTHON = {FORBIDDEN: "ForbiddenError", BAD_REQUEST: "BadRequestError", UNAUTHORIZED: "UnauthorizedError"}
COMMIT, LOAD, REQUEST = "TransactionException", "HTTPException", "Error"  # DuckDB's, by what was refused

Left = Mapping[str, tuple[int, int]]  # generations → orphan files of data and of metadata; none where not named
# By whom a refused INSERT into a table of one file leaves what.
OF_INSERT: Left = {"spark-*": (0, 0), "trino-*": (1, 0), "duckdb-*": (0, 2), "pyiceberg-*": (1, 2)}
_LEFT = {
    (0, 0): "nothing is left in the store",
    (1, 0): "the engine deletes manifests, not the file that it wrote: one orphan, which nobody is told of",
    (2, 0): "the engine deletes manifests; its data file and its delete file stay as orphans",
    (0, 2): "the engine deletes its data file, not the manifest and the manifest list: orphans",
    (0, 3): "the engine deletes its data files, not the two manifests and the manifest list: orphans",
    (1, 1): "the data file and a statistics file stay as orphans",
    (1, 2): "the engine deletes nothing: data file, manifest and manifest list stay as orphans",
}


# What a run of everything takes; the others when behaviours are named, as each of them is a kind that is there already.
EVERY_DAY, NAMED = "duckdb-*,pyiceberg-*,spark-3.5*,trino-483", "spark-3.2*,spark-4*,trino-476"


LIBRARY = "iceberg-java-1.11*"
OTHER_LIBRARIES = ",".join(f"iceberg-java-1.{minor}*" for minor in (4, 5, 6, 7, 8, 9, 10, 12))


def paced(*variants: Variant) -> tuple[Variant, ...]:
    """These variants for one generation of each kind every day, and for all when behaviours are named; so are twins."""
    told: list[Variant] = []
    for variant in variants:
        of_all = variant.generations == "*" and not variant.missing
        often = [EVERY_DAY, NAMED] if of_all else [variant.generations]
        for globs in often:
            seldom = variant.full or globs == NAMED or variant.name.endswith("-off")
            told.append(replace(variant, generations=globs, full=seldom))
    return tuple(told)


def ruled(
    claim: str, profile: str, principal: str = "engineer", name: str = "rule", **more: Any
) -> tuple[Variant, ...]:
    """The rule, and its twin in which only this rule is off."""
    return (
        Variant(name, access=Access(profile, principal), **more),
        Variant(f"{name}-off", access=Access(f"{profile}~off={claim}", principal), **more),
    )


def refused(
    claim: str,
    at: str,
    says: str,
    status: int,
    *,
    duckdb: str = COMMIT,
    duckdb_says: str = "",
    left: Left | None = None,
    where: str = "orphans",
    history: Sequence[str] = ("append",),
    variants: str = "rule",
    why: str = "the catalog's rule, which the gateway's record names",
) -> tuple[Expect, ...]:
    """Expectations of a refusal: whose rule, in which step, told by the engine in which words, and what is left.

    duckdb, duckdb_says: the class of DuckDB's error, and its words where it does not pass the catalog's on.
    where: the look that tells of leftovers, `orphans` of the table or `leftovers` below its namespace; "" for none.
    history: operations of the table's snapshots, which are as before. Empty where nobody looks.
    """
    java = _JAVA[status]
    classes = {"spark": java, "trino": java, "duckdb": duckdb, "pyiceberg": _PYTHON[status], "iceberg": java}
    facts: dict[str, Any] = {f"{at}.rules": [claim]}
    facts |= {"history.operations": list(history)} if history else {}
    told = []
    for kind, cls in classes.items():
        of_kind = {globs: files for globs, files in (left or {}).items() if globs.startswith(kind)}
        for globs, (data, metadata) in (of_kind or {f"{kind}-*": (0, 0)}).items():
            orphans = {f"{where}.data": data, f"{where}.metadata": metadata} if where else {}
            told.append(
                Expect(
                    Outcome.REFUSED_BY_RULE,
                    f"{why}; {_LEFT[data, metadata]}",
                    generations=globs,
                    variants=variants,
                    failure=Chain(((cls, (duckdb_says or says) if kind == "duckdb" else says),)),
                    at=at,
                    facts={**facts, **orphans},
                )
            )
    return tuple(told)


def not_loaded(at: str, variants: str, why: str) -> tuple[Expect, ...]:
    """Expectations of a load that no grant allows: nothing was changed, so nobody looks for leftovers."""
    return refused(
        "H-privileges",
        at,
        "is not authorized for op LOAD_",
        FORBIDDEN,
        duckdb=LOAD,
        where="",
        history=(),
        variants=variants,
        why=why,
    )


def claims(generations: str = "*", variants: str = "rule") -> tuple[Claim, ...]:
    """The document's: these are refused."""
    return (Claim(generations, Outcome.REFUSED_BY_RULE, variants=variants),)


OFF = Expect(Outcome.WORKS, "with only this rule off the same statements work", variants="*-off")
