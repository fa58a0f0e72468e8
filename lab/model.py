"""The lab's words, one meaning each. Data only: nothing here starts, runs or compares anything.

generation → an engine with all its versions          behaviour → a claim that can be run
variant    → a behaviour under given settings         cell      → one square of the matrix
observation → what an engine really did               verdict   → an observation held against claim and expectation
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
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
class Remote:
    """Where an engine of the user's own answers. Its secret stays in the variable of the environment named here."""

    url: str  # sc://host:port of Spark Connect, http(s)://host:port of Trino
    catalog: str  # what it calls the catalog that is `lab` in statements
    user: str
    token_variable: str | None = None
    password_variable: str | None = None


@dataclass(frozen=True)
class Generation:
    """An engine with all its versions, as one file in `lab/engines/generations/` declares it."""

    name: str
    kind: str  # the adapter: spark, trino, duckdb, pyiceberg, iceberg (the Java library by itself)
    versions: Mapping[str, str]  # e.g. spark 3.5.6, iceberg 1.10.0, scala 2.12
    artefacts: tuple[str, ...]  # what provisioning fetches, as `pypi:…` and `maven:…` (see lab/provision)
    java: str | None = None  # the Java release it runs on
    settings: Mapping[str, str] = field(default_factory=dict)  # on top of the adapter's own
    why: Mapping[str, str] = field(default_factory=dict)  # setting → why it is set here
    remote: Remote | None = None  # the user's own (`lab/engines/remote.py`): nothing is fetched or started for it


OWN = "@"  # in a generation's name: what follows is the user's name for an engine of his own


# Whose a cell is that nothing here can run, so that its claim has a row all the same (see `Variant.missing`).
NOBODY = Generation("nobody", "none", {}, ())


def declared_name(generation: str) -> str:
    """The name that declarations speak of: `spark-4.1.1+iceberg-1.11.0` of `spark-4.1.1+iceberg-1.11.0@cluster`."""
    return generation.partition(OWN)[0]


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


# ---------------------------------------------------------------- tables
Truth = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class DataFile:
    """A Parquet data file as another writer makes it, registered as it is: how it stores what.

    `encodings` maps a column to Parquet's name of its encoding (PLAIN where it is not named). `codec`: snappy,
    gzip, zstd, lz4 (LZ4_RAW), none, for all columns or per column; hadoop-lz4 is the deprecated LZ4 in Hadoop's
    framing, from a writer that chooses encodings and pages itself.
    """

    encodings: Mapping[str, str] = field(default_factory=dict)
    codec: str | Mapping[str, str] = "zstd"
    page_version: int = 1
    rows: Truth | None = None  # the table's where None
    without: tuple[str, ...] = ()  # columns of the table that this file lacks
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)  # lowest and highest, in the manifest
    nulls: Mapping[str, int] = field(default_factory=dict)  # in the manifest, where not as they are
    path: Path | None = None  # a file made elsewhere: registered instead of one that is written for `rows`


@dataclass(frozen=True)
class DeleteFile:
    """What takes rows from the data files before it: `positions` of the one numbered `file`, or equal `keys`."""

    kind: str  # position-delete, deletion-vector or equality-delete
    positions: tuple[int, ...] = ()
    file: int = 0
    columns: tuple[str, ...] = ()  # of an equality delete
    keys: Truth = ()
    equal: tuple[str, ...] = ()  # which of those columns it deletes by, where not by all


@dataclass(frozen=True)
class Statistics:
    """What is told of a whole table, once its files stand: of its columns, and of its partitions.

    `distinct` maps a column to how many distinct values are said to be in it; beside that number stands a sketch of
    those that its files really have. With `partitions` there is a file of partition statistics too.
    """

    distinct: Mapping[str, int] = field(default_factory=dict)
    partitions: bool = False


