"""What Spark loses without its vectorized reader: `python scripts/fallback.py > docs/fallback.json`, in three minutes.

Rows per second of one table on each generation of Spark, read in batches and row by row: an aggregate over an
integer alone, and over an integer, a floating-point and a text column. The median of five, after two to warm up.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from lab.asking import done
from lab.behaviours.encodings import VECTORIZATION
from lab.engines import GENERATIONS, Session
from lab.model import Generation
from lab.provision import Cache
from lab.records.record import machine
from lab.run import Engines
from lab.runtime.embedded import Embedded

ROWS = 4_000_000
TABLE = "lab.FALLBACK.T"
MAKE = (
    "CREATE NAMESPACE IF NOT EXISTS lab.FALLBACK",
    f"CREATE TABLE {TABLE} (i int, d double, s string) USING iceberg",
    f"INSERT INTO {TABLE} SELECT cast(id % 1000003 AS int), id / 7, concat('product ', id % 5003) "
    f"FROM range(0, {ROWS}, 1, 2)",
)
QUERIES = {
    "an integer": f"SELECT sum(i) FROM {TABLE}",
    "an integer, a double, a string": f"SELECT sum(i), sum(d), max(s) FROM {TABLE}",
}


def main() -> None:
    spark = [generation for generation in GENERATIONS.values() if generation.kind == "spark"]
    with tempfile.TemporaryDirectory() as folder, Embedded(Cache(), Path(folder) / "runs" / "fallback") as lab:
        engines = Engines(lab)
        with engines.using(spark[0]) as engine, closing(engine.session()) as session:
            for statement in MAKE:
                done(session, statement)
        figures = {generation.name: measured(engines, generation) for generation in spark}
        engines.close()
    print(json.dumps({"machine": machine(), "rows": ROWS, "rows per second": figures}, indent=2))


def measured(engines: Engines, generation: Generation) -> dict[str, Any]:
    print(f"measuring: {generation.name}", file=sys.stderr)
    found = {}
    with engines.using(generation) as engine:
        for what, query in QUERIES.items():
            rates = {}
            for way, setting in (("in batches", "true"), ("row by row", "false")):
                with closing(engine.session({VECTORIZATION: setting})) as session:
                    rates[way] = rate(session, query)
            found[what] = {**rates, "times": round(rates["in batches"] / rates["row by row"], 1)}
    return found


def rate(session: Session, query: str) -> int:
    """Rows per second, to two digits: more would be noise."""
    seconds = []
    for _ in range(7):
        started = time.monotonic()
        done(session, query)
        seconds.append(time.monotonic() - started)
    return int(float(f"{ROWS / statistics.median(seconds[2:]):.2g}"))


if __name__ == "__main__":
    main()
