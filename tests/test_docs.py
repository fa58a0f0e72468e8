"""What the documents show is what was recorded."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import docs  # noqa: E402 - a script, found by its folder


def test_the_readme_shows_the_matrix_of_the_record() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert docs.BLOCK.search(text)
    assert docs.readme(text) == text, "run: python scripts/docs.py"


def test_the_pages_show_what_the_data_say() -> None:
    for name, text in docs.pages().items():
        assert (ROOT / "docs" / name).read_text("utf-8") == text, f"{name}: run python scripts/docs.py"


def test_links_of_the_documents_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
