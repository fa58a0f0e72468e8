"""Makes a table of any size in the lab that is up: its rows by an engine, its truth and its files checked after it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace

from lab.asking import done
from lab.engines import Engine, Session, dialect
from lab.errors import LabError, UsageError
from lab.model import Failure, Generation
from lab.tables import generated
from lab.tables.rest import RestCatalog, RestError
from lab.tables.storage import Store
from lab.tables.xray import history, live

_NAME = re.compile(r"([A-Za-z_]\w*)\.([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Order:
    """What is asked for. Raises UsageError for what can't be."""

    table: str
    like: str
    rows: int
    files: int

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.table):
            raise UsageError(f"{self.table!r} is no name for a table; take NAMESPACE.TABLE, e.g. BIG.ORDERS")
        if self.like not in generated.LIKE:
            raise UsageError(f"--like takes one of {', '.join(generated.LIKE)}")
        if not 1 <= self.rows <= generated.MOST_ROWS:
            raise UsageError(f"--rows takes 1 to {generated.MOST_ROWS:,}: ORDER_ID is an int")
        if not 1 <= self.files <= min(self.rows, generated.MOST_FILES):
            raise UsageError(f"--files takes 1 to {generated.MOST_FILES:,}, and no more than there are rows")


@dataclass(frozen=True)
class Made:
    """What was really written: live data files and their bytes as manifests tell them, commits, seconds."""

    rows: int
    files: int
    bytes: int
    commits: int
    seconds: float
    checked: dict[str, str]  # what was checked → its value


def speaks(generation: Generation) -> None:
    """Raises UsageError for an engine that has no words to make rows."""
    if generation.kind not in generated.DIALECTS:
        kinds = ", ".join(generated.DIALECTS)
        raise UsageError(f"{generation.name} makes no rows by itself; take a generation of {kinds}")


def generate(
    order: Order,
    writer: Engine,
    kind: str,
    seeder: Engine,
    seed_kind: str,
    rest: RestCatalog,
    progress: Callable[[int], None],
) -> Made:
    """Makes the table by `seeder`, which keeps its names as they are, and its rows by `writer`.

    progress: told how many rows there are. A table that could not be made whole is dropped again. Raises LabError.
    """
    namespace, _, name = order.table.partition(".")
    if _stands(rest, namespace, name):
        raise UsageError(f"{order.table} stands already; name another one")
    started = time.monotonic()
    with closing(seeder.session()) as seeding, closing(writer.session()) as session:
        done(seeding, dialect.create_namespace(seed_kind, namespace))
        table = replace(generated.LIKE[order.like], name=name, rows=())
        for statement in dialect.create(seed_kind, namespace, table, {}):
            done(seeding, statement)
        try:
            full = f"{dialect.CATALOG}.{order.table}"
            for rows, statement in generated.inserts(kind, full, order.rows, order.files):
                done(session, statement)
                progress(rows)
            seconds = time.monotonic() - started
            checked = _checked(session, full, order.rows)
        except BaseException:
            with suppress(LabError):
                done(seeding, f"DROP TABLE {full}")
            raise
    loaded = rest.load_table(namespace, name)
    store = Store(loaded.credentials)
    commits = history(loaded)
    held = list(live(store, commits[-1]))
    rows = sum(file.records for file in held)
    if rows != order.rows:
        raise LabError(f"{order.table}: manifests count {rows:,} rows, not {order.rows:,}; look: iceberg-lab inspect")
    return Made(rows, len(held), sum(file.file_size or 0 for file in held), len(commits), seconds, checked)


def _checked(session: Session, table: str, rows: int) -> dict[str, str]:
    answer = session.execute(generated.CHECK.format(table=table))
    if isinstance(answer, Failure):
        raise LabError(f"{table} was written and can't be read: {answer.causes[-1].message.strip()[:300]}")
    told = dict(zip(generated.CHECKED, answer.rows[0], strict=True))
    for (what, seen), true in zip(told.items(), generated.truth(rows), strict=True):
        if seen != true:
            raise LabError(f"{table}: {what} is {seen}, not {true}: the engine wrote or read wrong rows")
    return {what: str(value) for what, value in told.items()}


def _stands(rest: RestCatalog, namespace: str, table: str) -> bool:
    try:
        return table.casefold() in {name.casefold() for name in rest.tables(namespace)}
    except RestError:  # there is no such namespace yet
        return False
