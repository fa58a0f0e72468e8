"""Documents W and D on who reaches the catalog: a row for each engine that they name, of those the lab lacks too."""

from __future__ import annotations

from collections.abc import Mapping

from lab.behaviours.orders_steps import read
from lab.model import Access, Behaviour, Claim, Expect, Outcome, Variant
from lab.tables.orders import ORDERS_V2

# By engine: who is asked every day, and who when the behaviour is named.
HERE: Mapping[str, tuple[str, str]] = {
    "duckdb": ("duckdb-*", ""),
    "pyiceberg": ("pyiceberg-*", ""),
    "spark": ("spark-3.5*", "spark-3.2*,spark-4*"),
    "trino": ("trino-483", "trino-476"),
}
ADAPTER = "an adapter in lab/engines and a file in lab/engines/generations"
LACKING: Mapping[str, str] = {
    "doris": "Apache Doris: a frontend and a backend as binary archives, which no package registry has; its frontend "
    f"speaks MySQL's protocol. Add {ADAPTER}",
    "dremio": "Dremio: its community edition is an archive and an image of its own site; it speaks Arrow Flight. "
    f"Add {ADAPTER}",
    "emr": "Amazon EMR: a service; its Spark is Amazon's own build. Declare a cluster of yours as `--remote`, a Spark "
    "with Connect (README, your own engines)",
    "flink": "Apache Flink: flink-sql-gateway and iceberg-flink-runtime from Maven Central, in a JVM as Trino is; it "
    f"answers over REST. Add {ADAPTER}",
    "kafka-connect": "Kafka with Connect: a broker, a worker and Iceberg's sink, which is a distribution to build "
    "(iceberg-kafka-connect-runtime); it has no SQL, so a case would produce records and wait for the sink's commit",
    "starrocks": "StarRocks: a frontend and a backend as binary archives, which no package registry has; its frontend "
    f"speaks MySQL's protocol. Add {ADAPTER}",
}


def _reached(id: str, title: str, source: str, document: str, profile: str, *engines: str) -> Behaviour:
    access = Access(profile)
    here = [
        Variant(engine, generations, access=access, full=seldom)
        for engine in engines
        if engine in HERE
        for generations, seldom in zip(HERE[engine], (False, True), strict=True)
        if generations
    ]
    return Behaviour(
        id=id,
        title=title,
        source=source,
        document=document,
        table=ORDERS_V2,
        steps=(read(ORDERS_V2),),
        variants=(*here, *(Variant(engine, missing=LACKING[engine]) for engine in engines if engine in LACKING)),
        claims=(Claim("*", Outcome.WORKS),),
        expect=(
            Expect(
                Outcome.WORKS,
                "a client's id and secret exchanged for a token, vended keys, and every row is read",
                facts={"read.rules": []},
            ),
        ),
        kinds=tuple(engine for engine in engines if engine in HERE),
        tags=("v2", "read", "access"),
    )


W_ENGINES = _reached(
    "W-engines",
    "Engines that reach Horizon",
    "W, supported engines",
    "Doris, Flink, Spark, Dremio, DuckDB, PyIceberg, StarRocks and Trino each reach the catalog",
    "horizon",
    *("doris", "flink", "spark", "dremio", "duckdb", "pyiceberg", "starrocks", "trino"),
)
D_ENGINES = _reached(
    "D-engines",
    "Engines that reach Unity's REST catalog",
    "D, external engines",
    "PyIceberg, open-source Spark, EMR, Flink and Kafka Connect reach the REST catalog",
    "unity-managed",
    *("pyiceberg", "spark", "emr", "flink", "kafka-connect"),
)
