"""Document H on the encodings of Snowflake's files: which Spark reads them in batches, and the setting that cures."""

from __future__ import annotations

from lab.behaviours.encodings import BEFORE_1_11, OFF, VECTORIZATION
from lab.behaviours.known import ROW_BY_ROW, VECTORIZED_ENCODING
from lab.model import Behaviour, Call, Chain, Claim, Cure, Expect, Outcome, Step, Variant, Where
from lab.tables.orders import COLUMNS, SNOWFLAKE_NAMESPACE, SNOWFLAKE_V2

NAMES = [name for name, _ in COLUMNS]
STORED = {"stored.page_version": 2}


def _select(*columns: str) -> tuple[Step, ...]:
    places = [NAMES.index(name) for name in columns]
    rows = tuple(tuple(row[place] for place in places) for row in SNOWFLAKE_V2.rows)
    scan = Call("scan", {"namespace": "{namespace}", "table": "{table_name}", "columns": list(columns)})
    return (
        Step("read", f"SELECT {', '.join(columns)} FROM {{table}}", scan, truth=rows),
        Step("stored", look=f"stored:{columns[0]}", always=True),
    )


def _refused(encoding: str) -> Chain:
    """The document's message; in it the column's type is annotated as its writer does that."""
    return Chain(
        (
            ("SparkException", "Job aborted due to stage failure: "),
            ("java.lang.UnsupportedOperationException", f"with encoding {encoding}. Disable vectorized reads to read"),
        )
    )


def _behaviour(
    id: str, encoding: str, what: str, columns: tuple[str, ...], document: str, claims: tuple[Claim, ...], failing: str
) -> Behaviour:
    facts = {**STORED, "stored.encoding": encoding}
    return Behaviour(
        id=id,
        title=f"{what} as Snowflake stores them: {encoding}",
        source="H, verification 1, vectorized reads, and verification 2, comparison of workarounds",
        document=document,
        table=SNOWFLAKE_V2,
        namespace=SNOWFLAKE_NAMESPACE,
        steps=_select(*columns),
        variants=(
            Variant(),
            Variant(
                OFF,
                generations="spark-*",
                settings={VECTORIZATION: "false"},
                cure=Cure(Where.SPARK_SESSION, ROW_BY_ROW),
            ),
        ),
        claims=claims,
        expect=(
            Expect(
                Outcome.NOT_SUPPORTED,
                f"Iceberg's vectorized reader has no {encoding} here: VectorizedPageIterator.initDataReader; the "
                "reader of rows does",
                generations=failing,
                variants="default",
                failure=_refused(encoding),
                facts=facts,
                trap=VECTORIZED_ENCODING,
            ),
            Expect(Outcome.WORKS, f"{encoding} is read, in batches or row by row", facts=facts),
        ),
        tags=("encodings", "v2", "read"),
    )


FAILS = (Outcome.ERROR, Outcome.NOT_SUPPORTED)
DELTA_BINARY = _behaviour(
    "H-delta-binary",
    "DELTA_BINARY_PACKED",
    "Integers",
    ("ORDER_ID", "QUANTITY"),
    "the vectorized reader of Iceberg 1.4 fails on DELTA_BINARY_PACKED, that of 1.10 reads it; without it, Spark reads",
    (
        Claim("spark-3.2*", FAILS, variants="default", failure=_refused("DELTA_BINARY_PACKED")),
        Claim("spark-3.2*", Outcome.WORKS, variants=OFF),
        Claim("spark-3.5*", Outcome.WORKS),
    ),
    "spark-3.2*",
)
DELTA_LENGTH = _behaviour(
    "H-delta-length",
    "DELTA_LENGTH_BYTE_ARRAY",
    "Strings",
    ("PRODUCT", "WRITTEN_BY"),
    "the vectorized reader of 1.10 still fails on DELTA_LENGTH_BYTE_ARRAY, that of 1.11 is said to read it; without "
    "it, Spark reads",
    (
        Claim("spark-3.5*", FAILS, variants="default", failure=_refused("DELTA_LENGTH_BYTE_ARRAY")),
        Claim("spark-3.5*", Outcome.WORKS, variants=OFF),
        Claim("spark-4.1*", Outcome.WORKS),
    ),
    BEFORE_1_11,
)
