"""Every recorded failure has its one page, and what a page names exists."""

from __future__ import annotations

import ast
import functools
import re
import shlex
import sys
import zipfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from classfile import methods

from lab.behaviours import BEHAVIOURS
from lab.engines import GENERATIONS, spark, trino
from lab.model import ENGINES, Expect, Generation, Trap, Variant, Where
from lab.plan import cases, control_of, select, select_pairs
from lab.provision import Cache, NotProvided
from lab.report import matrix, traps, why
from lab.report.cures import ways
from lab.report.line import FAILED, Line, chain, expected, name, short
from lab.repro import script
from lab.runtime.places import EMBEDDED

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import docs  # noqa: E402 - a script, found by its folder

LINES = [line for line in docs.lines() if line["type"] == "cell"]
FAILING = [line for line in LINES if line["outcome"] in FAILED]
PAGES = traps.pages(LINES)
SPARK, TRINO = "spark-4.1.1+iceberg-1.12.0", ("trino-476", "trino-483")


def line_of(behaviour: str, variant: str, reader: str) -> Line:
    cells = (line for line in LINES if line["cell"]["behaviour"] == behaviour and line["cell"]["variant"] == variant)
    return next(line for line in cells if line["cell"]["reader"] == reader)


# ---------------------------------------------------------------- declarations
def expectations() -> Iterator[tuple[str, Expect]]:
    for behaviour in BEHAVIOURS.values():
        for expect in behaviour.expect:
            yield behaviour.id, expect


def untrapped() -> list[tuple[str, Expect]]:
    return [(i, expect) for i, expect in expectations() if expect.outcome in FAILED and not expect.trap]


def test_every_expected_failure_names_its_trap() -> None:
    """But for what one catalog does itself: no engine's trap, and of a catalog that the published record lacks."""
    without = [f"{i}: {expect.reason[:60]}" for i, expect in untrapped() if expect.catalogs == "*"]
    assert not without


def test_what_a_catalog_itself_does_stands_among_what_catalogs_do_otherwise() -> None:
    told = (ROOT / "docs" / "catalogs.md").read_text("utf-8").partition("## What each does otherwise")[2]
    _, *sections = re.split(r"^So on (.+?)[:,]", told, flags=re.MULTILINE)
    of = {name.partition("'")[0].lower(): section for name, section in zip(sections[::2], sections[1::2], strict=True)}
    own = [(i, expect.catalogs) for i, expect in untrapped() if expect.catalogs != "*"]
    assert own
    assert sorted({(catalog, i) for i, catalog in own if f"`{i}`" not in of[catalog]}) == []


def test_a_trap_has_one_declaration_and_a_name_for_a_file() -> None:
    known: dict[str, Trap] = {}
    for _, expect in expectations():
        if expect.trap:
            assert known.setdefault(expect.trap.id, expect.trap) == expect.trap
            assert re.fullmatch(r"[a-z0-9-]+", expect.trap.id)
            re.compile(expect.trap.symptom)


def test_what_every_generation_creates_is_read_by_all_others() -> None:
    pairs: dict[str, set[tuple[str, str]]] = {}
    for case in cases(select({"behaviours": "H-identifier-case"})):
        pairs.setdefault(case.cell.variant, set()).add((case.cell.writer, case.cell.reader))
    engines = [name for name, generation in GENERATIONS.items() if generation.kind in ENGINES]
    quoting = [name for name in engines if GENERATIONS[name].kind != "pyiceberg"]
    for spelling in ("upper", "lower", "mixed"):
        assert pairs[spelling] == set(product(engines, engines))
        assert pairs[f"{spelling}-quoted"] == set(product(quoting, engines))


def test_a_name_is_looked_for_whose_tables_part_alone_is_in_another_case() -> None:
    variants = {variant.name: variant for variant in BEHAVIOURS["H-identifier-case"].variants}
    for variant in ("table-as-lower", "table-as-lower-without-matching"):
        sql = {step.name: str(step.statement("duckdb")) for step in variants[variant].steps or ()}
        (stored,), (asked,) = (re.findall(r"lab\.(\S+)\.(\w+)", sql[step]) for step in ("insert", "find"))
        assert (stored[0], stored[1].lower(), stored[1]) == (asked[0], asked[1], "SALES")


