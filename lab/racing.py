"""Two writers at one table: in each round both say their statement at the same moment, then both read.

What must stand in the end follows from what was acknowledged: each such statement done once, each refused one not at
all. Writers' changes commute (`lab.model.Change`), so that no order has to be known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from lab.asking import say
from lab.engines import Session
from lab.model import Change, Failure, Generation, Rows, Step, StepResult, Table, Truth


@dataclass(frozen=True)
class Side:
    """One of the two writers; `noted` adds what the gateway saw of a step."""

    who: Generation
    session: Session
    noted: Callable[[StepResult], StepResult] = lambda step: step


Beside = Callable[[Callable[[], StepResult]], Future[StepResult]]  # has something done on another thread
Sound = Callable[[Session, Generation], StepResult]  # a plain read of another table, see `lab.asking.plain_read`


def race(
    table: Table,
    steps: Sequence[Step],
    one: Side,
    other: Side,
    filling: Mapping[str, str],
    beside: Beside,
    sound: Sound,
) -> list[StepResult]:
    """All steps as they went: the rounds', then each side's read, then of whoever failed a plain read of another table.

    `one` says the writer's steps, `other` the second engine's. Raises LabError for a step without words.
    """
    done: list[StepResult] = []
    last = (0.0, 0.0)
    for round in sorted({step.change.round for step in steps if step.change}):
        mine, theirs = sorted(
            (step for step in steps if step.change and step.change.round == round), key=lambda step: step.second
        )
        start = threading.Barrier(2)
        # Once it is known how long each takes the quicker one waits: both are to commit at about the same time.
        waits = (max(0.0, last[1] - last[0]), max(0.0, last[0] - last[1]))
        future = beside(lambda: _said(other, table, theirs, filling, start, waits[1]))  # noqa: B023 - awaited below
        results = _said(one, table, mine, filling, start, waits[0]), future.result()
        last = results[0].seconds, results[1].seconds
        done += [one.noted(results[0]), other.noted(results[1])]
    truth = left(table.rows, (step.change for step in done if step.change and isinstance(step.answer, Rows)))
    reads = sorted((step for step in steps if step.change is None), key=lambda step: step.second)
    mine, theirs = (replace(step, truth=truth) for step in reads)
    future = beside(lambda: say(other.session, other.who, table, theirs, filling))
    done += [one.noted(say(one.session, one.who, table, mine, filling)), other.noted(future.result())]
    failed = {step.by for step in done if isinstance(step.answer, Failure) and not step.answer.crash}
    sides = {side.who.name: side for side in (one, other)}
    return [*done, *(sound(side.session, side.who) for name, side in sides.items() if name in failed)]


def _said(
    side: Side, table: Table, step: Step, filling: Mapping[str, str], start: threading.Barrier, wait: float
) -> StepResult:
    start.wait()
    time.sleep(wait)
    return replace(say(side.session, side.who, table, step, filling), change=step.change)


def left(rows: Truth, acknowledged: Iterable[Change]) -> Truth:
    """The rows (key, number) that a table has once all of these changes were made to it."""
    numbers: dict[int, int] = dict(rows)
    for change in acknowledged:
        numbers |= dict(change.inserted)
        for key, number in change.added:
            numbers[key] += number
        for key in change.deleted:
            del numbers[key]
    return tuple(numbers.items())
