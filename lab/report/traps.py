"""Pages of `docs/traps`: what a declared trap says, and what a record shows of it.

A page is found by its message, since that is what a user has. Nothing on it is written twice: the trap's title and
code, the expectation's reason, the variant's cure and the behaviour's source are the declarations that the tests
run, the messages and versions are the record's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from lab.behaviours import BEHAVIOURS
from lab.behaviours.pairs.feature import Feature
from lab.behaviours.pairs.race import Race
from lab.model import Behaviour, Cure, Trap, Variant
from lab.report.cures import Way, ways
from lab.report.line import FAILED, Line, chain, expected, failing, name, short

_Asked = dict[tuple[str, ...], list[tuple[str, bool]]]  # what was done → by whom, and whether it works


@dataclass(frozen=True)
class Cured:
    """A cure, and the cells of a record in which it made a failing statement work."""

    cure: Cure
    ways: tuple[Way, ...]
    cells: tuple[str, ...]
    steps: tuple[str, ...] = ()  # the failing statements that it cures, where it is known to cure some of them alone

    @property
    def helps(self) -> str:
        """For which statements, where not for all."""
        return f"for {' and '.join(step.upper() for step in self.steps)} alone" if self.steps else ""

    @property
    def seen(self) -> str:
        """Some of the cells, and how many more there are."""
        return ", ".join(self.cells[:3]) + (f" and {len(self.cells) - 3} more" if len(self.cells) > 3 else "")


@dataclass(frozen=True)
class Page:
    """A trap as a record shows it."""

    trap: Trap
    failing: tuple[Line, ...]  # those of documented behaviours first
    works: tuple[str, ...]  # generations in which the same statements work under the same settings
    cured: tuple[Cured, ...]

    @property
    def generations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line["cell"]["reader"] for line in self.failing))

    @property
    def behaviours(self) -> tuple[Behaviour, ...]:
        return tuple(BEHAVIOURS[i] for i in dict.fromkeys(line["cell"]["behaviour"] for line in self.failing))

    @property
    def reasons(self) -> dict[str, list[str]]:
        """Why it happens → the generations of which that is said."""
        found: dict[str, list[str]] = {}
        for line in self.failing:
            who = found.setdefault(_reason(line), [])
            if line["cell"]["reader"] not in who:
                who.append(line["cell"]["reader"])
        return found

    @property
    def code(self) -> dict[str, list[str]]:
        """`package.Class.method` → the generations in whose artefacts it is."""
        found: dict[str, list[str]] = {}
        for generation in self.generations:
            found.setdefault(code_in(self.trap, generation), []).append(generation)
        return found

    @property
    def message(self) -> tuple[str, ...]:
        """The cause chain of the first failing cell; empty where no error tells."""
        return tuple(chain(self.failing[0]))

    @property
    def wordings(self) -> dict[str, list[Line]]:
        """Each way in which the failure is worded, by the last cause of one cell → the cells that say so.

        Names and paths make no other wording.
        """
        found: dict[Any, tuple[str, list[Line]]] = {}
        for line in self.failing:
            causes = chain(line)
            matches = [m for cause in causes if self.trap.symptom and (m := re.search(self.trap.symptom, cause))]
            key = _worded(matches[-1]) if matches else None
            found.setdefault(key, (causes[-1] if causes else "", []))[1].append(line)
        return dict(found.values())

    @property
    def told(self) -> dict[str, dict[str, list[str]]]:
        """Why it happens → the wordings of which that is said → the generations.

        Of a wording one behaviour's reasons are told, and another's for generations of which it tells none.
        """
        found: dict[str, dict[str, list[str]]] = {}
        for wording, lines in self.wordings.items():
            behaviours: dict[str, list[Line]] = {}
            for line in lines:
                behaviours.setdefault(line["cell"]["behaviour"], []).append(line)
            untold = set(_readers(lines))
            for told in sorted(behaviours.values(), key=lambda told: -len(_readers(told))):
                if untold & set(_readers(told)):
                    for reason in dict.fromkeys(map(_reason, told)):
                        names = _readers(line for line in told if _reason(line) == reason)
                        found.setdefault(reason, {}).setdefault(wording, []).extend(names)
                untold -= set(_readers(told))
        return found


_NAMES = re.compile(r"\w+://[^\s,=}]+|\"[^\"]*\"|'[^']*'|`[^`]*`")


def _worded(symptom: re.Match[str]) -> Any:
    """What tells a symptom's wordings apart: its groups, or where it has none its text without names."""
    return symptom.groups() if any(symptom.groups()) else _NAMES.sub("…", symptom[0])


