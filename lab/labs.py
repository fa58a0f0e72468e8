"""Opens labs for the command and for pytest: joins the one that is up, or starts one for this run alone."""

from __future__ import annotations

import datetime as dt
import os
import platform
import secrets
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs
import psutil
from rich.console import Console
from rich.text import Text

from lab.catalogs import reference
from lab.engines import GENERATIONS
from lab.errors import LabError
from lab.model import Answer, Generation
from lab.plan import DEFAULT_SEED, Case, Selection, cases
from lab.provision import Cache, NotProvided, shown_on
from lab.provision.settings import Settings
from lab.records.record import Recorded, Recorder
from lab.records.redact import Redactor
from lab.report.matrix import failure, name
from lab.run import Engines, Lab, Run, Tables
from lab.runtime import folder as folders
from lab.runtime import supervisor
from lab.runtime.embedded import Embedded
from lab.runtime.host import Host
from lab.stores import seaweedfs

SERVICES = (seaweedfs.ARTEFACT, f"java:{reference.JAVA}", reference.ARTEFACT)
# On these the whole suite was run. Elsewhere artefacts are locked too, but nobody has looked.
TESTED = (("Linux", "x86_64"),)


def state() -> Path:
    """Where runs and the state of a lab that is up lie: $ICEBERG_LAB_STATE, else the platform's per-user folder."""
    return Path(os.environ.get("ICEBERG_LAB_STATE") or platformdirs.user_state_path("iceberg-lab")).absolute()


@contextmanager
def open_run(selection: Selection, console: Console, chosen: Sequence[Case] | None = None) -> Iterator[Run]:
    """A run over the selection (or the chosen cases of it); what it started is gone afterwards.

    Tells the console what is fetched, and each cell as it is seen. Raises LabError.
    """
    todo = cases(selection) if chosen is None else list(chosen)
    if not todo:
        raise LabError("nothing to run: no behaviour of the selection has a pair among these generations")
    needed = list(dict.fromkeys([g for case in todo for g in (case.writer, case.reader)] + [selection.seed]))
    with opened(needed, console) as lab:
        run_id = lab.host.folder.name
        recorder = Recorder(lab.host.folder / "record.jsonl", run_id, Redactor())
        teller = _Teller(console, len(todo))
        run = Run(todo, selection, lab, recorder, teller.seen)
        try:
            yield run
        finally:
            run.close()
            recorder.close()


@contextmanager
def opened(needed: Sequence[Generation], console: Console) -> Iterator[Lab]:
    """The lab that is up, joined, or one of this process's own that ends with it."""
    runs = state() / "runs"
    folders.sweep(runs)
    folder = runs / f"{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    folders.claim(folder)
    cache = Cache(progress=shown_on(console))
    host = Host(cache, folder)
    try:
        joined = supervisor.join(state(), host)
        console.print(Text(_told(joined is not None, folder), "dim"))
        fetch(cache, needed, console, services=joined is None)
        lab = joined or Embedded(host)
        try:
            yield lab
        finally:
            lab.stop()
    finally:
        host.stop()
        folders.release(folder)


def fetch(cache: Cache, needed: Sequence[Generation], console: Console, *, services: bool = True) -> None:
    """Queues what is missing, quickest engines first, and says how much that is."""
    quick_first = sorted(needed, key=lambda g: g.java is not None)
    artefacts = list(SERVICES) if services else []
    for generation in quick_first:
        artefacts += generation.artefacts
        if generation.java:
            artefacts.append(f"java:{generation.java}")
    missing = cache.missing(artefacts)
    if missing:
        size = sum(f.size for f in missing) / 1e6
        console.print(f"fetching {len(missing)} files, {size:,.0f} MB, into {cache.root}; kept for later runs")
        cache.prefetch(artefacts)


def ask(generation: Generation, statement: str, console: Console) -> Answer:
    """One statement on one generation, in a lab that holds ORDERS_V2 and ORDERS_V3 in ANALYTICS."""
    seed = GENERATIONS[DEFAULT_SEED]
    with opened([generation, seed], console) as lab:
        engines = Engines(lab)
        tables = Tables(lab, engines, seed)
        try:
            threading.Thread(target=_warm, args=(lab, generation), daemon=True).start()
            for table in tables.analytics():
                table.result()
            session = engines.get(generation).session({})
            answer: Answer = session.execute(statement)
            session.close()
            return answer
        finally:
            tables.close()
            engines.close()


