"""Document T on geometry and geography: types, values, functions and filters, and readers without them."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.known import SPARK_3_2_NO_V3
from lab.behaviours.t_known import (
    DUCKDB_GEOGRAPHY,
    GEOSPATIAL,
    NO_ICEBERG_TYPE,
    PYICEBERG_GEOGRAPHY,
    PYICEBERG_GEOMETRY,
    TRINO_GEO,
    create,
    gap,
    on,
    parser,
    select,
    spark_unreadable,
    trino_476,
    trino_unreadable,
)
from lab.model import Behaviour, Chain, Claim, Control, Cure, Expect, Outcome, Step, Trap, Variant, Where
from lab.tables.types import AREA, POINTS, VEHICLE_TELEMETRY

ROWS = VEHICLE_TELEMETRY.rows
REFUSED = (Outcome.ERROR, Outcome.NOT_SUPPORTED)
NEWEST = "spark-4.1.1+iceberg-1.12.0"
TYPES = {**dict(VEHICLE_TELEMETRY.columns), "service_area": "geography(OGC:CRS84, spherical)"}
CREATE = create(
    {
        "spark": "event_id string, vehicle_id string, position geometry(4326), service_area geography(4326)",
        "trino": "event_id varchar, vehicle_id varchar, position geometry, service_area sphericalgeography",
        "duckdb": "event_id varchar, vehicle_id varchar, position geometry, service_area geography",
    },
    VEHICLE_TELEMETRY.columns,
)
CREATE_GEOMETRY = create(
    {
        "spark": "event_id string, vehicle_id string, position geometry(4326)",
        "trino": "event_id varchar, vehicle_id varchar, position geometry",
        "duckdb": "event_id varchar, vehicle_id varchar, position geometry",
    },
    VEHICLE_TELEMETRY.columns[:3],
)
DESCRIBE = Step(
    "describe",
    {"spark": "DESCRIBE TABLE {table}"},
    truth=(
        ("event_id", "string", None),
        ("vehicle_id", "string", None),
        ("position", "geometry(4326)", None),
        ("service_area", "geography(4326)", None),
    ),
    optional=True,
)
SCHEMA = Step("schema", look="schema")


def _blob(text: str) -> str:
    return "".join(f"\\x{text[place : place + 2]}" for place in range(0, len(text), 2))


def _insert(position: str, area: str = "") -> str:
    """Spark's INSERT of the three events, each geometry made by these functions of its WKB."""
    rows = []
    for (event, vehicle, *_), point, where in zip(ROWS, POINTS, (AREA, AREA, None), strict=True):
        values = [f"'{event}', '{vehicle}'", position.format(point)]
        if area:
            values.append(area.format(where) if where else "NULL")
        rows.append(f"({', '.join(values)})")
    return f"INSERT INTO {{table}} VALUES {', '.join(rows)}"


POINT = "ST_SetSrid(ST_GeomFromWKB(X'{}'), 4326)"
INSERT = Step("insert", {"*": _insert(POINT, "ST_SetSrid(ST_GeogFromWKB(X'{}'), 4326)")})
INSERT_GEOMETRY = Step(
    "insert",
    {
        "spark": _insert(POINT),
        "duckdb": "INSERT INTO {table} VALUES "
        + ", ".join(
            f"('{event}', '{vehicle}', ST_GeomFromWKB('{_blob(point)}'::BLOB))"
            for (event, vehicle, *_), point in zip(ROWS, POINTS, strict=True)
        ),
    },
    on("append", rows=[{"event_id": "EVT-001"}]),
)
INSERT_WKT = Step(
    "insert",
    "INSERT INTO {table} VALUES ('EVT-001', 'VAN-01', ST_SetSrid(ST_GeomFromWKT('POINT (139.7671 35.6812)'), 4326), "
    "ST_SetSrid(ST_GeogFromWKB(X'" + AREA + "'), 4326))",
)
BACK = Step(
    "back",
    {
        "spark": "SELECT event_id, ST_Srid(position), ST_Srid(service_area), hex(ST_AsBinary(position)), "
        "hex(ST_AsBinary(service_area)) FROM {table}"
    },
    truth=tuple(
        (row[0], 4326, 4326 if area else None, point, area)
        for row, point, area in zip(ROWS, POINTS, (AREA, AREA, None), strict=True)
    ),
)

