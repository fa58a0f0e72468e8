"""Two writers at one table at the same time: no acknowledged statement is lost or done twice, no refused one done.

Every engine commits optimistically: it writes files, then asks the catalog to swap the metadata that it began with.
Whoever comes second is refused by the catalog (409), and either tries again on the newer metadata or tells its user.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lab.behaviours.h_v2 import PYICEBERG_DELETE_PATHS
from lab.behaviours.known import PYICEBERG_NO_V3_WRITE, SPARK_3_2_NO_V3, TRINO_476_NO_V3_DELETES
from lab.behaviours.pairs.feature import EVERY, FAMILY, QUICK, Feature, insert, on, read, table_name
from lab.model import ENGINES, SAME, Access, Chain, Change, Expect, Outcome, Refusal, Step, Table, Variant

COLUMNS = (("id", "int"), ("n", "int"))
NAMES = [name for name, _ in COLUMNS]
ROUNDS = {QUICK: 3, EVERY: 10}
TRIES = 3  # of a round: in which the writers do not meet it is repeated, on rows of its own
ROWS = tuple(
    (key, 10) for key in range(2 * ROUNDS[EVERY] * TRIES + 1)
)  # 0 is both writers'; DuckDB makes one file of them
SECOND = "-second"  # how the steps of the second writer end
WITNESS = Access("witness~off=H-token-expiry", by="nothing")


@dataclass(frozen=True)
class Race(Feature):
    """A feature whose pair writes both: a pair is one cell, in the order of generations, and one with itself too."""


def _own(round: int, second: bool) -> int:
    """The key of a row that nobody else changes."""
    return 2 * round - second


def _insert(round: int, second: bool, _same: bool) -> tuple[Step, Change]:
    row = (1000 + _own(round, second), 1)
    return insert(NAMES, row), Change(round, inserted=(row,))


def _update(round: int, second: bool, same: bool) -> tuple[Step, Change]:
    """`same`: of the one row that both change, by sums from which is seen whose is missing."""
    key, more = (0, 100 if second else 1) if same else (_own(round, second), 1)
    sql = f"UPDATE {{table}} SET n = n + {more} WHERE id = {key}"
    return Step("update", sql, on("update", filter=f"id = {key}", add={"n": more})), Change(round, added=((key, more),))


def _delete(round: int, second: bool, _same: bool) -> tuple[Step, Change]:
    key = _own(round, second)
    said = Step("delete", f"DELETE FROM {{table}} WHERE id = {key}", on("delete", filter=f"id = {key}"))
    return said, Change(round, deleted=(key,))


def _race(
    what: str,
    title: str,
    version: int,
    change: Callable[[int, bool, bool], tuple[Step, Change]],
    refusals: Sequence[Refusal],
    cannot: Sequence[Expect] = (),
) -> Race:
    def steps(rounds: int) -> tuple[Step, ...]:
        raced = []
        for number, second in itertools.product(range(rounds * TRIES), (False, True)):
            round, first = number + 1, number % rounds + 1  # the rounds, then each of them anew, and once more
            step, does = change(round, second, first % 3 != 1)  # two of three rounds are of the same row
            does = replace(does, repeats=first if first != round else 0)
            name = f"{step.name}-{round}{SECOND if second else ''}"
            raced.append(replace(step, name=name, change=does, second=second))
        whole = replace(read("whole", NAMES, (), NAMES, everything=True), truth=None)  # it follows from what was done
        return (*raced, replace(whole, second=False), replace(whole, name=f"whole{SECOND}"))

    id = f"race-{what}" + ("-v3" if version == 3 else "")
    alone = tuple(replace(each, writers=each.generations, at="*") for each in cannot)
    return Race(
        id=f"P-{id}",
        title=f"{title}, v{version}",
        source="the lab's own question",
        document=None,
        table=Table(table_name(id), version, COLUMNS, ROWS),
        steps=steps(ROUNDS[QUICK]),
        variants=(
            Variant(QUICK, access=WITNESS),
            Variant(EVERY, access=WITNESS, pairs=(), steps=steps(ROUNDS[EVERY])),
        ),
        pairs=(("duckdb-*", SAME),),
        expect=(*alone, Expect(Outcome.WORKS, RIGHT, refusals=tuple(refusals))),
        tags=("pairs", f"v{version}"),
        family=FAMILY,
        kinds=ENGINES,
        cannot=alone,
    )


NO_V3 = (PYICEBERG_NO_V3_WRITE, SPARK_3_2_NO_V3)
RIGHT = "optimistic commits: what the catalog took is done once, and what a writer was refused is not done"


def _validated(message: str, reason: str) -> Refusal:
    """What Iceberg's library finds when it looks at what the other writer committed, in Spark and in Trino alike."""
    return Refusal("spark-*,trino-*", Chain((("org.apache.iceberg.exceptions.ValidationException", message),)), reason)


