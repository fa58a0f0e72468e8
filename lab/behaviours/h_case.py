"""Document H on the case of names: who stores which spelling, and who finds a table by another one."""

from __future__ import annotations

from lab.model import Behaviour, Call, Chain, Claim, Control, Cure, Expect, Outcome, Step, Table, Trap, Variant, Where

TABLE = Table("UNUSED", format_version=2, columns=(("ID", "int"),), rows=((1,),))

# spelling → namespace, table, column
SPELLINGS = {
    "upper": ("{namespace}_NAMES", "SALES", "ID"),
    "lower": ("{namespace_lower}_names", "sales", "id"),
    "mixed": ("{namespace_mixed}_Names", "Sales", "Id"),
}
QUOTES = {"spark": "`", "trino": '"', "duckdb": '"'}


def _said(statement: str, spelling: str, *, quoted: bool = False) -> dict[str, str]:
    """The statement per dialect; `{t}` is the table in this spelling, `{n}` its namespace, `{c}` its column."""
    namespace, table, column = SPELLINGS[spelling]
    said = {}
    for kind, quote in QUOTES.items():
        n, t, c = (f"{quote}{name}{quote}" if quoted else name for name in (namespace, table, column))
        text = statement.replace("{t}", f"lab.{n}.{t}").replace("{n}", f"lab.{n}").replace("{c}", c)
        said[kind] = text + (" USING iceberg" if kind == "spark" and text.startswith("CREATE TABLE") else "")
    return said


def create(spelling: str, *, quoted: bool = False, columns: tuple[str, ...] = ()) -> tuple[Step, ...]:
    """A namespace, a table in it and a row in that, all spelled so."""
    namespace, table, column = SPELLINGS[spelling]
    names = columns or (column,)
    declared = ", ".join(f"{name} int" for name in names)
    values = ", ".join(str(n) for n, _ in enumerate(names, 1))
    at = {"namespace": namespace, "table": table}
    schema = [(name, "int", False) for name in names]
    if not columns:
        declared = "{c} int"
    return (
        Step("create-namespace", _said("CREATE SCHEMA {n}", spelling, quoted=quoted), Call("create_namespace", {"namespace": namespace})),
        Step("create", _said(f"CREATE TABLE {{t}} ({declared})", spelling, quoted=quoted), Call("create_table", {**at, "schema": schema})),
        Step("insert", _said(f"INSERT INTO {{t}} VALUES ({values})", spelling, quoted=quoted), Call("append", {**at, "rows": [dict(zip(names, range(1, 9)))]})),
    )


def find(spelling: str, *, quoted: bool = False) -> Step:
    namespace, table, column = SPELLINGS[spelling]
    return Step("find", _said("SELECT {c} FROM {t}", spelling, quoted=quoted),
        Call("scan", {"namespace": namespace, "table": table, "columns": [column]}), truth=((1,),), second=True)

NAMES = Step("names", look="names")
CREATORS = ("spark-4.1*iceberg-1.12*", "trino-483", "duckdb-*", "pyiceberg-*")
ALL = (("*", "="), *((creator, "*") for creator in CREATORS))
GIVEN = (("duckdb-*", "*"),)
TRINO = (("duckdb-*", "trino-*"),)
MATCHING = "iceberg.rest-catalog.case-insensitive-name-matching"

CASE = Behaviour(
    id="H-identifier-case", title="t", source="s", document="d", table=TABLE,
    steps=(),
    variants=(
        Variant("upper", steps=(*create("upper"), find("upper"), NAMES), pairs=ALL),
        Variant("lower", steps=(*create("lower"), find("lower"), NAMES), pairs=ALL),
        Variant("mixed", steps=(*create("mixed"), find("mixed"), NAMES), pairs=ALL),
        Variant("mixed-quoted", "spark-*,trino-*,duckdb-*", steps=(*create("mixed", quoted=True), find("mixed", quoted=True), NAMES), pairs=ALL),
        Variant("upper-as-lower", steps=(*create("upper"), find("lower"), NAMES), pairs=GIVEN),
        Variant("lower-as-upper", steps=(*create("lower"), find("upper"), NAMES), pairs=GIVEN),
        Variant("mixed-as-lower", steps=(*create("mixed"), find("lower"), NAMES), pairs=GIVEN),
        Variant("column-as-lower", steps=(*create("upper"), Step("find", {"*": "SELECT id FROM lab.{namespace}_NAMES.SALES"}, Call("scan", {"namespace": "{namespace}_NAMES", "table": "SALES", "columns": ["id"]}), truth=((1,),), second=True), NAMES), pairs=GIVEN),
        *(Variant(f"{s}-without-matching", steps=(*create(s), find(s), NAMES), pairs=TRINO, second_settings={MATCHING: "false"}) for s in SPELLINGS),
        Variant("columns-create", steps=(*create("upper", columns=("id", "ID")), NAMES), pairs=(("*", "="),)),
        Variant("columns", steps=(*create("upper", columns=("id", "ID")), Step("find", {"*": "SELECT * FROM lab.{namespace}_NAMES.SALES"}, Call("scan", {"namespace": "{namespace}_NAMES", "table": "SALES"}), truth=((1, 2),), second=True), NAMES), pairs=(("pyiceberg-*", "*"),)),
        Variant("columns-by-name", steps=(*create("upper", columns=("id", "ID")), Step("find", {"*": "SELECT id, ID FROM lab.{namespace}_NAMES.SALES"}, Call("scan", {"namespace": "{namespace}_NAMES", "table": "SALES", "columns": ["id", "ID"]}), truth=((1, 2),), second=True), NAMES), pairs=(("pyiceberg-*", "*"),)),
        Variant("columns-case-sensitive", steps=(*create("upper", columns=("id", "ID")), Step("find", {"*": "SELECT id, ID FROM lab.{namespace}_NAMES.SALES"}, second=True, truth=((1,2),)), NAMES), pairs=(("pyiceberg-*", "spark-*"),), second_settings={"spark.sql.caseSensitive": "true"}),
        Variant("column-insensitive", steps=(*create("upper"), Step("find", call=Call("scan", {"namespace": "{namespace}_NAMES", "table": "SALES", "columns": ["id"], "case_sensitive": False}), truth=((1,),), second=True), NAMES), pairs=(("duckdb-*","pyiceberg-*"),)),
    ),
    expect=(Expect(Outcome.WORKS, "observing today"),),
    tags=("names",),
)