@dataclass(frozen=True)
class Table:
    """A table and its truth: Iceberg types, rows, format version, properties. Knows no engine.

    With `files` these are registered instead of rows being inserted: the data files in one commit, then the
    delete files in another; `rows` is what must come back. `defaults` fill in a column that a file lacks and one
    that an INSERT leaves out (v3); `write_defaults` are of INSERT alone, where they differ.
    """

    name: str
    format_version: int
    columns: tuple[tuple[str, str], ...]  # (name, Iceberg type), all optional
    rows: Truth
    properties: Mapping[str, str | None] = field(default_factory=dict)  # None: not even the catalog's, with `files`
    files: tuple[DataFile | DeleteFile, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    write_defaults: Mapping[str, Any] = field(default_factory=dict)
    partition: str | None = None  # a column by whose value, one in each data file, the table is partitioned
    statistics: Statistics | None = None
    given: bool = True  # False: a case finds the namespace alone, and its own steps make the table


# ---------------------------------------------------------------- behaviours
@dataclass(frozen=True)
class Lineage:
    """What an operation must have done to row lineage, whoever did it and by whichever files.

    A step's rows (key, _row_id, _last_updated_sequence_number) are held against those of the step `since`, taken
    before the operation: rows whose keys are not named here must be as they were. The rules are the Iceberg
    specification's ("Row Lineage"), in `lab/records/lineage.py`.
    """

    since: str
    updated: tuple[Any, ...] = ()
    inserted: tuple[Any, ...] = ()
    deleted: tuple[Any, ...] = ()
    upgraded: bool = False  # rows of v2 have no id yet: each gets one, and keeps it from then on


@dataclass(frozen=True)
class Change:
    """What a statement of a race does to a table's rows: exactly once if it is acknowledged, and not at all if not.

    Rows are (key, number). What two writers do here commutes (rows of their own, or additions to a number), so that
    what must stand in the end follows from who was acknowledged, in whichever order.
    """

    round: int  # both writers say their statement of a round at the same moment
    inserted: Truth = ()
    deleted: tuple[int, ...] = ()  # keys
    added: tuple[tuple[int, int], ...] = ()  # (key, what is added to its number)
    repeats: int = 0  # the round that this one repeats, on rows of its own, if the writers did not meet in it


@dataclass(frozen=True)
class Step:
    """One statement of a case, or one look at the table by the lab itself.

    `sql` may differ by dialect (`{"trino": …, "*": …}`; a kind without an entry is not asked if the step is
    `optional`, else that is a fault of the declaration); `{table}`, `{namespace}` (also `{namespace_lower}`,
    `{namespace_mixed}`), `{writer}` and `{reader}` are filled in.
    `call` is what an engine without SQL does instead. `insert` is the rows that `{rows}` stands for. `truth` is
    the rows that must come back, in any order (`among`: others may come too), per kind where a dialect folds
    names: it comes from the data that was inserted, never from an engine. With a `change` a step is said in a race with
    the other engine's of the same round (see `lab/racing.py`). `lineage` is what must hold between these
    rows and an earlier step's. `look` names an inspection of
    `lab/tables/look.py` that the lab does itself, through the catalog, without any engine; `stored:PRODUCT` keeps
    of what it shows the part of that name. A look's `truth` is what it must show after the statements before it, as
    pairs of name and value: one that answers success without its work being done is found out so.
    """

    name: str
    sql: str | Mapping[str, str] = ""
    call: Call | None = None
    insert: Truth = ()
    truth: Truth | Mapping[str, Truth] | None = None
    among: bool = False
    lineage: Lineage | None = None
    change: Change | None = None
    look: str | None = None
    optional: bool = False
    second: bool = False  # done by the reader (the second engine of a pair) instead of the writer
    always: bool = False  # of a look: taken after a failure too, to see what the failure left
    wait: float = 0.0  # seconds that pass before it is said
    gives: str = ""  # its one value is what this placeholder of later steps stands for

    def statement(self, kind: str) -> Statement | None:
        """What this step says to an engine of this kind; None where it has no words for it."""
        if kind in ("pyiceberg", "iceberg"):
            return self.call
        if isinstance(self.sql, str):
            return self.sql or None
        return self.sql.get(kind, self.sql.get("*"))

    def truth_for(self, kind: str) -> Truth | None:
        """The rows that must come back from an engine of this kind."""
        if isinstance(self.truth, Mapping):
            return self.truth.get(kind, self.truth.get("*"))
        return self.truth


@dataclass(frozen=True)
class Chain:
    """A declared cause chain: (class, part of the message) in order, outermost first.

    A class is given by its simple name or by its full one. Other causes may stand between, before and
    after the declared ones, unless `whole`: then the chain has these causes and no others.
    """

    causes: tuple[tuple[str, str], ...]
    whole: bool = False


@dataclass(frozen=True)
class Refusal:
    """What a writer may be told in a race instead of its statement being done, and why that is right."""

    generations: str  # comma-separated globs
    failure: Chain
    reason: str
    gap: bool = False  # no conflict: it can't read what the other one wrote, so that its reads may fail of it too


@dataclass(frozen=True)
class Control:
    """The cell in which a cause is removed: a variant or a generation (or both) of the same behaviour."""

    variant: str | None = None
    generation: str | None = None
    behaviour: str | None = None
    writer: str | None = None  # of a pair, where `generation` reads what another one wrote
    catalog: str | None = None  # another one: a run of the same cells there has the control


@dataclass(frozen=True)
class Trap:
    """A failure that users meet, whichever behaviour shows it: one page of `docs/traps`.

    What a page says beyond this comes from who names the trap: reasons from the expectations, cures from the
    variants, sources from the behaviours, messages and versions from the record.
    """

    id: str  # the page's name, for ever
    title: str  # in the words of who meets it
    # Regular expression found in the recorded messages of this trap and of no other; what its groups match tells the
    # wordings apart of which the page shows one each. "": no error tells.
    symptom: str
    code: str | Mapping[str, str]  # where it happens: `package.Class.method`, per globs of generations if they differ
    remedy: str = ""  # a cure that no variant can show, e.g. what to change in the other engine
    also: tuple[str, ...] = ()  # the same failure in others' words, so that a search for those finds the page too


@dataclass(frozen=True)
class Expect:
    """What we assert today for the cells that match, and why. The first entry that matches a cell holds.

    `at` names the steps (comma-separated globs) in one of which the failure must happen.
    `facts` maps a path into the observation's facts (`"history.operations"`) to the value it must have; `rows` maps a
    step to the wrong rows that come back today instead of the truth (silently-wrong only).
    Where the expectation differs from the document's claim, `cause` names the class, method or setting
    and `control` the cell in which it is gone. `stores` is for what one store does otherwise than the rest, `catalogs`
    for what one catalog does (`lab/behaviours/catalogs.py` has all of those). `refusals` are no failures of a race:
    which writer meets one depends on who comes first.
    """

    outcome: Outcome
    reason: str
    generations: str = "*"  # comma-separated globs over the cell's reader
    variants: str = "*"
    writers: str = "*"
    stores: str = "*"
    catalogs: str = "*"
    failure: Chain | None = None
    at: str = "*"
    facts: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, Truth] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    trap: Trap | None = None  # which page explains it, where the outcome is a failure
    cause: str | None = None
    control: Control | None = None


