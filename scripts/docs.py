"""Writes what the docs show from runs' records: `python scripts/docs.py [RECORD…]`: the README's matrix and docs/traps.

Records given are first copied to docs, sorted by the plan, so that two runs' records compare: cells of the store that
is usual to docs/record.jsonl, those of another to docs/record-STORE.jsonl, which the trap pages are made of too.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from lab.engines import GENERATIONS
from lab.plan import chosen, select
from lab.records.record import read
from lab.report import traps
from lab.report.matrix import markdown
from lab.stores import STORES

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "record.jsonl"
OTHER_STORES = [RECORD.with_name(f"record-{store}.jsonl") for store in STORES[1:]]
TRAPS = ROOT / "docs" / "traps"
MEASURED = ROOT / "docs" / "measured.json"
BLOCK = re.compile(r"(<!-- matrix:[^\n]*-->\n).*?(<!-- end of matrix -->)", re.DOTALL)


def readme(text: str) -> str:
    """The README with the matrix of docs/record.jsonl in its place."""
    shown = markdown(chosen(read(RECORD), select({})), list(GENERATIONS))
    return BLOCK.sub(lambda m: f"{m[1]}\n{shown}\n{m[2]}", text)


def lines() -> list[dict[str, Any]]:
    """Of all records, those of the usual store first."""
    return [line for file in (RECORD, *OTHER_STORES) if file.exists() for line in read(file)]


def trap_pages() -> dict[str, str]:
    """File name → text, for the folder docs/traps."""
    known = traps.pages(lines())
    pages = {f"{name}.md": traps.markdown(page) for name, page in known.items()}
    return {"README.md": traps.index(known.values()), **pages}


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
        f"| the whole matrix, from nothing | {found['matrix']} s | 180 s |",
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


def main() -> None:
    given = [line for file in sys.argv[1:] for line in read(Path(file))]
    for store, record in zip(STORES, (RECORD, *OTHER_STORES), strict=True):
        cells = [line for line in given if line["type"] == "cell" and line["cell"]["store"] == store]
        if cells:
            controls = [line for line in given if line["type"] == "control" and line["cell"]["store"] == store]
            kept = [given[0], *chosen(cells, select({"store": store})), *controls]
            record.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept), "utf-8")
    file = ROOT / "README.md"
    file.write_text(readme(file.read_text("utf-8")), "utf-8")
    TRAPS.mkdir(exist_ok=True)
    written = trap_pages()
    for old in TRAPS.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (TRAPS / name).write_text(text, "utf-8")
    MEASURED.with_suffix(".md").write_text(measured(), "utf-8")


if __name__ == "__main__":
    main()
