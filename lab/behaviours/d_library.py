"""Document D on the Iceberg library that reads v3, asked of the library itself, release by release.

No engine takes part: the generations are Iceberg's own jars with its generic reader.
"""

from __future__ import annotations

from lab.behaviours.known import DEFAULT_OVERLOOKED, V3_FOR_AN_OLD_LIBRARY
from lab.model import Behaviour, Call, Chain, Claim, Control, Expect, Outcome, Step, Table, Trap
from lab.tables.orders import DEFAULTED_V3, DELETED_V3, SNOWFLAKE_NAMESPACE, SNOWFLAKE_V3

SCAN = Call("scan", {"namespace": "{namespace}", "table": "{table_name}"})
BEFORE_1_7 = "iceberg-java-1.4*,iceberg-java-1.5*,iceberg-java-1.6*"
BEFORE_1_9 = f"{BEFORE_1_7},iceberg-java-1.7*,iceberg-java-1.8*"

TOO_OLD = Expect(
    Outcome.NOT_SUPPORTED,
    "up to 1.6 the library knows format versions up to 2: TableMetadataParser.fromJson refuses the catalog's answer",
    generations=BEFORE_1_7,
    failure=Chain(
        (
            ("org.apache.iceberg.exceptions.RESTException", "Received a success response code of 200, but failed to"),
            ("com.fasterxml.jackson.databind.JsonMappingException", "Cannot read unsupported version 3"),
            ("java.lang.IllegalArgumentException", "Cannot read unsupported version 3"),
        ),
        whole=True,
    ),
    trap=V3_FOR_AN_OLD_LIBRARY,
)


def _reads(
    id: str, title: str, table: Table, *expect: Expect, document: str | None = None, claims: tuple[Claim, ...] = ()
) -> Behaviour:
    return Behaviour(
        id=id,
        title=title,
        source="D, v3 tables, requirements; H says 1.8",
        document=document,
        table=table,
        namespace=SNOWFLAKE_NAMESPACE,
        kinds=("iceberg",),
        steps=(Step("read", call=SCAN, truth=table.rows),),
        claims=claims,
        expect=(TOO_OLD, *expect),
        tags=("v3", "library"),
    )


LIBRARY_V3 = _reads(
    "D-library-v3",
    "The first Iceberg library that reads v3",
    SNOWFLAKE_V3,
    Expect(
        Outcome.WORKS,
        "since 1.7.0 the library takes a table of version 3 and reads what v2 could have held too; whether it reads "
        "what v3 adds is another question: D-library-v3-deletes, D-library-v3-defaults",
        generations="iceberg-java-1.7*,iceberg-java-1.8*",
        cause="org.apache.iceberg.TableMetadata.SUPPORTED_TABLE_FORMAT_VERSION, 3 since 1.7.0",
        control=Control(generation="iceberg-java-1.6.1"),
    ),
    Expect(Outcome.WORKS, "read as the document says"),
    document="v3 tables need Iceberg 1.9.0 or newer",
    claims=(
        Claim(BEFORE_1_9, (Outcome.NOT_SUPPORTED, Outcome.ERROR)),
        Claim("iceberg-java-*", Outcome.WORKS),
    ),
)
LIBRARY_V3_DELETES = _reads(
    "D-library-v3-deletes",
    "The first Iceberg library that reads deletion vectors",
    DELETED_V3,
    Expect(
        Outcome.NOT_SUPPORTED,
        "1.7 takes the table and not its deletion vector: FileFormat.fromString knows no Puffin",
        generations="iceberg-java-1.7*",
        failure=Chain((("java.lang.IllegalArgumentException", "Invalid file format: PUFFIN"),)),
        trap=Trap(
            "puffin-unknown",
            "A library loads a v3 table and doesn't know the format of its deletes",
            r"Invalid file format: PUFFIN",
            "org.apache.iceberg.FileFormat.fromString",
            remedy="read with Iceberg 1.8 or newer, or rewrite the data files until no deletion vector is left",
        ),
    ),
    Expect(Outcome.WORKS, "deletion vectors are read since 1.8"),
)
LIBRARY_V3_DEFAULTS = _reads(
    "D-library-v3-defaults",
    "The first Iceberg library that fills in a default",
    DEFAULTED_V3,
    Expect(
        Outcome.SILENTLY_WRONG,
        "1.7 takes the table and overlooks the column's initial default: rows of files without the column come back as "
        "null, without a word",
        generations="iceberg-java-1.7*",
        rows={"read": tuple((*row[:5], None) for row in DEFAULTED_V3.rows)},
        trap=DEFAULT_OVERLOOKED,
    ),
    Expect(Outcome.WORKS, "initial defaults are filled in since 1.8"),
)