NO_ROUTINE = Trap(
    "spark-no-geospatial-function",
    "A vendor's geospatial function that open-source Spark has not",
    r"Cannot resolve (?:routine|function) `?(?!iceberg_)(\w+)`? on search path|Undefined function: '(?!iceberg_)(\w+)'",
    {
        "spark-3.2*": "org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase.lookupFunction",
        "spark-*": "org.apache.spark.sql.errors.QueryCompilationErrors$.unresolvedRoutineError",
    },
    remedy="Spark 4.1 makes geometries of WKB alone (st_geomfromwkb, st_geogfromwkb), and tells st_srid, st_asbinary: "
    "compute the rest elsewhere, or add a library such as Apache Sedona",
)
DUCKDB_NO_GEOGRAPHY = Trap(
    "duckdb-geography-type",
    "DuckDB has no type geography",
    r"Type with name geography does not exist",
    "duckdb::Catalog::CreateMissingEntryException",
    remedy="use geometry",
)
TRINO_NO_GEOMETRY = Trap(
    "trino-geometry-column",
    "Trino without its geospatial plugin makes no geometry column",
    r"Unknown type '(?:geometry|sphericalgeography)' for column",
    "io.trino.execution.CreateTableTask.internalExecute",
    remedy="install the geospatial plugin beside the iceberg one",
)
PYICEBERG_WRITE = Trap(
    "pyiceberg-geometry-write",
    "PyIceberg can't write a geometry",
    r"Mismatch in fields:(?s:.*)geometry",
    "pyiceberg.io.pyarrow._check_pyarrow_schema_compatible",
    remedy="write with DuckDB or Spark 4.1 with Iceberg 1.12",
)
SWITCHED_OFF = Trap(
    "spark-geospatial-off",
    "Spark has geometry and geography, and they are switched off",
    r"Geospatial feature is disabled",
    "org.apache.spark.sql.catalyst.util.TypeUtils$.failUnsupportedDataType",
)


def _can_not(variants: str = "*", turns: str | None = None) -> tuple[Expect, ...]:
    """Who makes no such column; `turns` is the variant in which what can't be said of 1.11 holds of 1.12."""
    return (
        *parser("spark-3.5*,spark-4.0*", "GEOMETRY(4326)", variants=variants),
        gap(
            "spark-4.1*1.11*",
            "Spark 4.1 has the type; Iceberg has none for it before 1.12",
            NO_ICEBERG_TYPE,
            ("java.lang.UnsupportedOperationException", "Not a supported type: geometry(4326)"),
            at="create",
            variants=variants,
            cause="org.apache.iceberg.spark.SparkTypeToType.atomic: Iceberg maps the type since 1.12, the vendor's "
            "1.11 already",
            control=Control(turns, NEWEST),
        ),
        trino_476(variants=variants),
        gap(
            "trino-483",
            "its geospatial plugin is not part of the server as assembled here",
            TRINO_NO_GEOMETRY,
            ("TYPE_NOT_FOUND", "Unknown type 'geometry' for column 'position'"),
            at="create",
            variants=variants,
        ),
    )


