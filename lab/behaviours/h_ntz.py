"""Document H on timestamps without zone: what Spark before 3.4 refuses, and the setting that cures it."""

from __future__ import annotations

import datetime as dt

from lab.behaviours.orders_steps import HDD, SSD, insert, read
from lab.model import Behaviour, Chain, Claim, Cure, Expect, Outcome, Step, Trap, Variant, Where
from lab.tables.orders import ORDERS_V2

FLAG = "spark.sql.iceberg.handle-timestamp-without-timezone"
NO_NATIVE_TYPE = Chain((("IllegalArgumentException", "Cannot handle timestamp without timezone fields in Spark"),))
SEEDS = ORDERS_V2.rows
IN_TOKYO = {FLAG: "true", "spark.sql.session.timeZone": "Asia/Tokyo"}  # nine hours ahead of UTC all year
WALL_CLOCK = "SELECT CAST(ORDERED_AT AS STRING) FROM {table} WHERE ORDER_ID = "
SHOWN = Step("read", f"{WALL_CLOCK}{SEEDS[0][0]}", truth=((str(SEEDS[0][4]),),))
STORED = Step("read", f"{WALL_CLOCK}{SSD[0]}", truth=((str(SSD[4]),),), second=True)
NOT_BEFORE_3_4 = Expect(
    Outcome.ERROR,
    "Spark has TIMESTAMP_NTZ since 3.4; before, Iceberg's SparkScan.readSchema refuses the column unless the flag is "
    "set. An error, not a missing feature: a plain read of the table fails the same way",
    generations="spark-3.2*",
    variants="flag-off",
    failure=NO_NATIVE_TYPE,
    trap=Trap(
        "timestamp-without-zone",
        "Spark before 3.4 refuses a timestamp without zone",
        r"Cannot handle timestamp without timezone fields in Spark",
        "org.apache.iceberg.spark.source.SparkScan.readSchema",
    ),
)


def _native(step: str) -> tuple[Expect, ...]:
    """Every generation but Spark 3.2 has the type; what it calls it is the fact."""
    names = {"spark-*": "timestamp_ntz", "trino-*": "timestamp(6)", "duckdb-*": "TIMESTAMP", "pyiceberg-*": "timestamp"}
    return tuple(
        Expect(
            Outcome.WORKS,
            f"the type is native: {name}; the setting, where Spark knows it, changes nothing",
            generations=generations,
            facts={f"{step}.types.ORDERED_AT": name},
        )
        for generations, name in names.items()
    )


SHIFTED = Trap(
    "timestamp-shifted-by-the-zone",
    "A timestamp without zone is off by the session's zone",
    "",
    "org.apache.iceberg.spark.TypeToSparkType.primitive",
    remedy=f"SET spark.sql.session.timeZone=UTC in every session that has {FLAG}=true",
)
IN_ANOTHER_ZONE = (
    *(
        Expect(
            Outcome.SILENTLY_WRONG,
            reason,
            "spark-3.2*",
            variants,
            rows={"read": ((clock,),)},
            trap=SHIFTED,
        )
        for variants, reason, clock in (
            (
                "flag-on-tokyo",
                "with the flag the stored wall clock is taken for an instant in UTC, and a session in Tokyo shows it "
                "nine hours later",
                str(SEEDS[0][4] + dt.timedelta(hours=9)),
            ),
            (
                "flag-on-tokyo-stored",
                "with the flag a session in Tokyo takes the written wall clock for its own, and stores it in UTC: "
                "a session in UTC, like engines with the native type, reads it nine hours earlier",
                str(SSD[4] - dt.timedelta(hours=9)),
            ),
        )
    ),
    Expect(Outcome.WORKS, "with the native type no session's zone is asked", variants="flag-on-tokyo*"),
)

NTZ_OLD = Behaviour(
    id="H-ntz-old",
    title="A timestamp without zone before Spark had the type",
    source="H, verification 1, timestamps without zone",
    document=f"Spark 3.2 refuses the column; {FLAG}=true cures it, the stored values stay as they are",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2),),
    variants=(
        Variant("flag-off", settings={FLAG: None}),
        Variant(
            "flag-on",
            generations="spark-*",
            settings={FLAG: "true"},
            cure=Cure(
                Where.SPARK_SESSION,
                "the column becomes an instant in the session's zone: in a session in Tokyo it shows and writes wall "
                "clocks nine hours off (flag-on-tokyo); and every table of the session is read so",
                variants="flag-off",
            ),
        ),
        Variant(  # what the flag makes of a wall clock in another zone: shown by Spark, then written by it
            "flag-on-tokyo",
            generations="spark-*",
            settings=IN_TOKYO,
            steps=(SHOWN,),
        ),
        Variant(
            "flag-on-tokyo-stored",
            generations="spark-*",
            settings=IN_TOKYO,
            second_settings={FLAG: "true"},  # a session in UTC, which shows what is stored (flag-on-stored)
            steps=(insert(SSD), STORED),
        ),
        Variant(  # what the flag writes, as an engine with the native type sees it
            "flag-on-stored",
            generations="spark-*",
            settings={FLAG: "true"},
            steps=(insert(SSD, HDD), read(ORDERS_V2, *SEEDS, SSD, HDD, second=True)),
            pairs=(("spark-*", "duckdb-*"),),
        ),
    ),
    claims=(
        Claim("spark-3.2*", (Outcome.ERROR, Outcome.NOT_SUPPORTED), variants="flag-off", failure=NO_NATIVE_TYPE),
        Claim("spark-3.2*", Outcome.WORKS, variants="flag-on"),
    ),
    expect=(
        NOT_BEFORE_3_4,
        Expect(
            Outcome.WORKS,
            "with the flag TypeToSparkType makes the column Spark's timestamp, an instant; in a UTC session it shows "
            "the stored wall clock",
            generations="spark-3.2*",
            variants="flag-on",
            facts={"read.types.ORDERED_AT": "timestamp"},
        ),
        *IN_ANOTHER_ZONE,
        *_native("read"),
    ),
    tags=("v2", "timestamps"),
)

NTZ_NEW = Behaviour(
    id="H-ntz-new",
    title="A timestamp without zone as a native type",
    source="H, verification 2, comparison of workarounds",
    document="from Spark 3.4 the type is native, the setting is not needed",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2), insert(SSD), read(ORDERS_V2, *SEEDS, SSD, name="read-back")),
    variants=(Variant("flag-off", settings={FLAG: None}),),
    claims=(Claim("spark-3.5*,spark-4*", Outcome.WORKS, facts={"read.types.ORDERED_AT": "timestamp_ntz"}),),
    expect=(NOT_BEFORE_3_4, *_native("read-back")),
    tags=("v2", "timestamps"),
)
