"""What to run: words of the user → generations and behaviours → cells. Starts nothing."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from lab import catalogs, stores
from lab.behaviours import BEHAVIOURS
from lab.behaviours.pairs.feature import EVERY, QUICK, Feature
from lab.behaviours.pairs.race import Race
from lab.catalogs import profile
from lab.engines import GENERATIONS, LIBRARY
from lab.errors import UsageError
from lab.model import (
    ENGINES,
    NOBODY,
    OWN,
    SAME,
    Behaviour,
    Cell,
    Generation,
    Outcome,
    Step,
    Table,
    Variant,
    declared_name,
)
from lab.runtime.places import EMBEDDED, Places

# One grammar everywhere: the command's and pytest's options, each a list of comma-separated globs.
OPTIONS = {
    "generations": "engine generations, e.g. 'spark-3.5*,duckdb*'",
    "behaviours": "behaviours by id, e.g. 'H-v3-*'; named (or '*'), they run with what takes too long for every day",
    "tags": "behaviours by tag, e.g. 'v3,write'",
    "runtime": "where services run: embedded or containers  [default: containers if their images are here]",
    "catalog": "the catalog: reference, polaris, seaweedfs, or remote, one of your own (docs/catalogs.md)  "
    "[default: reference; in containers polaris]",
    "store": "the object store: seaweedfs or minio  [default: seaweedfs; in containers minio]",
}
# By runtime, the catalogs and stores that it has, the one it takes unless another is named first. A catalog may have
# fewer stores, or one of its own.
PLACES: dict[str, dict[str, tuple[str, ...]]] = {
    "embedded": {"catalog": catalogs.CATALOGS, "store": stores.STORES},
    "containers": {"catalog": ("polaris", "reference", "seaweedfs"), "store": ("minio", "seaweedfs")},
}
# The pair matrix by its features' names.
FEATURES = {b.name: b for b in BEHAVIOURS.values() if isinstance(b, Feature)}
DEFAULT_SEED = "duckdb-1.5.5"  # starts at once and writes both versions


@dataclass(frozen=True)
class Selection:
    """What a user selected, every name already known to exist."""

    generations: tuple[Generation, ...]
    behaviours: tuple[Behaviour, ...]
    places: Places = EMBEDDED
    full: bool = False  # with the variants that are
    seed: Generation = GENERATIONS[DEFAULT_SEED]


@dataclass(frozen=True)
class Case:
    """A cell with all that is needed to run it."""

    cell: Cell
    behaviour: Behaviour
    variant: Variant
    writer: Generation
    reader: Generation

    @property
    def has_second(self) -> bool:
        """Whether a second engine has something to do after the writer."""
        return any(step.second for step in self.steps)

    @property
    def races(self) -> bool:
        """Whether its two engines speak at the same time."""
        return any(step.change for step in self.steps)

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.behaviour.steps_of(self.variant)


def select(words: Mapping[str, str | None], seed: str | None = None, remotes: Sequence[Generation] = ()) -> Selection:
    """The selection that these options name (None: all). Raises UsageError that lists near names.

    remotes: the user's own engines (`lab.engines.remote.declared`), generations like any other.
    """
    known = {**GENERATIONS, **{generation.name: generation for generation in remotes}}
    behaviours = [BEHAVIOURS[i] for i in _named("behaviours", words.get("behaviours"), BEHAVIOURS)]
    if words.get("tags"):
        tags = _named("tags", words["tags"], sorted({t for b in BEHAVIOURS.values() for t in b.tags}))
        behaviours = [b for b in behaviours if set(b.tags) & set(tags)]
        if not behaviours:
            raise UsageError(f"no behaviour of {words['behaviours']!r} has a tag of {words['tags']!r}")
    if seed is not None and seed not in known:
        raise UsageError(_unknown("generations", seed, list(known)))
    generations = tuple(known[n] for n in _named("generations", words.get("generations"), known))
    return Selection(
        generations,
        tuple(behaviours),
        places=_places(words),
        full=bool(words.get("behaviours")),
        seed=known[seed or DEFAULT_SEED],
    )


def recorded_remotes(lines: Iterable[Mapping[str, Any]]) -> list[Generation]:
    """The engines of users' own that cells of a record name, as far as showing them goes."""
    cells = (line["cell"] for line in lines if line["type"] == "cell")
    names = dict.fromkeys(cell[who] for cell in cells for who in ("writer", "reader") if OWN in cell[who])
    return [Generation(name, name.partition("-")[0], {}, ()) for name in names]