def test_what_a_client_learns_of_versions_is_held_against_the_document() -> None:
    over_connect = [c for c in cases(select({"behaviours": "H-connect-conf"})) if c.cell.variant == "versions-connect"]
    assert over_connect
    for case in over_connect:
        told, claim = case.behaviour.expectation(case.cell), case.behaviour.claim(case.cell)
        assert told is not None
        assert claim is not None
        assert (told.outcome, claim.outcome, bool(told.cause)) == ("works", "error", True)
        control = control_of(case)
        assert control is not None
        turned = case.behaviour.expectation(control)
        assert turned is not None
        assert turned.outcome == claim.outcome


# ---------------------------------------------------------------- messages
@pytest.mark.parametrize("line", [line for line in FAILING if chain(line)], ids=lambda line: name(line["cell"]))
def test_a_recorded_message_leads_to_exactly_one_page(line: Line) -> None:
    told = expected(line)
    assert told is not None
    assert told.trap is not None
    assert [i for i, page in PAGES.items() if traps.said_by(page.trap, chain(line))] == [told.trap.id]


def test_a_line_of_a_log_finds_the_page_and_so_do_some_words_of_it() -> None:
    log = (
        "2026-11-30 04:20:11 ERROR TaskSetManager: Caused by: java.lang.UnsupportedOperationException: Cannot support "
        "vectorized reads for column [ID] optional int64 ID = 1 with encoding DELTA_BINARY_PACKED. Disable vectorized"
    )
    for words in (log, "cannot support VECTORIZED  reads"):
        assert [page.trap.id for page in traps.find(words, PAGES.values())] == ["vectorized-encoding"]
    assert traps.find("no such message", PAGES.values()) == []


def found(words: str) -> list[str]:
    """The ids of the pages that `iceberg-lab why` finds."""
    return [page.trap.id for page in traps.find(words, PAGES.values())]


def trap_of(line: Line) -> str:
    told = expected(line)
    assert told is not None
    assert told.trap is not None
    return told.trap.id


# Links that say only that something below them failed, or of which class it is.
VAGUE = re.compile(
    r"SparkException: (Writing job aborted$|\[INTERNAL_ERROR\] The Spark SQL phase )|NullPointerException: $"
    r"|UncheckedIOException: Failed to close current writer$"
    r"|: Error committing write (to Parquet file|parquet to Hive)$"
)


def test_a_link_of_any_recorded_chain_finds_exactly_one_page() -> None:
    """But for a vague one: it leads to all traps that have it."""
    of: dict[str, set[str]] = {}
    for line in FAILING:
        for link in chain(line):
            of.setdefault(link, set()).add(trap_of(line))
    assert [link for link, ids in of.items() if len(ids) > 1 and not VAGUE.search(link)] == []
    assert {pattern for link in of if (pattern := VAGUE.search(link))}
    assert not [(link, found(link)) for link, ids in of.items() if not VAGUE.search(link) and set(found(link)) != ids]
    assert not [(link, found(link)) for link, ids in of.items() if not set(found(link)) >= ids]


def test_a_whole_chain_as_a_log_has_it_finds_exactly_one_page() -> None:
    logs = {"\nCaused by: ".join(chain(line)): trap_of(line) for line in FAILING if chain(line)}
    assert not [log for log, trap in logs.items() if found(log) != [trap]]


def test_others_words_find_exactly_the_page_that_has_them() -> None:
    said = [(words, page.trap.id) for page in PAGES.values() for words in page.trap.also]
    assert said
    for words, trap in said:
        assert found(words) == [trap]
        assert found(f"ERROR Executor: {words} and what else a line of a log has") == [trap]


USER = "User: arn:aws:sts::123456789012:assumed-role/lake/session is not authorized to perform: s3:DeleteObject"
ON = 'on resource: "arn:aws:s3:::b/db/t/data/f.parquet" because no session policy allows the s3:DeleteObject action'
IN_S3 = "(Service: S3, Status Code: 403, Request ID: 18EC, Extended Request ID: x=)"


