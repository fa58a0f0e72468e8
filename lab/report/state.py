"""Answers, declarations and a running lab, shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lab.model import Answer, Behaviour, Failure, Generation, Rows
from lab.records.compare import PLACES, Comparison
from lab.report.line import failure, name
from lab.values import encode


def rows(answer: Rows) -> RenderableType:
    """A result as a table, types under the names. A statement without a result says so."""
    if not answer.columns:
        return Text("done", "green")
    table = Table(pad_edge=False)
    for column in answer.columns:
        table.add_column(Text.assemble(column.name, "\n", (column.type, "dim")))
    for row in answer.rows:
        table.add_row(*(Text("NULL", "dim") if v is None else Text(str(v)) for v in row))
    return Group(table, Text(f"{len(answer.rows)} rows", "dim"))


def chain(failure: Failure) -> RenderableType:
    """A cause chain, outermost first, as a log shows it."""
    lines = []
    for depth, cause in enumerate(failure.causes):
        lead = "Caused by: " if depth else ""
        lines.append(Text.assemble((lead, "dim"), (cause.cls, "bold red"), ": ", cause.message.strip()))
    if failure.crash:
        lines.append(Text("the engine's process died of it", "bold red"))
    return Group(*lines)


def answer_json(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, Rows):
        columns = [{"name": c.name, "type": c.type} for c in answer.columns]
        return {"columns": columns, "rows": [[encode(v) for v in row] for row in answer.rows]}
    causes = [{"class": c.cls, "message": c.message} for c in answer.causes]
    return {"failure": causes, "crash": answer.crash}


def behaviours(declared: Iterable[Behaviour]) -> list[dict[str, Any]]:
    return [
        {
            "id": b.id,
            "title": b.title,
            "variants": ", ".join(v.name for v in b.variants),
            "tags": ", ".join(b.tags),
            "source": b.source,
            "document": b.document or "",
        }
        for b in declared
    ]


def generations(declared: Iterable[Generation]) -> list[dict[str, Any]]:
    return [
        {
            "name": g.name,
            "kind": g.kind,
            "versions": ", ".join(f"{k} {v}" for k, v in g.versions.items()),
            "java": g.java or "",
            "settings": ", ".join(f"{k}={v}" for k, v in g.settings.items()),
        }
        for g in declared
    ]


def shown(status: Mapping[str, Any]) -> RenderableType:
    """A running lab: where to reach it, and each process with its memory."""
    catalog = status["catalog"]
    head = (
        Text.assemble(("the lab is up", "bold green"), f", catalog {catalog['uri']}")
        if catalog
        else Text("the lab is starting", "bold")
    )
    table = Table("process", "pid", "memory", pad_edge=False)
    for process in status["processes"]:
        table.add_row(process["name"], str(process["pid"]), f"{process['rss'] / 1e6:.0f} MB")
    return Group(head, table)


def made(table: str, told: Mapping[str, Any]) -> RenderableType:
    """A generated table: what was written, as its manifests have it, and what was checked."""
    files, commits = (f"{told[what]} {what[: None if told[what] != 1 else -1]}" for what in ("files", "commits"))
    size = f"{told['bytes']:,} bytes in {files}, {commits}, {told['seconds']:.1f} s"
    checked = Text("; ".join(f"{what} {value}" for what, value in told["checked"].items()), "dim")
    return Group(
        Text.assemble((table, "bold green"), f": {told['rows']:,} rows, {size}"), Text("checked: ").append(checked)
    )


def comparison(found: Comparison) -> RenderableType:
    """What two records have in common, and each cell that differs with what was seen in both."""
    count = f"{found.pairs} cells compared, {found.v3} of them v3, {found.narrowed} under narrowed credentials"
    count += f", {found.not_run} not run: " if found.not_run else ": "
    if found.equal:
        return Text.assemble(count, ("all the same", "bold green"))
    parts: list[RenderableType] = []
    for difference in found.differences:
        parts.append(Text(f"! {name(difference.left['cell'])}", "bold red"))
        for side, line in (("left", difference.left), ("right", difference.right)):
            places = ", ".join(line["cell"][place] for place in PLACES)
            parts.append(Text(f"  {side} ({places}): {line['outcome']}  {failure(line)}"))
        parts += [Text(f"  {what}", "dim") for what in difference.what]
    for side, lines in (("left", found.left_only), ("right", found.right_only)):
        parts += [Text(f"! only {side}: {name(line['cell'])}", "bold red") for line in lines]
    lonely = len(found.left_only) + len(found.right_only)
    parts.append(Text.assemble(count, (f"{len(found.differences)} differ, {lonely} stand in one alone", "bold red")))
    return Group(*parts)
