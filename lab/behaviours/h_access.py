"""Document H on privileges and vended credentials, and document W on roles: who may do what, and by what keys."""

from __future__ import annotations

from dataclasses import replace

from lab.behaviours.known import SPARK_3_2_NO_V3
from lab.behaviours.orders_steps import HISTORY, SSD, insert, read
from lab.behaviours.refusals import (
    BAD_REQUEST,
    FORBIDDEN,
    LIBRARY,
    LOAD,
    OF_INSERT,
    OFF,
    OTHER_LIBRARIES,
    REQUEST,
    UNAUTHORIZED,
    claims,
    not_loaded,
    paced,
    refused,
    ruled,
)
from lab.model import Access, Behaviour, Call, Chain, Claim, Expect, Outcome, Step, Trap, Variant
from lab.tables.orders import ORDERS_V2, ORDERS_V3

HORIZON = "horizon"
UNCHECKED = f"{HORIZON}~off=H-privileges"
AFTER = (replace(HISTORY, always=True), Step("orphans", look="orphans", always=True))
WRITE = (read(ORDERS_V2, name="before"), insert(SSD), read(ORDERS_V2, *ORDERS_V2.rows, SSD), *AFTER)


AT_CONFIG = "(Unauthorized_401), with reason: Unauthorized"  # of the catalog's words DuckDB shows none there
NO_GRANT = "the role has no grant on the table, and a table that it may not see is refused, not hidden"
# How each kind of engine tells that it has no keys.
KEYLESS = {
    "spark-*,trino-*": ("SdkClientException", "Unable to load credentials from any of the providers in the chain"),
    "duckdb-*": ("HTTPException", "Unable to connect to URL"),
    "pyiceberg-*": ("OSError", "When initiating multiple part upload"),
}
NO_KEYS = Trap(
    "no-vended-keys",
    "The table loads, and its files can't be written: no key came with it",
    r"Unable to load credentials from any of the providers in the chain|AWS Error ACCESS_DENIED during CreateMultipart"
    r"|Unable to connect to URL s3://\S+: Forbidden \(HTTP code 403\)",
    {
        "spark-*,trino-*": "software.amazon.awssdk.auth.credentials.AwsCredentialsProviderChain.resolveCredentials",
        "pyiceberg-*": "pyiceberg.io.pyarrow.PyArrowFile.create",
        "duckdb-*": "duckdb::S3FileSystem::GetHTTPError",
    },
    remedy="ask for vended credentials: the header X-Iceberg-Access-Delegation: vended-credentials, in each engine's "
    "own setting",
)


TRINO_NO_SIGV4 = Trap(
    "trino-no-sigv4",
    "Trino signs no request to a REST catalog",
    r"Invalid value 'SIGV4' for type",
    "io.trino.plugin.iceberg.catalog.rest.IcebergRestCatalogConfig.setSecurity",
    remedy="take Trino 483",
)
PYICEBERG_NO_BOTO3 = Trap(
    "pyiceberg-no-boto3",
    "PyIceberg signs requests only where boto3 is installed",
    r"No module named 'boto3'",
    "pyiceberg.catalog.rest.RestCatalog._init_sigv4",
    remedy="pip install 'pyiceberg[rest-sigv4]'",
)


def as_(principal: str, terms: str = HORIZON) -> Access:
    return Access(terms, principal)


