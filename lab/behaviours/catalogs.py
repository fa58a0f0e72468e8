"""What is expected otherwise because of the catalog, whichever behaviour shows it: of each catalog in one place.

An entry holds before all that the behaviour itself expects. None of these is a vendor's rule, nor the engine's doing:
the catalog itself refuses, or answers otherwise, and the same cell on `reference` is the control that shows it gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lab.model import Behaviour, Chain, Control, Expect, Outcome, matches_globs

Difference = tuple[str, Expect]  # behaviours by comma-separated globs, and what is expected of them there


def _itself(
    catalog: str, behaviours: str, reason: str, cause: str, outcome: Outcome = Outcome.ERROR, **more: Any
) -> Difference:
    expected = Expect(
        outcome,
        f"the catalog itself ({catalog}), no rule: {reason}",
        catalogs=catalog,
        cause=cause,
        control=Control(catalog="reference"),
        **more,
    )
    return behaviours, expected


def _refused(
    catalog: str, behaviours: str, reason: str, cause: str, chains: Mapping[str, Chain], **more: Any
) -> Iterator[Difference]:
    """By whom it is asked → how that engine tells it."""
    for generations, chain in chains.items():
        yield _itself(catalog, behaviours, reason, cause, generations=generations, failure=chain, **more)


_SEAWEEDFS = "seaweedfs"
_LAYOUT = "weed/s3api/s3tables/iceberg_layout.go, IcebergLayoutValidator.validateDataFile"
_NAMES = "weed/s3api/s3tables/utils.go, validateNamespacePart and validateTableName"
_PUFFIN = "a table bucket takes no *.puffin, so no deletion vector can be written: the PUT is answered with 403"
_NAME = "namespaces and tables have names in lower case, and this one is asked for in another"
_SPARK_V3 = "spark-3.5*,spark-4*"  # 3.2 loads no table of v3
_DENIED = {
    "duckdb-*": Chain((("HTTPException", ".puffin: Forbidden (HTTP code 403)"),)),
    _SPARK_V3: Chain((("S3Exception", "Forbidden (Service: S3, Status Code: 403"),)),
    "trino-483": Chain((("TrinoException", "Failed to write deletion vectors puffin file"),)),
}
_SAYS = "all filers failed, last error: "  # and which rule for names it is
_BAD_NAME = {
    "duckdb-*": Chain((("HTTPException", f'BadRequest_400 with message "{_SAYS}'),)),
    "pyiceberg-*": Chain((("BadRequestError", f"BadRequestException: {_SAYS}"),)),
    "spark-*": Chain((("BadRequestException", f"Malformed request: {_SAYS}"),)),
}
# DuckDB makes no namespace whose name is refused, and tells nothing of why.
_BAD_NAMESPACE = {**_BAD_NAME, "duckdb-*": Chain((("HTTPException", "Bad Request request to endpoint"),))}
_UPPER = (
    "upper,upper-quoted,mixed,mixed-quoted,upper-as-lower,mixed-as-lower,column-as-lower,column-in-any-case,two-columns*,"
    "upper-without-matching,mixed-without-matching,with-matching"
)
_BY_VECTORS = "merge-on-read,no-extensions-merge-on-read,one-of-two-merge-on-read"  # on Spark, which else copies


def _of(chains: Mapping[str, Chain], *generations: str) -> Mapping[str, Chain]:
    return {globs: chain for globs, chain in chains.items() if globs in generations}


DIFFERENCES: tuple[Difference, ...] = (
    *_refused(
        _SEAWEEDFS,
        "H-v3-update,H-v3-delete,H-v3-spark4,T-lineage-dml",
        _PUFFIN,
        _LAYOUT,
        _of(_DENIED, "duckdb-*", "trino-483"),
    ),
    *_refused(
        _SEAWEEDFS,
        "H-v3-update,H-v3-delete,T-lineage-dml,T-lineage-maintenance",
        _PUFFIN,
        _LAYOUT,
        _of(_DENIED, _SPARK_V3),
        variants=_BY_VECTORS,
    ),
    *_refused(_SEAWEEDFS, "T-lineage-upgrade", _PUFFIN, _LAYOUT, {"spark-3.5*": _DENIED[_SPARK_V3]}),
    *_refused(
        _SEAWEEDFS,
        "D-transforms,W-ddl-dml,W-no-ctas,W-no-location",
        _NAME,
        _NAMES,
        _of(_BAD_NAME, "duckdb-*", "spark-*"),
        at="create,ctas",
    ),
    *_refused(_SEAWEEDFS, "W-future-grants", _NAME, _NAMES, _BAD_NAME, at="create"),
    *_refused(
        _SEAWEEDFS, "W-no-register", _NAME, _NAMES, _of(_BAD_NAME, "pyiceberg-*", "spark-*"), variants="rule-off"
    ),
    *_refused(_SEAWEEDFS, "D-transforms", _NAME, _NAMES, _of(_BAD_NAME, "pyiceberg-*"), variants="rule-off"),
    _itself(
        _SEAWEEDFS,
        "W-no-location",
        "a table bucket is a catalog of its own, and its tables lie in it",
        "weed/s3api/iceberg/handlers_table.go, handleCreateTable",
        generations="pyiceberg-*",
        variants="rule-off",
        failure=Chain((("BadRequestError", "table location must be within bucket lab-tables"),)),
    ),
    *_refused(
        _SEAWEEDFS,
        "W-nested-namespaces",
        "a name has letters, digits, _ and - alone, no dot",
        _NAMES,
        _BAD_NAME,
        variants="dotted-*",
    ),
    *(
        _itself(_SEAWEEDFS, "H-identifier-case", _NAME, _NAMES, variants=_UPPER, writers=who, failure=chain)
        for who, chain in _BAD_NAMESPACE.items()
    ),
    *(
        _itself(_SEAWEEDFS, "H-identifier-case", _NAME, _NAMES, variants="table-as-lower*", writers=who, failure=chain)
        for who, chain in _of(_BAD_NAME, "duckdb-*").items()
    ),
    *_refused(
        _SEAWEEDFS,
        "H-identifier-case",
        _NAME,
        _NAMES,
        _of(_BAD_NAME, "duckdb-*", "pyiceberg-*"),
        variants="lower-as-upper",
    ),
    *(
        _itself(
            _SEAWEEDFS,
            "D-zstd",
            f"it gives a new table no write.parquet.compression-codec, and {whose} default is {codec.lower()}",
            "weed/s3api/iceberg/handlers_table.go, newTableMetadata",
            Outcome.WORKS,
            generations=generations,
            variants="catalogs-default",
            facts={"compressed.codecs": [codec]},
        )
        for generations, whose, codec in (
            ("duckdb-*", "DuckDB's own", "SNAPPY"),
            ("spark-*", "Iceberg's for such a table", "GZIP"),
        )
    ),
    _itself(
        _SEAWEEDFS,
        "T-codec",
        "it gives a new table no write.parquet.compression-codec, as Iceberg's own catalogs do",
        "weed/s3api/iceberg/handlers_table.go, newTableMetadata",
        Outcome.WORKS,
        generations=f"duckdb-*,pyiceberg-*,{_SPARK_V3}",
        variants="default,rule-off",  # by the door's rule the table has one all the same
        facts={"schema.codec": None},
    ),
    _itself(
        _SEAWEEDFS,
        "T-geo-types",
        "it tells a geometry's reference system in lower case, OGC:CRS84 as ogc:crs84, and PyIceberg knows no such one",
        "github.com/apache/iceberg-go 0.6, GeometryType",
        generations="pyiceberg-*",
        variants="of-duckdb",
        failure=Chain((("ValidationError", "Could not parse geometry(ogc:crs84) into a GeometryType"),)),
    ),
    _itself(
        _SEAWEEDFS,
        "T-lineage-upgrade",
        "DuckDB upgrades a table by its property format-version, which Iceberg's Java library takes and Go's does not",
        "github.com/apache/iceberg-go 0.6, MetadataBuilder.SetProperties",
        generations="duckdb-*",
        failure=Chain((("TransactionException", "can't set reserved property format-version"),)),
    ),
    _itself(
        _SEAWEEDFS,
        "T-void-required",
        "refused as by Iceberg's Java library, in iceberg-go's words",
        "github.com/apache/iceberg-go 0.6",
        generations="pyiceberg-*",
        variants="by-catalog",
        failure=Chain((("ServerError", "unknown type field 'reserved' (id: 2) must be optional"),)),
    ),
    _itself(
        "polaris",
        "T-void-required",
        "refused as by Iceberg's Java library, without a word of why",
        "org.apache.polaris.service, WebApplicationException",
        generations="pyiceberg-*",
        variants="by-catalog",
        failure=Chain((("BadRequestError", "WebApplicationException: HTTP 400 Bad Request"),)),
    ),
)


def expecting(behaviour: Behaviour) -> Behaviour:
    """The behaviour with what is expected of it otherwise on particular catalogs."""
    own = tuple(expected for globs, expected in DIFFERENCES if matches_globs(globs, behaviour.id))
    return replace(behaviour, expect=(*own, *behaviour.expect)) if own else behaviour
