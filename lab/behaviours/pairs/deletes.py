"""Rows taken away beside their data files: by position, by equality, by a vector."""

from __future__ import annotations

from lab.behaviours.pairs.feature import create, feature, insert
from lab.behaviours.pairs.filters import Filter
from lab.model import DataFile, DeleteFile, Step

INTS = (("id", "int"), ("n", "int"))
NAMES = ["id", "n"]
ROWS = tuple((id, id * 10) for id in range(1, 9))
LEFT = tuple(row for row in ROWS if row[0] not in (2, 7))
MERGE_ON_READ = {f"write.{mode}.mode": "merge-on-read" for mode in ("delete", "update", "merge")}
FILTERS = (
    Filter("n", "=", 20),
    Filter("n", "<", 40),
    Filter("n", "in", (20, 30, 70)),
    Filter("n", "null"),
    Filter("n", "not", 30),
)
DELETE = Step("delete", "DELETE FROM {table} WHERE id IN (2, 7)")

POSITION = feature(
    "position-deletes",
    "Position deletes of two data files, on v2",
    2,
    INTS,
    LEFT,
    (
        create(INTS, 2, properties=MERGE_ON_READ),
        insert(NAMES, *ROWS[:4]),
        insert(NAMES, *ROWS[4:], name="insert-more"),
        DELETE,
    ),
    filters=FILTERS,
)
EQUALITY = feature(
    "equality-deletes",
    "An equality delete, on v2",
    2,
    INTS,
    LEFT,
    files=(
        DataFile(rows=ROWS[:4]),
        DataFile(rows=ROWS[4:]),
        DeleteFile("equality-delete", columns=("id",), keys=((2,), (7,))),
    ),
    filters=FILTERS,
)
