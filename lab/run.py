"""Runs cases: tables are seeded, engines asked, what they answer is judged and recorded, cell by cell.

Each generation has a lane, a thread that asks its engine one statement at a time; lanes run side by side, so
that a quick engine's cells arrive while a slow one still starts. A case has up to two parts: the writer's
steps on the writer's lane, then the second engine's on its own. Every first part stands before every second
one in its lane, and a first part waits for tables only, so no lane can wait for itself. Races, in which two engines
speak at once, run on courses of two lanes, on connections of their own.
"""

from __future__ import annotations

import hashlib
import itertools
import secrets
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from lab import catalogs
from lab.asking import earlier, plain_read, say, seed, untouched, words
from lab.catalogs import DENY, GRANT, CatalogEndpoint, profiles
from lab.catalogs.remote import NAME as REMOTE
from lab.catalogs.signing import Entry, SignOn
from lab.engines import LIBRARY, Engine, Session, adapter, remote
from lab.errors import LabError
from lab.model import Access, Cell, Failure, Generation, Observation, Rows, Step, StepResult, Table
from lab.plan import Case, Selection, control_of, spelled, spelling
from lab.provision import NotProvided
from lab.racing import Side, race
from lab.records.record import Recorded, Recorder
from lab.records.redact import Redactor
from lab.records.verdict import judge, turned
from lab.registering import Writer, has_puffin, register
from lab.runtime.host import Host
from lab.stores import STORES, StoreEndpoint, named
from lab.tables.look import AT_STORE, looks
from lab.tables.orders import NAMESPACE, ORDERS_V2, ORDERS_V3
from lab.tables.rest import RestCatalog, RestError

T = TypeVar("T")
NOT_FOUND = 404
COURSES = 2  # of races at once: the two writers of one alone leave a third of two cores idle


class Lab(Protocol):
    """Services and engines, wherever they live: `lab/runtime` has the implementations."""

    host: Host

    def store(self) -> StoreEndpoint: ...
    def catalog(self) -> CatalogEndpoint: ...
    def sign_on(self) -> SignOn: ...
    def using(self, generation: Generation) -> AbstractContextManager[dict[str, Any]]: ...
    def stop(self) -> None: ...


def catalog(lab: Lab) -> RestCatalog:
    """The lab's own client of its catalog."""
    where = lab.catalog()
    return RestCatalog(where.uri, where.warehouse)


