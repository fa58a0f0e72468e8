"""Gaps that many features meet, once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from lab.behaviours.committed import PYICEBERG_NO_EQUALITY_DELETES, TRINO_476_NO_VECTORS
from lab.behaviours.h_v2 import PYICEBERG_DELETE_PATHS
from lab.behaviours.known import (
    NO_VECTORIZED_DELTA_LENGTH,
    PYICEBERG_NO_V3_WRITE,
    SPARK_3_2_NO_V3,
    VECTORIZED_ENCODING,
)
from lab.behaviours.pairs.filters import KEY, Filter, Row
from lab.behaviours.t_known import trino_476
from lab.model import Chain, Expect, Outcome, Trap, Truth

# ---------------------------------------------------------------- who can't write
PYICEBERG_CORE = Expect(
    Outcome.NOT_SUPPORTED,
    "PyIceberg computes this transform of what it writes in Rust, by pyiceberg-core, an extra that is not installed "
    "with it; it reads such tables without",
    generations="pyiceberg-*",
    at="insert*",
    failure=Chain((("pyiceberg.exceptions.NotInstalledError", "pyiceberg_core needs to be installed."),), whole=True),
    trap=Trap(
        "pyiceberg-core",
        "PyIceberg writes no partitioned table without pyiceberg-core",
        r"pyiceberg_core needs to be installed",
        "pyiceberg.transforms._try_import",
        remedy='pip install "pyiceberg[pyiceberg-core]"; identity partitions need none',
    ),
)
# How each engine that can't write v3 says so.
NO_V3_WRITERS = (trino_476(), replace(PYICEBERG_NO_V3_WRITE, at="insert*"), SPARK_3_2_NO_V3)

# ---------------------------------------------------------------- who can't read
NO_V3_READERS = (SPARK_3_2_NO_V3,)
NO_EQUALITY = PYICEBERG_NO_EQUALITY_DELETES
NO_VECTORS = TRINO_476_NO_VECTORS
DELETE_PATHS = replace(PYICEBERG_DELETE_PATHS, at="whole")
DELTA_LENGTH = Expect(
    Outcome.NOT_SUPPORTED,
    "Trino 483 writes strings as DELTA_LENGTH_BYTE_ARRAY, which Iceberg's vectorized reader has since 1.11 only; the "
    "table's other columns are read",
    generations="spark-3.2*,spark-3.5*,spark-4.0*",
    writers="trino-483",
    failure=NO_VECTORIZED_DELTA_LENGTH,
    at="whole,filters",
    trap=VECTORIZED_ENCODING,
)

# ---------------------------------------------------------------- PyIceberg and null
NOT_AND_NULL = Trap(
    "pyiceberg-not-and-null",
    "PyIceberg's NOT IN keeps rows with null, and its != does so in some files and not in others",
    "",
    "pyiceberg.io.pyarrow._ConvertToArrowExpression.visit_not_in",
    remedy="say what is meant of null: `… and column is not null`",
)


@dataclass(frozen=True)
class Wrongly:
    """What a reader gets wrong without an error: a rule, from which the rows of any filters follow.

    `seen` are the rows that it shows where they are not the truth's, `keeps` decides which row passes a filter.
    """

    reason: str
    generations: str
    trap: Trap
    writers: str = "*"
    seen: Truth | None = None
    keeps: Callable[[Filter, Row], bool] = Filter.keeps

    def expect(self, columns: Sequence[str], rows: Truth, filters: Sequence[Filter], variant: str) -> Iterator[Expect]:
        """What comes back of a table with these rows, asked these filters; nothing where that is right."""
        records = [dict(zip(columns, row, strict=True)) for row in self.seen or rows]
        right = [dict(zip(columns, row, strict=True)) for row in rows]
        answer = tuple((str(f), row[KEY]) for f in filters for row in records if self.keeps(f, row))
        truth = tuple((str(f), row[KEY]) for f in filters for row in right if f.keeps(row))
        if self.seen or answer != truth:
            yield Expect(
                Outcome.SILENTLY_WRONG,
                self.reason,
                generations=self.generations,
                variants=variant,
                writers=self.writers,
                rows={**({"whole": self.seen} if self.seen else {}), **({"filters": answer} if filters else {})},
                trap=self.trap,
            )


def _not_of_one(filter: Filter) -> bool:
    """Whether PyIceberg makes `!=` of it: of NOT IN too, where that is of one value."""
    return filter.op == "not" or (filter.op == "not in" and len(set(filter.value)) == 1)


def keeps_null(filter: Filter, row: Row) -> bool:
    """Whether a row passes where NOT IN is true of null."""
    return filter.keeps(row) or (
        filter.op == "not in" and not _not_of_one(filter) and Filter(filter.column, "null").keeps(row)
    )


NOT_IN_KEEPS_NULL = Wrongly(
    "PyIceberg makes NOT IN of Arrow's isin and not, which is true of null; SQL drops null, and so does !=",
    "pyiceberg-*",
    NOT_AND_NULL,
    keeps=keeps_null,
)


def not_keeps_null(column: str, *lacking: int) -> Wrongly:
    """Of a column that the files with these keys lack."""
    return Wrongly(
        "for a file without the column PyIceberg asks the filter of null once (_ColumnNameTranslator."
        "visit_bound_predicate), to whom != is true; for a file that has the column Arrow compares, to whom null != 1 "
        "is not. So NOT (n = 1) keeps some nulls and drops others",
        "pyiceberg-*",
        NOT_AND_NULL,
        keeps=lambda filter, row: (
            keeps_null(filter, row) or (_not_of_one(filter) and filter.column == column and row[KEY] in lacking)
        ),
    )


LONGER_DECIMAL = Expect(
    Outcome.ERROR,
    "PyIceberg makes Arrow values of a filter's decimals with the type that the column has in the file, which was "
    "shorter before the column was widened: a longer value does not fit, though no row of that file can have it. Arrow "
    "speaks of a first element, which has nothing to do with it",
    generations="pyiceberg-*",
    at="filters",
    failure=Chain((("pyarrow.lib.ArrowInvalid", "does not fit into precision inferred from first array element"),)),
    trap=Trap(
        "pyiceberg-longer-decimal",
        "PyIceberg fails to compare with a decimal that is longer than the column was in an old file",
        r"does not fit into precision inferred from first array element",
        "pyiceberg.io.pyarrow._ConvertToArrowExpression.visit_in",
        remedy="rewrite the old files (rewrite_data_files with rewrite-all), or filter in Arrow what scan() returns",
    ),
)

# ---------------------------------------------------------------- deletes by a column that is gone
DROPPED_COLUMN = Trap(
    "equality-delete-dropped-column",
    "A table whose equality deletes go by a column that was dropped can't be read any more",
    r"Types\$NestedField\.type\(\)\" because \"field\" is null"
    r"|Cannot find required field for ID \d+|Attempted to access index \d+ within vector of size \d+",
    {
        "spark-3.2*": "org.apache.iceberg.data.DeleteFilter.fileProjection",
        "spark-*,trino-476": "org.apache.iceberg.DeleteFileIndex.canContainEqDeletesForFile",
        "duckdb-*": "duckdb::LogicalGet::GetColumnType",
    },
    remedy="compact the table (rewrite_data_files with delete-file-threshold 1) before the column is dropped; with "
    "Iceberg 1.11 or newer it can still be read",
)

DROPPED_COLUMN_TRINO = replace(
    DROPPED_COLUMN,
    id="equality-delete-dropped-column-trino",
    title="Trino can't read a table whose equality deletes go by a column that was dropped",
    symptom=r"Types\$NestedField\.fieldId\(\)\" because \"column\" is null",
    code="io.trino.plugin.iceberg.IcebergUtil.getColumnHandle",
    remedy="read it with Spark and Iceberg 1.11 or newer; or compact the table (rewrite_data_files with "
    "delete-file-threshold 1) before the column is dropped",
)


def dropped_column(generations: str, reason: str, cls: str, message: str, trap: Trap = DROPPED_COLUMN) -> Expect:
    return Expect(
        Outcome.ERROR,
        reason,
        generations=generations,
        failure=Chain(((cls, message),)),
        at="whole",
        trap=trap,
    )