@dataclass(frozen=True)
class Claim:
    """What the document says about the cells that match; cells that no claim matches have claim `none`."""

    generations: str
    outcome: Outcome | tuple[Outcome, ...]
    variants: str = "*"
    failure: Chain | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class Where(StrEnum):
    """Who is told a cure, hence its syntax (`lab/report/cures.py`)."""

    SPARK_SESSION = "spark-session"  # Spark, at any time
    SPARK_START = "spark-start"  # Spark, before its session starts: what it calls static
    SPARK_CATALOG = "spark-catalog"  # a property of Spark's catalog: `spark.sql.catalog.lab.` and the key
    TRINO_SESSION = "trino-session"  # a session property of Trino's catalog
    TRINO_CATALOG = "trino-catalog"  # Trino's catalog file
    DUCKDB_SESSION = "duckdb-session"
    DUCKDB_ATTACH = "duckdb-attach"  # an option of DuckDB's ATTACH
    PYICEBERG_CATALOG = "pyiceberg-catalog"
    TABLE = "table"  # a property of the Iceberg table
    ELSEWHERE = "elsewhere"  # no setting: `text` says what to do


@dataclass(frozen=True)
class Cure:
    """What makes the failing cells of a behaviour work in the variant that carries this, and what it costs."""

    where: Where
    cost: str  # what a user gives up for it; "nothing known" is an answer
    settings: Mapping[str, str] = field(default_factory=dict)  # else those of the variant
    text: str = ""  # what is no setting: a policy, another statement, as a user would paste it
    variants: str = "*"  # the failing variants that it cures, comma-separated globs


