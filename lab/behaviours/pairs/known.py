"""Gaps that many features meet, once for all of them."""

from __future__ import annotations

from lab.behaviours.known import NO_VECTORIZED_DELTA_LENGTH, VECTORIZED_ENCODING
from lab.model import Expect, Outcome

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