PRIVILEGES = Behaviour(
    id="H-privileges",
    title="INSERT with all privileges, with some, with SELECT alone",
    source="H, prerequisites: grants to the role",
    document="writing needs SELECT, INSERT, UPDATE, DELETE and TRUNCATE on the table, and USAGE above it",
    table=ORDERS_V2,
    steps=WRITE,
    variants=paced(
        Variant("all", access=as_("engineer")),
        Variant("insert-alone", access=as_("inserter")),
        Variant("insert-alone-off", access=as_("inserter", UNCHECKED)),
        Variant("select-alone", access=as_("reader")),
        Variant("select-alone-off", access=as_("reader", UNCHECKED)),
    ),
    claims=(Claim("*", Outcome.WORKS, variants="all"), *claims(variants="*-alone")),
    expect=(
        Expect(Outcome.WORKS, "all that the document lists", variants="all"),
        OFF,
        Expect(
            Outcome.REFUSED_BY_RULE,
            "who may not write gets keys that can't: the store refuses the first data file with 403, before the "
            "catalog is asked for a commit, and the error names S3, not a privilege. INSERT without UPDATE, DELETE and "
            "TRUNCATE is as good as none",
            variants="*-alone",
            at="insert",
            facts={
                "before.narrowed": ["H-privileges"],
                "insert.rules": [],
                "history.operations": ["append"],
                "orphans.data": 0,
                "orphans.metadata": 0,
            },
        ),
    ),
    tags=("v2", "write", "access"),
)
READ_ROLE = Behaviour(
    id="W-read-role",
    title="Reading with a role that may, and with one that may not",
    source="W, grants for reading",
    document="USAGE on database and schema and SELECT on the table suffice to read; another role sees less",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2),),
    variants=paced(
        Variant("granted", access=as_("analyst")),
        Variant("not-granted", access=as_("stranger")),
        Variant("not-granted-off", access=as_("stranger", UNCHECKED)),
    ),
    claims=(Claim("*", Outcome.WORKS, variants="granted"), *claims(variants="not-granted")),
    expect=(
        Expect(Outcome.WORKS, "USAGE and SELECT are enough, and the keys are a reader's", variants="granted"),
        *not_loaded("read", "not-granted", NO_GRANT),
        OFF,
    ),
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
    variants=paced(
        Variant("on-future-tables", access=as_("engineer"), second_access=as_("later-analyst")),
        Variant("on-all-tables", access=as_("engineer"), second_access=as_("analyst")),
        Variant("on-all-tables-off", access=as_("engineer"), second_access=as_("analyst", UNCHECKED)),
    ),
    claims=(Claim("*", Outcome.WORKS, variants="on-future-tables"), *claims(variants="on-all-tables")),
    expect=(
        Expect(Outcome.WORKS, "the grant covers what is made after it", variants="on-future-tables"),
        *not_loaded("later", "on-all-tables", "the grant covers the tables of its day, not this one"),
        OFF,
    ),
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
    variants=paced(
        Variant("not-owner", access=as_("engineer")),
        Variant("not-owner-off", access=as_("engineer", UNCHECKED)),
        Variant("owner", access=as_("owner")),
    ),
    claims=(Claim("*", Outcome.WORKS, variants="owner"), *claims(variants="not-owner")),
    expect=(
        *refused(
            "H-privileges",
            "alter",
            "is not authorized for op ADD_TABLE_SCHEMA",
            FORBIDDEN,
            variants="not-owner",
            why="all the privileges that writing takes are not OWNERSHIP",
        ),
        OFF,
        Expect(Outcome.WORKS, "OWNERSHIP is enough", variants="owner"),
    ),
    tags=("v2", "write", "access"),
)


def _mine(op: str, **args: object) -> Call:
    return Call(op, {"namespace": "{namespace}", "table": "MINE", **args})


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
            _mine("create_table", schema=[("n", "int", False), ("v", "string", False)]),
        ),
        Step(
            "insert",
            "INSERT INTO lab.{namespace}.MINE VALUES (1, 'a'), (2, 'b')",
            _mine("append", rows=[{"n": 1, "v": "a"}, {"n": 2, "v": "b"}]),
        ),
        Step(
            "alter",
            {
                "spark": "ALTER TABLE lab.{namespace}.MINE ADD COLUMN w string",
                "*": "ALTER TABLE lab.{namespace}.MINE ADD COLUMN w varchar",
            },
            _mine("add_column", name="w", type="string"),
        ),
        Step(
            "update",
            "UPDATE lab.{namespace}.MINE SET w = 'c' WHERE n = 1",
            _mine("update", filter="n == 1", set={"w": "c"}),
        ),
        Step("delete", "DELETE FROM lab.{namespace}.MINE WHERE n = 2", _mine("delete", filter="n == 2")),
        Step("read", "SELECT * FROM lab.{namespace}.MINE", _mine("scan"), truth=((1, "a", "c"),)),
        Step(
            "truncate",
            {"duckdb": "DELETE FROM lab.{namespace}.MINE", "*": "TRUNCATE TABLE lab.{namespace}.MINE"},
            _mine("delete", filter="n is not null"),
        ),
        Step("empty", "SELECT * FROM lab.{namespace}.MINE", _mine("scan"), truth=()),
        Step(
            "rename",
            {
                "spark": "ALTER TABLE lab.{namespace}.MINE RENAME TO {namespace}.OURS",
                "trino": "ALTER TABLE lab.{namespace}.MINE RENAME TO lab.{namespace}.OURS",
                "duckdb": "ALTER TABLE lab.{namespace}.MINE RENAME TO OURS",
            },
            _mine("rename_table", to="OURS"),
        ),
        Step(
            "drop",
            "DROP TABLE lab.{namespace}.OURS",
            Call("drop_table", {"namespace": "{namespace}", "table": "OURS"}),
        ),
        Step("leftovers", look="leftovers", always=True),
    ),
    variants=paced(Variant(access=as_("engineer", f"{HORIZON}~off=W-cow-only"))),
    claims=(Claim("*", Outcome.WORKS),),
    expect=(
        Expect(
            Outcome.WORKS,
            "its maker owns it, and needs no OWNERSHIP that somebody grants. Trino's DROP removes the files too",
            generations="trino-*",
            facts={"leftovers.tables": ["ORDERS_V2"], "leftovers.data": 0, "leftovers.metadata": 0},
        ),
        Expect(
            Outcome.WORKS,
            "its maker owns it, and needs no OWNERSHIP that somebody grants. DROP takes the table out of the catalog; "
            "its files stay, for no purge is asked for",
            facts={"leftovers.tables": ["ORDERS_V2"]},
        ),
    ),
    tags=("v2", "write", "access"),
)