@dataclass(frozen=True)
class Access:
    """How an engine comes to the catalog: under whose rules, as whom, and what it shows.

    `profile` names a file of `lab/catalogs/profiles`, and after each `~` what is otherwise here: `off=CLAIM` takes the
    rules of that claim away, `NAME=VALUE` is a setting (`horizon~off=W-no-ctas~token-seconds=4`).
    `by`: credential (id and secret, for which an engine gets itself tokens and may renew them), token (one that was
    got for it beforehand), pat, pat-credential (a PAT that is exchanged), key-pair, external, sigv4 or nothing.
    """

    profile: str
    principal: str = "engineer"
    by: str = "credential"


@dataclass(frozen=True)
class Variant:
    """A behaviour under given settings. A setting of None takes one of the generation's own settings away.

    Variants of one name for different generations (comma-separated globs) make one row of the matrix.
    `settings` are those of the writer's session, `second_settings` those of the second engine's. One that is `full`
    takes longer than it tells: it runs where behaviours are named, and not in a run of everything.
    """

    name: str = "default"
    generations: str = "*"
    settings: Mapping[str, str | None] = field(default_factory=dict)
    second_settings: Mapping[str, str | None] = field(default_factory=dict)
    properties: Mapping[str, str | None] = field(default_factory=dict)  # of the table; None as there
    steps: tuple[Step, ...] | None = None  # instead of the behaviour's
    pairs: tuple[tuple[str, str], ...] | None = None  # instead of the behaviour's
    cure: Cure | None = None  # of the behaviour's failing variants: this one shows that it helps
    full: bool = False
    # What the lab lacks to run it, and how it would be had: planned once, for NOBODY, where behaviours are named.
    missing: str = ""
    access: Access | None = None  # of both engines, unless the second has its own; None: the lab's open door
    second_access: Access | None = None

    def cured_by(self) -> Mapping[str, str]:
        """The settings that make this variant's cure; empty without a cure, or where it is no setting."""
        if self.cure is None or self.cure.where is Where.ELSEWHERE:
            return {}
        own = self.properties if self.cure.where is Where.TABLE else {**self.settings, **self.second_settings}
        return self.cure.settings or {key: value for key, value in own.items() if value is not None}


SAME = "="  # in a pair: the reader is the writer
ENGINES = ("duckdb", "pyiceberg", "spark", "trino")  # the kinds that people run queries with


