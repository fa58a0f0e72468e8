"""Two writers at one table: in each round both say their statement at the same moment, then both read.

A round in which one statement had ended before the other began was no race: it is repeated, as often as there are
rounds for that (`lab.model.Change.repeats`). What must stand in the end follows from what was acknowledged: each such
statement done once, each refused one not at all. Writers' changes commute, so that no order has to be known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from lab.asking import say
from lab.engines import Session
from lab.model import Failure, Generation, Step, StepResult, Table
from lab.records.meeting import left, met


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
    began = time.monotonic()
    together: set[int] = set()  # rounds in which both met
    took: list[tuple[float, float]] = []  # by each round but the first, which finds engines cold
    for repeats, round in _rounds(steps):
        if repeats in together:
            continue
        mine, theirs = sorted(
            (step for step in steps if step.change and step.change.round == round), key=lambda step: step.second
        )
        start = threading.Barrier(2)
        # Once it is known how long each takes the quicker one waits: both are to commit at about the same time.
        # Where that went wrong both begin at once.
        ahead = min(one for one, _ in took) - min(two for _, two in took) if took and not repeats else 0.0
        future = beside(lambda: _said(other, table, theirs, filling, start, max(0.0, ahead), began))  # noqa: B023 - awaited below
        results = _said(one, table, mine, filling, start, max(0.0, -ahead), began), future.result()
        took += [(results[0].seconds, results[1].seconds)] if done else []
        if met(results):
            together.add(repeats or round)
        done += [one.noted(results[0]), other.noted(results[1])]
    truth = left(table.rows, done)
    reads = sorted((step for step in steps if step.change is None), key=lambda step: step.second)
    mine, theirs = (replace(step, truth=truth) for step in reads)
    future = beside(lambda: say(other.session, other.who, table, theirs, filling))
    done += [one.noted(say(one.session, one.who, table, mine, filling)), other.noted(future.result())]
    failed = {step.by for step in done if isinstance(step.answer, Failure) and not step.answer.crash}
    sides = {side.who.name: side for side in (one, other)}
    return [*done, *(sound(side.session, side.who) for name, side in sides.items() if name in failed)]


def _rounds(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """(the round that it repeats, or 0; round): each one and then its repetitions."""
    found = {(step.change.repeats, step.change.round) for step in steps if step.change}
    return sorted(found, key=lambda one: (one[0] or one[1], one[1]))


def _said(
    side: Side,
    table: Table,
    step: Step,
    filling: Mapping[str, str],
    start: threading.Barrier,
    wait: float,
    origin: float,
) -> StepResult:
    start.wait()
    time.sleep(wait)
    began = time.monotonic() - origin
    return replace(say(side.session, side.who, table, step, filling), change=step.change, began=began)
