"""What the documents show is what was recorded."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import docs  # noqa: E402 - a script, found by its folder
from lab.behaviours.known import ROW_BY_ROW  # noqa: E402


def test_the_readme_shows_the_matrix_of_the_record() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert docs.BLOCK.search(text)
    assert docs.readme(text) == text, "run: python scripts/docs.py"


def test_the_pages_show_what_the_data_say() -> None:
    for name, text in docs.pages().items():
        assert (ROOT / "docs" / name).read_text("utf-8") == text, f"{name}: run python scripts/docs.py"


def test_findings_are_of_pairs_alone_and_of_all_that_they_show() -> None:
    text = docs.pages()["findings.md"]
    shown = {"silently-wrong", "crash", "error"}
    failing = [line for line in docs.recorded(docs.PAIRS) if line["type"] == "cell" and line["outcome"] in shown]
    assert {feature for line in failing if f"{(feature := line['cell']['behaviour'])} by " not in text} == set()
    scripts = "".join(re.findall(r"```sql\n(.*?)```", text, re.DOTALL))
    assert not re.search(r"\b[A-Z]\w*_[0-9A-F]{8}\b", scripts), "one run's own namespace"


def test_the_page_of_encodings_hides_no_older_generation_that_reads_most() -> None:
    read_all = {
        ("E", "w", "old"): {"int": True, "string": True, "uuid": False},
        ("E", "w", "mid"): {"int": True, "string": False, "uuid": False},  # no gain, and hence no word
        ("E", "w", "new"): {"int": True, "string": True, "uuid": True},
    }
    assert docs._since(read_all, "E", "w", ["old", "mid", "new"]) == "2 of 3 (not uuid): old<br>all: new"
    assert docs._since(read_all, "E", "w", ["mid"]) == "1 of 3 (not string, uuid): mid"
    assert docs._since(read_all, "E", "w", ["new"]) == "new"
    assert docs._since(read_all, "E", "w", ["other"]) == "·"


def test_the_cost_that_a_cure_names_is_the_measured_one() -> None:
    rates = json.loads(docs.FALLBACK.read_text("utf-8"))["rows per second"]
    times = [figures["times"] for queries in rates.values() for figures in queries.values()]
    assert f"here {min(times)} to {max(times)} times slower" in ROW_BY_ROW


def test_links_of_the_documents_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
