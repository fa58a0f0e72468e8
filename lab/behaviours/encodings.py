"""The grid behind H-delta-binary and H-delta-length: each encoding of Parquet over each type of Iceberg's, alone.

Every column of the shared, read-only tables is asked for by itself, so that one that can't be read hides no other.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from lab.behaviours.known import ROW_BY_ROW
from lab.model import Behaviour, Call, Cure, Expect, Outcome, Step, Table, Variant, Where
from lab.tables import encodings
from lab.tables.encodings import NAMESPACE, PAIRS, WORDS, column

VECTORIZATION = "spark.sql.iceberg.vectorization.enabled"
OFF = "not-vectorized"


def select(table: Table, name: str) -> tuple[Step, ...]:
    """One column of a table and nothing else, and how its data file really stores it."""
    place = [known for known, _ in table.columns].index(name)
    rows = tuple((row[place],) for row in table.rows)
    texts = tuple(tuple(str(v) if isinstance(v, uuid.UUID) else v for v in row) for row in rows)
    scan = Call("scan", {"namespace": "{namespace}", "table": "{table_name}", "columns": [name]})
    return (
        Step("read", f"SELECT {name} FROM {{table}}", scan, truth={"spark": texts, "*": rows}),  # Spark has no uuid
        Step("stored", look=f"stored:{name}", always=True),
    )


def variants(table: Table, names: Iterable[tuple[str, str]]) -> tuple[Variant, ...]:
    """For each (word, column): as engines are, and Spark without its vectorized reader."""
    chosen = list(names)
    return (
        *(Variant(f"default/{word}", steps=select(table, name)) for word, name in chosen),
        *(
            Variant(
                f"{OFF}/{word}",
                generations="spark-*",
                settings={VECTORIZATION: "false"},
                steps=select(table, name),
                cure=Cure(Where.SPARK_SESSION, ROW_BY_ROW, variants=f"default/{word}"),
            )
            for word, name in chosen
        ),
    )


WORKS = Expect(Outcome.WORKS, "Parquet's specification has this for all its readers")


def _over_types(encoding: str) -> Behaviour:
    word = WORDS[encoding]
    pairs = [pair for pair in PAIRS if pair[0] == encoding and pair[1] != "time"]
    return Behaviour(
        id=f"E-{word}",
        title=f"{encoding} over every type that it can hold",
        source="the lab's own question",
        document=None,
        table=encodings.GRID,
        namespace=NAMESPACE,
        steps=(),
        variants=variants(encodings.GRID, ((pair[1], column(pair)) for pair in pairs)),
        expect=(WORKS,),
        tags=("encodings",),
    )


def _over_few(id: str, title: str, table: Table, expect: tuple[Expect, ...] = ()) -> Behaviour:
    names = [(name.lower().replace("_", "-"), name) for name, _ in table.columns]
    return Behaviour(
        id=id,
        title=title,
        source="the lab's own question",
        document=None,
        table=table,
        namespace=NAMESPACE,
        steps=(),
        variants=variants(table, names),
        expect=(*expect, WORKS),
        tags=("encodings",),
    )


PLAIN = _over_types("PLAIN")
DICTIONARY = _over_types("RLE_DICTIONARY")
RLE = _over_types("RLE")
DELTA_BINARY = _over_types("DELTA_BINARY_PACKED")
DELTA_LENGTH = _over_types("DELTA_LENGTH_BYTE_ARRAY")
DELTA_BYTE_ARRAY = _over_types("DELTA_BYTE_ARRAY")
BYTE_STREAM_SPLIT = _over_types("BYTE_STREAM_SPLIT")
TIME = _over_few("E-time", "A time of day in every encoding", encodings.TIMES)
PAGE_V2 = _over_few("E-page-v2", "Data pages of version 2", encodings.PAGES_V2)
FORMAT_V3 = _over_few("E-format-v3", "The same file in a v3 table", encodings.FORMAT_V3)
NO_NULLS = _over_few("E-no-nulls", "Columns without a null", encodings.NO_NULLS)
ALL_NULLS = _over_few("E-all-nulls", "Columns of nothing but nulls", encodings.ALL_NULLS)
CODEC = _over_few("E-codec", "Every codec", encodings.CODECS)
HADOOP_LZ4 = _over_few("E-hadoop-lz4", "LZ4 in Hadoop's framing, the codec that Parquet deprecated", encodings.HADOOP)