def _readers(lines: Iterable[Line]) -> list[str]:
    return list(dict.fromkeys(line["cell"]["reader"] for line in lines))


def _reason(line: Line) -> str:
    told = expected(line)
    return told.reason if told else ""


def code_in(trap: Trap, generation: str) -> str:
    """Where the trap's failure happens in this generation. Raises KeyError where it does not say."""
    if isinstance(trap.code, str):
        return trap.code
    for globs, code in trap.code.items():
        if any(fnmatchcase(generation, glob.strip()) for glob in globs.split(",")):
            return code
    raise KeyError(f"the trap {trap.id} names no code for {generation}")


def pages(lines: Iterable[Line]) -> dict[str, Page]:
    """The pages of all traps that a record shows, by id."""
    cells = [line for line in lines if line["type"] == "cell"]
    seen: dict[str, tuple[Trap, list[Line]]] = {}
    for line in cells:
        told = expected(line)
        if told and told.trap and line["outcome"] in FAILED:
            seen.setdefault(told.trap.id, (told.trap, []))[1].append(line)
    asked: _Asked = {}  # looked up by each page
    for line in cells:
        for what, who, did in _did(line):
            asked.setdefault(what, []).append((who, did))
    works = working(cells)
    found = {}
    for i, (trap, shown) in sorted(seen.items()):
        shown.sort(key=_undocumented)
        found[i] = Page(trap, tuple(shown), _works(shown, asked), tuple(cures(shown, works)))
    return found


def said_by(trap: Trap, causes: Sequence[str]) -> bool:
    """Whether a cause chain shows the trap's symptom."""
    return bool(trap.symptom) and any(re.search(trap.symptom, cause) for cause in causes)


def find(words: str, known: Iterable[Page]) -> list[Page]:
    """The pages that a message (a line of a log, or some words of it) leads to.

    The first of these that any page passes: the words show its symptom, or have in them what others call it; its
    title, its messages or what others call them have these words as they stand, or at least each of them.
    """
    wanted = _flat(words)
    pages = list(known)
    tests: tuple[Callable[[Page], bool], ...] = (
        lambda page: said_by(page.trap, [words, " ".join(words.split())]),  # a terminal may have broken the line
        lambda page: any(_flat(other) in wanted for other in page.trap.also),
        lambda page: any(wanted in text for text in _texts(page)),
        lambda page: any(set(wanted.split()) <= set(re.split(r"[\s,;()]+", text)) for text in _texts(page)),
    )
    return next((found for test in tests if (found := [page for page in pages if test(page)])), [])


def _texts(page: Page) -> Iterator[str]:
    """All that a page can be found by."""
    return map(_flat, (page.trap.title, *page.trap.also, *(cause for line in page.failing for cause in chain(line))))


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()


def markdown(page: Page) -> str:
    """The page itself."""
    trap = page.trap
    parts = [f"# {trap.title}"]
    if page.message:
        *outer, root = page.message
        causes = [*(short(cause) for cause in outer), short(root, 1500)]
        parts.append("```text\n" + "\nCaused by: ".join(causes) + "\n```")
    else:
        parts.append("No error: the statement succeeds, and its rows are wrong or its work is not done.")
    if trap.also:
        parts.append("In others' words: " + "; ".join(f"“{words}”" for words in trap.also) + ".")
    works = f" The same works on {_list(page.works)}." if page.works else ""
    parts.append(f"**Fails on** {_list(page.generations)}.{works}")
    said = set(list(page.wordings)[:1])
    causes = [_because(reason, wordings, page, said) for reason, wordings in page.told.items()]
    parts.append("**Cause** " + causes[0] if len(causes) == 1 else "\n- ".join(["**Cause**", *causes]))
    parts.append("**Code** " + "; ".join(f"`{code}`{_if_some(who, page)}" for code, who in page.code.items()))
    by_cost: dict[str, list[Cured]] = {}
    for cured in page.cured:
        by_cost.setdefault(cured.cure.cost, []).append(cured)
    for cost, same in by_cost.items():
        parts.append(" ".join([*map(_cure, same), f"**Cost** {cost}. Seen in {'; '.join(c.seen for c in same)}."]))
    if trap.remedy or not page.cured:
        parts.append(f"**Cure** {trap.remedy or 'no setting; use one of the engines in which it works'}.")
    sources = "; ".join(dict.fromkeys(behaviour.source for behaviour in page.behaviours))
    parts.append(f"**Source** {sources}.")
    cell = page.failing[0]["cell"]
    who = ",".join(dict.fromkeys((cell["writer"], cell["reader"])))
    declared = expected(page.failing[0])
    store = f" --store {cell['store']}" if declared and declared.stores != "*" else ""
    feature = BEHAVIOURS[cell["behaviour"]]
    see = f"matrix --behaviours {cell['behaviour']} --generations '{who}'{store}"
    if isinstance(feature, Feature):
        writer = "" if feature.table.files else f" --writer '{cell['writer']}'"  # the library, which nobody selects
        see = f"pairs --feature {feature.name}{writer} --reader '{cell['reader']}'"
    parts.append(f"**See it** `iceberg-lab {see}`")
    return "\n\n".join(parts) + "\n"