@dataclass(frozen=True)
class _Part:
    """What one engine did of a case, or what was missing for it."""

    by: str
    steps: tuple[StepResult, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    missing: str | None = None

    @property
    def stopped(self) -> bool:
        return self.missing is not None or any(isinstance(s.answer, Failure) for s in self.steps)


class Engines:
    """Connections to a lab's engines, made when first asked for and closed together."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._connected: dict[tuple[str, str], tuple[dict[str, Any], Engine]] = {}
        self._refused: dict[str, LabError] = {}  # by engines of the user's: asked once, not once a cell

    @contextmanager
    def using(self, generation: Generation, purpose: str = "") -> Iterator[Engine]:
        """The connection to a generation, which is not stopped meanwhile; each purpose has one of its own.

        Made anew where the engine was, be it after a crash. Raises LabError.
        """
        key = (generation.name, purpose)
        if generation.remote is not None:
            yield self._remote(key, generation)
            return
        with self._lab.using(generation) as endpoint:
            known, engine = self._connected.get(key, (None, None))
            if engine is None or known != endpoint:
                engine = adapter(generation.kind).Engine(self._lab.host, generation, self._lab.catalog(), endpoint)
                self._connected[key] = (endpoint, engine)
            yield engine

    def _remote(self, key: tuple[str, str], generation: Generation) -> Engine:
        if generation.name in self._refused:
            raise self._refused[generation.name]
        if key not in self._connected:
            try:
                self._connected[key] = ({}, remote.connect(self._lab.host, generation, self._lab.catalog()))
            except LabError as error:
                self._refused[generation.name] = error
                raise
        return self._connected[key][1]

    def close(self) -> None:
        for _, engine in self._connected.values():
            with suppress(Exception):  # one that is already gone
                engine.close()


class Tables:
    """Seeded tables of a lab, each made once: by the seeding generation, those of declared files by the library.

    Each of the two has a lane of its own, so that nothing waits for a JVM that needs none.
    """

    def __init__(
        self,
        lab: Lab,
        engines: Engines,
        generation: Generation,
        *,
        as_found: bool = False,
        theirs: bool = False,
        spell: Callable[[str], str] = str,
    ) -> None:
        """as_found: a table that stands is taken as it is; to be judged, it must be as it was made.

        theirs: the catalog is the user's own.
        spell: how the catalog wants the names of ORDERS_V2 and its like, see `lab.plan.spelling`.
        """
        self.namespace, self.orders = spell(NAMESPACE), spelled(ORDERS_V2, spell)
        self._spell = spell
        self._lab, self._engines, self._generation = lab, engines, generation
        self._as_found, self._theirs = as_found, theirs
        self._lanes = {who.name: _Lane(f"seed {who.name}") for who in (generation, LIBRARY)}
        self._writer: Writer | None = None
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], Future[None]] = {}
        self._session: tuple[Engine, Session] | None = None  # one for all tables, anew after a crash

    def by(self, table: Table) -> Generation:
        """Who makes this table."""
        return LIBRARY if table.files else self._generation

    def get(self, table: Table, namespace: str, properties: Mapping[str, str | None] | None = None) -> Future[None]:
        """Resolved when the table stands with its rows; a LabError says why it can't be made."""
        key = (namespace, table.name)
        with self._lock:
            if key not in self._made:
                lane = self._lanes[self.by(table).name]
                self._made[key] = lane.do(lambda: self._make(table, namespace, properties or {}))
            return self._made[key]

    def analytics(self) -> list[Future[None]]:
        """ORDERS_V2 and ORDERS_V3 in ANALYTICS, the tables of a lab that somebody looks around in."""
        return [self.get(spelled(table, self._spell), self.namespace) for table in (ORDERS_V2, ORDERS_V3)]

    def plain(self) -> Future[None]:
        """ORDERS_V2 alone: what a failing case is checked against."""
        return self.get(self.orders, self.namespace)

    def _make(self, table: Table, namespace: str, properties: Mapping[str, str | None]) -> None:
        if not table.given:
            with suppress(RestError):  # it stands already
                catalog(self._lab).create_namespace(namespace)
            return
        stands = self._stands(namespace, table)  # in a lab that was up before
        generation = self.by(table)
        with self._engines.using(generation, "seed") as engine:
            if stands and (self._as_found or table.files):
                return  # of declared files: nobody's but the lab's, and read with its truth
            if not table.files:
                self._seed(engine, table, namespace, properties, stands)
                return
            if self._writer is None:
                self._writer = Writer(self._lab.host)
            with closing(engine.session()) as session:
                register(session, self._writer, catalog(self._lab), namespace, table, properties)

    def _seed(
        self, engine: Engine, table: Table, namespace: str, properties: Mapping[str, str | None], stands: bool
    ) -> None:
        if self._session is None or self._session[0] is not engine:
            self._session = (engine, engine.session())
        try:
            if stands:
                untouched(self._session[1], self._generation, namespace, table, theirs=self._theirs)
            else:
                seed(self._session[1], self._generation.kind, namespace, table, properties)
        except LabError:
            self._session = None  # it may be the session that is broken
            raise

    def _stands(self, namespace: str, table: Table) -> bool:
        try:
            catalog(self._lab).load_table(namespace, table.name)
        except RestError as e:
            if e.status == NOT_FOUND:
                return False
            raise
        return True

    def close(self) -> None:
        """Ends lanes and writer; the session ends with its engine's connection."""
        for lane in self._lanes.values():
            lane.close()
        if self._writer is not None:
            self._writer.close()


class Run:
    """One run over a lab. `results` has a future for each cell, resolved as soon as it is recorded."""

    def __init__(
        self,
        cases: Sequence[Case],
        selection: Selection,
        lab: Lab,
        recorder: Recorder,
        on_seen: Callable[[Case, Recorded], None] = lambda case, recorded: None,
    ) -> None:
        self.cases, self.lab, self.recorder, self.on_seen = cases, lab, recorder, on_seen
        self.results: dict[Cell, Future[Recorded]] = {case.cell: Future() for case in cases}
        self.broken: set[str] = set()  # why cells could not run though nothing was missing on this machine
        self._engines = Engines(lab)
        self._spell = spelling(selection.places)
        self._traits = catalogs.named(selection.places.catalog).traits()
        theirs = selection.places.catalog == REMOTE
        self._tables = Tables(lab, self._engines, selection.seed, theirs=theirs, spell=self._spell)
        self._lanes: dict[str, _Lane] = {}
        self._seen: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._courses = [_Course(number) for number in range(1, COURSES + 1)]
        self._gates: dict[tuple[str, str], _Gate] = {}  # of races, which are many and come in alike

    def start(self) -> None:
        """Hands every case to its lanes and returns."""
        if not all(case.variant.missing for case in self.cases):
            self._tables.plain()  # first of all: what a failing case is checked against
        firsts: dict[tuple[str, ...], Future[_Part]] = {}
        racing = {who.name: who for case in self.cases if case.races for who in (case.writer, case.reader)}
        for who in racing.values():
            self._lane(who).do(partial(self._warm, who))  # side by side, not one after the other as races want them
        courses = itertools.cycle(self._courses)
        for case in self.cases:
            if case.races:
                course = next(courses)
                course.first.do(self._finish(case, partial(self._raced, case, course)))
            elif self._work(case) not in firsts:  # one writer's work serves all its readers
                work = self._lacking(case) if case.variant.missing else self._writer_part(case)
                firsts[self._work(case)] = self._lane(case.writer).do(work)
            if not case.has_second:  # told as soon as it is seen
                self._lane(case.reader).do(self._finish(case, partial(self._parts, case, firsts[self._work(case)])))
        for case in self.cases:
            if case.has_second and not case.races:
                self._lane(case.reader).do(self._finish(case, partial(self._parts, case, firsts[self._work(case)])))

    def wait(self) -> list[Recorded]:
        """Waits for every cell. In the order of the cases."""
        return [self.results[case.cell].result() for case in self.cases]

    def control(self, case: Case) -> list[str]:
        """Why the outcome did not turn in the cell in which the cause of `case` is removed; empty if it did.

        Empty as well where no control is declared or it is not part of this run.
        """
        cell = control_of(case)
        if cell is None or cell not in self.results or self.results[case.cell].result().observation.missing:
            return []
        lines = turned(case.behaviour, case.cell, self.results[cell].result().observation)
        self.recorder.control(case.cell, cell, lines)
        return lines

    def close(self) -> None:
        """Ends the sessions that this run holds; the lab and its engines are the caller's."""
        for lane in (*self._lanes.values(), *(lane for course in self._courses for lane in course.lanes)):
            lane.close()
        self._tables.close()
        self._engines.close()

    def _lane(self, generation: Generation) -> _Lane:
        if generation.name not in self._lanes:
            self._lanes[generation.name] = _Lane(generation.name)
        return self._lanes[generation.name]

    def _work(self, case: Case) -> tuple[str, ...]:
        """What a writer does once for all its readers; many behaviours may read one fixed namespace."""
        return (self.namespace(case), case.cell.behaviour, case.cell.variant, case.cell.writer)

    def namespace(self, case: Case) -> str:
        """A case's own namespace, of this run: upper case, so that engines that fold names are seen to fold."""
        if case.behaviour.namespace:
            return case.behaviour.namespace
        second = [step for step in case.steps if step.second]
        only_reads = all(step.truth is not None for step in second)  # then all readers share what one writer wrote
        key = f"{self.recorder.run} {case.cell.variant} {case.cell.writer} {'' if only_reads else case.cell.reader}"
        digest = hashlib.sha256(key.encode()).hexdigest()[:8].upper()
        name = (case.behaviour.family or case.cell.behaviour).upper().replace("-", "_")
        return self._spell(f"{name}_{digest}")

    # ------------------------------------------------------------ the parts of a case
    def _lacking(self, case: Case) -> Callable[[], _Part]:
        """Nobody's part: what is declared to be missing."""
        cell = case.cell
        return lambda: _Part(cell.writer, missing=f"{cell.behaviour}/{cell.variant}: {case.variant.missing}")

    def _writer_part(self, case: Case) -> Callable[[], _Part]:
        tables = self._tables.get(case.behaviour.table, self.namespace(case), case.variant.properties)

        def work() -> _Part:
            try:
                self._check(case)
                tables.result()
            except LabError as e:
                return self._nothing(self._tables.by(case.behaviour.table), e)
            steps = [s for s in case.steps if not s.second and s.look is None]
            return self._ask(case, case.writer, steps, case.variant.settings, case.variant.access)

        return work

    def _check(self, case: Case) -> None:
        """Raises NotProvided, before anything is done in vain, for what can't be had of a catalog of the user's own."""
        if any(step.look in AT_STORE for step in case.steps):
            self.lab.store()
        if self._traits.vends and {DENY, GRANT} & case.variant.properties.keys():
            raise NotProvided("the gateway is to narrow this table's keys, and they are the remote catalog's own")
        if not self._traits.puffin and has_puffin(case.behaviour.table):
            raise NotProvided("the catalog itself takes no *.puffin: a table with such files can't be made there")

    def _finish(self, case: Case, parts: Callable[[], list[_Part]]) -> Callable[[], None]:
        def work() -> None:
            future = self.results[case.cell]
            try:
                try:
                    recorded = self._observe(case, parts())
                except Exception as fault:  # the lab's own: told for this cell, and the others go on
                    recorded = self._observe(case, [self._faulty(case.reader, fault)])
                self.on_seen(case, recorded)
                future.set_result(recorded)
            except BaseException as e:  # what can't even be recorded must reach who waits for the cell
                future.set_exception(e)

        return work

    def _parts(self, case: Case, first: Future[_Part]) -> list[_Part]:
        """What the writer did, and the second engine after it."""
        parts = [first.result()]
        second = [s for s in case.steps if s.second]
        if second and not parts[0].stopped:
            access = case.variant.second_access or case.variant.access
            parts.append(self._ask(case, case.reader, second, case.variant.second_settings, access))
        return parts

    def _warm(self, who: Generation) -> None:
        with self._engines.using(who):
            pass

    def _raced(self, case: Case, course: _Course) -> list[_Part]:
        """What both engines did at once, as the first one's part, and the second one with nothing of its own."""
        table, namespace = case.behaviour.table, self.namespace(case)
        try:
            self._check(case)
            self._tables.get(table, namespace, case.variant.properties).result()
            self._tables.plain().result()
        except LabError as e:
            return [self._nothing(self._tables.by(table), e)]
        sides: list[Side] = []
        parts = []
        with ExitStack() as held:
            for who, lane in ((case.writer, course.first), (case.reader, course.second)):
                try:
                    engine = held.enter_context(self._engines.using(who, lane.name))
                    gate = self._gate(case, who, lane.name)
                    session = held.enter_context(closing(engine.session({}, gate.entry)))
                    parts.append(_Part(who.name, (), engine.versions(), dict(session.settings)))
                except LabError as e:
                    return [self._nothing(who, e)]
                sides.append(Side(who, session, gate.noted))
            filling = words(namespace, table, case.writer.name, case.reader.name)
            sound = partial(plain_read, namespace=self._tables.namespace, orders=self._tables.orders)
            steps = race(table, case.steps, sides[0], sides[1], filling, course.second.do, sound)
        return [replace(parts[0], steps=tuple(steps)), parts[1]]

    def _gate(self, case: Case, who: Generation, which: str) -> _Gate:
        if (who.name, which) not in self._gates:
            gate = _Gate(self.lab, case.cell.store, case.variant.access, self.recorder.redactor)
            self._gates[who.name, which] = gate
        return self._gates[who.name, which]

    def _observe(self, case: Case, parts: Sequence[_Part]) -> Recorded:
        steps = [step for part in parts for step in part.steps]
        stopped = any(part.stopped for part in parts)
        if not any(part.missing for part in parts):
            looks = (step for step in case.steps if step.look is not None and (step.always or not stopped))
            steps += [self._look(case, step) for step in looks]
        seen = Observation(
            cell=case.cell,
            steps=tuple(steps),
            versions={part.by: part.versions for part in parts},
            settings={part.by: part.settings for part in parts},
            seeded_by=self._tables.by(case.behaviour.table).name,
            seconds=sum(s.seconds for s in steps),
            missing=next((part.missing for part in parts if part.missing), None),
        )
        recorded = Recorded(seen, judge(case.behaviour, seen))
        self.recorder.cell(seen, recorded.verdict, case.behaviour.document)
        return recorded

    def _ask(
        self,
        case: Case,
        who: Generation,
        steps: Sequence[Step],
        settings: Mapping[str, str | None],
        access: Access | None,
    ) -> _Part:
        """These steps on this generation until one fails; a plain v2 read then tells if the session is sound."""
        filling = words(self.namespace(case), case.behaviour.table, case.writer.name, case.reader.name)
        done: list[StepResult] = []
        try:
            if any("{filled" in str(step.statement(who.kind)) for step in steps):
                loaded = catalog(self.lab).load_table(self.namespace(case), case.behaviour.table.name)
                filling |= earlier(loaded.metadata)
            with ExitStack() as held:
                engine = held.enter_context(self._engines.using(who))
                # When the engine runs: tokens are short-lived.
                gate = _Gate(self.lab, case.cell.store, access, self.recorder.redactor)
                session = held.enter_context(closing(engine.session(settings, gate.entry)))
                for step in steps:
                    if step.optional and step.statement(who.kind) is None:
                        continue
                    done.append(gate.noted(say(session, who, case.behaviour.table, step, filling)))
                    answer = done[-1].answer
                    if step.gives and isinstance(answer, Rows):
                        filling[step.gives] = str(answer.rows[0][0])
                    if isinstance(answer, Failure):
                        if not answer.crash:
                            self._tables.plain().result()
                            done.append(plain_read(session, who, self._tables.namespace, self._tables.orders))
                        break
                return _Part(who.name, tuple(done), engine.versions(), dict(session.settings))
        except LabError as e:
            return self._nothing(who, e)

    def _faulty(self, who: Generation, fault: Exception) -> _Part:
        log = self.lab.host.log("lab")
        with log.open("a") as file:
            traceback.print_exception(fault, file=file)
        return self._nothing(who, LabError(f"the lab failed with {type(fault).__name__}: {fault}; read {log}"))

    def _nothing(self, who: Generation, why: LabError) -> _Part:
        """Nothing ran: something is missing on this machine, or else something is broken."""
        missing = f"{who.name}: {why}"
        if not isinstance(why, NotProvided):
            self.broken.add(missing)
        return _Part(who.name, missing=missing)

    def _look(self, case: Case, step: Step) -> StepResult:
        """The lab's own look at the table, through the catalog and without any engine."""
        started = time.monotonic()
        name, _, part = (step.look or "").partition(":")
        look = looks(self.lab.store, (self._tables.namespace, self._tables.orders.name))[name]
        at = (self.namespace(case), case.behaviour.table.name)
        seen = self._seen.get((*at, name))
        if seen is None:
            seen = look(catalog(self.lab), *at)
            if case.behaviour.namespace:  # what nobody writes stays as it is
                self._seen[(*at, name)] = seen
        if part:
            seen = seen[part]
        seconds, truth = time.monotonic() - started, step.truth_for("lab")
        return StepResult(step.name, "lab", look.__doc__ or "", seconds, look=seen, truth=truth)


class _Gate:
    """How a part of a case comes to the catalog, and what the gateway noted of it."""

    def __init__(self, lab: Lab, store: str, access: Access | None, redactor: Redactor) -> None:
        """access: None for the open door, at which nothing is noted.

        Raises NotProvided where the store can't vend what the door is to vend.
        """
        self.entry: Entry | None = None
        if access is not None:
            wanted, least = profiles.door(access.profile).seconds("vended-seconds"), named(store).SHORTEST_SECONDS
            if wanted < least:
                raise NotProvided(
                    f"{store} gives keys of {least} seconds at least, not of {wanted:.0f}; take --store {STORES[0]}"
                )
            self._sign_on = lab.sign_on()
            self.entry = self._sign_on.entry(access, lab.catalog().uri, secrets.token_hex(4))
            redactor.known |= self.entry.secrets
            self._offset = Path(self._sign_on.record).stat().st_size

    def noted(self, step: StepResult) -> StepResult:
        """The step with what the gateway was asked since the one before."""
        if self.entry is None:
            return step
        told, self._offset = self._sign_on.asked(self.entry, self._offset)
        return replace(step, asked=told)


class _Lane:
    """A thread that does one thing after the other. A daemon: it never keeps a stopped lab alive."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._work, name=f"lane {name}", daemon=True).start()

    def do(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()

        def task() -> None:
            try:
                future.set_result(work())
            except BaseException as e:
                future.set_exception(e)

        self._queue.put(task)
        return future

    def close(self) -> None:
        self._queue.put(None)

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            task()


class _Course:
    """Where one race after the other is run: a lane for each of the two writers."""

    def __init__(self, number: int) -> None:
        self.first, self.second = _Lane(f"races {number}"), _Lane(f"races {number}, second writer")

    @property
    def lanes(self) -> tuple[_Lane, _Lane]:
        return self.first, self.second
