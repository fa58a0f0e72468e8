"""Document H on Spark Connect: what can still be set after connecting, and what a client learns from afar."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.orders_steps import SSD, insert, read
from lab.engines.spark_connect import LOCAL, REMOTE
from lab.model import Behaviour, Chain, Claim, Control, Expect, Outcome, Step, Trap, Variant
from lab.tables.orders import ORDERS_V2

CONNECT = "spark-4*"  # exists since 3.4; the server of 3.5, org.apache.spark:spark-connect_2.12, is not served here
OVER_CONNECT = {REMOTE: LOCAL}
STATIC = "spark.sql.extensions"
CATALOG = "spark.sql.catalog.later"
LIKE_LAB = "${spark.sql.catalog.lab."  # Spark fills in its own settings: no address needs to be written here

# What document H's client set after it had connected: all that a catalog is.
DEFINED = tuple(
    Step(f"set-{place}", f"SET `{CATALOG}{key}`={value}")
    for place, (key, value) in enumerate(
        (
            ("", "org.apache.iceberg.spark.SparkCatalog"),
            (".type", "rest"),
            (".uri", f"{LIKE_LAB}uri}}"),
            (".warehouse", f"{LIKE_LAB}warehouse}}"),
            (".client.region", f"{LIKE_LAB}client.region}}"),
            (".header.X-Iceberg-Access-Delegation", "vended-credentials"),
            (".io-impl", "org.apache.iceberg.aws.s3.S3FileIO"),
        )
    )
)
READ_LATER = replace(read(ORDERS_V2), sql="SELECT * FROM later.{namespace}.{table_name}")
SET_STATIC = Step("set", f"SET {STATIC}=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
VERSIONS = Step(
    "versions",
    "SELECT concat('spark-', split(version(), ' ')[0], '+iceberg-', lab.system.iceberg_version())",
    truth=(("{reader}",),),
)
# What a client asks who takes iceberg_version() for a function of Spark's.
UNQUALIFIED = Step("versions", "SELECT concat('spark-', split(version(), ' ')[0], '+iceberg-', iceberg_version())")
BAD_CODEC = Step("alter", "ALTER TABLE {table} SET TBLPROPERTIES ('write.parquet.compression-codec'='nonsense')")

STATIC_SETTING = Trap(
    "static-setting",
    "A static setting can't be changed in a session that has started",
    r'Cannot modify the value of (a static config|the (static )?Spark config: "spark\.sql\.extensions")',
    {
        "spark-3*": "org.apache.spark.sql.RuntimeConfig.requireNonStaticConf",
        "spark-4*": "org.apache.spark.sql.classic.RuntimeConfig.requireNonStaticConf",
    },
    remedy="set it where the server starts, in spark-defaults.conf or by --conf; a client of a server that is started "
    "by somebody else can only ask for it",
)
UNKNOWN_CODEC = Trap(
    "unknown-codec",
    "A table property names a codec that Iceberg doesn't know",
    r"Unsupported compression codec: ",
    "org.apache.iceberg.parquet.Parquet$WriteBuilder$Context.toCodec",
    remedy="ALTER TABLE db.t SET TBLPROPERTIES ('write.parquet.compression-codec'='zstd')",
)
NO_FUNCTION = Trap(
    "iceberg-function-unqualified",
    "A function of Iceberg's is not found without its catalog",
    r"Undefined function: 'iceberg_|\[UNRESOLVED_ROUTINE\] Cannot resolve (?:function|routine) `iceberg_",
    "org.apache.iceberg.spark.functions.SparkFunctions.load",
    remedy="name the catalog and its namespace system, over Spark Connect too: SELECT CATALOG.system.iceberg_version()",
)
_STATIC = Expect(
    Outcome.ERROR,
    "Spark reads a static setting once, when the first session starts. So a client whose server was started without "
    "Iceberg's extensions can't have them, nor cure H-v3-update/no-extensions on Spark 3.5; all else that a catalog "
    "needs is set at runtime",
    variants="static",
    trap=STATIC_SETTING,
)
_STATIC_WORDS = {  # the message by generation, and what the client of Spark Connect makes of Spark's exception
    "spark-3*": "Cannot modify the value of a static config: spark.sql.extensions",
    "spark-4.0*": '[CANNOT_MODIFY_CONFIG] Cannot modify the value of the Spark config: "spark.sql.extensions"',
    "spark-4.1*": "[CANNOT_MODIFY_STATIC_CONFIG] Cannot modify the value of the static Spark config: "
    '"spark.sql.extensions"',
}
_BAD_CODEC = "Unsupported compression codec: nonsense"


def _refused(variant: str, cls: str) -> tuple[Expect, ...]:
    return tuple(
        replace(_STATIC, generations=generations, variants=variant, failure=Chain(((cls, words),), whole=True))
        for generations, words in _STATIC_WORDS.items()
    )


CONNECT_CONF = Behaviour(
    id="H-connect-conf",
    title="What can be set, and what be learnt, over Spark Connect",
    source="H, verification 2, Spark Connect",
    document="the catalog is defined after connecting, by runtime settings; the client can't ask for Iceberg's version",
    table=ORDERS_V2,
    steps=(*DEFINED, READ_LATER),
    variants=(
        Variant("catalog"),
        Variant("catalog-connect", generations=CONNECT, settings=OVER_CONNECT),
        Variant("static", steps=(SET_STATIC,)),
        Variant("static-connect", generations=CONNECT, settings=OVER_CONNECT, steps=(SET_STATIC,)),
        Variant("versions", steps=(VERSIONS,)),
        Variant("versions-connect", generations=CONNECT, settings=OVER_CONNECT, steps=(VERSIONS,)),
        Variant("versions-unqualified", steps=(UNQUALIFIED,)),
        Variant("versions-unqualified-connect", generations=CONNECT, settings=OVER_CONNECT, steps=(UNQUALIFIED,)),
        Variant("causes", steps=(BAD_CODEC, insert(SSD))),
        Variant("causes-connect", generations=CONNECT, settings=OVER_CONNECT, steps=(BAD_CODEC, insert(SSD))),
    ),
    claims=(
        Claim(CONNECT, Outcome.WORKS, variants="catalog-connect"),
        Claim(CONNECT, Outcome.ERROR, variants="versions-connect,versions-unqualified-connect"),
    ),
    expect=(
        Expect(
            Outcome.WORKS,
            "all that defines a catalog are runtime settings: Spark makes it when it is first named",
            variants="catalog*",
        ),
        *_refused("static", "org.apache.spark.sql.AnalysisException"),
        *_refused("static-connect", "pyspark.errors.exceptions.connect.AnalysisException"),
        *(
            Expect(
                Outcome.ERROR,
                "the session catalog, which an unqualified name is looked up in, is Spark's own and has no function "
                "of Iceberg's",
                generations=generations,
                variants=variants,
                failure=Chain(((cls, words),)),
                trap=NO_FUNCTION,
            )
            for variants, cls in {
                "versions-unqualified": "org.apache.spark.sql.AnalysisException",
                "versions-unqualified-connect": "pyspark.errors.exceptions.connect.AnalysisException",
            }.items()
            for generations, words in {
                "spark-3.2*": "Undefined function: 'iceberg_version'",
                "spark-3*": "[UNRESOLVED_ROUTINE] Cannot resolve function `iceberg_version`",
                "spark-4*": "[UNRESOLVED_ROUTINE] Cannot resolve routine `iceberg_version`",
            }.items()
        ),
        Expect(
            Outcome.WORKS,
            "the client has no JVM to ask, but SQL has: version() is Spark's, and iceberg_version() a function of "
            "every Iceberg catalog (org.apache.iceberg.spark.functions.IcebergVersionFunction)",
            variants="versions*",
            cause="org.apache.iceberg.spark.functions.IcebergVersionFunction in the namespace system of every Iceberg "
            "catalog: without the catalog's name there is no such function",
            control=Control(variant="versions-unqualified-connect"),
        ),
        Expect(
            Outcome.ERROR,
            "Iceberg looks the codec up when a task opens its file: the ALTER is taken, the INSERT fails. In the JVM "
            "the failure is a chain of exceptions",
            variants="causes",
            failure=Chain(
                (("org.apache.spark.SparkException", "Job aborted"), ("IllegalArgumentException", _BAD_CODEC))
            ),
            trap=UNKNOWN_CODEC,
        ),
        Expect(
            Outcome.ERROR,
            "over Connect the same failure is one Python exception without a cause; the chain is text in its message, "
            "under “JVM stacktrace:”",
            variants="causes-connect",
            failure=Chain(
                (
                    (
                        "pyspark.errors.exceptions.connect.SparkException",
                        f"Caused by: java.lang.IllegalArgumentException: {_BAD_CODEC}",
                    ),
                ),
                whole=True,
            ),
            trap=UNKNOWN_CODEC,
        ),
    ),
    tags=("connect",),
    kinds=("spark",),
)
