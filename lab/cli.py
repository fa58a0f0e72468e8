"""The command `iceberg-lab`: words of the user to calls, answers to what people and programs read. Thin."""

from __future__ import annotations

import io
import json
import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

import lab
from lab import labs, plan, repro
from lab.behaviours import BEHAVIOURS
from lab.catalogs.signing import BY
from lab.engines import GENERATIONS, remote
from lab.errors import LabError, UsageError
from lab.generating import Order
from lab.images.command import compose, images
from lab.model import Access, Failure, Generation, Rows
from lab.records import compare as comparing
from lab.records.record import as_json, read, recorded, valid
from lab.records.verdict import judge
from lab.report import inspecting, state, traps
from lab.report import line as of_line
from lab.report import matrix as report
from lab.report import pairs as pairing
from lab.report import why as pages
from lab.runtime.places import Places
from lab.tables import inspection
from lab.tables.generated import LIKE

# Where nobody's terminal sets the width, lines are as long as they need to be.
# No markup: what an engine answers is data, brackets included.
OUT = Console(markup=False, width=None if sys.stdout.isatty() else 240)
ERR = Console(stderr=True, markup=False, width=None if sys.stderr.isatty() else 240)
# Runs on a quiet machine, published with the lab: a whole one, and what another store does otherwise.
RECORDS = sorted((Path(lab.__file__).parents[1] / "docs").glob("record*.jsonl"), key=lambda file: len(file.name))
FORMATS = ("table", "json", "markdown")

Command = Callable[..., Any]


class Group(click.Group):
    """Shows the lab's own errors as one line, and exits as the help says."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as e:
            ERR.print(Text.assemble(("usage: ", "bold red"), str(e)))
            ctx.exit(2)
        except LabError as e:
            ERR.print(Text.assemble(("could not run: ", "bold red"), str(e)))
            ctx.exit(3)
        except OSError as e:  # a folder that can't be written, a disk that is full: the user's to mend
            where = f" ({e.filename}); ICEBERG_LAB_STATE and ICEBERG_LAB_CACHE name other folders" if e.filename else ""
            ERR.print(Text.assemble(("could not run: ", "bold red"), f"{e.strerror or e}{where}"))
            ctx.exit(3)
        except KeyboardInterrupt as e:
            ERR.print("interrupted; what was observed before is kept in the run's record")
            if labs.is_up():
                ERR.print("the lab that is up goes on; end it with: iceberg-lab down")
            ctx.exit(128 + (e.args[0] if e.args else signal.SIGINT))


def _selects(command: Command) -> Command:
    """The one grammar of selection: every option takes comma-separated globs."""
    for name, text in reversed(plan.OPTIONS.items()):
        command = click.option(f"--{name}", metavar="GLOBS", help=text)(command)
    return command


def _placed(command: Command) -> Command:
    """Where the lab lives."""
    for name in reversed(Places.__annotations__):
        command = click.option(f"--{name}", metavar="NAME", help=plan.OPTIONS[name])(command)
    return command


def _remotes(command: Command) -> Command:
    """Engines of the user's own."""
    option = click.option(
        "--remote",
        "remotes",
        metavar="FILE",
        type=Path,
        multiple=True,
        help="an engine of your own, declared in this file (see README); may be repeated. A folder of "
        f"such files is named by ${remote.FOLDER}",
    )
    return option(command)