@pytest.mark.parametrize(
    ("words", "trap"),
    [
        # what issue 5 says that an engineer's log says
        ("Cannot support vectorized reads", "vectorized-encoding"),
        ("Cannot handle timestamp without timezone", "timestamp-without-zone"),
        ("403 s3:DeleteObject", "delete-403"),
        # a name that is not the lab's, and the table's alone
        ("AnalysisException: Table or view not found: prod.ANALYTICS.ORDERS; line 1 pos 14", "name-in-another-case"),
        ("Catalog Error: Table with name sales does not exist!", "name-in-another-case"),
        ("TrinoException: line 1:15: Table 'prod.analytics.orders' does not exist", "trino-name-matching"),
        ("TABLE_NOT_FOUND: line 1:15: Table 'prod.analytics.orders' does not exist", "trino-name-matching"),
        # AWS's own words, short and long, with and without what stands around them
        (f"S3Exception: Access Denied {IN_S3}", "delete-403"),
        (f"S3Exception: {USER} {ON} {IN_S3}", "delete-403"),
        (f"Caused by: software.amazon.awssdk.services.s3.model.S3Exception:\n {USER}\n {ON} {IN_S3}", "delete-403"),
        (f"{USER} {ON}", "delete-403"),
        (f"java.io.IOException: Failed to delete one or more files: {{s3://b/f={USER} {ON}}}", "delete-403-trino"),
    ],
)
def test_what_an_engineers_log_says_finds_exactly_one_page(words: str, trap: str) -> None:
    assert found(words) == [trap]


def test_a_name_that_is_not_found_may_be_misspelt() -> None:
    for trap in ("name-in-another-case", "trino-name-matching"):
        assert "misspelt" in traps.markdown(PAGES[trap])


# ---------------------------------------------------------------- cures
def cells_with_a_cure() -> Iterator[tuple[Line, Variant, Line]]:
    """Cells that fail or differ, each with a variant that is declared to cure it and its cell there, if that ran."""
    key = ("behaviour", "variant", "writer", "reader", "store")
    places = {tuple(line["cell"][k] for k in key): line for line in LINES}
    for line in LINES:
        if line in FAILING or line["claim"] == "differs":
            cell = line["cell"]
            for variant in traps.curing(line):
                there = places.get(tuple({**cell, "variant": variant.name}[k] for k in key))
                if there and there["outcome"] != "not-run":
                    yield line, variant, there


def said(variant: Variant) -> tuple[object, ...]:
    """What a user is told of a variant's cure: one for many variants, where they say the same."""
    assert variant.cure
    return variant.cure.where, tuple(variant.cured_by().items()), variant.cure.text, variant.cure.cost


def test_a_cure_helps_all_cells_of_a_trap_or_none() -> None:
    helped: dict[tuple[str, str, str], dict[str, bool]] = {}
    for line, variant, there in cells_with_a_cure():
        told = expected(line)
        trap = told.trap.id if told and told.trap else ""
        key = (trap, line["cell"]["behaviour"], variant.name)
        helped.setdefault(key, {})[name(line["cell"])] = there["outcome"] == "works"
    assert any(all(cells.values()) for cells in helped.values())
    for key, cells in helped.items():
        assert len(set(cells.values())) == 1, f"{key}: {cells}"


def test_a_cure_is_what_the_cured_cell_ran_with_and_helps_somewhere() -> None:
    declared = {said(variant) for behaviour in BEHAVIOURS.values() for variant in behaviour.variants if variant.cure}
    for _, variant, there in cells_with_a_cure():
        if there["outcome"] != "works":
            continue
        declared.discard(said(variant))
        if variant.cure and variant.cure.where in (Where.SPARK_SESSION, Where.SPARK_START, Where.DUCKDB_SESSION):
            assert variant.cured_by().items() <= there["settings"][there["cell"]["reader"]].items()
    assert not declared, "no recorded cell shows these cures to help"


@pytest.mark.parametrize(
    ("where", "setting", "lines"),
    [
        (Where.SPARK_SESSION, ("spark.sql.a", "false"), ["SET spark.sql.a=false", "spark.sql.a false"]),
        (Where.SPARK_SESSION, ("spark.sql.a-b", "1"), ["SET `spark.sql.a-b`=1", "spark.sql.a-b 1"]),
        (Where.SPARK_START, ("spark.sql.x", "E"), ["spark.sql.x E", "--conf spark.sql.x=E"]),
        (
            Where.SPARK_CATALOG,
            ("spark.sql.catalog.lab.io-impl", "F"),
            ["spark.sql.catalog.CATALOG.io-impl F", "SET `spark.sql.catalog.CATALOG.io-impl`=F"],
        ),
        (Where.TRINO_SESSION, ("merge_enabled", "true"), ["SET SESSION CATALOG.merge_enabled = true"]),
        (Where.TRINO_SESSION, ("age", "7d"), ["SET SESSION CATALOG.age = '7d'"]),
        (Where.TRINO_CATALOG, ("iceberg.x", "y"), ["iceberg.x=y"]),
        (Where.DUCKDB_SESSION, ("TimeZone", "UTC"), ["SET TimeZone = 'UTC'"]),
        (Where.DUCKDB_ATTACH, ("attach.READ_ONLY", "false"), ["READ_ONLY 'false'"]),
        (Where.PYICEBERG_CATALOG, ("s3.region", "r"), ["s3.region: r"]),
        (Where.TABLE, ("k", "v"), ["ALTER TABLE db.t SET TBLPROPERTIES ('k'='v')", "k=v"]),
        (Where.ELSEWHERE, ("k", "v"), []),
    ],
)
def test_a_cure_is_said_in_the_users_syntax(where: Where, setting: tuple[str, str], lines: list[str]) -> None:
    assert [line for way in ways(where, dict([setting])) for line in way.lines] == lines