def as_json(page: Page) -> dict[str, Any]:
    """The page for programs."""
    return {
        "id": page.trap.id,
        "title": page.trap.title,
        "message": list(page.message),
        "also": list(page.trap.also),
        "fails": list(page.generations),
        "works": list(page.works),
        "causes": page.reasons,
        "code": page.code,
        "cures": [
            {
                "where": str(cured.cure.where),
                "ways": {way.where: list(way.lines) for way in cured.ways},
                "cost": cured.cure.cost,
                "cells": list(cured.cells),
                "statements": list(cured.steps),
            }
            for cured in page.cured
        ],
        "remedy": page.trap.remedy,
        "behaviours": [behaviour.id for behaviour in page.behaviours],
    }


def index(known: Iterable[Page]) -> str:
    """The list of all pages, to be searched for a message."""
    rows = ["# Traps, by their message", "", "Search this page for a few words of your log's last `Caused by`, or ask"]
    rows += ['`iceberg-lab why "words of the message"`. Written by scripts/docs.py.', ""]
    rows += ["| message | page | fails on |", "| --- | --- | --- |"]
    for page in known:
        told = [wording or "no error" for wording in page.wordings]
        words = "<br>".join(f"`{_cell(short(text))}`" for text in (*told, *page.trap.also))
        rows.append(f"| {words} | [{page.trap.title}]({page.trap.id}.md) | {_list(page.generations)} |")
    return "\n".join(rows) + "\n"


def choice(found: Iterable[Page]) -> str:
    """Several pages to choose from."""
    rows = [f"- `iceberg-lab why {page.trap.id}`: {page.trap.title}" for page in found]
    return "\n".join(["Several pages have that; give the log's last `Caused by`, or ask for one:", "", *rows]) + "\n"


def working(cells: Iterable[Line]) -> dict[tuple[str, ...], Line]:
    """The cells of a record that work, by their place in it."""
    return {_place(line["cell"]): line for line in cells if line["outcome"] == "works"}


def cures(of: Sequence[Line], works: Mapping[tuple[str, ...], Line]) -> Iterator[Cured]:
    """Each declared cure of cells that a record's working cells (see `working`) show to help."""
    shown: dict[tuple[Any, ...], tuple[Cure, list[Way], list[str], list[str]]] = {}
    statements = {verb for line in of for verb in _verb(line)}
    for line in of:
        for variant in curing(line):
            cure = variant.cure
            cured = works.get(_place({**line["cell"], "variant": variant.name}))
            if cure is None or cured is None:
                continue
            settings = variant.cured_by()
            key = (cure.where, tuple(settings.items()), cure.text, cure.cost)
            _, _, names, steps = shown.setdefault(key, (cure, ways(cure.where, settings, cure.text), [], []))
            names.append(name(cured["cell"]))
            steps += _verb(line)
    for cure, said, names, steps in shown.values():
        some = tuple(dict.fromkeys(steps)) if set(steps) < statements else ()
        yield Cured(cure, tuple(said), tuple(dict.fromkeys(names)), some)


def _verb(line: Line) -> list[str]:
    """The first word of a cell's failing statement; nothing where none failed."""
    step = failing(line)
    return re.findall(r"^\w+", step["statement"]) if step else []