# ---------------------------------------------------------------- how one signs on
TOKEN_EXCHANGE = Behaviour(
    id="H-token-exchange",
    title="A long-lived secret as it is, and exchanged for a token",
    source="H, prerequisites: programmatic access token",
    document="a PAT works as it is, or exchanged at the OAuth token endpoint",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2),),
    variants=paced(
        Variant("as-it-is", access=Access(HORIZON, by="pat")),
        Variant("exchanged", access=Access(HORIZON, by="pat-credential")),
        Variant("client-secret", access=Access(HORIZON)),
        Variant("nothing", access=Access(HORIZON, by="nothing")),
        Variant("nothing-off", access=Access(f"{HORIZON}~off=H-token-expiry", by="nothing")),
    ),
    claims=(Claim("*", Outcome.WORKS, variants="as-it-is,exchanged"),),
    expect=(
        Expect(
            Outcome.WORKS, "a bearer token like any other, for which no token endpoint is asked", variants="as-it-is"
        ),
        Expect(
            Outcome.WORKS,
            "the client's secret, with a client's id or without: it is exchanged at the token endpoint",
            variants="exchanged,client-secret",
        ),
        *refused(
            "H-token-expiry",
            "read",
            "Not authorized: ",
            UNAUTHORIZED,
            duckdb=REQUEST,
            duckdb_says=AT_CONFIG,
            where="",
            history=(),
            variants="nothing",
            why="no token, or one that is none",
        ),
        OFF,
    ),
    tags=("v2", "read", "access"),
)
AUTH_KINDS = Behaviour(
    id="W-auth-kinds",
    title="External OAuth, key pair, signed requests",
    source="W, authentication of external engines",
    document="external OAuth and key-pair JWT, exchanged for a token, both work",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2),),
    variants=paced(
        Variant("external", access=Access(HORIZON, by="external")),
        Variant("key-pair", access=Access(HORIZON, by="key-pair")),
    ),
    claims=(Claim("*", Outcome.WORKS),),
    expect=(
        Expect(Outcome.WORKS, "a bearer token like any other, signed by somebody else", variants="external"),
        Expect(
            Outcome.WORKS,
            "what the private key signed goes to the token endpoint as the client's secret",
            variants="key-pair",
        ),
    ),
    tags=("v2", "read", "access"),
)
SIGV4 = Behaviour(
    id="T-sigv4",
    title="A REST catalog reached with SigV4-signed requests",
    source="T, connection",
    document="a REST catalog reached with SigV4-signed requests",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2), insert(SSD), read(ORDERS_V2, *ORDERS_V2.rows, SSD, name="after")),
    variants=paced(
        Variant("signed", access=Access("s3tables", by="sigv4")),
        Variant("unsigned", access=Access("s3tables", by="nothing")),
        Variant("unsigned-off", access=Access("s3tables~off=T-sigv4", by="nothing")),
    ),
    claims=(Claim("spark-*,trino-483", Outcome.WORKS, variants="signed"),),
    expect=(
        Expect(
            Outcome.ERROR,
            "Trino signs requests since 477 (iceberg.rest-catalog.security has SIGV4)",
            generations="trino-476",
            variants="signed",
            failure=Chain((("ApplicationConfigurationException", "Invalid value 'SIGV4'"),)),
            at="read",
            trap=TRINO_NO_SIGV4,
        ),
        Expect(
            Outcome.ERROR,
            "PyIceberg signs by boto3, which its extra pyarrow does not bring",
            generations="pyiceberg-*",
            variants="signed",
            failure=Chain((("ModuleNotFoundError", "No module named 'boto3'"),)),
            at="read",
            trap=PYICEBERG_NO_BOTO3,
        ),
        Expect(
            Outcome.WORKS,
            "each request is signed, the commit with its body too, which the gateway verifies by AWS's own library",
            variants="signed",
        ),
        *refused(
            "T-sigv4",
            "read",
            "Not authorized: ",
            UNAUTHORIZED,
            where="",
            history=(),
            variants="unsigned",
            why="nothing that tells who asks",
        ),
        OFF,
    ),
    tags=("v2", "read", "access"),
    kinds=("pyiceberg", "spark", "trino"),
)