def test_what_is_no_setting_is_told_as_it_is() -> None:
    assert [way.lines for way in ways(Where.ELSEWHERE, {}, "ask the bucket's owner")] == [("ask the bucket's owner",)]


def test_the_cure_stands_under_the_failing_cell_in_the_matrix() -> None:
    shown = matrix.markdown([line for line in LINES if line["cell"]["behaviour"] == "H-ntz-old"]).splitlines()
    (failing,) = (place for place, text in enumerate(shown) if "Cannot handle timestamp" in text)
    assert "cure: SET `spark.sql.iceberg.handle-timestamp-without-timezone`=true" in shown[failing + 1]
    assert "iceberg-lab why timestamp-without-zone" in shown[failing + 2]


# ---------------------------------------------------------------- pages
def test_the_pages_show_the_record_and_no_page_is_left_over() -> None:
    written = {file.name: file.read_text("utf-8") for file in docs.TRAPS.glob("*.md")}
    assert written == docs.trap_pages(), "run: python scripts/docs.py"


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_is_short_and_says_all_that_a_user_asks(page: traps.Page) -> None:
    text = traps.markdown(page)
    for word in ("**Fails on**", "**Cause**", "**Code**", "**Cure**", "**Source**", "**See it**"):
        assert word in text
    assert len([line for line in text.splitlines() if line.strip()]) <= 18  # a dozen, and one for each more cure


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_is_seen_by_a_command_that_runs_its_cell(page: traps.Page) -> None:
    (see,) = re.findall(r"\*\*See it\*\* `iceberg-lab (.*)`", traps.markdown(page))
    command, *words = shlex.split(see)
    options = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    cell = page.failing[0]["cell"]
    if command == "pairs":
        picked = [options.get(name) for name in ("feature", "writer", "reader")]
        planned = select_pairs(*picked, full=False).cases(EMBEDDED)
    else:
        planned = cases(select(dict(options)))
    key = ("behaviour", "variant", "writer", "reader", "store")
    assert [cell[k] for k in key] in [[getattr(case.cell, k) for k in key] for case in planned]


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_tells_a_wording_once_and_of_every_generation_why_it_fails_so(page: traps.Page) -> None:
    name = re.compile(r"\w*H_\w+_[0-9A-F]{8}\S*|[\"'`][^\"'`]*[\"'`]", re.IGNORECASE)
    told = [name.sub("", re.split(r"LINE \d", wording)[0]) for wording in page.wordings]
    assert len(told) == len(set(told))
    for wording, lines in page.wordings.items():
        who = {line["cell"]["reader"] for line in lines}
        assert who == {name for said in page.told.values() for name in said.get(wording, ())}
    text = traps.markdown(page)
    assert all(generation in text for generation in page.generations)
    worded = [w for w in page.wordings if not w.endswith(": ")]  # else there are no words but a class's name
    assert [w for w in worded if w and text.count(short(w)) > 1] == [], "said twice"


def test_the_same_works_on_who_writes_it_where_writing_fails() -> None:
    view = ("spark-3.5.6+iceberg-1.10.0", "spark-4.0.1+iceberg-1.10.0", "spark-4.1.1+iceberg-1.11.0", SPARK, *TRINO)
    assert PAGES["spark-no-view"].works == view
    assert {"spark-4.1.1+iceberg-1.11.0", "trino-483"} <= set(PAGES["pyiceberg-core"].works)


def test_a_page_says_which_generation_fails_for_which_encoding() -> None:
    who: dict[bool, set[str]] = {True: set(), False: set()}
    for reason, said in PAGES["vectorized-encoding"].told.items():
        who["has RLE in no release" in reason].update(name for names in said.values() for name in names)
    assert who[True] - who[False] == {name for name in GENERATIONS if name.startswith("spark-4.1")}