INSERTS = (
    Refusal(
        "duckdb-*",
        Chain((("_duckdb.TransactionException", "(Conflict_409)"),)),
        "DuckDB repeats nothing that the catalog refuses, not even an INSERT: the user is to say it again",
    ),
)
CHANGES = (
    *INSERTS,
    _validated(
        "Found conflicting files that can contain records matching",
        "the other writer's new file may have rows that the filter matches, by its bounds; Spark and Trino change rows "
        "serializably unless they are told otherwise, so Iceberg repeats no such commit (commit.retry.num-retries)",
    ),
    _validated(
        "Cannot commit, found new delete for replaced data file",
        "rows of a file that was rewritten here were deleted by the other writer: they would come back",
    ),
    _validated(
        "Cannot commit, missing data files",
        "the file of whose rows some were deleted here was rewritten by the other writer: the deletes would be lost",
    ),
    _validated(
        "Found new conflicting delete files that can apply to records matching",
        "both writers deleted from one file, and Iceberg does not look whether the same rows",
    ),
    Refusal(
        "spark-*",
        Chain((("java.lang.IllegalStateException", "Runtime file filtering is not possible"),)),
        "the other writer committed between Spark's planning of the scan and its second one, which takes the files "
        "with matching rows alone (SparkCopyOnWriteScan.filter): Spark ends there, before it writes",
    ),
    *(
        Refusal(
            "pyiceberg-*",
            Chain((("pyiceberg.exceptions.ValidationException", message), ("CommitFailedException", "has changed"))),
            "PyIceberg repeats after a 409 what still holds, an append always; what it replaces or deletes not where "
            "the other writer's files may have rows that the filter matches",
        )
        for message in ("Added data files were found matching the filter", "Found new conflicting delete files")
    ),
    # It reads before it changes, so it is refused both, once Trino 483 has deleted something.
    Refusal(
        "pyiceberg-*", Chain((("OSError", "DecodeArrow of DictAccumulator"),)), PYICEBERG_DELETE_PATHS.reason, gap=True
    ),
)
INSERT = "Two writers insert at the same time"
UPDATE = "Two writers update at the same time, rows of one file, and two of three times the same row"
DELETE = "Two writers delete at the same time, rows of one file"
INSERT_V2 = _race("insert", INSERT, 2, _insert, INSERTS)
UPDATE_V2 = _race("update", UPDATE, 2, _update, CHANGES)
DELETE_V2 = _race("delete", DELETE, 2, _delete, CHANGES)
INSERT_V3 = _race("insert", INSERT, 3, _insert, INSERTS, NO_V3)
UPDATE_V3 = _race("update", UPDATE, 3, _update, CHANGES, (*NO_V3, TRINO_476_NO_V3_DELETES))
DELETE_V3 = _race("delete", DELETE, 3, _delete, CHANGES, (*NO_V3, TRINO_476_NO_V3_DELETES))