def up(wanted: Sequence[Generation], console: Console) -> dict[str, Any]:
    """Starts a lab that stays, seeds its tables, starts these engines; returns its status."""
    fetch(Cache(progress=shown_on(console)), [*wanted, GENERATIONS[DEFAULT_SEED]], console)
    supervisor.start(state())
    with opened([*wanted, GENERATIONS[DEFAULT_SEED]], console) as lab:
        engines = Engines(lab)
        tables = Tables(lab, engines, GENERATIONS[DEFAULT_SEED])
        try:
            starting = [threading.Thread(target=_warm, args=(lab, g), daemon=True) for g in wanted]
            for thread in starting:
                thread.start()
            for table in tables.analytics():
                table.result()
            for thread in starting:
                thread.join()
        finally:
            tables.close()
            engines.close()
    return supervisor.status(state()) or {}


def status() -> dict[str, Any] | None:
    """What the lab that is up consists of; None if none is."""
    return supervisor.status(state())


def down() -> bool:
    """Ends the lab that is up; False if none was."""
    return supervisor.down(state())


def doctor() -> list[dict[str, str]]:
    """What this machine has and lacks, one line a question: what, found, and what to do if it is not enough."""
    cache = Cache()
    here = (platform.system(), platform.machine())
    missing = cache.missing([*SERVICES, *(a for g in GENERATIONS.values() for a in g.artefacts)])
    free = shutil.disk_usage(_existing(cache.root)).free
    rows = [
        ("Python", platform.python_version(), ""),
        ("platform", " ".join(here), "" if here in TESTED else "untested: artefacts are locked, nothing was run here"),
        ("cores, memory", f"{os.cpu_count()}, {psutil.virtual_memory().total / 2**30:.0f} GiB", ""),
        ("cache", f"{cache.root}, {free / 1e9:.0f} GB free there", ""),
        ("to be fetched", f"{len(missing)} files, {sum(f.size for f in missing) / 1e6:,.0f} MB", ""),
        ("runs", str(state() / "runs"), ""),
        ("full JDK 25", *_jdk(cache)),
        ("lab that is up", "yes" if status() else "none", ""),
        *((what, found, "") for what, found in Settings.read().shown()),
    ]
    return [{"what": what, "found": found, "to do": cure} for what, found, cure in rows]


def cache(*, prune: bool, everything: bool, verify: bool) -> list[dict[str, str]]:
    """What lies in the cache, after pruning or verifying it if asked to."""
    held = Cache()
    if prune:
        keep = {*SERVICES, *(a for g in GENERATIONS.values() for a in (*g.artefacts, f"java:{g.java}") if a[-4:] != "None")}
        held.prune(set() if everything else keep)
    damaged = held.verify() if verify else []
    rows = [{"what": u.what, "size": f"{u.size / 1e6:,.1f} MB", "used": f"{dt.datetime.fromtimestamp(u.last_used):%F}"} for u in held.usage()]
    return [*({"what": path, "size": "damaged, removed", "used": ""} for path in damaged), *rows]


class _Teller:
    """Tells each cell as it is seen, and how many are left."""

    def __init__(self, console: Console, total: int) -> None:
        self._console, self._total, self._seen = console, total, 0

    def seen(self, case: Case, recorded: Recorded) -> None:
        from lab.records.record import as_json

        self._seen += 1
        line = as_json(recorded.observation, recorded.verdict, None)
        verdict = recorded.verdict
        mark = "bold red" if verdict.expectation == "unexpected" else "green" if verdict.outcome == "works" else "yellow"
        self._console.print(
            Text.assemble(
                (f"{self._seen:>3}/{self._total} ", "dim"),
                (f"{verdict.outcome:<14} ", mark),
                name(line["cell"]),
                (f"  {recorded.observation.seconds:.2f} s  {failure(line)[:160]}", "dim"),
            ),
            soft_wrap=True,
        )


def _warm(lab: Lab, generation: Generation) -> None:
    try:
        lab.engine(generation)
    except LabError as e:
        print(f"{generation.name}: {e}", file=sys.stderr)


def _told(joined: bool, folder: Path) -> str:
    where = "joined the lab that is up" if joined else "a lab of this run's own"
    return f"{where}; record and logs in {folder}"


def _jdk(cache: Cache) -> tuple[str, str]:
    try:
        return str(cache.java("25-full")), ""
    except NotProvided as e:
        return "none", str(e)


def _existing(path: Path) -> Path:
    return next(p for p in (path, *path.parents) if p.exists())
