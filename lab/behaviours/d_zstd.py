"""Document D on zstd as the default codec: what each generation really writes, told nothing or told something."""

from __future__ import annotations

from lab.model import Behaviour, Call, Claim, Control, DataFile, Expect, Outcome, Step, Table, Variant

CODEC = "write.parquet.compression-codec"
ROWS = ((1, "keyboard"), (2, "mouse"))
ADDED = ((3, "monitor"),)
TABLE = Table("CODEC", 2, (("I", "int"), ("S", "string")), ROWS, files=(DataFile(),))


def _on(op: str, **args: object) -> Call:
    return Call(op, {"namespace": "{namespace}", "table": "{table_name}", **args})


def _written(codec: str, variants: str, generations: str, reason: str) -> Expect:
    facts = {"compressed.codecs": [codec]}
    return Expect(Outcome.WORKS, reason, generations=generations, variants=variants, facts=facts)


ZSTD = Behaviour(
    id="D-zstd",
    title="The codec that each engine writes",
    source="D, differences from Delta, compression codec; apache/iceberg#8593",
    document="zstd is the default; old readers without zstd fail, and the property set to snappy serves them",
    table=TABLE,
    steps=(
        Step("insert", "INSERT INTO {table} VALUES {rows}", _on("append", rows="{rows}"), insert=ADDED),
        Step("read", "SELECT * FROM {table}", _on("scan"), truth=(*ROWS, *ADDED)),
        Step("compressed", look="compressed"),
    ),
    variants=(
        Variant("no-property", properties={CODEC: None}),
        Variant("catalogs-default"),
        Variant("snappy", properties={CODEC: "snappy"}),
        Variant(
            "snappy-by-session",
            generations="trino-476",
            properties={CODEC: "snappy"},
            settings={"lab.compression_codec": "SNAPPY"},
        ),
    ),
    claims=(
        Claim("*", Outcome.WORKS, variants="catalogs-default", facts={"compressed.codecs": ["ZSTD"]}),
        Claim("*", Outcome.WORKS, variants="snappy", facts={"compressed.codecs": ["SNAPPY"]}),
    ),
    expect=(
        _written(
            "GZIP",
            "no-property",
            "spark-*",
            "without the property Iceberg writes gzip still (TableProperties.PARQUET_COMPRESSION_DEFAULT): since 1.4 "
            "zstd is what a new table gets as a property, so that tables made before stay as they were",
        ),
        _written("SNAPPY", "no-property", "duckdb-*", "DuckDB's own default for Parquet is snappy"),
        _written("ZSTD", "no-property", "pyiceberg-*,trino-*", "the engine's own default is zstd"),
        _written(
            "ZSTD",
            "catalogs-default",
            "*",
            "Iceberg gives a new table the property zstd, here in the catalog, and every generation reads zstd, 3.2 "
            "with Iceberg 1.4 included: the old readers that the document warns of are older",
        ),
        Expect(
            Outcome.WORKS,
            "Trino 476 does not look at the property: it writes the codec of its own session property",
            generations="trino-476",
            variants="snappy",
            facts={"compressed.codecs": ["ZSTD"]},
            cause="io.trino.plugin.iceberg.IcebergFileWriterFactory.createParquetWriter",
            control=Control(generation="trino-483"),
        ),
        _written("SNAPPY", "snappy", "*", "the table's property is followed"),
        _written(
            "SNAPPY",
            "snappy-by-session",
            "trino-476",
            "the session property is followed; 483 has none, but the table's",
        ),
    ),
    tags=("encodings", "write"),
)