NO_GEOGRAPHY = gap(
    "duckdb-*",
    "DuckDB has geometry and no geography",
    DUCKDB_NO_GEOGRAPHY,
    ("_duckdb.CatalogException", "Type with name geography does not exist"),
    at="create",
)
GEO_TYPES = Behaviour(
    id="T-geo-types",
    title="Columns of geometry and geography, and readers without them",
    source="T, vehicle_telemetry: CREATE TABLE, DESCRIBE and the metadata",
    document="geometry(4326), geography(4326) make v3 columns; DESCRIBE shows 4326, the metadata has bare geometry and "
    "geography: the coordinate system is gone",
    table=VEHICLE_TELEMETRY,
    steps=(CREATE, DESCRIBE, SCHEMA),
    variants=(
        Variant("own", generations="spark-*", settings=GEOSPATIAL),
        Variant("own", generations="duckdb-*,trino-*,pyiceberg-*"),
        Variant(
            "of-spark",
            settings=GEOSPATIAL,
            second_settings={},
            steps=(
                CREATE_GEOMETRY,
                INSERT_GEOMETRY,
                select("others", ("event_id", "vehicle_id"), tuple(row[:2] for row in ROWS)),
                select("all", ("event_id", "vehicle_id", "position"), tuple(row[:3] for row in ROWS)),
            ),
            pairs=((NEWEST, "*"),),
        ),
        Variant(
            "of-duckdb",
            steps=(
                CREATE_GEOMETRY,
                INSERT_GEOMETRY,
                select("others", ("event_id", "vehicle_id"), tuple(row[:2] for row in ROWS)),
                select("all", ("event_id", "vehicle_id", "position"), tuple(row[:3] for row in ROWS)),
            ),
            pairs=(("duckdb-*", "*"),),
        ),
        Variant(
            "geography-of-spark",
            settings=GEOSPATIAL,
            second_settings={},
            steps=(
                CREATE,
                INSERT,
                select("others", ("event_id", "vehicle_id"), tuple(row[:2] for row in ROWS)),
                select("all", tuple(name for name, _ in VEHICLE_TELEMETRY.columns), ROWS),
            ),
            pairs=((NEWEST, "*"),),
        ),
    ),
    claims=(Claim("spark-4.1*", Outcome.WORKS, variants="own"),),
    expect=(
        *_can_not("own"),
        replace(NO_GEOGRAPHY, variants="own"),
        Expect(
            Outcome.WORKS,
            "the metadata has bare geometry as documented, for 4326 is what the specification takes for granted "
            "(OGC:CRS84); geography is written out with its algorithm",
            generations="spark-4.1*",
            variants="own",
            facts={"schema.types": TYPES},
        ),
        Expect(
            Outcome.WORKS,
            "PyIceberg makes the table, though it can't fill it",
            generations="pyiceberg-*",
            variants="own",
            facts={"schema.types": dict(VEHICLE_TELEMETRY.columns)},
        ),
        SPARK_3_2_NO_V3,
        spark_unreadable(
            "spark-3.5*,spark-4.0*,spark-4.1*1.11*",
            "geometry",
            "Iceberg maps the type to Spark's since 1.12, on Spark 4.1 alone",
        ),
        trino_unreadable("trino-476", "geometry"),
        *(
            gap(
                "trino-483",
                "its geospatial plugin, which has the type, is not part of the server as assembled here",
                TRINO_GEO,
                ("TYPE_NOT_FOUND", f"Unknown type: {kind}"),
                at="others",
                variants=variants,
            )
            for variants, kind in (("of-*", "Geometry"), ("geography-*", ""))
        ),
        gap(
            "pyiceberg-*",
            "PyIceberg takes the column for binary, as it is stored, and then promotes it to no geometry",
            PYICEBERG_GEOMETRY,
            ("pyiceberg.exceptions.ResolveError", "Cannot promote an binary to geometry"),
            at="all",
            variants="of-*",
        ),
        gap(
            "pyiceberg-*",
            "PyIceberg does not parse the type's name with the algorithm that Iceberg's Java library writes out",
            PYICEBERG_GEOGRAPHY,
            ("pyiceberg.exceptions.ValidationError", "Could not parse geography(OGC:CRS84, spherical)"),
            at="others",
            variants="geography-*",
        ),
        gap(
            "duckdb-*",
            "DuckDB knows the type by name only, and so refuses the whole table",
            DUCKDB_GEOGRAPHY,
            ("_duckdb.NotImplementedException", "Geography support"),
            at="others",
            variants="geography-*",
        ),
        Expect(Outcome.WORKS, "the very bytes come back"),
    ),
    tags=("v3", "types"),
)