def _places(words: Mapping[str, str | None]) -> Places:
    runtime = _named("runtime", words.get("runtime"), PLACES)[0]
    has = PLACES[runtime]
    if words.get("catalog") in catalogs.CATALOGS and words.get("catalog") not in has["catalog"]:
        raise UsageError(f"--catalog {words['catalog']} is not to be had in {runtime}; take --runtime embedded")
    catalog = _named("catalog", words.get("catalog"), has["catalog"])[0]
    goes_with = catalogs.named(catalog).STORES
    fitting = [store for store in has["store"] if store in goes_with] or goes_with
    try:
        store = _named("store", words.get("store"), fitting)[0]
    except UsageError:
        _named("store", words.get("store"), has["store"])  # if it is none at all, that is what to say
        raise UsageError(f"--store: the catalog {catalog} goes with {' or '.join(fitting)}, not with others") from None
    return Places(runtime, catalog, store)


def spelling(places: Places) -> Callable[[str], str]:
    """How the lab spells its own namespaces and tables there: where names must be in lower case, so are they."""
    return str.lower if catalogs.named(places.catalog).traits().lower_case else str


def spelled(table: Table, spell: Callable[[str], str]) -> Table:
    """The table by its name there."""
    return replace(table, name=spell(table.name))


def _spelled(behaviour: Behaviour, spell: Callable[[str], str]) -> Behaviour:
    if spell is str:
        return behaviour
    namespace = behaviour.namespace and spell(behaviour.namespace)
    return replace(behaviour, table=spelled(behaviour.table, spell), namespace=namespace)


def cases(selection: Selection) -> list[Case]:
    """Every case of the selection, behaviours in their order, writers and readers in theirs."""
    found = []
    spell = spelling(selection.places)
    for behaviour in (_spelled(behaviour, spell) for behaviour in selection.behaviours):
        for variant in behaviour.variants:
            if (variant.full or variant.missing) and not selection.full:
                continue
            for writer, reader in _pairs(behaviour, variant, selection.generations):
                found.append(_case(behaviour, variant, writer, reader, selection.places))
    return found


