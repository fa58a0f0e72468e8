"""No claim of the documents on what catalogs let engines do is forgotten, and what nobody can run is told as such."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from lab.behaviours import BEHAVIOURS
from lab.model import NOBODY
from lab.plan import cases, select

DOCUMENTED = tomllib.loads(Path(__file__).with_name("documented.toml").read_text("utf-8"))
IDS = [id for document in ("W", "D") for id in DOCUMENTED[document]]
# What only the vendor's own service can show, in whole or in part.
VENDORS = {
    *("W-policies", "W-not-writable", "W-engines", "W-stream-delete-insert", "W-no-eq-delete"),
    *("D-dv-tracking", "D-uniform-properties", "D-runtime-v3", "D-no-shallow-clone", "D-no-cdf", "D-engines"),
}


@pytest.mark.parametrize("id", IDS)
def test_a_documented_claim_has_its_behaviour_and_its_cells(id: str) -> None:
    behaviour = BEHAVIOURS[id]
    assert behaviour.source.startswith(id[0]), behaviour.source
    assert behaviour.document
    assert cases(select({"behaviours": id}))


def test_what_nobody_here_can_run_says_what_is_missing_once_for_each_claim() -> None:
    planned = [case for case in cases(select({"behaviours": "*"})) if case.writer is NOBODY]
    assert {case.behaviour.id for case in planned} >= VENDORS
    assert len({case.cell for case in planned}) == len(planned)
    for case in planned:
        assert case.reader is NOBODY
        assert len(case.variant.missing) > 40, case.cell
        assert not case.variant.missing.endswith("."), "the report ends its sentence"
    assert not any(case.variant.missing for case in cases(select({}))), "a run of everything shows what was run"
    one = cases(select({"behaviours": "W-engines", "generations": "duckdb-*"}))
    assert {case.reader.name for case in one} == {"duckdb-1.5.5", NOBODY.name}
