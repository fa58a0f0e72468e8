"""What a race of two writers shows: whether they met, and what has to stand after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.model import Rows, StepResult, Truth

CONFLICT = 409  # the catalog's answer to whoever committed on metadata that is no longer the table's


@dataclass(frozen=True)
class Meetings:
    """Of a race, or of many: its rounds, in how many both statements overlapped in time, and in how many of those one
    of them came second: its commit was answered 409, or it was refused as that is declared."""

    rounds: int = 0
    met: int = 0
    conflicts: int = 0

    def __add__(self, other: Meetings) -> Meetings:
        return Meetings(self.rounds + other.rounds, self.met + other.met, self.conflicts + other.conflicts)

    def __str__(self) -> str:
        return f"{self.met} of {self.rounds} rounds met, {self.conflicts} of them with a conflict"


def rounds(steps: Iterable[StepResult]) -> dict[int, list[StepResult]]:
    """Each round that was said, by its number, with its two statements."""
    found: dict[int, list[StepResult]] = {}
    for step in steps:
        if step.change is not None:
            found.setdefault(step.change.round, []).append(step)
    return found


def met(round: Sequence[StepResult]) -> bool:
    """Whether each statement began before the other had ended; of one that tells no time it is not known, so no."""
    spans = [(step.began, step.began + step.seconds) for step in round if step.began is not None]
    return len(spans) == 2 and max(began for began, _ in spans) < min(ended for _, ended in spans)


def shared(round: Sequence[StepResult]) -> bool:
    """Whether both statements of a round change the same row."""
    keys = [
        {key for key, _ in (*step.change.inserted, *step.change.added)} | set(step.change.deleted)
        for step in round
        if step.change is not None
    ]
    return bool(set.intersection(*keys))


def left(rows: Truth, steps: Iterable[StepResult]) -> Truth:
    """The rows (key, number) that a table has once all that was acknowledged was done to it."""
    numbers: dict[int, int] = dict(rows)
    for change in (step.change for step in steps if step.change and isinstance(step.answer, Rows)):
        numbers |= dict(change.inserted)
        for key, number in change.added:
            numbers[key] += number
        for key in change.deleted:
            del numbers[key]
    return tuple(numbers.items())
