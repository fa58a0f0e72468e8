"""What a feature of the pair matrix is, and the few words that make one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.behaviours.pairs.filters import Filter, asked, every
from lab.behaviours.pairs.known import NO_V3_READERS, NO_V3_WRITERS, NOT_IN_KEEPS_NULL, Wrongly
from lab.engines import dialect
from lab.model import (
    ENGINES,
    Behaviour,
    Call,
    DataFile,
    DeleteFile,
    Expect,
    Generation,
    Outcome,
    Step,
    Table,
    Truth,
    Variant,
    matches_globs,
)

QUICK, EVERY = "default", "every-operator"  # variants: `pairs --quick` and `pairs --full`
SQL = ("duckdb", "spark", "trino")
FAMILY = "P"
RIGHT = Expect(
    Outcome.WORKS, "part of the specification of that version: every row, and what each filter leaves of them"
)


@dataclass(frozen=True)
class Feature(Behaviour):
    """A behaviour that one generation makes and each one reads.

    Its steps are the writer's, then the reader's: `others` (where columns are new: all but those), `whole`, `filters`.
    A reader that fails in `others` can't load the table at all; one that fails in `whole` can't read a column.
    Its `pairs` are what the suite runs every day.
    """

    cannot: tuple[Expect, ...] = ()  # who is seen to fail at writing it
    without: str = ""  # globs of those to whom the words mean something else, so that another one's table is read

    @property
    def name(self) -> str:
        """As `--feature` takes it: the id without its letter."""
        return self.id.removeprefix("P-")

    def takes(self, generation: Generation) -> bool:
        """Whether this engine has words to read it."""
        reads = [step for step in self.steps if step.second]
        return generation.kind in self.kinds and all(step.statement(generation.kind) for step in reads)

    def refuses(self, generation: Generation) -> bool:
        """Whether this engine has words for it and fails: its one cell is a pair with itself."""
        refused = any(matches_globs(expect.generations, generation.name) for expect in self.cannot)
        return refused and self._has_words(generation)

    def makes(self, generation: Generation) -> bool:
        """Whether this engine writes it, so that every reader is asked."""
        return self._has_words(generation) and not self.refuses(generation)

    def _has_words(self, generation: Generation) -> bool:
        steps = [step for step in self.steps if not step.second and not step.optional and step.look is None]
        said = generation.kind in self.kinds and all(step.statement(generation.kind) for step in steps)
        return said and not self.table.files and not matches_globs(self.without, generation.name)


def feature(
    id: str,
    title: str,
    version: int,
    columns: Sequence[tuple[str, str]],
    rows: Truth,
    steps: Sequence[Step] = (),
    *,
    source: str = "the lab's own question",
    new: Sequence[str] = (),
    filters: Sequence[Filter] = (),
    cannot: Sequence[Expect] = (),
    without: str = "",
    expect: Sequence[Expect | Wrongly] = (),
    whole: Step | None = None,
    files: tuple[DataFile | DeleteFile, ...] = (),
    table: Mapping[str, Any] | None = None,
    pairs: tuple[tuple[str, str], ...] = (),
) -> Feature:
    """A feature: `steps` make a table of these columns with these rows.

    columns: (name, Iceberg type) as the last step leaves them, `id` among them. new: those that the feature is
    about, which a reader may know nothing of. cannot: whose failure while writing is expected, generation by
    generation; who has no words in `steps` does not write at all, nor do those of `without`. files: the library
    registers them instead (`table` has what else is declared of the table). whole: instead of SELECT *.
    """
    assert len(filters) <= 6, "at most six: every reader asks them of every writer's table"
    if version == 3:
        cannot, expect = (*cannot, *NO_V3_WRITERS), (*expect, *NO_V3_READERS)
    refused = tuple(replace(each, writers=each.generations) for each in cannot)
    names = [name for name, _ in columns]
    reads = (
        *([read("others", [n for n in names if n not in new], rows, names)] if new else []),
        whole or read("whole", names, rows, names, everything=True),
    )
    grid = list(every(columns, rows)) if filters else []
    known: list[Expect] = []
    for each in (*expect, NOT_IN_KEEPS_NULL):
        if isinstance(each, Wrongly):
            known += (*each.expect(names, rows, filters, QUICK), *each.expect(names, rows, grid, EVERY))
        else:
            known.append(each)
    return Feature(
        id=f"P-{id}",
        title=title,
        source=source,
        document=None,
        table=Table(
            **{
                "name": table_name(id),
                "format_version": version,
                "columns": tuple(columns),
                "rows": rows,
                "files": files,
                "given": bool(files),
                **(table or {}),
            }
        ),
        steps=(*steps, *reads, *([asked(names, rows, filters, SQL)] if filters else [])),
        variants=(
            Variant(QUICK),
            Variant(EVERY, pairs=(), steps=(*steps, *reads, *([asked(names, rows, grid, SQL)] if grid else []))),
        ),
        pairs=pairs,
        expect=(*refused, *known, RIGHT),
        tags=("pairs", f"v{version}"),
        family=FAMILY,
        kinds=ENGINES,
        cannot=refused,
        without=without,
    )


def table_name(id: str) -> str:
    """Of a feature's table: no other has it, and it is no word of SQL."""
    return f"t_{id.replace('-', '_')}"