GEO_VALUES = Behaviour(
    id="T-geo-values",
    title="Geometries written, and read back to the byte",
    source="T, vehicle_telemetry: INSERT and SELECT",
    document="ST_GeomFromWKT and ST_GeogFromWKB with ST_SetSrid insert; SRID, X, Y and the exact WKB come back",
    table=VEHICLE_TELEMETRY,
    steps=(CREATE, INSERT, BACK),
    variants=(
        Variant("wkt", generations="spark-*", settings=GEOSPATIAL, steps=(CREATE, INSERT_WKT)),
        Variant(
            "wkb",
            generations="spark-*",
            settings=GEOSPATIAL,
            cure=Cure(Where.SPARK_SESSION, "nothing known: Spark calls them young", variants="switched-off"),
        ),
        Variant(
            "switched-off",
            generations="spark-4.1*1.12*",
            settings={"spark.sql.geospatial.enabled": "false"},
        ),
        Variant(
            "geometry",
            generations="duckdb-*,pyiceberg-*,trino-*",
            steps=(
                CREATE_GEOMETRY,
                INSERT_GEOMETRY,
                Step(
                    "back",
                    "SELECT event_id, ST_AsText(position), hex(ST_AsWKB(position)) FROM {table}",
                    on("scan"),
                    truth=(
                        ("EVT-001", "POINT (139.7671 35.6812)", POINTS[0]),
                        ("EVT-002", "POINT (139.77 35.683)", POINTS[1]),
                        ("EVT-003", "POINT (139.7003 35.6896)", POINTS[2]),
                    ),
                ),
            ),
        ),
    ),
    claims=(Claim("spark-4.1*", Outcome.WORKS, variants="wkt,wkb"),),
    expect=(
        *_can_not("wkt,wkb,geometry", turns="wkb"),
        gap(
            "spark-4.1*",
            "open-source Spark makes geometries of WKB alone",
            NO_ROUTINE,
            ("AnalysisException", "[UNRESOLVED_ROUTINE] Cannot resolve routine `ST_GeomFromWKT`"),
            at="insert",
            variants="wkt",
            cause="ST_GeomFromWKT is the vendor's",
            control=Control(variant="wkb"),
        ),
        gap(
            "pyiceberg-*",
            "PyIceberg makes binary of the rows to write, and takes that for another type than the table's",
            PYICEBERG_WRITE,
            ("ValueError", "Mismatch in fields:"),
            at="insert",
        ),
        Expect(
            Outcome.ERROR,
            "Spark's geospatial types wait behind a switch",
            generations="spark-4.1*",
            variants="switched-off",
            failure=Chain((("ExtendedAnalysisException", "[UNSUPPORTED_FEATURE.GEOSPATIAL_DISABLED]"),)),
            at="create",
            trap=SWITCHED_OFF,
        ),
        Expect(Outcome.WORKS, "SRID and the very bytes come back"),
    ),
    tags=("v3", "types"),
)


def _listed(*names: str) -> Step:
    """The functions that an engine lists, which are these and no others."""
    return Step(
        "list",
        {
            "spark": "SHOW FUNCTIONS LIKE 'st_*'",
            "duckdb": "SELECT DISTINCT function_name FROM duckdb_functions() WHERE starts_with(function_name, 'st_')",
        },
        truth=tuple((f"st_{name}",) for name in names),
    )


