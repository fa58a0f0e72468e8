"""Opens labs for the command and for pytest: joins the one that is up, or starts one for this run alone."""

from __future__ import annotations

import datetime as dt
import os
import platform
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import platformdirs
import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from lab import catalogs, generating, looking
from lab.catalogs import remote as remote_catalog
from lab.catalogs.signing import SignOn
from lab.engines import GENERATIONS, LIBRARY, remote, rest_properties
from lab.errors import LabError, UsageError
from lab.images.here import lacking, refuse_stale
from lab.model import Access, Answer, Generation
from lab.plan import DEFAULT_SEED, Case, Selection, cases, select, spelling
from lab.provision import Cache, NotProvided, shown_on
from lab.provision.settings import Settings
from lab.records.record import Recorded, Recorder, as_json
from lab.records.redact import Redactor
from lab.registering import WRITER
from lab.report.line import failure, name
from lab.run import Engines, Lab, Run, Tables, catalog
from lab.runtime import supervisor
from lab.runtime.places import Places
from lab.stores import STORES, named
from lab.tables import difference, inspection

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
# On these the whole suite was run. Elsewhere artefacts are locked too, but nobody has looked.
TESTED = (("Linux", "x86_64"),)


def state() -> Path:
    """Where runs and the state of a lab that is up lie: $ICEBERG_LAB_STATE, else the platform's per-user folder."""
    return Path(os.environ.get("ICEBERG_LAB_STATE") or platformdirs.user_state_path("iceberg-lab")).absolute()


def selected(
    words: Mapping[str, str | None], seed: str | None = None, remotes: Sequence[Generation] = ()
) -> tuple[Selection, str]:
    """What these options select (see `plan.select`), and why it runs where it runs. Raises UsageError.

    Unless a runtime is named, it is that of the lab that is up; else containers, if a Docker engine answers and has
    all images that are needed; else local processes.
    """
    if words.get("runtime"):
        return select(words, seed, remotes), "as asked"
    if up := supervisor.running(state()):
        named = {name: word for name, word in words.items() if word}
        return select({**words, **Places.of(up).as_json(), **named}, seed, remotes), "as the lab that is up"
    try:
        found = select({**words, "runtime": "containers"}, seed, remotes)
    except UsageError:  # of containers, or of both
        return select({**words, "runtime": "embedded"}, seed, remotes), "containers have no such lab"
    if why := lacking(found.places.catalog, found.places.store, found.generations, Cache()):
        try:
            return select({**words, "runtime": "embedded"}, seed, remotes), why
        except UsageError as error:
            if words.get("catalog") or words.get("store"):
                raise UsageError(f"{error}, of local processes; containers can't be had: {why}") from None
            raise
    return found, "a Docker engine answers and the images are here"


@contextmanager
def open_run(selection: Selection, console: Console, chosen: Sequence[Case] | None = None) -> Iterator[Run]:
    """A run over the selection (or the chosen cases of it); what it started is gone afterwards.

    Tells the console what is fetched, and each cell as it is seen. Raises LabError.
    """
    todo = cases(selection) if chosen is None else list(chosen)
    if not todo:
        raise LabError("nothing to run: no behaviour of the selection has a pair among these generations")
    asked = [case for case in todo if not case.variant.missing]
    needed = {g.name: g for case in asked for g in (case.writer, case.reader, selection.seed)}
    if any(case.behaviour.table.files for case in asked):
        needed |= {LIBRARY.name: LIBRARY, WRITER.name: WRITER}
    with opened(list(needed.values()), selection.places, console) as lab:
        run_id = lab.host.folder.name
        redactor = Redactor([*map(remote.known_secret, needed.values()), *remote_catalog.secrets()])
        recorder = Recorder(lab.host.folder / "record.jsonl", run_id, redactor)
        teller = _Teller(console, len(todo))
        run = Run(todo, selection, lab, recorder, teller.seen)
        try:
            yield run
        finally:
            run.close()
            recorder.close()