@dataclass(frozen=True)
class Pairs:
    """What a user selected of the pair matrix, every name already known to exist."""

    features: tuple[Feature, ...]
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    full: bool = False  # every operator on every column

    @property
    def generations(self) -> tuple[Generation, ...]:
        """All that take part, be it because nobody selected can write a feature."""
        taking_part = {*self.writers, *self.readers, *(case.writer.name for case in self.cases(EMBEDDED))}
        return tuple(generation for name, generation in GENERATIONS.items() if name in taking_part)

    @property
    def wordless(self) -> dict[str, list[str]]:
        """Each reader that has no words for some of the features, which it is not asked for, and their names."""
        untold = {
            name: [feature.name for feature in self.features if not feature.takes(GENERATIONS[name])]
            for name in self.readers
        }
        return {name: features for name, features in untold.items() if features}

    def cases(self, places: Places) -> list[Case]:
        """Each feature by each of its writers with each reader; who is to fail at writing does so alone.

        Where no selected writer can, each reader is asked all the same, of another one's table.
        """
        found = []
        readers = [GENERATIONS[name] for name in self.readers]
        spell = spelling(places)
        for feature in self.features:
            variant = next(v for v in feature.variants if v.name == (EVERY if self.full else QUICK))
            writers = self.writers
            if isinstance(feature, Race):
                pairs = self._rivals(feature)
                writers = tuple(dict.fromkeys((*self.writers, *self.readers)))  # both write
            else:
                asked = [reader for reader in readers if feature.takes(reader)]
                pairs = [(writer, reader) for writer in self._makers(feature) for reader in asked]
                pairs = pairs or [(_stand_in(feature, variant, reader, places), reader) for reader in asked]
            pairs += [(each, each) for name in writers if feature.refuses(each := GENERATIONS[name])]
            found += [_case(_spelled(feature, spell), variant, writer, reader, places) for writer, reader in pairs]
        return found

    def _rivals(self, race: Race) -> list[tuple[Generation, Generation]]:
        """Each two that can write, one of them a selected writer and the other a selected reader; in one order."""
        able = [generation for generation in GENERATIONS.values() if race.makes(generation)]
        two = [(one, other) for place, one in enumerate(able) for other in able[place:]]
        chosen = {(writer, reader) for writer in self.writers for reader in self.readers}
        return [(a, b) for a, b in two if {(a.name, b.name), (b.name, a.name)} & chosen]

    def _makers(self, feature: Feature) -> list[Generation]:
        """Who of the writers makes it; what is of files the library does."""
        if feature.table.files:
            return [LIBRARY]
        return [writer for name, writer in GENERATIONS.items() if name in self.writers and feature.makes(writer)]

    def chosen(self, lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The cells of a record that this selection covers, in the plan's order."""
        order = {case.cell: place for place, case in enumerate(self.cases(EMBEDDED))}
        placed = {"runtime": EMBEDDED.runtime, "catalog": EMBEDDED.catalog, "store": EMBEDDED.store}
        found = {
            cell: line
            for line in lines
            if line["type"] == "cell" and (cell := Cell(**{**line["cell"], **placed})) in order
        }
        return [found[cell] for cell in sorted(found, key=order.__getitem__)]


def select_pairs(feature: str | None, writer: str | None, reader: str | None, *, full: bool) -> Pairs:
    """The pairs that these globs name (None: all). Raises UsageError that lists near names."""
    engines = [name for name, generation in GENERATIONS.items() if generation.kind in ENGINES]
    return Pairs(
        tuple(FEATURES[name] for name in _named("feature", feature, FEATURES)),
        tuple(_named("writer", writer, engines)),
        tuple(_named("reader", reader, engines)),
        full,
    )


def _stand_in(feature: Feature, variant: Variant, reader: Generation, places: Places) -> Generation:
    """Who makes a feature that no selected writer can: one whose table this reader is to read right, if there is one.

    Else one writer's fault would be told of another one and the reader.
    """
    able = [generation for generation in GENERATIONS.values() if feature.makes(generation)]
    told = ((each, feature.expectation(_case(feature, variant, each, reader, places).cell)) for each in able)
    return next((each for each, expected in told if expected and expected.outcome is Outcome.WORKS), able[0])


def _case(behaviour: Behaviour, variant: Variant, writer: Generation, reader: Generation, places: Places) -> Case:
    cell = Cell(
        behaviour.id,
        variant.name,
        writer.name,
        reader.name,
        profile(variant.properties, variant.second_access or variant.access),
        places.catalog,
        places.store,
        places.runtime,
        behaviour.table.format_version,
    )
    return Case(cell, behaviour, variant, writer, reader)


def chosen(lines: Iterable[dict[str, Any]], selection: Selection) -> list[dict[str, Any]]:
    """The cells of a record that a selection covers, in the plan's order; those no longer planned come last."""
    behaviours = [b.id for b in selection.behaviours]
    generations = [NOBODY.name, *(g.name for g in selection.generations)]
    order = {case.cell: place for place, case in enumerate(cases(selection))}
    found = {
        Cell(**line["cell"]): line  # of two of the same cell the later one counts
        for line in lines
        if line["type"] == "cell"
        and line["cell"]["behaviour"] in behaviours
        and {line["cell"]["writer"], line["cell"]["reader"]} <= set(generations)
    }
    return sorted(found.values(), key=lambda line: order.get(Cell(**line["cell"]), len(order)))


def control_of(case: Case) -> Cell | None:
    """The cell in which the cause is removed that makes `case` differ from its claim, if one is declared and holds."""
    expected = case.behaviour.expectation(case.cell)
    if expected is None or expected.control is None or case.behaviour.claim(case.cell) is None:
        return None
    control = expected.control
    generation = control.generation or case.cell.reader
    behaviour = BEHAVIOURS[control.behaviour or case.cell.behaviour]
    variant = control.variant or case.cell.variant
    of = next((v for v in behaviour.variants if v.name == variant), Variant())
    alone = case.cell.writer == case.cell.reader
    found = replace(
        case.cell,
        behaviour=behaviour.id,
        variant=variant,
        profile=profile(of.properties, of.second_access or of.access),
        catalog=control.catalog or case.cell.catalog,
        reader=generation,
        writer=control.writer or (generation if alone else case.cell.writer),
    )
    there = behaviour.expectation(found)
    # Where the catalog itself makes the control another, it shows nothing: that cell has a control of its own.
    return None if there is not None and there.catalogs != "*" else found


def _pairs(
    behaviour: Behaviour, variant: Variant, generations: Sequence[Generation]
) -> Iterable[tuple[Generation, Generation]]:
    if variant.missing:
        yield NOBODY, NOBODY
        return
    seen = set()
    taking_part = [generation for generation in generations if generation.kind in behaviour.kinds]
    for writers, readers in behaviour.pairs if variant.pairs is None else variant.pairs:
        for writer in taking_part:
            called = declared_name(writer.name)
            if not (fnmatchcase(called, writers) and _any(called, variant.generations)):
                continue
            for reader in taking_part:
                fits = reader is writer if readers == SAME else fnmatchcase(declared_name(reader.name), readers)
                if fits and (writer.name, reader.name) not in seen:
                    seen.add((writer.name, reader.name))
                    yield writer, reader


def _any(name: str, globs: str) -> bool:
    return any(fnmatchcase(name, glob.strip()) for glob in globs.split(","))


def _named(what: str, globs: str | None, names: Iterable[str]) -> list[str]:
    """The names that comma-separated globs match, in the order of `names`."""
    known = list(names)
    if globs is None:
        return known
    wanted = [g.strip() for g in globs.split(",") if g.strip()]
    for glob in wanted:
        if not any(fnmatchcase(name, glob) for name in known):
            raise UsageError(_unknown(what, glob, known))
    if not wanted:
        raise UsageError(f"--{what} names nothing; it takes comma-separated globs, e.g. {known[0]}")
    return [name for name in known if any(fnmatchcase(name, glob) for glob in wanted)]


def _unknown(what: str, word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word.strip("*"), known, n=3, cutoff=0.4)
    hint = f"near: {', '.join(near)}" if near else f"there are: {', '.join(known)}"
    return f"--{what}: nothing is called {word!r}; {hint}"