def cure_line(cured: Cured) -> str:
    """A cure in one line: its simplest way, its cost, and where it was seen to help."""
    way = cured.ways[0]
    where = f" ({way.where})" if way.where else ""
    helps = f"{cured.helps}: " if cured.helps else ""
    return f"{helps}{'; '.join(way.lines)}{where}. Cost: {cured.cure.cost}. Seen in {cured.seen}"


def _cure(cured: Cured) -> str:
    told = []
    for way in cured.ways:
        lines = " and ".join(map(_code, way.lines)) if way.where else " ".join(way.lines)
        told.append(f"{lines}{f' ({way.where})' if way.where else ''}")
    return f"**Cure**{f' {cured.helps}:' if cured.helps else ''} {', or '.join(told)}."


def _because(reason: str, wordings: dict[str, list[str]], page: Page, said: set[str]) -> str:
    """A reason, of which generations it is told, and those of its wordings that the page has not `said` before."""
    who = [name for name in page.generations if any(name in names for names in wordings.values())]
    others = [
        f"{_code(short(wording))}{f' ({_list(names)})' if len(wordings) > 1 else ''}"
        for wording, names in wordings.items()
        if wording not in said
    ]
    said.update(wordings)
    says = f" Says {'; '.join(others)}" if others else ""
    return f"{reason}{_if_some(who, page)}.{says}"


def _undocumented(line: Line) -> bool:
    return BEHAVIOURS[line["cell"]["behaviour"]].document is None


def _works(shown: Sequence[Line], asked: _Asked) -> tuple[str, ...]:
    """Generations in which all that fails here works: the same behaviours and variants, of the same writers.

    Of what fails while it is written those that write it, whoever reads it.
    """
    failed = {line["cell"]["reader"] for line in shown}
    seen: dict[str, bool] = {}
    for tried in {_written(line) if _while_written(line) else _statement(line) for line in shown}:
        for who, did in asked[tried]:
            seen[who] = seen.get(who, True) and did
    return tuple(sorted(who for who, all_work in seen.items() if all_work and who not in failed))


def _did(line: Line) -> Iterator[tuple[tuple[str, ...], str, bool]]:
    """What a cell shows to be done or to fail, and whose it is."""
    cell = line["cell"]
    if line["outcome"] == "not-run":
        return
    yield _statement(line), cell["reader"], line["outcome"] == "works"
    feature = BEHAVIOURS.get(cell["behaviour"])
    if isinstance(feature, Feature):
        for writer in {cell["writer"], *([cell["reader"]] if isinstance(feature, Race) else [])}:
            yield _written(line), writer, not _while_written(line)


def _while_written(line: Line) -> bool:
    """Whether a cell is of a feature, and failed in a writer's statement."""
    feature = BEHAVIOURS.get(line["cell"]["behaviour"])
    if not isinstance(feature, Feature) or line["outcome"] not in FAILED:
        return False
    step, reads = failing(line), {step.name for step in feature.steps if step.second}
    return step is not None and ("change" in step or step["name"] not in reads)


def _written(line: Line) -> tuple[str, ...]:
    cell = line["cell"]
    return cell["behaviour"], cell["variant"], cell["store"]


def _statement(line: Line) -> tuple[str, ...]:
    cell = line["cell"]
    return cell["behaviour"], cell["variant"], "" if cell["writer"] == cell["reader"] else cell["writer"], cell["store"]


def curing(line: Line) -> Iterator[Variant]:
    """The variants that are declared to cure a failing cell."""
    cell = line["cell"]
    for variant in BEHAVIOURS[cell["behaviour"]].variants:
        globs = variant.cure.variants.split(",") if variant.cure and variant.name != cell["variant"] else []
        if any(fnmatchcase(cell["variant"], glob.strip()) for glob in globs):
            yield variant


def _place(cell: Line) -> tuple[str, ...]:
    return cell["behaviour"], cell["variant"], cell["writer"], cell["reader"], cell["store"]


def _if_some(who: Sequence[str], page: Page) -> str:
    """Of which of the page's generations something holds; nothing where it holds for all."""
    return f" ({_list(who)})" if set(who) != set(page.generations) else ""


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


def _code(text: str) -> str:
    """Text as Markdown's code, back quotes included."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _cell(text: str) -> str:
    """Text in a table's cell, as code."""
    return text.replace("|", "\\|").replace("`", "'")
