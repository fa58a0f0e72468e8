"""Document H on privileges and vended credentials, and document W on roles: who may do what, and by what keys."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.orders_steps import HISTORY, SSD, insert, read
from lab.model import Access, Behaviour, Call, Expect, Outcome, Step, Variant
from lab.tables.orders import ORDERS_V2, ORDERS_V3

HORIZON = "horizon"
OFF = f"{HORIZON}~off=H-privileges"
AFTER = (replace(HISTORY, always=True), Step("orphans", look="orphans", always=True))
WRITE = (read(ORDERS_V2, name="before"), insert(SSD), read(ORDERS_V2, *ORDERS_V2.rows, SSD), *AFTER)
TODAY = (Expect(Outcome.WORKS, "?"),)


def as_(principal: str, terms: str = HORIZON) -> Access:
    return Access(terms, principal)


PRIVILEGES = Behaviour(
    id="H-privileges",
    title="INSERT with all privileges, with some, with SELECT alone",
    source="H, prerequisites: grants to the role",
    document="writing needs SELECT, INSERT, UPDATE, DELETE and TRUNCATE on the table, and USAGE above it",
    table=ORDERS_V2,
    steps=WRITE,
    variants=(
        Variant("all", access=as_("engineer")),
        Variant("insert-alone", access=as_("inserter")),
        Variant("insert-alone-off", access=as_("inserter", OFF)),
        Variant("select-alone", access=as_("reader")),
        Variant("select-alone-off", access=as_("reader", OFF)),
    ),
    expect=TODAY,
    tags=("v2", "write", "access"),
)
READ_ROLE = Behaviour(
    id="W-read-role",
    title="Reading with a role that may, and with one that may not",
    source="W, grants for reading",
    document="USAGE on database and schema and SELECT on the table suffice to read; another role sees less",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2),),
    variants=(
        Variant("granted", access=as_("analyst")),
        Variant("not-granted", access=as_("stranger")),
        Variant("not-granted-off", access=as_("stranger", OFF)),
    ),
    expect=TODAY,
    tags=("v2", "read", "access"),
)
LATER = Step(
    "create",
    {
        "spark": "CREATE TABLE lab.{namespace}.ORDERS_LATER (n int) USING iceberg",
        "*": "CREATE TABLE lab.{namespace}.ORDERS_LATER (n int)",
    },
    Call("create_table", {"namespace": "{namespace}", "table": "ORDERS_LATER", "schema": [("n", "int", False)]}),
)
READ_LATER = Step(
    "later",
    "SELECT * FROM lab.{namespace}.ORDERS_LATER",
    Call("scan", {"namespace": "{namespace}", "table": "ORDERS_LATER"}),
    truth=(),
    second=True,
)
FUTURE_GRANTS = Behaviour(
    id="W-future-grants",
    title="A table made after the grant",
    source="W, grants on future tables",
    document="a grant on future tables covers a table created later",
    table=ORDERS_V2,
    steps=(LATER, READ_LATER),
    variants=(
        Variant("on-future-tables", access=as_("engineer"), second_access=as_("later-analyst")),
        Variant("on-all-tables", access=as_("engineer"), second_access=as_("analyst")),
        Variant("on-all-tables-off", access=as_("engineer"), second_access=as_("analyst", OFF)),
    ),
    expect=TODAY,
    tags=("v2", "read", "access"),
)
DDL_PRIVILEGES = Behaviour(
    id="W-ddl-privileges",
    title="ALTER TABLE without OWNERSHIP",
    source="W, grants for DDL",
    document="CREATE SCHEMA, CREATE ICEBERG TABLE, and OWNERSHIP for ALTER, RENAME and DROP are what DDL needs",
    table=ORDERS_V2,
    steps=(
        Step(
            "alter",
            {
                "trino": "ALTER TABLE {table} ADD COLUMN NOTE varchar",
                "spark": "ALTER TABLE {table} ADD COLUMN NOTE string",
                "duckdb": "ALTER TABLE {table} ADD COLUMN NOTE varchar",
            },
            Call("add_column", {"namespace": "{namespace}", "table": "{table_name}", "name": "NOTE", "type": "string"}),
        ),
        read(replace(ORDERS_V2, rows=tuple((*row, None) for row in ORDERS_V2.rows))),
        Step("schema", look="schema", always=True),
        *AFTER,
    ),
    variants=(
        Variant("not-owner", access=as_("engineer")),
        Variant("not-owner-off", access=as_("engineer", OFF)),
        Variant("owner", access=as_("owner")),
    ),
    expect=TODAY,
    tags=("v2", "write", "access"),
)
CREATED = Behaviour(
    id="W-ddl-dml",
    title="Who makes a table owns it: CREATE, ALTER, RENAME, DROP",
    source="W, what external engines can do",
    document="CREATE, INSERT, ALTER ADD COLUMN, UPDATE, DELETE, TRUNCATE, RENAME, DROP work from an external engine",
    table=ORDERS_V2,
    steps=(
        Step(
            "create",
            {
                "spark": "CREATE TABLE lab.{namespace}.MINE (n int, v string) USING iceberg",
                "*": "CREATE TABLE lab.{namespace}.MINE (n int, v varchar)",
            },
        ),
        Step("insert", "INSERT INTO lab.{namespace}.MINE VALUES (1, 'a'), (2, 'b')"),
        Step(
            "alter",
            {
                "spark": "ALTER TABLE lab.{namespace}.MINE ADD COLUMN w string",
                "*": "ALTER TABLE lab.{namespace}.MINE ADD COLUMN w varchar",
            },
        ),
        Step("update", "UPDATE lab.{namespace}.MINE SET w = 'c' WHERE n = 1"),
        Step("delete", "DELETE FROM lab.{namespace}.MINE WHERE n = 2"),
        Step("read", "SELECT * FROM lab.{namespace}.MINE", truth=((1, "a", "c"),)),
        Step(
            "truncate",
            {"duckdb": "DELETE FROM lab.{namespace}.MINE", "*": "TRUNCATE TABLE lab.{namespace}.MINE"},
        ),
        Step("empty", "SELECT * FROM lab.{namespace}.MINE", truth=()),
        Step(
            "rename",
            {
                "spark": "ALTER TABLE lab.{namespace}.MINE RENAME TO lab.{namespace}.OURS",
                "trino": "ALTER TABLE lab.{namespace}.MINE RENAME TO lab.{namespace}.OURS",
                "duckdb": "ALTER TABLE lab.{namespace}.MINE RENAME TO OURS",
            },
        ),
        Step("drop", "DROP TABLE lab.{namespace}.OURS"),
        Step("leftovers", look="leftovers", always=True),
    ),
    variants=(Variant(access=as_("engineer", f"{HORIZON}~off=W-cow-only")),),
    expect=TODAY,
    tags=("v2", "write", "access"),
    kinds=("duckdb", "spark", "trino"),
)

# ---------------------------------------------------------------- how one signs on
TOKEN_EXCHANGE = Behaviour(
    id="H-token-exchange",
    title="A long-lived secret as it is, and exchanged for a token",
    source="H, prerequisites: programmatic access token",
    document="a PAT works as it is, or exchanged at the OAuth token endpoint",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2),),
    variants=(
        Variant("as-it-is", access=Access(HORIZON, by="pat")),
        Variant("exchanged", access=Access(HORIZON, by="pat-credential")),
        Variant("client-secret", access=Access(HORIZON)),
        Variant("nothing", access=Access(HORIZON, by="nothing")),
        Variant("nothing-off", access=Access(f"{HORIZON}~off=H-token-expiry", by="nothing")),
    ),
    expect=TODAY,
    tags=("v2", "read", "access"),
)
AUTH_KINDS = Behaviour(
    id="W-auth-kinds",
    title="External OAuth, key pair, signed requests",
    source="W, authentication of external engines",
    document="external OAuth and key-pair JWT, exchanged for a token, both work",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2),),
    variants=(
        Variant("external", access=Access(HORIZON, by="external")),
        Variant("key-pair", access=Access(HORIZON, by="key-pair")),
    ),
    expect=TODAY,
    tags=("v2", "read", "access"),
)
SIGV4 = Behaviour(
    id="T-sigv4",
    title="A REST catalog reached with SigV4-signed requests",
    source="T, connection",
    document="a REST catalog reached with SigV4-signed requests",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2), insert(SSD), read(ORDERS_V2, *ORDERS_V2.rows, SSD, name="after")),
    variants=(
        Variant("signed", access=Access("s3tables", by="sigv4")),
        Variant("unsigned", access=Access("s3tables", by="nothing")),
        Variant("unsigned-off", access=Access("s3tables~off=T-sigv4", by="nothing")),
    ),
    expect=TODAY,
    tags=("v2", "read", "access"),
    kinds=("pyiceberg", "spark", "trino"),
)

# ---------------------------------------------------------------- vended credentials
_HEADER = "header.X-Iceberg-Access-Delegation"
VENDING = Behaviour(
    id="H-vending",
    title="With vended credentials, and without asking for them",
    source="H, connection settings",
    document=None,
    table=ORDERS_V2,
    steps=(insert(SSD), read(ORDERS_V2, *ORDERS_V2.rows, SSD)),
    variants=(
        Variant("asked-for"),
        Variant("not-asked-for", "spark-*", {f"spark.sql.catalog.lab.{_HEADER}": None}),
        Variant("not-asked-for", "pyiceberg-*", {_HEADER: "none"}),
        Variant("not-asked-for", "duckdb-*", {"attach.ACCESS_DELEGATION_MODE": "none"}),
        Variant("not-asked-for", "trino-*", {"iceberg.rest-catalog.vended-credentials-enabled": "false"}),
    ),
    expect=TODAY,
    tags=("v2", "write", "access"),
)

# ---------------------------------------------------------------- a federation
FEDERATION = "glue-federation"
FEDERATED_READ = Behaviour(
    id="H-federated-read",
    title="A federated engine reads what others wrote",
    source="H, verification 3, SELECT from Athena SQL",
    document="a Trino-based federated engine reads v2, rows written by the others included",
    table=ORDERS_V2,
    steps=(insert(SSD), read(ORDERS_V2, *ORDERS_V2.rows, SSD, second=True)),
    variants=(Variant(second_access=Access(FEDERATION, by="token")),),
    pairs=(("*", "trino-*"),),
    expect=TODAY,
    tags=("v2", "read", "access"),
)
FEDERATED_WRITE = Behaviour(
    id="H-federated-write",
    title="INSERT through a federation",
    source="H, verification 3, INSERT from Athena SQL",
    document="its INSERT is denied although every table and database privilege was granted",
    table=ORDERS_V2,
    steps=WRITE,
    variants=(
        Variant("rule", access=Access(FEDERATION, by="token")),
        Variant("rule-off", access=Access(f"{FEDERATION}~off=H-federated-write", by="token")),
    ),
    expect=TODAY,
    tags=("v2", "write", "access"),
)
FEDERATED_V3 = Behaviour(
    id="H-federated-v3",
    title="v3 through a federation",
    source="H, verification 3, Athena SQL on v3",
    document="it refuses v3, reads and writes alike: Iceberg format version 3 is not supported",
    table=ORDERS_V3,
    steps=(read(ORDERS_V3), Step("history", look="history", always=True)),
    variants=(
        Variant("rule", access=Access(FEDERATION, by="token")),
        Variant("rule-off", access=Access(f"{FEDERATION}~off=H-federated-v3", by="token")),
    ),
    expect=TODAY,
    tags=("v3", "read", "access"),
)
