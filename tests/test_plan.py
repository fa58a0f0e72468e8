from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lab.behaviours import BEHAVIOURS
from lab.behaviours.catalogs import DIFFERENCES
from lab.behaviours.pairs.feature import Feature
from lab.engines import GENERATIONS
from lab.errors import UsageError
from lab.model import NOBODY, Outcome
from lab.plan import cases, control_of, select
from lab.stores import STORES

HERE = ("reference", "polaris", "seaweedfs")


def test_everything_is_selected_by_default() -> None:
    selection = select({})
    assert {g.name for g in selection.generations} == set(GENERATIONS)
    assert {b.id for b in selection.behaviours} == set(BEHAVIOURS)


def test_globs_are_separated_by_commas_and_keep_the_declared_order() -> None:
    names = [g.name for g in select({"generations": "trino-4*, duckdb*"}).generations]
    assert names == [n for n in GENERATIONS if n.startswith(("duckdb", "trino"))]


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ({"generations": "trino-477"}, "trino-476"),
        ({"behaviours": "H-v3-updaet"}, "H-v3-update"),
        ({"runtime": "embeded"}, "embedded"),
        ({"tags": "v4"}, "v3"),
        ({"generations": ","}, "names nothing"),
    ],
)
def test_a_wrong_name_is_answered_with_near_ones(words: dict[str, str], near: str) -> None:
    with pytest.raises(UsageError, match=near):
        select(words)


def test_tags_narrow_the_behaviours() -> None:
    chosen = select({"tags": "v3"}).behaviours
    assert chosen
    assert all(b.table.format_version == 3 for b in chosen)


def test_every_case_of_a_cell_is_planned_once() -> None:
    planned = cases(select({}))
    assert len({c.cell for c in planned}) == len(planned)


def test_pairs_are_made_of_the_selected_generations_only() -> None:
    planned = cases(select({"behaviours": "H-dml-v2-new", "generations": "duckdb*,pyiceberg*"}))
    assert len(planned) == 4


def test_every_behaviour_reaches_every_generation_of_its_kinds() -> None:
    planned = cases(select({"behaviours": "*"}))
    for behaviour in BEHAVIOURS.values():
        if isinstance(behaviour, Feature):
            continue  # of the pair matrix, which the suite runs little of: see tests/test_pairs.py
        if not behaviour.kinds:
            assert behaviour.variants  # of which each says why nobody can run it
            assert all(variant.missing for variant in behaviour.variants), behaviour.id
        wanted = {g.name for g in GENERATIONS.values() if g.kind in behaviour.kinds}
        reached = {name for c in planned if c.behaviour is behaviour for name in (c.cell.writer, c.cell.reader)}
        assert reached - {NOBODY.name} == wanted, behaviour.id


def test_the_library_alone_is_no_column_of_what_engines_do() -> None:
    assert not any({"iceberg"} < set(behaviour.kinds) for behaviour in BEHAVIOURS.values())


def test_what_a_catalog_does_otherwise_is_of_cells_there_and_gone_on_the_reference() -> None:
    asked = {name: [case.cell for case in cases(select({"behaviours": "*", "catalog": name}))] for name in HERE}
    reference = {case.cell: case for case in cases(select({"behaviours": "*"}))}
    for globs, expected in DIFFERENCES:
        assert len(expected.reason) > 30
        met = [c for c in asked[expected.catalogs] if BEHAVIOURS[c.behaviour].expectation(c) is expected]
        assert met, f"no cell is expected so: {globs} {expected}"
        assert {cell.behaviour for cell in met} == set(globs.split(",")), globs
        for cell in met:
            there = BEHAVIOURS[cell.behaviour].expectation(replace(cell, catalog="reference"))
            assert replace(cell, catalog="reference") in reference
            assert there != expected


@pytest.mark.parametrize(("catalog", "names"), [("reference", str.isupper), ("seaweedfs", str.islower)])
def test_tables_are_called_as_the_catalog_takes_names(catalog: str, names: Callable[[str], bool]) -> None:
    planned = cases(select({"behaviours": "H-*", "catalog": catalog}))
    assert all(names(case.behaviour.table.name) for case in planned)
    assert all(names(case.behaviour.namespace) for case in planned if case.behaviour.namespace)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"catalog": "seaweedfs", "store": "minio"}, "the catalog seaweedfs goes with seaweedfs"),
        ({"catalog": "seaweedfs", "store": "mino"}, "near: minio"),
        ({"catalog": "glue"}, "there are: reference, polaris, seaweedfs, remote"),
        ({"catalog": "remote", "runtime": "containers"}, "not to be had in containers; take --runtime embedded"),
    ],
)
def test_a_catalog_and_a_store_that_go_not_together_say_which_do(words: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        select(words)


@pytest.mark.parametrize("store", STORES)
def test_every_cell_has_an_expectation_with_a_reason(store: str) -> None:
    for case in cases(select({"store": store})):
        expected = case.behaviour.expectation(case.cell)
        assert expected is not None, case.cell
        assert len(expected.reason) > 10, case.cell
        if expected.outcome in (Outcome.ERROR, Outcome.NOT_SUPPORTED):
            assert expected.failure is not None, f"{case.cell} expects a failure without its chain"


@pytest.mark.parametrize("store", STORES)
def test_a_declared_control_is_a_cell_of_the_plan_with_another_key(store: str) -> None:
    planned = {c.cell: c for c in cases(select({"store": store}))}
    controls = [(c, control_of(c)) for c in planned.values() if control_of(c)]
    assert controls
    for case, control in controls:
        assert control in planned, f"{case.cell} has its control outside the plan: {control}"
        assert control != case.cell
        assert case.behaviour.claim(case.cell) is not None, f"{case.cell} has a control but no claim"


def test_what_takes_too_long_for_every_day_runs_when_it_is_named() -> None:
    everyday = {case.cell for case in cases(select({}))}
    all_of_it = {case.cell for case in cases(select({"behaviours": "*"}))}
    doors = {c.cell for c in cases(select({"behaviours": "*"})) if c.variant.access or c.variant.second_access}
    nobodys = {cell for cell in all_of_it if cell.reader == NOBODY.name}
    assert nobodys, "what nobody here can run has its rows where behaviours are named"
    named = {case.cell for case in cases(select({"behaviours": "W-nested-namespaces"}))}
    assert not named & everyday, "what it makes is in other cells' way"
    left_out = all_of_it - everyday - doors - nobodys - named
    assert not nobodys & everyday, "the first command shows nothing that was not run"
    assert everyday < all_of_it
    assert doors & everyday, "of what a vendor refuses, one generation of each kind is asked every day"
    every_day = {(cell.behaviour, cell.variant) for cell in doors & everyday}
    seldom = {(cell.behaviour, cell.variant) for cell in doors - named} - every_day
    assert {behaviour for behaviour, variant in seldom if not variant.endswith("-off")} == {
        *("H-token-expiry", "H-vending-expiry", "H-vending-expiry-scan", "H-vending-expiry-write", "D-uniform-lag")
    }, "they wait, for a token or keys to end or a lag"
    assert {cell.variant for cell in left_out} == {
        *("mixed", "upper-quoted", "lower-quoted", "mixed-quoted"),
        *("no-extensions", "no-extensions-merge-on-read"),  # of row lineage; H-v3-update has them every day
    }
    assert left_out < {case.cell for case in cases(select({"behaviours": "H-identifier-*,T-lineage-*"}))}
