"""One step said to one session: placeholders filled in, timed, its answer beside the truth."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from typing import Any

from lab.engines import Session, dialect
from lab.errors import LabError
from lab.model import Call, Failure, Generation, Rows, Statement, Step, StepResult, Table
from lab.records.verdict import PLAIN_READ, same_rows


def words(namespace: str, table: Table, writer: str, reader: str) -> dict[str, str]:
    """What the placeholders of a step stand for."""
    return {
        "table": f"{dialect.CATALOG}.{namespace}.{table.name}",
        "namespace": namespace,
        "namespace_lower": namespace.lower(),
        "namespace_mixed": namespace.title(),
        "table_name": table.name,
        "writer": writer,
        "reader": reader,
    }


def earlier(metadata: Mapping[str, Any]) -> dict[str, str]:
    """What the placeholders of a step that travels in time stand for: the table as its first rows left it.

    `{filled}` is that snapshot's id, `{filled_at}` a moment (UTC) before the next one. Raises LabError without them.
    """
    snapshots = sorted(metadata["snapshots"], key=lambda snapshot: snapshot["sequence-number"])
    filled = next((n for n, s in enumerate(snapshots) if s["summary"].get("total-records") != "0"), len(snapshots))
    if filled + 1 >= len(snapshots):
        raise LabError("there is no snapshot with rows that another one follows; have the writer make two")
    before = dt.datetime.fromtimestamp((snapshots[filled + 1]["timestamp-ms"] - 1) / 1000, dt.UTC)
    return {
        "filled": str(snapshots[filled]["snapshot-id"]),
        "filled_at": f"{before:%Y-%m-%d %H:%M:%S.%f}"[:-3],
    }


def say(session: Session, who: Generation, table: Table, step: Step, filling: Mapping[str, str]) -> StepResult:
    """Says one step to a session. Raises LabError where the step has no words for this kind of engine."""
    statement = step.statement(who.kind)
    if statement is None:
        words_for = "a call" if who.kind == "pyiceberg" else f"SQL for {who.kind}"
        raise LabError(f"step {step.name!r} says nothing to {who.name}: give it {words_for}, or make it optional")
    rows = _filled(step.insert, filling)
    if isinstance(statement, Call):
        names = [name for name, _ in table.columns]
        records = [dict(zip(names, row, strict=True)) for row in rows]
        args = {k: records if v == "{rows}" else _filled(v, filling) for k, v in statement.args.items()}
        statement = Call(statement.op, args)
    else:
        statement = _filled(statement.replace("{rows}", dialect.values(rows)) if rows else statement, filling)
    time.sleep(step.wait)
    started = time.monotonic()
    answer = session.execute(statement)
    seconds = time.monotonic() - started
    truth = _filled(step.truth_for(who.kind), filling)
    return StepResult(
        step.name, who.name, str(statement), seconds, answer, truth=truth, among=step.among, lineage=step.lineage
    )


def plain_read(session: Session, who: Generation, namespace: str, orders: Table) -> StepResult:
    """A plain read of ORDERS_V2, by its name there: tells whether a session in which something failed is sound."""
    call = Call("scan", {"namespace": "{namespace}", "table": "{table_name}"})
    step = Step(PLAIN_READ, "SELECT * FROM {table}", call, truth=orders.rows)
    return say(session, who, orders, step, words(namespace, orders, who.name, who.name))


def seed(session: Session, kind: str, namespace: str, table: Table, properties: Mapping[str, str | None]) -> None:
    """Makes the table with its seed rows, in one commit of data. Raises LabError with the engine's own words."""
    done(session, dialect.create_namespace(kind, namespace))
    for statement in dialect.create(kind, namespace, table, properties):
        done(session, statement)
    done(session, dialect.insert(kind, namespace, table, table.rows))


def done(session: Session, statement: Statement) -> None:
    """Says what must not fail. Raises LabError with the engine's own words if it does."""
    answer = session.execute(statement)
    if isinstance(answer, Failure):
        chain = " ← ".join(f"{c.cls}: {c.message.strip()[:300]}" for c in answer.causes)
        raise LabError(f"{str(statement)[:300]}: {chain}")


def untouched(session: Session, who: Generation, namespace: str, table: Table, *, theirs: bool = False) -> None:
    """Raises LabError unless the table still has its seed rows and no other: somebody may have looked around in it.

    theirs: it lies in a catalog of the user's, which outlives every lab.
    """
    call = Call("scan", {"namespace": "{namespace}", "table": "{table_name}"})
    read = Step("untouched", "SELECT * FROM {table}", call)
    answer = say(session, who, table, read, words(namespace, table, who.name, who.name)).answer
    if not isinstance(answer, Rows) or not same_rows(answer.rows, table.rows):
        raise LabError(
            f"{namespace}.{table.name} of your catalog is not as the lab made it; drop its namespace {namespace} there "
            "with its tables, and the lab makes it anew"
            if theirs
            else f"{namespace}.{table.name} of the lab that is up is not as it was made; "
            "make it anew with: iceberg-lab down, then iceberg-lab up"
        )


def _filled(value: Any, filling: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for word, stands_for in filling.items():
            value = value.replace(f"{{{word}}}", stands_for)
        return value
    if isinstance(value, Mapping):
        return {k: _filled(v, filling) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_filled(v, filling) for v in value)
    return value
