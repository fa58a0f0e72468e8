"""Writes what the docs show from runs' records: `python scripts/docs.py [RECORD…]`.

That is the README's matrix, docs/matrix.md, pairs.md, findings.md, encodings.md, permissions.md and traps.
docs/measured.md is of other data: that of scripts/benchmark.py.

Records given are first copied to docs, sorted by the plan, so that two runs' records compare: those of `pairs` to
docs/record-pairs.jsonl; of the others the cells of the store that is usual to docs/record.jsonl, those of another to
docs/record-STORE.jsonl. The trap pages are made of all of them. Of a run of `pairs --full`, whose record is too large
for that, a summary is kept: docs/pairs-full.json.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from lab.behaviours.pairs.feature import EVERY
from lab.engines import GENERATIONS
from lab.plan import FEATURES, Pairs, chosen, select, select_pairs
from lab.records.record import read
from lab.report import pairs as pairing
from lab.report import traps
from lab.report.matrix import markdown
from lab.repro import script
from lab.stores import STORES

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "record.jsonl"
OTHER_STORES = [RECORD.with_name(f"record-{store}.jsonl") for store in STORES[1:]]
PAIRS = RECORD.with_name("record-pairs.jsonl")
FULL = RECORD.with_name("pairs-full.json")
TRAPS = ROOT / "docs" / "traps"
FALLBACK = ROOT / "docs" / "fallback.json"
MEASURED = ROOT / "docs" / "measured.json"
BLOCK = re.compile(r"(<!-- matrix:[^\n]*-->\n).*?(<!-- end of matrix -->)", re.DOTALL)


# A newcomer's first page has the documented behaviours; the grids behind them stand in docs/matrix.md.
FIRST = "H-ntz-*,H-delta-*,H-read-*,H-dml-*,H-one-*,H-v3-*,H-delete-403,D-library-v3"
WAYS = {"default": "as it comes", "not-vectorized": "vectorization off", "not-vectorized-either": "vectorization off"}

PERMITTED = {
    "dml": "INSERT, UPDATE, DELETE",
    "expire-snapshots": "expire_snapshots",
    "expire-metadata": "expire_snapshots, which leaves the files",
    "remove-orphan-files": "remove_orphan_files",
    "rewrite-data-files": "rewrite_data_files, OPTIMIZE",
}

FEW = 3  # columns that a square of the encodings' page names instead of counting them
_ReadAll = dict[tuple[str, str, str], dict[str, bool]]  # (behaviour, way, generation) → column → whether it is read


@cache
def recorded(file: Path) -> list[dict[str, Any]]:
    """The lines of a record in docs, which many pages show; read once it is written."""
    return list(read(file))


def shown(behaviours: str = "*") -> str:
    """The matrix of the record, with its notes."""
    return markdown(chosen(recorded(RECORD), select({"behaviours": behaviours})), list(GENERATIONS))


def readme(text: str) -> str:
    """The README with the matrix of docs/record.jsonl in its place."""
    return BLOCK.sub(lambda m: f"{m[1]}\n{shown(FIRST)}\n{m[2]}", text)


def matrix() -> str:
    return f"# All cells\n\nOf the run in [record.jsonl](record.jsonl), one square a generation.\n\n{shown()}"


def encodings() -> str:
    """docs/encodings.md: who reads which encoding of Parquet since when, and what it costs to do without batches."""
    read_all: _ReadAll = {}
    for line in recorded(RECORD):
        if line["type"] == "cell" and line["cell"]["behaviour"].startswith("E-"):
            cell = line["cell"]
            way, _, column = cell["variant"].partition("/")
            key = (cell["behaviour"], WAYS[way], cell["reader"])
            read_all.setdefault(key, {})[column] = line["outcome"] == "works"
    lines = [
        "# Encodings of Parquet: the first version that reads each",
        "",
        "Each column alone, with nulls, in a v2 table: the oldest generation here that reads all types which may have "
        "the encoding and, before it, each one that reads more of them than those before, with how many and (where "
        "it is a few) which are missing. Every pair is a cell of "
        "[the matrix](matrix.md); Iceberg's own versions between these were not run.",
        "",
    ]
    kinds = {g.kind: [n for n, o in GENERATIONS.items() if o.kind == g.kind] for g in GENERATIONS.values()}
    ways = [
        (k, way)
        for k in kinds
        for way in dict.fromkeys(WAYS.values())
        if any((way, name) == key[1:] for key in read_all for name in kinds[k])
    ]
    lines += ["| | " + " | ".join(k if w == "as it comes" else f"{k}, {w}" for k, w in ways) + " |"]
    lines += ["|" + " --- |" * (len(ways) + 1)]
    for behaviour in dict.fromkeys(key[0] for key in read_all):
        squares = [_since(read_all, behaviour, way, kinds[kind]) for kind, way in ways]
        lines.append(f"| {behaviour} | " + " | ".join(squares) + " |")
    return "\n".join([*lines, "", *_fallback(), ""])


def _since(read_all: _ReadAll, behaviour: str, way: str, names: list[str]) -> str:
    """Each generation, oldest first, that reads more columns than those before it, up to one that reads all."""
    seen = {name: read_all[behaviour, way, name] for name in names if (behaviour, way, name) in read_all}
    if not seen:
        return "·"
    told, most = [], 0
    for name, columns in seen.items():
        missing = [column for column, worked in columns.items() if not worked]
        if (count := len(columns) - len(missing)) > most:
            most = count
            which = f" (not {', '.join(missing)})" if 0 < len(missing) <= FEW else ""
            whole = name.replace("+", " ")
            told.append(f"{count} of {len(columns)}{which}: {whole}" if missing else f"all: {whole}" if told else whole)
            if not missing:
                break
    return "<br>".join(told) or "none"


def _fallback() -> list[str]:
    found = json.loads(FALLBACK.read_text("utf-8"))
    rates = found["rows per second"]
    return [
        "## What the fallback costs",
        "",
        "`spark.sql.iceberg.vectorization.enabled=false` has Spark read row by row. An aggregate over "
        f"{found['rows']:,} rows on {found['machine']['cores']} cores "
        "(`python scripts/fallback.py > docs/fallback.json`):",
        "",
        "| generation | columns | in batches, rows/s | row by row, rows/s | times |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {name} | {columns} | {r['in batches']:,} | {r['row by row']:,} | {r['times']} |"
            for name, queries in rates.items()
            for columns, r in queries.items()
        ),
    ]


def lines() -> list[dict[str, Any]]:
    """Of all records, those of the usual store first."""
    return [line for file in (RECORD, *OTHER_STORES, PAIRS) if file.exists() for line in recorded(file)]


def pairs() -> str:
    """docs/pairs.md: each feature's matrix of writers and readers, and the version chooser's lines."""
    wanted, lines = all_pairs(), all_pairs().chosen(recorded(PAIRS))
    found = pairing.choices(lines, wanted.writers, wanted.readers, wanted.wordless)
    text = pairing.markdown(lines, found, list(GENERATIONS))
    return "\n".join([text, *_every_operator(json.loads(FULL.read_text("utf-8"))), ""]) if FULL.exists() else text


def _every_operator(found: dict[str, Any]) -> list[str]:
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in found["outcomes"].items())
    machine = found["machine"]
    return [
        "## Every operator on every column",
        "",
        f"`iceberg-lab pairs --full`, {found['day']}, {machine['system']} {machine['arch']}, {machine['cores']} cores: "
        f"{found['cells']} cells in {found['seconds'] / 60:.0f} minutes: {outcomes}; {found['unexpected']} unexpected.",
    ]


def summary(record: list[dict[str, Any]]) -> dict[str, Any]:
    """What docs keep of a run of `pairs --full`."""
    cells = [line for line in record if line["type"] == "cell"]
    first, last = (datetime.fromisoformat(line["time"]) for line in (record[0], record[-1]))
    return {
        "day": f"{first:%Y-%m-%d}",
        "machine": record[0]["machine"],
        "seconds": round((last - first).total_seconds()),
        "cells": len(cells),
        "outcomes": dict(Counter(line["outcome"] for line in cells).most_common()),
        "unexpected": sum(line["expectation"] == "unexpected" for line in cells),
    }


def all_pairs() -> Pairs:
    return select_pairs(None, None, None, full=False)


def trap_pages() -> dict[str, str]:
    """File name → text, for the folder docs/traps."""
    known = traps.pages(lines())
    pages = {f"{name}.md": traps.markdown(page) for name, page in known.items()}
    return {"README.md": traps.index(known.values()), **pages}


def permissions() -> str:
    """docs/permissions.md: what each engine must be allowed in the store, by what it wants to do."""
    told: dict[tuple[str, str, str], list[str]] = {}
    for line in recorded(RECORD):
        if line["type"] == "cell" and line["cell"]["behaviour"] == "H-delete-403-new":
            variant = line["cell"]["variant"]
            if variant in PERMITTED:
                told.setdefault((variant, line["outcome"], line["reason"]), []).append(line["cell"]["reader"])
    rows = [
        f"| {PERMITTED[variant]} | {'<br>'.join(readers)} | {outcome} | {reason} |"
        for (variant, outcome, reason), readers in sorted(
            told.items(), key=lambda one: list(PERMITTED).index(one[0][0])
        )
    ]
    head = ["| statement | engines | outcome | why, and what the policy must allow |", "| --- | --- | --- | --- |"]
    title = ["# What a policy must allow each engine", "", "Seen under credentials without s3:DeleteObject.", ""]
    return "\n".join([*title, *head, *rows, ""])


def pages() -> dict[str, str]:
    """File name → text, for the folder docs."""
    return {
        "matrix.md": matrix(),
        "pairs.md": pairs(),
        "findings.md": pairing.findings([line for line in recorded(PAIRS) if line["type"] == "cell"], script),
        "encodings.md": encodings(),
        "permissions.md": permissions(),
        "measured.md": measured(),
    }


def measured() -> str:
    """docs/measured.md from the figures of scripts/benchmark.py."""
    found = json.loads(MEASURED.read_text("utf-8"))
    machine, memory, fresh = found["machine"], found["all up"], found["fresh start"]
    quick = found["quick"]
    lines = [
        "# Measured",
        "",
        f"On {machine['cores']} cores, {machine['system']} {machine['arch']}, with a warm cache and nothing else "
        "running. Repeat it with `python scripts/benchmark.py > docs/measured.json && python scripts/docs.py`.",
        "",
        "| generation | start to first row, seconds | aim |",
        "| --- | --- | --- |",
        *(f"| {name} | {s} | {_aim(name)} |" for name, s in found["starts"].items()),
        "",
        "| what | seen | aim |",
        "| --- | --- | --- |",
        f"| DuckDB and PyIceberg alone: first answers after typing the command | {quick['duckdb-1.5.5']} and "
        f"{quick['pyiceberg-0.12.0']} s | 8 s |",
        f"| … and their whole matrix | {quick['matrix']} s | |",
        f"| all generations up, started together | {memory['seconds']} s | 40 s |",
        f"| the whole matrix, from nothing, with other work on the machine | {found['matrix']['all']} s | 600 s |",
        f"| the grid of encodings alone, from nothing | {found['matrix']['encodings']} s | 180 s |",
        f"| memory with everything up (workers of DuckDB and PyIceberg, some 250 MiB, not counted) "
        f"| {memory['MiB in all']} MiB | 8192 MiB |",
        f"| {fresh['cases']} reading cases: warm run against a fresh spark-sql for each | {fresh['warm run']} s "
        f"against {fresh['fresh starts']} s: {fresh['times']} times | 10 times |",
        "",
        "The lab's own overhead: a warm run's wall time against the same statements, those that make the tables "
        "included, sent bare to the same warm engines. Aim: under 10 %.",
        "",
        "| generation | run, seconds | bare, seconds | overhead |",
        "| --- | --- | --- | --- |",
        *(f"| {name} | {o['run']} | {o['bare']} | {(o['ratio'] - 1):.1%} |" for name, o in found["overhead"].items()),
        "",
        "DuckDB misses the aim: its statements take tens of milliseconds, and a session of its own for each case "
        "(20 ms), the lab's looks at manifests and the record's write to disk stand out beside them.",
        "",
        "Resident memory of each process, MiB: " + ", ".join(f"{n} {m}" for n, m in memory["MiB"].items()) + ".",
        "",
    ]
    return "\n".join(lines)


def _aim(name: str) -> str:
    return "6 s" if name.startswith("spark") else "10 s" if name.startswith("trino") else ""


def _of_pairs(record: list[dict[str, Any]]) -> bool:
    """Whether a record is a run of `iceberg-lab pairs`."""
    ids = {feature.id for feature in FEATURES.values()}
    return {line["cell"]["behaviour"] for line in record if line["type"] == "cell"} <= ids


def _write(record: Path, lines: list[dict[str, Any]]) -> None:
    record.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")


def main() -> None:
    records = [list(read(Path(file))) for file in sys.argv[1:]]
    for found in records:
        if _of_pairs(found) and {line["cell"]["variant"] for line in found if line["type"] == "cell"} == {EVERY}:
            FULL.write_text(json.dumps(summary(found), indent=2) + "\n", "utf-8")
    paired = [line for record in records if _of_pairs(record) for line in record]
    if all_pairs().chosen(paired):
        _write(PAIRS, [paired[0], *all_pairs().chosen(paired)])
    given = [line for record in records if not _of_pairs(record) for line in record]
    for store, record in zip(STORES, (RECORD, *OTHER_STORES), strict=True):
        cells = [line for line in given if line["type"] == "cell" and line["cell"]["store"] == store]
        if cells:
            controls = [line for line in given if line["type"] == "control" and line["cell"]["store"] == store]
            kept = [given[0], *chosen(cells, select({"store": store, "behaviours": "*"})), *controls]
            _write(record, kept)
    file = ROOT / "README.md"
    file.write_text(readme(file.read_text("utf-8")), "utf-8")
    for name, text in pages().items():
        (ROOT / "docs" / name).write_text(text, "utf-8")
    TRAPS.mkdir(exist_ok=True)
    written = trap_pages()
    for old in TRAPS.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (TRAPS / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