def test_a_behaviours_page_has_claim_outcomes_and_the_failing_statements() -> None:
    text = why.markdown(BEHAVIOURS["H-v3-update"], LINES, list(GENERATIONS), script)
    for part in ("blames Spark 3.5 as such", "| H-v3-update", "Structs do not match", "spark.sql.extensions "):
        assert part in text
    assert "UPDATE lab.DEMO.ORDERS_V3 SET QUANTITY = 2 WHERE ORDER_ID = 1;" in text


def test_a_script_ends_with_the_failing_statement() -> None:
    told = script(line_of("H-ntz-old", "flag-off", "spark-3.2.1+iceberg-1.4.2")).splitlines()
    assert told[1] == "CREATE SCHEMA IF NOT EXISTS lab.DEMO;"
    assert told[-2:] == [
        "-- without spark.sql.iceberg.handle-timestamp-without-timezone",
        "SELECT * FROM lab.DEMO.ORDERS_V2;",
    ]


# ---------------------------------------------------------------- code
NAMED = [(code, who) for page in PAGES.values() for code, names in page.code.items() for who in names]


@pytest.mark.parametrize(
    ("code", "generation"),
    [*sorted(set(NAMED)), ("duckdb::IcebergUtils::GetFullPath", "duckdb-1.5.5")],  # that each language's check works
)
def test_the_code_that_a_page_names_exists_in_that_generation(code: str, generation: str) -> None:
    cache = Cache(offline=True)
    try:
        assert exists(cache, GENERATIONS[generation], code)
    except NotProvided as missing:
        pytest.skip(str(missing))


def test_a_wrong_name_is_noticed() -> None:
    page = PAGES["timestamp-without-zone"]
    (code,) = page.code
    cache = Cache(offline=True)
    try:
        assert not exists(cache, GENERATIONS[page.generations[0]], f"{code}s")
    except NotProvided as missing:
        pytest.skip(str(missing))


def exists(cache: Cache, generation: Generation, code: str) -> bool:
    """Whether a generation's own artefacts have this method or function. Raises NotProvided without them."""
    where, _, what = code.rpartition(".")
    if generation.kind == "pyiceberg":
        return what in _python(cache.environment(generation.name), where)
    if generation.kind == "duckdb":
        symbol = "".join(f"{len(part)}{part}" for part in code.split("::"))
        pattern = re.compile(rf"_ZNK?{symbol}E".encode())  # as C++ compilers write a method's name
        binaries = [
            b for b in cache.environment(generation.name).rglob("*") if b.suffix in (".duckdb_extension", ".so")
        ]
        return any(pattern.search(binary.read_bytes()) for binary in binaries)
    entry = f"{where.replace('.', '/')}.class"
    jar = _classes(generation.name).get(entry)
    if jar is None:
        return False
    with zipfile.ZipFile(jar) as archive:
        return what in methods(archive.read(entry))


@functools.cache
def _classes(generation: str) -> dict[str, Path]:
    """Each class of a generation → the first jar on its class path that has it."""
    found: dict[str, Path] = {}
    for jar in _jars(Cache(offline=True), GENERATIONS[generation]):
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                found.setdefault(entry, jar)
    return found


def _jars(cache: Cache, generation: Generation) -> list[Path]:
    if generation.kind == "spark":
        return spark.files(cache, generation)
    if generation.kind == "trino":
        server, plugin = generation.artefacts
        return [*trino._jars(cache, plugin, "*.jar"), *trino._jars(cache, server, "lib/*")]
    closures = (a for a in generation.artefacts if a.startswith("maven-closure:"))
    return [jar for closure in closures for jar in cache.closure(closure)]


def _python(site: Path, where: str) -> set[str]:
    """The functions of a module, or of one of its classes: `pyiceberg.manifest`, `pyiceberg.io.pyarrow.ArrowScan`."""
    parts, inner = where.split("."), []
    while not (file := site.joinpath(*parts).with_suffix(".py")).exists():
        if (file := site.joinpath(*parts, "__init__.py")).exists():
            break
        inner.insert(0, parts.pop())
    body = ast.parse(file.read_text("utf-8")).body
    for cls in inner:
        (body,) = (node.body for node in body if isinstance(node, ast.ClassDef) and node.name == cls)
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}
