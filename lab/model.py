"""The lab's words, one meaning each. Data only: nothing here starts, runs or compares anything.

generation → an engine with all its versions          behaviour → a claim that can be run
variant    → a behaviour under given settings         cell      → one square of the matrix
observation → what an engine really did               verdict   → an observation held against claim and expectation
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


# ---------------------------------------------------------------- what an engine answers
@dataclass(frozen=True)
class Column:
    """A result's column: its name and the engine's own name of its type."""

    name: str
    type: str


@dataclass(frozen=True)
class Rows:
    """A statement's result: Python values as in `lab.values`. A statement without a result has no columns."""

    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True)
class Cause:
    """One link of a cause chain: the exception's full class name (as the engine spells it) and its message."""

    cls: str
    message: str


@dataclass(frozen=True)
class Failure:
    """Why a statement failed, outermost cause first. `crash`: the engine's process died of it."""

    causes: tuple[Cause, ...]
    crash: bool = False


Answer = Rows | Failure


@dataclass(frozen=True)
class Call:
    """A statement for an engine without SQL: an operation and its arguments (see `lab/engines/pyiceberg.py`)."""

    op: str
    args: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.op}({', '.join(f'{k}={v!r}' for k, v in self.args.items())})"


Statement = str | Call


# ---------------------------------------------------------------- engines
@dataclass(frozen=True)
class Generation:
    """An engine with all its versions, as one file in `lab/engines/generations/` declares it."""

    name: str
    kind: str  # the adapter: spark, trino, duckdb, pyiceberg
    versions: Mapping[str, str]  # e.g. spark 3.5.6, iceberg 1.10.0, scala 2.12
    artefacts: tuple[str, ...]  # what provisioning fetches, as `pypi:…` and `maven:…` (see lab/provision)
    java: str | None = None  # the Java release it runs on
    settings: Mapping[str, str] = field(default_factory=dict)  # on top of the adapter's own
    why: Mapping[str, str] = field(default_factory=dict)  # setting → why it is set here


class Outcome(StrEnum):
    """What happened in a cell. Only an observation makes one, never an expectation."""

    WORKS = "works"
    NOT_SUPPORTED = "not-supported"
    REFUSED_BY_RULE = "refused-by-rule"
    ERROR = "error"
    CRASH = "crash"
    SILENTLY_WRONG = "silently-wrong"
    NOT_RUN = "not-run"


class ClaimVerdict(StrEnum):
    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    NONE = "none"


class ExpectationVerdict(StrEnum):
    MET = "met"
    UNEXPECTED = "unexpected"