ENDED = f"{HORIZON}~token-seconds=-60"  # given out when it was over
CHECK_TOKEN = Behaviour(
    id="W-check-token",
    title="A token that is good, and one that is over, at the first question",
    source="W, troubleshooting: checking a token",
    document="GET /v1/config and a plain load of one table tell whether a token works",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2),),
    variants=paced(
        Variant("good", access=Access(HORIZON, by="token")),
        Variant("ended", access=Access(ENDED, by="token")),
        Variant("ended-off", access=Access(f"{ENDED}~off=H-token-expiry", by="token")),
    ),
    claims=(Claim("*", Outcome.WORKS, variants="good"), *claims(variants="ended")),
    expect=(
        Expect(Outcome.WORKS, "the load with delegation tells it as well", variants="good"),
        *refused(
            "H-token-expiry",
            "read",
            "the token has expired",
            UNAUTHORIZED,
            duckdb=REQUEST,
            duckdb_says=AT_CONFIG,
            where="",
            history=(),
            variants="ended",
            why="every engine asks for /v1/config first, and tells of the answer, DuckDB of its status alone",
        ),
        OFF,
    ),
    tags=("v2", "read", "access"),
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
    expect=(
        Expect(Outcome.WORKS, "the engine holds no key of the store: it gets a session's with each table"),
        *(
            Expect(
                Outcome.ERROR,
                "no key comes with the table, and there is none elsewhere: the first file can't be written. A plain "
                "read fails alike",
                generations=engines,
                variants="not-asked-for",
                failure=Chain((cause,)),
                at="insert",
                trap=NO_KEYS,
            )
            for engines, cause in KEYLESS.items()
        ),
    )[::-1],
    tags=("v2", "write", "access"),
)

VENDING_SCOPE = Behaviour(
    id="H-vending-scope",
    title="What the vended keys of a table reach",
    source="H, connection settings",
    document="vended credentials are narrowed in scope",
    table=ORDERS_V2,
    steps=(read(ORDERS_V2), Step("reach", look="reach")),
    kinds=("duckdb",),  # whoever asks: the keys are the table's
    claims=(Claim("*", Outcome.WORKS),),
    expect=(
        Expect(
            Outcome.WORKS,
            "to the table's own prefix: its files can be read, listed, written and deleted, and nothing else",
            facts={
                **{f"reach.{name}": True for name in ("get", "list", "put", "delete")},
                **{f"reach.other_{name}": False for name in ("get", "list", "put", "delete")},
                "reach.longer_name_put": False,
                "reach.bucket_list": False,
            },
        ),
    ),
    tags=("v2", "access"),
)