def read(
    name: str, columns: Sequence[str], rows: Truth, all_columns: Sequence[str], *, everything: bool = False
) -> Step:
    """The reader's SELECT of these columns, or of all (`*`)."""
    places = [list(all_columns).index(column) for column in columns]
    args = {"namespace": "{namespace}", "table": "{table_name}", **({} if everything else {"columns": list(columns)})}
    return Step(
        name,
        f"SELECT {'*' if everything else ', '.join(columns)} FROM {{table}}",
        Call("scan", args),
        truth=tuple(tuple(row[place] for place in places) for row in rows),
        second=True,
    )


# ---------------------------------------------------------------- what writers say
def create(
    columns: Sequence[tuple[str, str]],
    version: int,
    *,
    partition: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
) -> Step:
    """Makes the table, in a format version.

    partition: Iceberg's transforms of a column, `bucket[4](id)`, `day(at)`, `identity(v)`. properties: of Spark's
    table, where the others have none to set. words: a dialect's columns, where a type is no primitive one.
    """
    sql = {}
    for kind in SQL:
        declared = (words or {}).get(kind) or ", ".join(f"{n} {dialect.type_name(kind, of)}" for n, of in columns)
        sql[kind] = f"CREATE TABLE {{table}} ({declared}) {_tail(kind, version, partition, properties or {})}".strip()
    if words:
        sql = {kind: said for kind, said in sql.items() if kind in words}
    call = Call(
        "create_table",
        {
            **ON,
            "schema": [(name, of, False) for name, of in columns],
            "properties": {"format-version": str(version)},
            "partition": [(_column(of), _transform(of)) for of in partition],
        },
    )
    return Step("create", sql, None if words else call)


def insert(columns: Sequence[str], *rows: Sequence[Any], name: str = "insert") -> Step:
    """One INSERT, which makes one data file: Spark would make one for each of its tasks."""
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    values = dialect.values(rows)
    one_task = f"SELECT /*+ COALESCE(1) */ * FROM VALUES {values} AS v({', '.join(columns)})"
    return Step(
        name,
        {
            "spark": f"INSERT INTO {{table}} {one_task}",
            "*": f"INSERT INTO {{table}} VALUES {values}",
        },
        Call("append", {**ON, "rows": records}),
    )


def on(op: str, **args: Any) -> Call:
    """What PyIceberg or the library does to the feature's table."""
    return Call(op, {**ON, **args})


ON = {"namespace": "{namespace}", "table": "{table_name}"}


def _tail(kind: str, version: int, partition: Sequence[str], properties: Mapping[str, str]) -> str:
    if kind == "trino":
        parts = [f"format_version = {version}"]
        if partition:
            parts.append(f"partitioning = ARRAY[{', '.join(repr(_trino(of)) for of in partition)}]")
        return f"WITH ({', '.join(parts)})"
    said = f"PARTITIONED BY ({', '.join(_said(kind, of) for of in partition)}) " if partition else ""
    if kind == "duckdb":
        return f"{said}WITH ('format-version'='{version}')"
    pairs = ", ".join(f"'{k}'='{v}'" for k, v in {"format-version": version, **properties}.items())
    return f"USING iceberg {said}TBLPROPERTIES ({pairs})"


def _column(of: str) -> str:
    return of[of.index("(") + 1 : -1]


def _transform(of: str) -> str:
    return of[: of.index("(")]


def _split(of: str) -> tuple[str, str, str]:
    """`bucket[4](id)` → ("bucket", "4", "id")."""
    name, _, number = _transform(of).rstrip("]").partition("[")
    return name, number, _column(of)


def _said(kind: str, of: str) -> str:
    name, number, column = _split(of)
    if name == "identity":
        return column
    if number:
        return f"{name}({number}, {column})"
    return f"{name}s({column})" if kind == "spark" and name != "void" else f"{name}({column})"


def _trino(of: str) -> str:
    name, number, column = _split(of)
    if name == "identity":
        return column
    return f"{name}({column}, {number})" if number else f"{name}({column})"
