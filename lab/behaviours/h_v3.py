"""Document H on ORDERS_V3: who reads v3, who writes it, and what makes the documented UPDATE fail."""

from __future__ import annotations

from lab.behaviours.orders_steps import DESK_MAT, HISTORY, WRITTEN, delete, insert, read, set_quantity
from lab.model import Behaviour, Chain, Claim, Expect, Outcome, Variant
from lab.tables.orders import ORDERS_V3, order

DESK, CHAIR = ORDERS_V3.rows
DESK_UPDATED = order(1, "desk", 2, "25000.00", "2026-07-01 09:00", "snowflake")

UNSUPPORTED_VERSION = Chain(
    (
        ("RESTException", "Received a success response code of 200, but failed to parse response body into LoadTableResponse"),
        ("JsonMappingException", "Cannot read unsupported version 3 (through reference chain: "),
        ("IllegalArgumentException", "Cannot read unsupported version 3"),
    ),
    whole=True,
)
REFUSED = (Outcome.ERROR, Outcome.NOT_SUPPORTED)
STRUCTS_DO_NOT_MATCH = Chain((("IllegalArgumentException", "Structs do not match: "),))

NO_EXTENSIONS = {"spark.sql.extensions": None}
MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}

PARSE_ERROR = Behaviour(
    id="H-v3-parse-error",
    title="An old library can't even load a v3 table",
    source="H, verification 1 steps 9 and 10",
    document="Spark 3.2 with Iceberg 1.4: SELECT and INSERT fail while parsing the catalog's answer of 200",
    table=ORDERS_V3,
    steps=(read(ORDERS_V3),),
    variants=(Variant("select"), Variant("insert", steps=(insert(DESK_MAT),))),
    claims=(Claim("spark-3.2*", REFUSED, failure=UNSUPPORTED_VERSION),),
    expect=(Expect(Outcome.WORKS, "to be observed"),),
    tags=("v3",),
)

READ = Behaviour(
    id="H-v3-read",
    title="Reading v3",
    source="H, verification 2 step 9",
    document="Spark 3.5 with Iceberg 1.10.0 reads v3",
    table=ORDERS_V3,
    steps=(read(ORDERS_V3),),
    claims=(Claim("spark-3.2*", REFUSED, failure=UNSUPPORTED_VERSION), Claim("spark-3.5*", Outcome.WORKS)),
    expect=(Expect(Outcome.WORKS, "to be observed"),),
    tags=("v3", "read"),
)

INSERT = Behaviour(
    id="H-v3-insert",
    title="INSERT into v3",
    source="H, verification 2 step 10",
    document="succeeds on Spark 3.5 with Iceberg 1.10.0, the row is visible",
    table=ORDERS_V3,
    steps=(insert(DESK_MAT), read(ORDERS_V3, DESK, CHAIR, DESK_MAT)),
    claims=(Claim("spark-3.2*", REFUSED, failure=UNSUPPORTED_VERSION), Claim("spark-3.5*", Outcome.WORKS)),
    expect=(Expect(Outcome.WORKS, "to be observed"),),
    tags=("v3", "write"),
)

UPDATE = Behaviour(
    id="H-v3-update",
    title="UPDATE of v3",
    source="H, verification 2 step 11",
    document="fails on Spark 3.5: “Structs do not match”; the document blames Spark 3.5 as such and expects Spark 4 to do it",
    table=ORDERS_V3,
    steps=(set_quantity(1, 2), read(ORDERS_V3, DESK_UPDATED, CHAIR), WRITTEN),
    variants=(
        Variant("default"),
        Variant("no-extensions", generations="spark-*", settings=NO_EXTENSIONS),
        Variant("merge-on-read", generations="spark-*", properties=MERGE_ON_READ),
        Variant("no-extensions-merge-on-read", generations="spark-*", settings=NO_EXTENSIONS, properties=MERGE_ON_READ),
    ),
    claims=(
        Claim("spark-3.5*", REFUSED, failure=STRUCTS_DO_NOT_MATCH),
        Claim("spark-4*", Outcome.WORKS),
    ),
    expect=(Expect(Outcome.WORKS, "to be observed"),),
    tags=("v3", "write"),
)

DELETE = Behaviour(
    id="H-v3-delete",
    title="DELETE from v3, and what it really wrote",
    source="H, verification 2 step 12",
    document="succeeds on Spark 3.5, by deletion vectors",
    table=ORDERS_V3,
    steps=(delete(2), read(ORDERS_V3, DESK), WRITTEN),
    variants=(
        Variant("whole-file", steps=(insert(DESK_MAT), delete(111), read(ORDERS_V3, DESK, CHAIR), WRITTEN, HISTORY)),
        Variant("one-of-two"),
        Variant("one-of-two-merge-on-read", properties=MERGE_ON_READ),
    ),
    claims=(Claim("spark-3.5*", Outcome.WORKS, facts={"written.deletes": ["deletion-vector"]}),),
    expect=(Expect(Outcome.WORKS, "to be observed"),),
    tags=("v3", "write"),
)

SPARK4 = Behaviour(
    id="H-v3-spark4",
    title="v3 read and written wholly: SELECT, INSERT, UPDATE, DELETE in a row",
    source="H, verification 2, conclusion on v3",
    document="a forecast, untested: Spark 4 reads and writes v3 wholly, UPDATE included",
    table=ORDERS_V3,
    steps=(
        read(ORDERS_V3),
        insert(DESK_MAT),
        set_quantity(1, 2),
        delete(2),
        read(ORDERS_V3, DESK_UPDATED, DESK_MAT, name="read-back"),
    ),
    claims=(Claim("spark-4*", Outcome.WORKS),),
    expect=(Expect(Outcome.WORKS, "to be observed"),),
    tags=("v3", "write"),
)
