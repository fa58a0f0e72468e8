"""Tables partitioned by each transform: readers skip files by what a filter says of the partition."""

from __future__ import annotations

from lab.behaviours.pairs.feature import create, feature, insert
from lab.behaviours.pairs.filters import Filter

INTS = (("id", "int"), ("n", "int"))
ROWS = ((1, 10), (2, 20), (3, 30), (4, None), (5, -7), (6, 10))

BUCKET = feature(
    "partition-bucket",
    "Partitioned by bucket of an integer",
    2,
    INTS,
    ROWS,
    (create(INTS, 2, partition=("bucket[4](n)",)), insert(["id", "n"], *ROWS)),
    filters=(
        Filter("n", "=", 10),
        Filter("n", "<", 20),
        Filter("n", "in", (20, -7)),
        Filter("n", "null"),
        Filter("n", "not", 10),
        Filter("n", "not in", (10, 30)),
    ),
)
