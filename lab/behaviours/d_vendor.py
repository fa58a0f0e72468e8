"""What document D claims of Databricks itself: rows of claims that nobody but the vendor's own service can show."""

from __future__ import annotations

from lab.model import Behaviour, Table, Variant
from lab.tables.orders import ORDERS_V2, ORDERS_V3


def _vendors(id: str, title: str, source: str, document: str, missing: str, table: Table = ORDERS_V2) -> Behaviour:
    return Behaviour(
        id=id,
        title=title,
        source=source,
        document=document,
        table=table,
        steps=(),
        variants=(Variant("vendor", missing=missing),),
        expect=(),
        tags=(f"v{table.format_version}", "access"),
        kinds=(),
    )


DV_TRACKING = _vendors(
    "D-dv-tracking",
    "CLUSTER BY on v2, and deletion vectors and row tracking",
    "D, liquid clustering",
    "v2 with CLUSTER BY: deletion vectors and row tracking must be switched off by hand; PARTITIONED BY, and v3, "
    "handle it",
    "a Databricks workspace: CLUSTER BY and both switches are SQL of its runtime, and no open-source engine has them "
    "for Iceberg",
)
UNIFORM_PROPERTIES = _vendors(
    "D-uniform-properties",
    "The three properties that switch UniForm on",
    "D, UniForm",
    "UniForm is switched on by three table properties: column mapping by name, IcebergCompatV2, universal format",
    "a Databricks workspace, or Spark with delta-spark, delta-iceberg and the Hive metastore that open-source UniForm "
    "writes to: none of the three is an engine of the lab",
)
RUNTIME_V3 = _vendors(
    "D-runtime-v3",
    "The first Databricks Runtime with v3",
    "D, v3 tables, requirements",
    "v3 from Databricks Runtime 18 on",
    "a Databricks workspace with clusters of Runtime 17 and of 18: a runtime is no package",
    ORDERS_V3,
)
NO_SHALLOW_CLONE = _vendors(
    "D-no-shallow-clone",
    "SHALLOW CLONE of a managed Iceberg table",
    "D, limitations of managed Iceberg",
    "no SHALLOW CLONE; deep clone or CREATE TABLE AS SELECT instead",
    "a Databricks workspace: CLONE is SQL of its runtime, and Iceberg has no statement like it (nearest: snapshot, "
    "which Spark's procedure takes of a Hive table)",
)