_SCAN = Call("scan", {"namespace": "{namespace}", "table": "{table_name}"})
EAGER = "iceberg-java-1.7*,iceberg-java-1.8*"  # the library's releases that want new keys at once
RENEWAL = Behaviour(
    id="H-vending-renewal",
    title="Keys that Iceberg's library gets anew by the endpoint that the catalog names",
    source="the lab's own question, next to H, connection settings",
    document=None,
    table=ORDERS_V2,
    steps=(Step("read", call=_SCAN, truth=ORDERS_V2.rows),),
    kinds=("iceberg",),
    variants=tuple(
        Variant(
            name,
            generations,
            settings,
            access=Access(door, by=by),
            full=seldom or name.endswith("-off"),
        )
        for generations, seldom in ((LIBRARY, False), (OTHER_LIBRARIES, True))
        for name, door, by, settings in (
            ("credential", HORIZON, "credential", {}),
            ("credential-off", f"{HORIZON}~off=H-token-expiry", "credential", {}),
            ("token", HORIZON, "token", {}),
            ("no-endpoint-told", f"{HORIZON}~vended-refresh=none", "credential", {}),
            ("no-endpoint-asked", HORIZON, "credential", {"client.refresh-credentials-enabled": "false"}),
        )
    ),
    expect=(
        Expect(
            Outcome.REFUSED_BY_RULE,
            "1.7 and 1.8 ask the endpoint for keys even though the table came with some, and show it the token of "
            "their properties (VendedCredentialsProvider.fetchCredentials): who signs on by a credential has none "
            "there, and no file can be read. client.refresh-credentials-enabled=false cures it (no-endpoint-asked), "
            "but then keys are not renewed, and a scan or a write that outlasts them fails",
            generations=EAGER,
            variants="credential",
            failure=Chain((("NotAuthorizedException", "no token was shown"),)),
            at="read",
            facts={"read.rules": ["H-token-expiry"]},
        ),
        OFF,
        Expect(
            Outcome.WORKS,
            "where none is told, or the client wants to know of none, every release reads by the keys that came with "
            "the table",
            variants="no-endpoint-*",
            facts={"read.refreshed": False},
        ),
        Expect(
            Outcome.WORKS,
            "a token among the properties is shown to the endpoint",
            generations=EAGER,
            facts={"read.refreshed": True},
        ),
        Expect(
            Outcome.WORKS,
            "up to 1.6 the library knows no such endpoint; since 1.9 it reads by the keys that came with the table "
            "until five minutes before they end (VendedCredentialsProvider.credentialFromProperties)",
            facts={"read.refreshed": False},
        ),
    ),
    tags=("v2", "read", "access"),
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
    variants=paced(Variant(second_access=Access(FEDERATION, by="token"))),
    pairs=(("*", "trino-*"),),
    claims=(Claim("*", Outcome.WORKS),),
    expect=(Expect(Outcome.WORKS, "v2 passes through the federation unharmed, whoever wrote it"),),
    tags=("v2", "read", "access"),
)
FEDERATED_WRITE = Behaviour(
    id="H-federated-write",
    title="INSERT through a federation",
    source="H, verification 3, INSERT from Athena SQL",
    document="its INSERT is denied although every table and database privilege was granted",
    table=ORDERS_V2,
    steps=WRITE,
    variants=paced(*ruled("H-federated-write", FEDERATION)),
    claims=claims(),
    expect=(
        *refused(
            "H-federated-write",
            "insert",
            "Access denied: insufficient permissions for ADD_TABLE_SNAPSHOT",
            FORBIDDEN,
            left=OF_INSERT,
            why="the federation refuses the commit, when the data file is written",
        ),
        OFF,
    ),
    tags=("v2", "write", "access"),
)
FEDERATED_V3 = Behaviour(
    id="H-federated-v3",
    title="v3 through a federation",
    source="H, verification 3, Athena SQL on v3",
    document="it refuses v3, reads and writes alike: Iceberg format version 3 is not supported",
    table=ORDERS_V3,
    steps=(read(ORDERS_V3), Step("history", look="history", always=True)),
    variants=paced(*ruled("H-federated-v3", FEDERATION)),
    claims=claims(),
    expect=(
        *refused(
            "H-federated-v3",
            "read",
            "Iceberg format version 3 is not supported",
            BAD_REQUEST,
            duckdb=LOAD,
            where="",
            why="the federation refuses to load a table of v3",
        ),
        replace(SPARK_3_2_NO_V3, variants="rule-off"),
        OFF,
    ),
    tags=("v3", "read", "access"),
)