@dataclass(frozen=True)
class Behaviour:
    """A claim that can be run. Its id is stable for ever."""

    id: str
    title: str
    source: str
    document: str | None  # the documented claim in our words; None where the document is silent
    table: Table
    steps: tuple[Step, ...]
    expect: tuple[Expect, ...]
    claims: tuple[Claim, ...] = ()
    variants: tuple[Variant, ...] = (Variant(),)
    pairs: tuple[tuple[str, str], ...] = (("*", SAME),)  # globs of (writer, reader)
    tags: tuple[str, ...] = ()
    namespace: str | None = None  # a fixed one instead of a fresh one; its tables are read, never written
    # Of one family all share a fresh one, in which each has a table by a name of its own: Trino asks the catalog once
    # for each namespace that it has, for every name that it has not seen yet (TrinoRestCatalog.findRemoteNamespace).
    family: str | None = None
    kinds: tuple[str, ...] = ENGINES  # who takes part

    def expectation(self, cell: Cell) -> Expect | None:
        """What we assert for this cell: the first entry that matches."""
        return next((e for e in self.expect if _placed(e, cell) and _applies(e, e.writers, cell)), None)

    def steps_of(self, variant: Variant) -> tuple[Step, ...]:
        """What is said in this variant: its own steps, or else the behaviour's."""
        return self.steps if variant.steps is None else variant.steps

    def claim(self, cell: Cell) -> Claim | None:
        """What the document says of this cell, if it says anything."""
        return next((c for c in self.claims if _applies(c, "*", cell)), None)


def _placed(declared: Expect, cell: Cell) -> bool:
    return matches_globs(declared.stores, cell.store) and matches_globs(declared.catalogs, cell.catalog)


def _applies(declared: Expect | Claim, writers: str, cell: Cell) -> bool:
    reader, writer = declared_name(cell.reader), declared_name(cell.writer)
    named = ((declared.generations, reader), (declared.variants, cell.variant), (writers, writer))
    return all(matches_globs(globs, name) for globs, name in named)


@cache
def matches_globs(globs: str, name: str) -> bool:
    """Whether one of these comma-separated globs matches the name."""
    return any(fnmatchcase(name, glob.strip()) for glob in globs.split(","))


# ---------------------------------------------------------------- cells and what is seen in them
@dataclass(frozen=True, order=True)
class Cell:
    """The key of one square of the matrix. Two observations with equal keys may be compared."""

    behaviour: str
    variant: str
    writer: str
    reader: str
    profile: str
    catalog: str
    store: str
    runtime: str
    format_version: int

    @property
    def own(self) -> bool:
        """Whether an engine of the user's takes part, of which the lab's declarations need not know."""
        return OWN in self.writer + self.reader

    def __str__(self) -> str:
        who = self.writer if self.writer == self.reader else f"{self.writer}->{self.reader}"
        variant = "" if self.variant == "default" else f"/{self.variant}"
        return f"{self.behaviour}{variant}[{who}]"


@dataclass(frozen=True)
class StepResult:
    """One step as it went: who did it, the statement's text, seconds, and the answer or the lab's look."""

    name: str
    by: str  # a generation's name, or "lab"
    statement: str
    seconds: float
    answer: Answer | None = None
    look: Any = None
    truth: Truth | None = None
    among: bool = False
    lineage: Lineage | None = None
    asked: Mapping[str, Any] | None = None  # what the gateway noted meanwhile, where a case has `Access`
    change: Change | None = None
    began: float | None = None  # of a race's statement: seconds since the race began


@dataclass(frozen=True)
class Observation:
    """What was seen in a cell, before anybody judges it."""

    cell: Cell
    steps: tuple[StepResult, ...]
    versions: Mapping[str, Mapping[str, str]]  # generation → component → version
    settings: Mapping[str, Mapping[str, str]]  # generation → setting → value
    seeded_by: str
    seconds: float
    missing: str | None = None  # why nothing ran: what is missing, with the line that cures it


@dataclass(frozen=True)
class Verdict:
    """An observation held against the claim and the expectation: three fields that are never mixed."""

    outcome: Outcome
    claim: ClaimVerdict
    expectation: ExpectationVerdict | None  # None: nothing ran, or nothing is expected of an engine of the user's
    differences: tuple[str, ...] = ()  # why `unexpected`, one line each
    claim_differences: tuple[str, ...] = ()  # why `differs`
    expected: Expect | None = None
