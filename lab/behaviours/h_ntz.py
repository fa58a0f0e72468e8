"""Document H on timestamps without zone: what Spark before 3.4 refuses, and the setting that cures it."""

from __future__ import annotations

from lab.behaviours.orders_steps import HDD, SSD, insert, read
from lab.model import Behaviour, Chain, Claim, Expect, Outcome, Variant
from lab.tables.orders import ORDERS_V2

FLAG = "spark.sql.iceberg.handle-timestamp-without-timezone"
NO_NATIVE_TYPE = Chain((("IllegalArgumentException", "Cannot handle timestamp without timezone fields in Spark"),))
SEEDS = ORDERS_V2.rows

NTZ_OLD = Behaviour(
    id="H-ntz-old",
    title="A timestamp without zone before Spark had the type",
    source="H, verification 1, timestamps without zone",
    document=f"Spark 3.2 refuses the column; {FLAG}=true cures it, the stored values stay as they are",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2),),
    variants=(
        Variant("flag-off", settings={FLAG: None}),
        Variant("flag-on", generations="spark-*", settings={FLAG: "true"}),
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
    expect=(Expect(Outcome.WORKS, "to be observed"),),
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
    claims=(
        Claim("spark-3.5*,spark-4*", Outcome.WORKS, facts={"read.types.ORDERED_AT": "timestamp_ntz"}),
    ),
    expect=(Expect(Outcome.WORKS, "to be observed"),),
    tags=("v2", "timestamps"),
)
