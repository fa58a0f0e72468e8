"""Document H on the case of names: who stores which spelling, and who finds a table by another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lab.model import Behaviour, Call, Chain, Claim, Control, Cure, Expect, Outcome, Step, Table, Trap, Variant, Where

# Namespace, table and column in one spelling each, made by the case's own steps: how the creating engine stores them
# is the question.
SPELLINGS = {
    "upper": ("{namespace}_NAMES", "SALES", "ID"),
    "lower": ("{namespace_lower}_names", "sales", "id"),
    "mixed": ("{namespace_mixed}_Names", "Sales", "Id"),
}
STORED = {
    spelling: {"names.namespace": spelling, "names.table": table, "names.columns": [column]}
    for spelling, (_, table, column) in SPELLINGS.items()
}
# A table whose name alone is in another case than the lower one: its namespace is found, so that it is the table's
# name that is looked for in vain.
STORED_AS = {**SPELLINGS, "upper-table": ("{namespace_lower}_names", "SALES", "ID")}
QUOTES = {"spark": "`", "trino": '"', "duckdb": '"'}
TWO = ("id", "ID")  # columns that differ by case alone

OWN = Table("OWN", format_version=2, columns=(("ID", "int"),), rows=((1,),))


def _said(statement: str, spelling: str, quoted: bool = False) -> Mapping[str, str]:
    """A statement per dialect; `{n}`, `{t}` and `{c}` stand for namespace, table and column in this spelling."""
    said = {}
    for kind, quote in QUOTES.items():
        n, t, c = (f"{quote}{name}{quote}" if quoted else name for name in STORED_AS[spelling])
        said[kind] = statement.replace("{t}", f"lab.{n}.{t}").replace("{n}", f"lab.{n}").replace("{c}", c)
    return said


def create(spelling: str, *columns: str, quoted: bool = False) -> tuple[Step, ...]:
    """A namespace, a table of integers in it (these columns, else its own one) and a row 1, 2, … in that."""
    namespace, table, column = STORED_AS[spelling]
    at, row = {"namespace": namespace, "table": table}, {name: n for n, name in enumerate(columns or (column,), 1)}
    declared = ", ".join(f"{name} int" for name in columns or ("{c}",))
    made = _said(f"CREATE TABLE {{t}} ({declared})", spelling, quoted)
    filled = _said(f"INSERT INTO {{t}} VALUES ({', '.join(map(str, row.values()))})", spelling, quoted)
    return (
        Step(
            "create-namespace",
            _said("CREATE SCHEMA {n}", spelling, quoted),
            Call("create_namespace", {"namespace": namespace}),
        ),
        Step(
            "create",
            {**made, "spark": f"{made['spark']} USING iceberg"},
            Call("create_table", {**at, "schema": [(name, "int", False) for name in row]}),
        ),
        Step("insert", filled, Call("append", {**at, "rows": [row]})),
    )


def find(spelling: str, *columns: str, quoted: bool = False, case_sensitive: bool = True) -> Step:
    """What the second engine says to find the table by this spelling, and in it these columns, else the table's own."""
    namespace, table, column = SPELLINGS[spelling]
    args: dict[str, Any] = {"namespace": namespace, "table": table, "columns": list(columns or (column,))}
    if not case_sensitive:
        args["case_sensitive"] = False
    sql = _said(f"SELECT {', '.join(columns or ('{c}',))} FROM {{t}}", spelling, quoted)
    truth = ((1, 2),) if columns in (TWO, ("*",)) else ((1,),)
    return Step("find", sql, Call("scan", args), truth=truth, second=True)


NAMES = Step("names", look="names")
MATCHING = "iceberg.rest-catalog.case-insensitive-name-matching"
CASE_SENSITIVE = "spark.sql.caseSensitive"

# Every generation creates for all. What is found by another spelling than the stored one is asked of a table that
# DuckDB has made, which keeps every name as it is given.
BY_ALL = (("*", "*"),)
GIVEN = (("duckdb-*", "*"),)
GIVEN_TO_TRINO = (("duckdb-*", "trino-*"),)
TWO_GIVEN = (("pyiceberg-*", "*"),)  # PyIceberg makes such a table
MADE_OF_TWO = create("upper", *TWO)


def variant(name: str, stored: str, asked: Step, pairs: tuple[tuple[str, str], ...], **more: Any) -> Variant:
    """A table stored in one spelling and asked for in another."""
    return Variant(name, steps=(*create(stored), asked, NAMES), pairs=pairs, **more)


