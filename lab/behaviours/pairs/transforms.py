"""A partition transform of several arguments, which v3 allows and nobody writes: does a reader load it, or refuse?"""

from __future__ import annotations

from lab.behaviours.pairs.feature import feature, on
from lab.behaviours.pairs.filters import Filter
from lab.catalogs import TRANSFORM
from lab.model import DataFile, Step

ROWS = ((1, 10), (2, 10), (3, 20), (4, 20))
MULTI_ARGUMENT = feature(
    "transform-of-two",
    "Metadata made by hand: a partition transform of two columns, of a name that nobody knows",
    3,
    (("id", "int"), ("n", "int")),
    ROWS,
    (Step("tell", call=on("set_property", key=TRANSFORM, value="of_two:1,2")),),
    files=(DataFile(rows=ROWS[:2]), DataFile(rows=ROWS[2:])),
    table={"partition": "n"},
    filters=(
        Filter("n", "=", 20),
        Filter("n", "<", 20),
        Filter("n", "in", (10, 30)),
        Filter("n", "null"),
        Filter("n", "not", 10),
        Filter("id", ">", 3),
    ),
)
