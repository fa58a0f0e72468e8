"""Vended keys that end: between two statements, in the middle of a scan, and before a write has done its work.

Who goes on does so in one of three ways, which the gateway's record tells apart: it gets new keys where the catalog
said (`client.refresh-credentials-endpoint`), it loads the table again when the store refuses it, or with each statement
anyway. Keys live for ten seconds here; engines that think in minutes see keys that have always just ended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.behaviours.orders_steps import HISTORY, WRITER, read
from lab.model import Access, Behaviour, Call, Chain, Cure, DataFile, Expect, Outcome, Step, Trap, Variant, Where
from lab.stores.seaweedfs import SHORTEST_SECONDS as SECONDS
from lab.tables.orders import ORDERS_V2, order

LONG = "horizon"
SHORT = f"{LONG}~vended-seconds={SECONDS}"
UNTOLD = f"{SHORT}~vended-refresh=none"
UNCACHED = {"spark.sql.catalog.lab.rest-table-cache.max-entries": "0"}
NO_CACHE = Cure(Where.SPARK_CATALOG, "each load of a table is answered in whole", variants="not-told")
KEPT_BY_SPARK = {"spark.sql.catalog.lab.cache-enabled": "true"}  # Spark's own default, which the lab takes away

PACE = 5  # seconds that each of four files takes: the last is opened when the keys have ended
ROWS = tuple(order(n, f"part-{n}", n, "1.00", f"2026-07-0{n} 09:00", "lab") for n in range(1, 5))
IN_PIECES = replace(
    ORDERS_V2,
    rows=ROWS,
    files=tuple(DataFile(rows=(row,)) for row in ROWS),
    properties={"read.split.adaptive-size.enabled": "false"},  # all in one task of Spark's, one after the other
)
WRITTEN = tuple(order(n, "slow", 1, "1.00", "2026-07-02 10:00", WRITER) for n in (201, 202))
VALUES = "CAST(201 + id AS int), 'slow', 1, CAST(1.00 AS decimal(10, 2)), TIMESTAMP '2026-07-02 10:00:00', '{writer}'"

SLEEP = "java_method('java.lang.Thread', 'sleep', {millis}) = 'null'"
# Trino has nothing that waits, but a loop that takes longer; where the work is a join's other side, no file is opened
# before it is done.
ROUNDS = 1_500_000_000
LOOP = """WITH FUNCTION work(n bigint) RETURNS bigint BEGIN
DECLARE i bigint DEFAULT 0;
WHILE i < n DO SET i = i + 1; END WHILE;
RETURN i; END """


def _called(op: str, **args: Any) -> Call:
    return Call(op, {"namespace": "{namespace}", "table": "{table_name}", **args})


SCAN = Step(
    "scan",
    {
        "spark": f"SELECT * FROM {{table}} WHERE {SLEEP.format(millis=f'{PACE * 1000}L')}",
        "duckdb": f"SET threads = 1; SELECT * FROM {{table}} WHERE sleep_ms({PACE * 1000} + 0 * ORDER_ID) IS NULL",
        "trino": f"{LOOP} SELECT t.* FROM {{table}} AS t "
        f"CROSS JOIN (SELECT sum(work({ROUNDS} * id)) AS done FROM UNNEST(sequence(0, 1)) AS r(id)) WHERE done > 0",
    },
    _called("scan_later", after="plan", seconds=SECONDS + 1),
    truth=ROWS,
)
# The first row's file is written in time, the second's when the keys have ended.
INSERT = Step(
    "insert",
    {
        "spark": f"INSERT INTO {{table}} SELECT {VALUES} FROM range(0, 2, 1, 2) "
        f"WHERE {SLEEP.format(millis=f'IF(id = 0, 1000L, {(SECONDS + 2) * 1000}L)')}",
        "duckdb": f"INSERT INTO {{table}} SELECT {VALUES} FROM range(2) AS r(id) "
        f"WHERE sleep_ms({(SECONDS + 2) * 500} + 0 * id) IS NULL",
        "trino": f"INSERT INTO {{table}} {LOOP} SELECT {VALUES} FROM UNNEST(sequence(0, 1)) AS r(id) "
        f"WHERE work({ROUNDS} * id) >= 0",
    },
    _called("append_later", rows="{rows}", seconds=SECONDS + 1),
)
KEPT = (Step("later", call=_called("scan_later", after="load", seconds=SECONDS + 1), truth=ORDERS_V2.rows),)


def _doors(name: str = "", generations: str = "*", **more: Any) -> tuple[Variant, ...]:
    """Short keys with and without a word of where to get new ones, and the control: keys that live."""
    doors = {"told-where": SHORT, "not-told": UNTOLD, "long": LONG}
    return tuple(
        Variant(f"{name}{how}", generations, access=Access(door), full=True, **more) for how, door in doors.items()
    )


REFUSED = {
    "spark": Chain((("S3Exception", "Status Code: 403"),)),
    "trino": Chain((("S3Exception", "Status Code: 403"),)),
    "pyiceberg": Chain((("OSError", "AWS Error "),)),
}
KEYS_ENDED = Trap(
    "vended-keys-ended",
    "A long scan, a long write or a table that is kept outlives its vended keys",
    r"The access key ID you provided does not exist in our records|null \(Service: S3, Status Code: 403"
    r"|AWS Error (?:ACCESS_DENIED during HeadObject|INVALID_ACCESS_KEY_ID during CreateMultipartUpload)",
    {
        "spark-*": "org.apache.iceberg.aws.AwsClientProperties.credentialsProvider",
        "trino-*": "io.trino.plugin.iceberg.catalog.rest.IcebergRestCatalogFileSystemFactory.create",
        "pyiceberg-*": "pyiceberg.io.pyarrow.PyArrowFileIO._initialize_s3_fs",
    },
    remedy="let the catalog tell where to get new keys (client.refresh-credentials-endpoint) and take Iceberg 1.10 or "
    "newer; without that, have keys live longer than the longest statement, and load a table anew with each",
)
LIVE = Expect(Outcome.WORKS, "with keys that live the same statements work", variants="*long")
# The file of the task that had done its work stays, for its deletion is refused like the other's upload.
ORPHAN = {"history.operations": ["append"], "orphans.data": 1, "orphans.metadata": 0}
NOTHING_LEFT = {**ORPHAN, "orphans.data": 0}
OLD_SPARK = "Iceberg 1.4 has no provider of credentials that asks for new ones"
UNTOLD_WHY = "nobody said where to get new keys: Iceberg's S3FileIO goes on with those that it was made with"
PYICEBERG_WHY = (
    "a table keeps the FileIO that it was loaded with; PyIceberg can get new keys (Catalog.load_credentials), but a "
    "program has to ask"
)
OLD_TRINO = "Trino 476 hands each split the keys with which the table was loaded, and asks for no others"
UNTOLD_TRINO = "nobody said where to get new keys: splits and writers go on with those of the table's load"
RELOADS = "DuckDB loads the table again when the store answers 403, and asks for the file again with the keys of now"


def _ended(generations: str, variants: str, why: str, **more: Any) -> Expect:
    """The store's refusal, as engines of this kind tell it."""
    failure = REFUSED[generations.partition("-")[0]]
    return Expect(Outcome.ERROR, why, generations, variants, failure=failure, trap=KEYS_ENDED, **more)