# ---------------------------------------------------------------- what becomes of it
FOLDED = "Trino folds names to lower case, those in quotes too"
EXACT = "the catalog compares names letter by letter, and this engine asks for the name as it is written"
IN_ANOTHER_CASE = Trap(
    "name-in-another-case",
    "A table is not found: by this name there is none, but perhaps by one in another case",
    r"Table or view not found: |\[TABLE_OR_VIEW_NOT_FOUND\]|Table with name .+ does not exist"
    r"|NoSuchTable\w+: Table does not exist: |404 Client Error: Not Found for url: \S+/namespaces/\S+/tables/",
    {
        "spark-*": "org.apache.iceberg.rest.RESTSessionCatalog.loadTable",
        "duckdb-*": "duckdb::Catalog::CreateMissingEntryException",
        "pyiceberg-*": "pyiceberg.catalog.rest.RestCatalog.load_table",
    },
    remedy="look first whether it is there at all (SHOW SCHEMAS, SHOW TABLES: a misspelt name or another catalog fails "
    "with the same words); write it as it is stored there (quotes change nothing), and where Trino is among the "
    "engines give tables names in lower case: every engine here finds those. If it is a view, take an engine that "
    "reads views: DuckDB and Spark 3.2 ask the catalog for tables alone",
)
NOT_FOUND = {
    "spark-3.2*": Chain((("org.apache.spark.sql.AnalysisException", "Table or view not found: lab."),), whole=True),
    "spark-*": Chain(
        (("ExtendedAnalysisException", "[TABLE_OR_VIEW_NOT_FOUND] The table or view `lab`."),),
        whole=True,
    ),
    "duckdb-*": Chain((("_duckdb.CatalogException", '" does not exist because schema "'),), whole=True),
    "pyiceberg-*": Chain(
        (
            ("pyiceberg.exceptions.NoSuchTableError", "NoSuchTableException: Table does not exist: "),
            ("requests.exceptions.HTTPError", "404 Client Error: Not Found for url: "),
        ),
        whole=True,
    ),
}


NO_TABLE_IN_DUCKDB = Chain((("_duckdb.CatalogException", "Table with name sales does not exist!"),), whole=True)


def not_found(
    reason: str, variants: str, writers: str = "*", chains: Mapping[str, Chain] = NOT_FOUND, **more: Any
) -> tuple[Expect, ...]:
    """All but Trino do not find it."""
    trap = IN_ANOTHER_CASE
    return tuple(
        Expect(Outcome.ERROR, reason, who, variants, writers, failure=chain, trap=trap, **more)
        for who, chain in chains.items()
    )


RENAME = f"rename one of them with an engine that tells them apart: PyIceberg, or Spark with {CASE_SENSITIVE}=true"
COLUMNS = Trap(
    "columns-by-case",
    "Columns that differ by case alone can't be declared, or make the table unreadable",
    r"Found duplicate column\(s\) in the table definition|\[COLUMN_ALREADY_EXISTS\]"
    r"|Column with name \w+ already exists!|Column name '\w+' specified more than once",
    {
        "spark-*": "org.apache.spark.sql.util.SchemaUtils.checkColumnNameDuplication",
        "duckdb-*": "duckdb::ColumnList::AddToNameMap",
        "trino-*": "io.trino.execution.CreateTableTask.internalExecute",
    },
    remedy=RENAME,
)
AMBIGUOUS = Trap(
    "column-ambiguous-by-case",
    "A column is ambiguous because another one differs from it by case alone",
    r"Reference [`'].+[`'] is ambiguous, could be: ",
    "org.apache.spark.sql.catalyst.expressions.package$AttributeSeq.resolve",
)
TRINO_COLUMNS = Trap(
    "trino-columns-by-case",
    "Trino can't read a table with two columns that differ by case alone",
    r"Multiple entries with same key: \w+=",
    "io.trino.metadata.MetadataManager.getColumnHandles",
    remedy=RENAME,
)
TRINO_NAMES = Trap(
    "trino-name-matching",
    "Trino says that a schema or a table with capital letters does not exist",
    r"(?:TrinoException|_NOT_FOUND): .*(Schema|Table) '.+' does not exist",
    "io.trino.plugin.iceberg.catalog.rest.TrinoRestCatalog.namespaceExists",
    remedy="look first with another engine whether it is there at all: a misspelt name fails with the same words",
)
PYICEBERG_COLUMN = Trap(
    "pyiceberg-column-case",
    "PyIceberg does not find a column by its name in another case",
    r"Could not find column: (?!'_row_id')",
    "pyiceberg.schema.Schema.select",
)