GEO_FUNCTIONS = Behaviour(
    id="T-geo-functions",
    title="Which st_* functions there are",
    source="T, vehicle_telemetry: the refused INSERT, SHOW FUNCTIONS",
    document="ST_GeogFromWKT does not resolve; nineteen st_* functions are listed",
    table=VEHICLE_TELEMETRY,
    steps=(_listed(),),
    variants=(
        Variant(
            "list",
            generations="spark-4.1*",
            steps=(_listed("asbinary", "geogfromwkb", "geomfromwkb", "setsrid", "srid"),),
        ),
        Variant("list", generations="spark-3*,spark-4.0*"),
        Variant(
            "list",
            generations="duckdb-*",
            steps=(
                _listed("asbinary", "astext", "aswkb", "aswkt", "crs", "geomfromwkb", "intersects_extent", "setcrs"),
            ),
        ),
        Variant(
            "geog-from-wkt",
            generations="spark-*",
            settings=GEOSPATIAL,
            steps=(Step("select", "SELECT ST_GeogFromWKT('POINT (139.7671 35.6812)')"),),
        ),
    ),
    kinds=("duckdb", "spark"),
    claims=(Claim("spark-4.1*", REFUSED, variants="geog-from-wkt"),),
    expect=(
        gap(
            "spark-3.2*",
            "no Spark has it",
            NO_ROUTINE,
            ("AnalysisException", "Undefined function: 'ST_GeogFromWKT'"),
            at="select",
            variants="geog-from-wkt",
        ),
        gap(
            "spark-*",
            "no Spark has it",
            NO_ROUTINE,
            ("AnalysisException", "`ST_GeogFromWKT` on search path"),
            at="select",
            variants="geog-from-wkt",
        ),
        Expect(
            Outcome.WORKS,
            "five: st_asbinary, st_geogfromwkb, st_geomfromwkb, st_setsrid, st_srid; the vendor's Spark has fourteen "
            "more of its own",
            generations="spark-4.1*",
        ),
        Expect(Outcome.WORKS, "Spark has none before 4.1", generations="spark-*"),
        Expect(
            Outcome.WORKS,
            "eight without the extension spatial, which makes and tells WKB and text",
            generations="duckdb-*",
        ),
    ),
    tags=("v3", "types"),
)

INSIDE = (("EVT-001",), ("EVT-002",))
GEO_FILTER = Behaviour(
    id="T-geo-filter",
    title="A filter by ST_Intersects",
    source="T, vehicle_telemetry: the two SELECTs with ST_Intersects",
    document="ST_Intersects filters geometry, and is refused for geography (DATATYPE_MISMATCH)",
    table=VEHICLE_TELEMETRY,
    steps=(
        CREATE_GEOMETRY,
        INSERT_GEOMETRY,
        Step(
            "filter",
            {
                "spark": "SELECT event_id FROM {table} WHERE ST_Intersects(position, ST_SetSrid(ST_GeomFromWKB(X'"
                + AREA
                + "'), 4326))",
                "duckdb": "SELECT event_id FROM {table} WHERE ST_Intersects_Extent(position, ST_GeomFromWKB('"
                + _blob(AREA)
                + "'::BLOB))",
            },
            truth=INSIDE,
        ),
    ),
    variants=(
        Variant("geometry", generations="spark-*", settings=GEOSPATIAL),
        Variant("geometry", generations="duckdb-*,trino-*"),
        Variant(
            "geography",
            generations="spark-*",
            settings=GEOSPATIAL,
            steps=(
                CREATE,
                INSERT,
                Step(
                    "filter",
                    "SELECT event_id FROM {table} WHERE ST_Intersects(service_area, ST_SetSrid(ST_GeogFromWKB(X'"
                    + POINTS[0]
                    + "'), 4326))",
                ),
            ),
        ),
    ),
    kinds=("duckdb", "spark", "trino"),
    claims=(
        Claim("spark-4.1*1.12*", Outcome.WORKS, variants="geometry"),
        Claim("spark-4.1*1.12*", REFUSED, variants="geography"),
    ),
    expect=(
        *_can_not(),
        gap(
            "spark-4.1*",
            "open-source Spark stores geometries and computes nothing of them",
            NO_ROUTINE,
            ("AnalysisException", "[UNRESOLVED_ROUTINE] Cannot resolve routine `ST_Intersects`"),
            at="filter",
            variants="geometry",
            cause="ST_Intersects is the vendor's",
            control=Control(generation="duckdb-1.5.5"),
        ),
        gap(
            "spark-4.1*",
            "refused as the document says, and for another reason: there is no such function at all",
            NO_ROUTINE,
            ("AnalysisException", "[UNRESOLVED_ROUTINE] Cannot resolve routine `ST_Intersects`"),
            at="filter",
            variants="geography",
        ),
        Expect(
            Outcome.WORKS,
            "by the extents of both, which here is the same: the document's area is a rectangle, the others are points",
        ),
    ),
    tags=("v3", "types"),
)