BETWEEN = Behaviour(
    id="H-vending-expiry",
    title="Vended keys end between two statements of a session",
    source="H, connection settings",
    document=None,
    table=ORDERS_V2,
    steps=(read(ORDERS_V2), replace(read(ORDERS_V2, name="later"), wait=SECONDS + 1)),
    variants=(
        *_doors(),
        Variant("not-told-uncached", "spark-4.1*1.12*", UNCACHED, access=Access(UNTOLD), full=True, cure=NO_CACHE),
        *_doors("kept-", "spark-*", settings=KEPT_BY_SPARK),
        *_doors("kept-", "pyiceberg-*", steps=KEPT),
    ),
    expect=(
        LIVE,
        _ended("spark-3.2*", "kept-told-where", OLD_SPARK, at="later", facts={"later.refreshed": False}),
        Expect(
            Outcome.WORKS,
            "a table that Spark keeps gets itself new keys where it was told (VendedCredentialsProvider)",
            generations="spark-*",
            variants="kept-told-where",
            facts={"later.keys": 0, "later.refreshed": True},
        ),
        _ended("spark-*", "kept-not-told", UNTOLD_WHY, at="later", facts={"later.keys": 0}),
        _ended("pyiceberg-*", "kept-*", PYICEBERG_WHY, at="later", facts={"later.keys": 1, "later.refreshed": False}),
        _ended(
            "spark-4.1*1.12*",
            "not-told",
            "the table is loaded again, with If-None-Match; at 304 Iceberg 1.12 takes the one that it keeps for five "
            "minutes after each load, and that one's keys (RESTSessionCatalog.loadTable, RESTTableCache)",
            at="later",
            facts={"later.keys": 0},
        ),
        Expect(
            Outcome.WORKS,
            "loaded anew for each statement, as the lab has it; Spark's own default is to keep a table that is used",
        ),
    ),
    tags=("v2", "read", "access"),
)
IN_A_SCAN = Behaviour(
    id="H-vending-expiry-scan",
    title="Vended keys end in the middle of a scan",
    source="H, connection settings",
    document=None,
    table=IN_PIECES,
    steps=(SCAN,),
    variants=_doors(),
    expect=(
        LIVE,
        _ended("spark-3.2*", "told-where", OLD_SPARK, facts={"scan.refreshed": False}),
        _ended("spark-*", "not-told", UNTOLD_WHY),
        _ended("trino-476", "told-where", OLD_TRINO, facts={"scan.refreshed": False}),
        _ended("trino-*", "not-told", UNTOLD_TRINO),
        _ended("pyiceberg-*", "*", PYICEBERG_WHY, facts={"scan.refreshed": False}),
        Expect(Outcome.WORKS, RELOADS, generations="duckdb-*", facts={"scan.keys": 2, "scan.refreshed": False}),
        Expect(
            Outcome.WORKS,
            "the files still to come are opened with new keys, which the catalog gives where it said",
            facts={"scan.refreshed": True},
        ),
    ),
    tags=("v2", "read", "access"),
)
IN_A_WRITE = Behaviour(
    id="H-vending-expiry-write",
    title="Vended keys end before an INSERT has written all of its files",
    source="H, connection settings",
    document=None,
    table=ORDERS_V2,
    steps=(
        replace(INSERT, insert=WRITTEN),
        read(ORDERS_V2, *ORDERS_V2.rows, *WRITTEN),
        replace(HISTORY, always=True),
        Step("orphans", look="orphans", always=True),
    ),
    variants=_doors(),
    expect=(
        LIVE,
        _ended("spark-3.2*", "told-where", OLD_SPARK, at="insert", facts=ORPHAN),
        _ended("spark-*", "not-told", UNTOLD_WHY, at="insert", facts=ORPHAN),
        _ended("trino-476", "told-where", OLD_TRINO, at="insert", facts=NOTHING_LEFT),
        _ended("trino-*", "not-told", UNTOLD_TRINO, at="insert", facts=NOTHING_LEFT),
        _ended("pyiceberg-*", "*", PYICEBERG_WHY, at="insert", facts=NOTHING_LEFT),
        Expect(Outcome.WORKS, RELOADS, generations="duckdb-*", facts={"insert.keys": 2, "insert.refreshed": False}),
        Expect(
            Outcome.WORKS,
            "the files still to come are written with new keys, which the catalog gives where it said",
            facts={"insert.refreshed": True},
        ),
    ),
    tags=("v2", "write", "access"),
)
