"""The suite as pytest sees it: `pytest lab/` runs the same cells as `iceberg-lab matrix`, one item a cell.

Options are the command's. The selected cells run side by side in the background, as in the command, from the
moment that collection is done; an item waits for its own cell and judges that one alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab import labs, plan
from lab.engines import GENERATIONS, remote
from lab.errors import LabError
from lab.model import Outcome
from lab.plan import Case
from lab.records.record import Recorded, as_json
from lab.report import matrix as report
from lab.run import Run

RUN = pytest.StashKey[Run]()
LINES = pytest.StashKey[list[dict[str, Any]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("Iceberg interop lab", "what to run; each takes comma-separated globs")
    for name, text in plan.OPTIONS.items():
        group.addoption(f"--{name}", metavar="GLOBS", help=text)
    text = f"an engine of your own, declared in this file; may be repeated (${remote.FOLDER}: a folder of them)"
    group.addoption("--remote", metavar="FILE", action="append", default=[], help=text)
    group.addoption("--seed", metavar="GENERATION", help=f"makes the tables (default {plan.DEFAULT_SEED})")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    try:
        selection = _selection(metafunc.config)
    except LabError as e:
        raise pytest.UsageError(str(e)) from e
    cases = plan.cases(selection)
    metafunc.parametrize("case", cases, ids=[str(c.cell) for c in cases])


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """The run over exactly the cells that pytest selected, `-k` and the like included."""
    items = (getattr(item, "callspec", None) for item in request.session.items)
    cases: list[Case] = [spec.params["case"] for spec in items if spec and "case" in spec.params]
    console = Console(stderr=True, quiet=True)
    try:
        with labs.open_run(_selection(request.config), console, cases) as run:
            request.config.stash[RUN] = run
            run.start()
            yield run
    except (LabError, OSError) as e:
        pytest.exit(f"could not run: {e}", returncode=3)


@pytest.fixture
def recorded(run: Run, case: Case, request: pytest.FixtureRequest) -> Recorded:
    """The cell's observation and verdict, as they stand in the run's record."""
    found = run.results[case.cell].result()
    line = run.recorder.redactor.json(as_json(found.observation, found.verdict, case.behaviour.document))
    request.config.stash.setdefault(LINES, []).append(line)
    if found.observation.missing in run.broken:
        pytest.fail(f"could not run: {found.observation.missing}")
    if found.verdict.outcome is Outcome.NOT_RUN:
        pytest.skip(found.observation.missing or "")
    return found


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    lines = config.stash.get(LINES, [])
    if not lines:
        return
    terminalreporter.section("what the engines did")
    console = Console(file=terminalreporter._tw._file, width=terminalreporter._tw.fullwidth)
    console.print(report.table(lines, list(GENERATIONS), console.width))
    terminalreporter.write_line(f"record: {config.stash[RUN].recorder.path}")


def _selection(config: pytest.Config) -> plan.Selection:
    words = {name: config.getoption(name) for name in plan.OPTIONS}
    remotes = remote.declared(map(Path, config.getoption("remote")))
    return labs.selected(words, config.getoption("seed"), remotes)[0]
