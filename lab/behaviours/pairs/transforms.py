"""A partition transform of several arguments, which v3 allows and nobody writes: does a reader load it, or refuse?"""

from __future__ import annotations

from lab.behaviours.known import SPARK_3_2_NO_V3
from lab.behaviours.pairs.feature import feature, on
from lab.behaviours.pairs.filters import Filter
from lab.behaviours.t_known import gap
from lab.catalogs import TRANSFORM
from lab.model import DataFile, Expect, Step, Trap

REFUSED = Trap(
    "multi-argument-transform",
    "A partition transform of several columns makes a table unreadable",
    r"required property 'source-id' is missing|Multi argument transforms are not yet supported"
    r"|Cannot parse missing int:? source-id",
    {
        "spark-*,trino-*": "org.apache.iceberg.PartitionSpecParser.buildFromJsonFields",
        "duckdb-*": "duckdb::IcebergPartitionSpec::ParseFromJson",
        "pyiceberg-*": "pyiceberg.partitioning.PartitionField.map_source_ids_onto_source_id",
    },
    remedy="none needed yet: nobody writes one. The specification has readers ignore transforms that they don't know",
)


def _refused(generations: str, *cause: str) -> Expect:
    return gap(
        generations,
        "version 3 allows it, and this reader wants the one column of a partition field: it refuses the whole table",
        REFUSED,
        (cause[0], cause[1]),
        at="whole",
    )


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
    expect=(
        SPARK_3_2_NO_V3,
        _refused("duckdb-*", "_duckdb.InvalidInputException", "required property 'source-id' is missing"),
        _refused("pyiceberg-*", "ValidationError", "Multi argument transforms are not yet supported"),
        _refused("*", "java.lang.IllegalArgumentException", "Cannot parse missing int: source-id"),
    ),
    filters=(
        Filter("n", "=", 20),
        Filter("n", "<", 20),
        Filter("n", "in", (10, 30)),
        Filter("n", "null"),
        Filter("n", "not", 10),
        Filter("id", ">", 3),
    ),
)