@contextmanager
def opened(needed: Sequence[Generation], places: Places, console: Console) -> Iterator[Lab]:
    """The lab that is up, joined, or one of this process's own that ends with it. Raises LabError."""
    folder = state() / "runs" / f"{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    cache = Cache(progress=shown_on(console))
    joined = supervisor.join(state(), cache, folder, places)
    where = "joined the lab that is up" if joined else "a lab of this run's own"
    if not joined:
        places.check()
    console.print(Text(f"{where}, {places}; record and logs in {folder}", "dim"), soft_wrap=True)
    fetch(cache, needed, places, console)
    with joined or places.make(cache, folder) as lab:
        yield lab


def fetch(cache: Cache, needed: Sequence[Generation], places: Places, console: Console) -> None:
    """Queues what is missing, services and the quickest engines first, and says how much that is.

    What runs in containers is in their images, which must be this lab's; of those engines only clients are fetched,
    when first used. Raises LabError for images of another lab.
    """
    quick_first = sorted(needed, key=lambda g: g.java is not None)
    if places.runtime == "containers":
        refuse_stale(places.catalog, places.store, needed, cache)
        artefacts = [artefact for g in quick_first if g.java is None for artefact in g.artefacts]
    else:
        engines = (artefact for g in quick_first for artefact in _artefacts(g))
        artefacts = [*named(places.store).ARTEFACTS, *catalogs.named(places.catalog).ARTEFACTS, *engines]
    missing = cache.missing(artefacts)
    if missing:
        size = sum(f.size for f in missing) / 1e6
        console.print(f"fetching {len(missing)} files, {size:,.0f} MB, into {cache.root}; kept for later runs")
        cache.prefetch(artefacts)


def ask(generation: Generation, statement: str, places: Places, console: Console) -> Answer:
    """One statement on one generation, in a lab that holds ORDERS_V2 and ORDERS_V3 in ANALYTICS."""
    seed = GENERATIONS[DEFAULT_SEED]
    with opened([generation, seed], places, console) as lab:
        engines = Engines(lab)
        tables = Tables(lab, engines, seed, as_found=True, spell=spelling(places))
        try:
            seeded = tables.analytics()
            with engines.using(generation) as engine, closing(engine.session()) as session:
                for table in seeded:
                    table.result()
                return session.execute(statement)
        finally:
            tables.close()
            engines.close()


def up(wanted: Sequence[Generation], places: Places, console: Console) -> dict[str, Any]:
    """Starts a lab that stays, seeds its tables, starts these engines; returns its status.

    One that is up already is joined: what it lacks is started.
    """
    seed = GENERATIONS[DEFAULT_SEED]
    if not is_up():
        places.check()
    fetch(Cache(progress=shown_on(console)), [*wanted, seed], places, console)
    supervisor.start(state(), places=places)
    with opened([*wanted, seed], places, console) as lab:
        engines = Engines(lab)
        tables = Tables(lab, engines, seed, as_found=True, spell=spelling(places))
        try:
            seeded = tables.analytics()
            with ThreadPoolExecutor(max(1, len(wanted))) as pool:
                list(pool.map(lambda generation: _warm(lab, generation), wanted))
            for table in seeded:
                table.result()
        finally:
            tables.close()
            engines.close()
    return status() or {}


def generate(order: generating.Order, generation: Generation, places: Places, console: Console) -> generating.Made:
    """Makes a table of any size in the lab that is up. Raises LabError, and UsageError for what can't be made."""
    generating.speaks(generation)
    if status() is None:
        raise LabError("no lab is up in which the table could stay; start one with: iceberg-lab up")
    seed = GENERATIONS[DEFAULT_SEED]
    with opened([generation, seed], places, console) as lab:
        engines = Engines(lab)
        try:
            with (
                engines.using(generation) as writer,
                engines.using(seed, "seed") as seeder,
                Progress(*_COLUMNS, console=console, transient=True) as progress,
            ):
                task = progress.add_task(f"{order.table} by {generation.name}", total=order.rows)
                return generating.generate(
                    order,
                    writer,
                    generation.kind,
                    seeder,
                    seed.kind,
                    catalog(lab),
                    lambda rows: progress.update(task, completed=rows),
                )
        finally:
            engines.close()