CASE = Behaviour(
    id="H-identifier-case",
    title="Names in upper, lower and mixed case, with quotes and without",
    source="H, verifications 1 to 3",
    document="unquoted names are upper case in Horizon; the documents read them from Spark in either case and from "
    "Athena SQL, a Trino, in lower case",
    table=OWN,
    steps=(),
    variants=(
        *(
            # In mixed case as in upper, in every one of its cells.
            replace(variant(spelling, spelling, find(spelling), BY_ALL), full=spelling == "mixed")
            for spelling in SPELLINGS
        ),
        *(
            Variant(
                f"{spelling}-quoted",
                "spark-*,trino-*,duckdb-*",
                steps=(*create(spelling, quoted=True), find(spelling, quoted=True), NAMES),
                pairs=BY_ALL,
                full=True,  # as without quotes in every one of its cells
            )
            for spelling in SPELLINGS
        ),
        variant("upper-as-lower", "upper", find("lower"), GIVEN),
        variant("lower-as-upper", "lower", find("upper"), GIVEN),
        variant("mixed-as-lower", "mixed", find("lower"), GIVEN),
        variant("table-as-lower", "upper-table", find("lower"), GIVEN),
        *(
            variant(f"{name}-without-matching", name, find(name), GIVEN_TO_TRINO, second_settings={MATCHING: "false"})
            for name in SPELLINGS
        ),
        variant(
            "table-as-lower-without-matching",
            "upper-table",
            find("lower"),
            GIVEN_TO_TRINO,
            second_settings={MATCHING: "false"},
        ),
        variant(
            "with-matching",
            "mixed",
            find("mixed"),
            GIVEN_TO_TRINO,
            second_settings={MATCHING: "true"},
            cure=Cure(
                Where.TRINO_CATALOG,
                cost="Trino lists namespaces and tables to find a name; names that differ by case alone are in each "
                "other's way",
                variants="upper-without-matching,mixed-without-matching,table-as-lower-without-matching",
            ),
        ),
        variant("column-as-lower", "upper", find("upper", "id"), GIVEN),
        variant(
            "column-in-any-case",
            "upper",
            find("upper", "id", case_sensitive=False),
            (("duckdb-*", "pyiceberg-*"),),
            cure=Cure(
                Where.ELSEWHERE,
                cost="nothing known",
                text='table.scan(selected_fields=("id",), case_sensitive=False)',
                variants="column-as-lower",
            ),
        ),
        Variant("two-columns-declared", steps=(*MADE_OF_TWO, NAMES)),
        Variant(
            "two-columns-declared-case-sensitive",
            "spark-*",
            settings={CASE_SENSITIVE: "true"},
            steps=(*MADE_OF_TWO, NAMES),
            cure=Cure(
                Where.SPARK_SESSION,
                cost="the session's statements must spell every column as it is stored, and Trino and DuckDB can't "
                "read such a table",
                variants="two-columns-declared",
            ),
        ),
        Variant("two-columns", steps=(*MADE_OF_TWO, find("upper", "*"), NAMES), pairs=TWO_GIVEN),
        Variant("two-columns-by-name", steps=(*MADE_OF_TWO, find("upper", *TWO), NAMES), pairs=TWO_GIVEN),
        Variant(
            "two-columns-case-sensitive",
            steps=(*MADE_OF_TWO, find("upper", *TWO), NAMES),
            pairs=(("pyiceberg-*", "spark-*"),),
            second_settings={CASE_SENSITIVE: "true"},
            cure=Cure(
                Where.SPARK_SESSION,
                cost="the session's statements must spell every column as it is stored",
                variants="two-columns,two-columns-by-name",
            ),
        ),
    ),
    claims=(Claim("spark-3.2*,spark-3.5*,trino-*", Outcome.WORKS, variants="upper-as-lower"),),
    expect=(
        # found by the spelling that its creator used
        *not_found(
            f"{FOLDED}, before it makes anything of that name; {EXACT}",
            "upper,upper-quoted,mixed,mixed-quoted",
            "trino-*",
        ),
        Expect(
            Outcome.WORKS,
            f"{FOLDED}: the table is stored in lower case, and by that name all find it",
            variants=",".join(f"{spelling},{spelling}-quoted" for spelling in SPELLINGS),
            writers="trino-*",
            facts=STORED["lower"],
        ),
        *(
            Expect(
                Outcome.WORKS,
                "stored as it was written, with quotes and without, and found by that spelling; by Trino because its "
                f"catalog has {MATCHING}=true in this lab",
                variants=f"{spelling},{spelling}-quoted",
                facts=STORED[spelling],
            )
            for spelling in SPELLINGS
        ),
        # found by another spelling
        *not_found(
            EXACT,
            "upper-as-lower",
            cause="the catalog's exact names (org.apache.iceberg.jdbc.JdbcCatalog); Horizon's are found in either case",
            control=Control(variant="lower"),
        ),
        *not_found(EXACT, "lower-as-upper,mixed-as-lower"),
        *not_found(EXACT, "table-as-lower", chains={**NOT_FOUND, "duckdb-*": NO_TABLE_IN_DUCKDB}),
        Expect(
            Outcome.WORKS,
            f"{FOLDED}, and with {MATCHING}=true looks for them in any case",
            variants="upper-as-lower,lower-as-upper,mixed-as-lower,table-as-lower,with-matching",
        ),
        Expect(Outcome.WORKS, "the name is stored as Trino asks for it", variants="lower-without-matching"),
        *(
            Expect(
                Outcome.ERROR,
                f"{FOLDED}, and without {MATCHING} asks the catalog for that name: it finds nothing that another "
                "engine made with a capital letter",
                variants=variants,
                failure=Chain(
                    ((code, "' does not exist"), ("io.trino.spi.TrinoException", "' does not exist")), whole=True
                ),
                trap=TRINO_NAMES,
            )
            for variants, code in {
                "table-as-lower-without-matching": "TABLE_NOT_FOUND",
                "*-without-matching": "SCHEMA_NOT_FOUND",
            }.items()
        ),
        # columns
        Expect(
            Outcome.ERROR,
            "a scan looks its columns up letter by letter unless it is told otherwise",
            generations="pyiceberg-*",
            variants="column-as-lower",
            failure=Chain((("ValueError", "Could not find column: 'id'"), ("KeyError", "'id'")), whole=True),
            trap=PYICEBERG_COLUMN,
        ),
        Expect(
            Outcome.WORKS,
            "an engine finds a column in any case, whatever the catalog does with the names of tables",
            variants="column-*",
            facts=STORED["upper"],
        ),
        Expect(
            Outcome.WORKS,
            "told apart by case: by PyIceberg always, by Spark when it is told to",
            variants="two-columns*-case-sensitive",
            facts={"names.columns": list(TWO)},
        ),
        Expect(
            Outcome.WORKS,
            "PyIceberg tells columns apart by case",
            generations="pyiceberg-*",
            facts={"names.columns": list(TWO)},
        ),
        *(
            Expect(
                Outcome.NOT_SUPPORTED,
                "to this engine the two names are one",
                generations=generations,
                variants="two-columns-declared",
                failure=Chain((cause,)),
                trap=COLUMNS,
            )
            for generations, cause in {
                "spark-3.2*": ("AnalysisException", "Found duplicate column(s) in the table definition of "),
                "spark-*": ("AnalysisException", "[COLUMN_ALREADY_EXISTS] The column `id` already exists."),
                "duckdb-*": ("_duckdb.CatalogException", "Column with name ID already exists!"),
                "trino-*": ("DUPLICATE_COLUMN_NAME", "Column name 'ID' specified more than once"),
            }.items()
        ),
        Expect(
            Outcome.ERROR,
            "Spark 4.1 checks a table's columns anew before it reads (V2TableUtil.validateCapturedColumns), and takes "
            "the two names for one",
            generations="spark-4.1*",
            variants="two-columns",
            failure=Chain((("AnalysisException", "[COLUMN_ALREADY_EXISTS] The column `id` already exists."),)),
            trap=COLUMNS,
        ),
        Expect(
            Outcome.WORKS,
            "before 4.1 Spark reads both columns, as long as neither is named",
            generations="spark-*",
            variants="two-columns",
        ),
        *(
            Expect(
                Outcome.ERROR,
                "either name means both columns",
                generations=generations,
                variants="two-columns-by-name",
                failure=Chain((("AnalysisException", text),)),
                trap=AMBIGUOUS,
            )
            for generations, text in {
                "spark-3.2*": "Reference 'id' is ambiguous, could be: ",
                "spark-*": "[AMBIGUOUS_REFERENCE] Reference `id` is ambiguous, could be: ",
            }.items()
        ),
        Expect(
            Outcome.ERROR,
            "DuckDB takes on a table's columns before it reads, and to it the two names are one",
            generations="duckdb-*",
            variants="two-columns*",
            failure=Chain((("_duckdb.CatalogException", "Column with name ID already exists!"),)),
            trap=COLUMNS,
        ),
        Expect(
            Outcome.ERROR,
            "Trino keeps a table's columns by their names in lower case, and finds one of these twice",
            generations="trino-*",
            variants="two-columns*",
            failure=Chain((("GENERIC_INTERNAL_ERROR", "Multiple entries with same key: id="),)),
            trap=TRINO_COLUMNS,
        ),
    ),
    tags=("v2", "names"),
)