def _formats(*formats: str) -> Callable[[Command], Command]:
    kind = click.Choice(formats)
    return click.option("--format", "form", type=kind, default=formats[0], show_default=True)


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 all as expected, 1 something unexpected, 2 usage, 3 could not run.",
)
@click.version_option(lab.__version__, prog_name="iceberg-lab")
def main() -> None:
    """What engines really do with each other's Apache Iceberg tables, observed on this machine.

    \b
    iceberg-lab matrix                                  everything: provisions, runs, shows the matrix
    iceberg-lab matrix --generations 'duckdb*,trino*'   some engines only
    iceberg-lab sql spark-3.5.6+iceberg-1.10.0 "SELECT * FROM lab.ANALYTICS.ORDERS_V2"
    """
    signal.signal(signal.SIGTERM, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an ASCII terminal shows a sign less, not a stack trace
            stream.reconfigure(errors="replace")


def _interrupt(number: int, _: object) -> None:
    """A polite kill ends a run like Ctrl-C: what it started is stopped at once."""
    raise KeyboardInterrupt(number)


@main.command()
@_selects
@click.option("--seed", metavar="GENERATION", help=f"makes the tables  [default: {plan.DEFAULT_SEED}]")
@_remotes
@click.option("--record", metavar="FILE", type=Path, help="show an earlier run's record instead of running anything")
@_formats(*FORMATS)
def matrix(form: str, seed: str | None, remotes: tuple[Path, ...], record: Path | None, **words: str | None) -> None:
    """Run behaviours on engine generations and show what each did.

    An engine of your own (--remote FILE, named like `trino-483@mine.toml`) is a column like any other; choose it by
    globs, e.g. --generations '*@*'. The lab starts nothing there. Your engine needs a catalog that leads to this
    lab's: bring the lab up first (iceberg-lab up), and run; what your engine lacks is told as a line to paste.

    What is expected of `trino-483` is expected of `trino-483@mine` too, and where yours does otherwise, that is
    unexpected (!). Of a version that no expectation names, outcomes are told and fail nothing, but for wrong rows
    without an error and crashes, which always do.
    """
    if record is not None:
        told = list(valid(record))
        selection = plan.select(words, seed, plan.recorded_remotes(told))
        _show_again(plan.chosen(told, selection), lambda lines: _show(lines, form))
    selection, why = labs.selected(words, seed, remote.declared(remotes))
    _run(selection, why, None, lambda lines: _show(lines, form))


def _show_again(lines: list[dict[str, Any]], show: Callable[[list[dict[str, Any]]], None]) -> NoReturn:
    """Shows the selected cells of a record and which of them this lab judges otherwise, and exits."""
    if not lines:
        raise LabError("nothing to show: the record has no cell of the selection")
    show(lines)
    otherwise = [line for line in lines if _judged_otherwise(line)]
    for line in otherwise:
        ERR.print(f"! {of_line.name(line['cell'])}: this lab judges otherwise what is recorded there")
    sys.exit(1 if otherwise or any(map(of_line.unexpected, lines)) else 0)


def _run(
    selection: plan.Selection, why: str, chosen: list[plan.Case] | None, show: Callable[[list[dict[str, Any]]], None]
) -> NoReturn:
    """Runs the selection, or the chosen cases; shows their lines and what is wrong with the run, and exits."""
    ERR.print(f"runtime: {selection.places}, {why}", style="dim")
    with labs.open_run(selection, ERR, chosen) as run:
        run.start()
        observed = run.wait()
        controls = {case.cell: run.control(case) for case in run.cases}
        broken = run.broken
    lines = [as_json(r.observation, r.verdict, c.behaviour.document) for c, r in zip(run.cases, observed, strict=True)]
    lines = [run.recorder.redactor.json(line) for line in lines]
    show(lines)
    for cell, turns in controls.items():
        for reason in turns:
            ERR.print(f"! the control of {cell} did not turn: {reason}", style="bold red")
    for reason in sorted(broken):
        ERR.print(f"could not run: {reason}", style="bold red")
    ERR.print(f"record: {run.recorder.path}", style="dim")
    if any(map(of_line.unexpected, lines)) or any(controls.values()):
        sys.exit(1)
    sys.exit(3 if broken else 0)


@main.command()
@click.option("--quick/--full", default=True, help="six filters a feature, or every operator on every column")
@click.option("--feature", metavar="GLOBS", help="features by name, e.g. 'partition-*,race-*'")
@click.option("--writer", metavar="GLOBS", help="who writes; a feature that none of them can make another one makes")
@click.option("--reader", metavar="GLOBS", help="who reads")
@click.option(
    "--script", is_flag=True, help="instead of a matrix, the few statements that show each failing pair alone"
)
@click.option("--record", metavar="FILE", type=Path, help="show an earlier run's record instead of running anything")
@_placed
@_formats(*FORMATS)
def pairs(
    quick: bool,
    feature: str | None,
    writer: str | None,
    reader: str | None,
    script: bool,
    record: Path | None,
    form: str,
    **places: str | None,
) -> None:
    """Run every writer against every reader, feature by feature of v2 and v3: may this one read what that one writes?

    \b
    iceberg-lab pairs --writer 'spark-4.1*' --reader trino-476
    iceberg-lab pairs --feature 'default-*' --script

    Each writer writes a feature once, and all readers read that. A reader's rows, and up to six filters, are held
    against what was inserted. In races (race-*) both write at the same moment: what was acknowledged must stand there.
    """
    wanted = plan.select_pairs(feature, writer, reader, full=not quick)

    def show(lines: list[dict[str, Any]]) -> None:
        if script:
            print("\n\n".join(repro.script(line) for line in lines if line["outcome"] != "works"))
            return
        found = pairing.choices(lines, wanted.writers, wanted.readers, wanted.wordless)
        if form == "json":
            print(json.dumps({"cells": lines, "choices": [asdict(c) for c in found]}, indent=1, ensure_ascii=False))
        elif form == "markdown":
            print(pairing.markdown(lines, found, list(GENERATIONS)))
        else:
            OUT.print(pairing.table(lines, found, list(GENERATIONS), OUT.width))

    if record is not None:
        _show_again(wanted.chosen(valid(record)), show)
    names = ",".join(generation.name for generation in wanted.generations)
    selection, why = labs.selected({"generations": names, **places})
    _run(selection, why, wanted.cases(selection.places), show)


def _judged_otherwise(line: dict[str, Any]) -> bool:
    """Whether today's declarations say something else of a recorded cell than its record does."""
    behaviour = BEHAVIOURS.get(line["cell"]["behaviour"])
    if behaviour is None:
        return False
    found = recorded(line)
    verdict = judge(behaviour, found.observation)
    told = found.verdict
    return (verdict.outcome, verdict.claim, verdict.expectation) != (told.outcome, told.claim, told.expectation)


def _show(lines: list[dict[str, Any]], form: str) -> None:
    order = list(GENERATIONS)
    if form == "json":
        print(json.dumps(lines, indent=1, ensure_ascii=False))
    elif form == "markdown":
        print(report.markdown(lines, order))
    else:
        OUT.print(report.table(lines, order, OUT.width))


@main.command()
@click.argument("left", type=Path)
@click.argument("right", type=Path)
@_formats("table", "json")
def compare(left: Path, right: Path, form: str) -> None:
    """Hold two runs' records against each other: did the engines do the same in both places?

    Cells are paired but for runtime, catalog and store. Exit code 1 when one differs or stands in one record alone.
    """
    found = comparing.compare(valid(left), valid(right))
    if form == "json":
        print(json.dumps(asdict(found), indent=1, ensure_ascii=False))
    else:
        OUT.print(state.comparison(found))
    sys.exit(0 if found.equal else 1)


@main.command()
@click.argument("words")
@click.option("--record", metavar="FILE", type=Path, help="what to tell it from  [default: docs/record*.jsonl]")
@_formats("text", "markdown", "json")
def why(words: str, record: Path | None, form: str) -> None:
    """Why something fails, and what cures it: WORDS are of an error message, or a behaviour's or a trap's id.

    \b
    iceberg-lab why "Cannot handle timestamp without timezone"
    iceberg-lab why H-v3-update

    Nothing is run: it tells what a record shows, its cause in the engine's code, and the cure in your own syntax.
    """
    files = RECORDS if record is None else [record]
    lines = [line for file in files for line in read(file) if line["type"] == "cell"]
    known = traps.pages(lines)
    behaviour = BEHAVIOURS.get(_id(words, BEHAVIOURS))
    if behaviour is not None:
        text = pages.markdown(behaviour, lines, list(GENERATIONS), repro.script)
        found = [page for page in known.values() if behaviour in page.behaviours]
    elif not re.search(r"\w{2}", words):
        raise UsageError("give some words of an error message, e.g.: iceberg-lab why 'Cannot support vectorized reads'")
    else:
        named = known.get(_id(words, known))
        found = [named] if named else traps.find(words, known.values())
        text = traps.markdown(found[0]) if len(found) == 1 else traps.choice(found)
    if not found and behaviour is None:
        raise UsageError(f"no page has {words!r}; try fewer words of the message, or: iceberg-lab list behaviours")
    if form == "json":
        print(json.dumps([traps.as_json(page) for page in found], indent=1, ensure_ascii=False))
    elif form == "markdown":
        print(text)
    else:
        OUT.print(Markdown(text.replace("<br>", " ")))


def _id(words: str, known: Iterable[str]) -> str:
    """The id that these words are in any case; else the words."""
    return next((name for name in known if name.casefold() == words.strip().casefold()), words)


@main.command()
@click.option("--generations", metavar="GLOBS", help="engines to start now; others start when first asked")
@_placed
def up(generations: str | None, **places: str | None) -> None:
    """Start a lab that stays: store, catalog, ORDERS_V2 and ORDERS_V3 in ANALYTICS. Ends at `down`, or when idle."""
    selection, why = labs.selected({"generations": generations, **places})
    ERR.print(f"runtime: {selection.places}, {why}", style="dim")
    OUT.print(state.shown(labs.up(selection.generations if generations else (), selection.places, ERR)))


@main.command()
@_formats("table", "json")
def status(form: str) -> None:
    """What the lab that is up consists of."""
    found = labs.status()
    if form == "json":
        print(json.dumps(found, indent=1))
    else:
        OUT.print(state.shown(found) if found else "no lab is up; start one with: iceberg-lab up")


@main.command()
def down() -> None:
    """End the lab that is up, with all its processes and data."""
    OUT.print("ended" if labs.down() else "no lab is up")


@main.command()
@click.argument("profile")
@click.option("--as", "principal", metavar="PRINCIPAL", default="engineer", show_default=True, help="who one is there")
@click.option("--by", type=click.Choice(BY), default="credential", show_default=True, help="what one shows")
def door(profile: str, principal: str, by: str) -> None:
    """What an engine of your own is told, to meet a vendor's rules at the lab that is up.

    \b
    iceberg-lab door horizon
    iceberg-lab door horizon~off=W-no-ctas~token-seconds=60 --as reader --by token

    Properties of an Iceberg REST catalog, secrets included: they are of this lab and end with it.
    """
    for name, value in labs.door(Access(profile, principal, by)).items():
        print(f"{name}={value}")


@main.command()
@click.argument("generation")
@click.argument("statement")
@_placed
@_remotes
@_formats("table", "json")
def sql(generation: str, statement: str, form: str, remotes: tuple[Path, ...], **places: str | None) -> None:
    """Say one STATEMENT to one GENERATION: rows, or the whole cause chain. Joins the lab that is up, else starts one.

    PyIceberg has no SQL; it takes a call, e.g. 'scan(namespace="ANALYTICS", table="ORDERS_V2")'.
    """
    own = remote.declared(remotes)
    (chosen,) = _one(generation, own)
    selection, _ = labs.selected({"generations": chosen.name, **places}, remotes=own)
    answer = labs.ask(chosen, statement, selection.places, ERR)
    if form == "json":
        print(json.dumps(state.answer_json(answer), indent=1, ensure_ascii=False))
    elif isinstance(answer, Rows):
        OUT.print(state.rows(answer))
    else:
        OUT.print(state.chain(answer))
    if isinstance(answer, Failure):
        sys.exit(1)


def _one(generation: str, remotes: Sequence[Generation]) -> tuple[Generation, ...]:
    found = plan.select({"generations": generation}, remotes=remotes).generations
    if len(found) != 1:
        raise UsageError(f"{generation!r} names {len(found)} generations: {', '.join(g.name for g in found)}")
    return found


@main.command()
@click.argument("table", metavar="NAMESPACE.TABLE")
@click.option("--like", metavar="NAME", required=True, help=f"whose columns and version: {' or '.join(LIKE)}")
@click.option("--rows", metavar="N", type=int, required=True)
@click.option("--files", metavar="M", type=int, default=1, show_default=True, help="data files to write")
@click.option("--generation", metavar="NAME", default=plan.DEFAULT_SEED, show_default=True, help="who writes the rows")
@_remotes
@_formats("table", "json")
def generate(
    table: str, like: str, rows: int, files: int, generation: str, remotes: tuple[Path, ...], form: str
) -> None:
    """Make a table of any size in the lab that is up, its rows by an engine itself (DuckDB, Spark or Trino).

    \b
    iceberg-lab generate BIG.ORDERS --like ORDERS_V3 --rows 10000000 --files 20 --generation trino-483

    Rows are the same whoever writes them: each is made of its number. Counts, sums, least and greatest values are read
    back by that engine and checked, and it is told how many files and bytes were really written: an engine may split
    what is large. Spark writes all files in one commit, DuckDB and Trino one commit a file.
    """
    order = Order(table, like, rows, files)
    own = remote.declared(remotes)
    (chosen,) = _one(generation, own)
    selection, _ = labs.selected({"generations": chosen.name}, remotes=own)
    made = labs.generate(order, chosen, selection.places, ERR)
    if form == "json":
        print(json.dumps(asdict(made), indent=1))
    else:
        OUT.print(state.made(table, asdict(made)))


@main.command()
@click.argument("table", required=False)
@click.option(
    "--metadata", "file", metavar="FILE|URI", help="a metadata.json on disk, or s3:// in the store of the lab"
)
@click.option("--snapshot", metavar="ID", type=int, help="as the table stood then  [default: the current snapshot]")
@click.option("--diff", "between", metavar="A B", type=(int, int), help="what changed from snapshot A to snapshot B")
@click.option(
    "--footers",
    metavar="N",
    type=click.IntRange(0),
    default=inspection.FOOTERS,
    show_default=True,
    help="open the footers of so many files at most",
)
@_formats(*FORMATS)
def inspect(
    table: str | None,
    file: str | None,
    snapshot: int | None,
    between: tuple[int, int] | None,
    footers: int,
    form: str,
) -> None:
    """What was really written: the x-ray of a table, read from its files without any engine.

    TABLE is NAMESPACE.TABLE in the lab that is up; --metadata takes any table's …metadata.json instead, its files in
    the folders beside it, wherever the table lay when it was written.

    \b
    iceberg-lab inspect ANALYTICS.ORDERS_V3
    iceberg-lab inspect ANALYTICS.ORDERS_V3 --snapshot 7051579356916758811
    iceberg-lab inspect ANALYTICS.ORDERS_V3 --diff 7051579356916758811 1637594829340312871
    iceberg-lab inspect --metadata warehouse/orders/metadata/00002-….metadata.json

    It shows schema, snapshots, manifests, data and delete files, Parquet and Puffin footers, and what in them does not
    add up. JSON has the whole of it (schema: lab/tables/inspection.schema.json). Values of properties that may be
    secret are struck out.
    """
    if (table is None) == (file is None):
        raise UsageError("name a table (NAMESPACE.TABLE), or a metadata file with --metadata FILE, and not both")
    if snapshot is not None and between is not None:
        raise UsageError("--snapshot shows one snapshot and --diff compares two; take one of them")
    found = labs.inspect(table, file, snapshot, between, footers)
    if form == "json":
        print(json.dumps(found, indent=1, ensure_ascii=False))
    elif form == "markdown":
        print(inspecting.markdown(found))
    else:
        OUT.print(inspecting.shown(found))


main.add_command(images)
main.add_command(compose)


@main.command("list")
@click.argument("what", type=click.Choice(["behaviours", "generations"]))
@_formats("table", "json")
def list_(what: str, form: str) -> None:
    """The declared behaviours or engine generations."""
    if what == "behaviours":
        declared = state.behaviours(BEHAVIOURS.values())
    else:
        declared = state.generations([*GENERATIONS.values(), *remote.declared(())])
    if form == "json":
        print(json.dumps(declared, indent=1, ensure_ascii=False))
    else:
        OUT.print(_table(declared))


@main.command()
@_formats("table", "json")
def doctor(form: str) -> None:
    """What this machine has and lacks for the lab; mirrors and proxies in use, without secrets."""
    found = labs.doctor()
    if form == "json":
        print(json.dumps(found, indent=1))
    else:
        OUT.print(_table(found))


@main.command()
@click.option("--prune", is_flag=True, help="remove what the lab no longer names")
@click.option("--all", "everything", is_flag=True, help="with --prune: remove all of it")
@click.option("--verify", is_flag=True, help="hash every file anew; damaged ones are removed and fetched when needed")
@_formats("table", "json")
def cache(prune: bool, everything: bool, verify: bool, form: str) -> None:
    """Show what was provisioned and its size; prune or verify it."""
    if everything and not prune:
        raise UsageError("--all goes with --prune")
    found = labs.cache(prune=prune, everything=everything, verify=verify)
    if form == "json":
        print(json.dumps(found, indent=1))
    else:
        OUT.print(_table(found))


def _table(rows: list[dict[str, Any]]) -> Table | str:
    if not rows:
        return "nothing"
    table = Table(*rows[0], pad_edge=False)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    return table
