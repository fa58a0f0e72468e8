"""Writes what the docs show from a run's record: `python scripts/docs.py [RECORD]`: the README's matrix and docs/traps.

A record given is first copied to docs/record.jsonl, sorted by the plan, so that two runs' records compare.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from lab.engines import GENERATIONS
from lab.plan import chosen, select
from lab.records.record import read
from lab.report import traps
from lab.report.matrix import markdown

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "record.jsonl"
TRAPS = ROOT / "docs" / "traps"
BLOCK = re.compile(r"(<!-- matrix:[^\n]*-->\n).*?(<!-- end of matrix -->)", re.DOTALL)


def readme(text: str) -> str:
    """The README with the matrix of docs/record.jsonl in its place."""
    shown = markdown(chosen(read(RECORD), select({})), list(GENERATIONS))
    return BLOCK.sub(lambda m: f"{m[1]}\n{shown}\n{m[2]}", text)


def trap_pages() -> dict[str, str]:
    """File name → text, for the folder docs/traps."""
    known = traps.pages(read(RECORD))
    pages = {f"{name}.md": traps.markdown(page) for name, page in known.items()}
    return {"README.md": traps.index(known.values()), **pages}


def main() -> None:
    if len(sys.argv) > 1:
        lines = list(read(Path(sys.argv[1])))
        kept = [lines[0], *chosen(lines, select({})), *(line for line in lines if line["type"] == "control")]
        RECORD.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept), "utf-8")
    file = ROOT / "README.md"
    file.write_text(readme(file.read_text("utf-8")), "utf-8")
    TRAPS.mkdir(exist_ok=True)
    written = trap_pages()
    for old in TRAPS.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (TRAPS / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