def is_up() -> bool:
    """Whether a lab is up, or on its way there."""
    return supervisor.running(state()) is not None


def status() -> dict[str, Any] | None:
    """What the lab that is up consists of; None if none is."""
    return supervisor.status(state())


def down() -> bool:
    """Ends the lab that is up; False if none was."""
    return supervisor.down(state())


def door(access: Access) -> dict[str, str]:
    """What a client of one's own is told to come in so at the lab that is up, in the words of Iceberg's REST client.

    There are secrets among it. Raises UsageError for a door or a principal that is none, LabError.
    """
    try:
        SignOn("", "").entry(access, "", "")
    except LabError as wrong:
        raise UsageError(str(wrong)) from None
    with tempfile.TemporaryDirectory() as folder:
        joined = supervisor.join(state(), Cache(), Path(folder, "door"))
        if joined is None:
            raise LabError("no lab is up whose door this could be; start one with: iceberg-lab up")
        with joined as lab:
            where = lab.catalog()
            entry = lab.sign_on().entry(access, where.uri, secrets.token_hex(4))
            return {**rest_properties(entry), "warehouse": where.warehouse}


def inspect(
    table: str | None, file: str | None, snapshot: int | None, between: tuple[int, int] | None, footers: int
) -> dict[str, Any]:
    """The x-ray of a table at a snapshot, or the difference `between` two of them, as JSON without secrets.

    `table` and `file`: see `looking.found`. Raises LabError.
    """
    with looking.found(state(), table, file) as there:
        if between is None:
            told = inspection.inspect(there.name, there.table, there.files, snapshot, footers)
        else:
            told = difference.diff(there.name, there.table, there.files, *between)
        cleaned: dict[str, Any] = Redactor(there.secrets).properties(told)
        return cleaned


def doctor() -> list[dict[str, str]]:
    """What this machine has and lacks, one line a question: what, found, and what to do if it is not enough."""
    cache = Cache()
    here = (platform.system(), platform.machine())
    missing = cache.missing(_all_artefacts())
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
        if status():
            raise LabError("a lab is up and uses the cache; end it first with: iceberg-lab down")
        held.prune(set() if everything else set(held.lock.names))
    damaged = held.verify() if verify else []
    rows = [(path, "damaged, removed", "") for path in damaged]
    for usage in held.usage():
        rows.append((usage.what, f"{usage.size / 1e6:,.1f} MB", f"{dt.datetime.fromtimestamp(usage.last_used):%F}"))
    return [{"what": what, "size": size, "last used": used} for what, size, used in rows]


class _Teller:
    """Tells each cell as it is seen, and how many are left."""

    def __init__(self, console: Console, total: int) -> None:
        self._console, self._total, self._seen = console, total, 0

    def seen(self, case: Case, recorded: Recorded) -> None:
        self._seen += 1
        line = as_json(recorded.observation, recorded.verdict, None)
        verdict = recorded.verdict
        fine = "green" if verdict.outcome == "works" else "yellow"
        mark = "bold red" if verdict.expectation == "unexpected" else fine
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
    with lab.using(generation):
        pass


def _artefacts(generation: Generation) -> list[str]:
    return [*generation.artefacts, *([f"java:{generation.java}"] if generation.java else [])]


def _all_artefacts() -> list[str]:
    stores = (artefact for store in STORES for artefact in named(store).ARTEFACTS)
    services = (artefact for catalog in catalogs.CATALOGS for artefact in catalogs.named(catalog).ARTEFACTS)
    return [*stores, *services, *(artefact for g in GENERATIONS.values() for artefact in _artefacts(g))]


def _jdk(cache: Cache) -> tuple[str, str]:
    try:
        return str(cache.java("25-full")), ""
    except NotProvided as e:
        return "none", str(e)


def _existing(path: Path) -> Path:
    return next(p for p in (path, *path.parents) if p.exists())
