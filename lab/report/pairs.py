"""The pair matrix as people read it: what became of each pair, and the version chooser's lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rich.console import Group, RenderableType
from rich.text import Text

from lab.behaviours import BEHAVIOURS
from lab.behaviours.pairs.race import SECOND, Race
from lab.records.meeting import CONFLICT, Meetings
from lab.report import matrix, traps
from lab.report.line import Line, expected, failing, refusals, refused, unexpected

READS = ("others", "whole", "filters")  # the reader's steps, in their order


class Result(StrEnum):
    """What a reader did with a feature, the worst first."""

    WRONG = "silently wrong"
    CRASH = "crash"
    NOT_LOADED = "not loaded"  # not even the columns that are not new
    NOT_READ = "not read"  # a table without new columns
    COLUMN_FAILS = "column fails"  # the new one, and the others are read
    FILTER_FAILS = "filter fails"  # and without filters all is read
    STATEMENT_FAILS = "statement fails"  # a writer's, and neither as declared nor because the other came first
    WRITER_CANNOT = "writer cannot"  # as declared
    NOT_RUN = "not run"
    RIGHT = "right"


SHORT = {
    Result.WRONG: "**WRONG**",
    Result.CRASH: "**CRASH**",
    Result.RIGHT: "right",
}
_FAILS = (
    *(Result.NOT_LOADED, Result.NOT_READ, Result.COLUMN_FAILS, Result.FILTER_FAILS),
    Result.STATEMENT_FAILS,
)

_WHEREVER = {  # outcomes that say it all, in whichever step it was
    "silently-wrong": Result.WRONG,
    "crash": Result.CRASH,
    "works": Result.RIGHT,
    "not-run": Result.NOT_RUN,
}


def result(line: Line) -> Result:
    """Of one cell of a feature."""
    if line["outcome"] in _WHEREVER:
        return _WHEREVER[line["outcome"]]
    step = failing(line)
    assert step is not None, "what is not right and not wrong has failed somewhere"
    writing = step["name"] not in READS
    if writing and not unexpected(line):
        return Result.WRITER_CANNOT
    if writing or raced(line):
        return Result.STATEMENT_FAILS
    if step["name"] == "whole":
        first = next(s["name"] for s in line["steps"] if s["name"] in READS)
        return Result.COLUMN_FAILS if first == "others" else Result.NOT_READ
    return Result.NOT_LOADED if step["name"] == "others" else Result.FILTER_FAILS


@dataclass(frozen=True)
class Choice:
    """What one reader does with all features that one writer makes, or that others make where it can't.

    And how the two fare when both write at once.
    """

    writer: str
    reader: str
    results: Mapping[str, Result]  # by feature
    instead: Mapping[str, str]  # feature → who wrote it
    wordless: Sequence[str]  # features that the reader has no words for, so that it was not asked
    races: Mapping[str, Result]
    meetings: Meetings  # of all races

    def __str__(self) -> str:
        """The version chooser's line."""
        told = [
            f"{word} {sum(r is Result.RIGHT for r in asked)} of {len(asked)}"
            for word, results in (("reads", self.results), ("races", self.races))
            if (asked := [r for r in results.values() if r is not Result.NOT_RUN])
        ]
        if self.meetings.rounds:
            told[-1] += f" ({self.meetings})"
        wrong = self._named(Result.WRONG)
        told += [f"SILENTLY WRONG on {', '.join(wrong)}"] if wrong else []
        crashed = self._named(Result.CRASH)
        told += [f"crashes on {', '.join(crashed)}"] if crashed else []
        told += [f"{r}: {', '.join(names)}" for r in _FAILS if (names := self._named(r))]
        told += [f"has no words for {', '.join(self.wordless)}"] if self.wordless else []
        right = {feature: by for feature, by in self.instead.items() if self.results[feature] is Result.RIGHT}
        for who in dict.fromkeys(right.values()):
            features = [feature for feature, by in right.items() if by == who]
            told.append(f"read as written by {who}: {', '.join(features)}")
        return f"{self.writer} → {self.reader}: {'; '.join(told) or 'nothing was run'}"

    def _named(self, wanted: Result) -> list[str]:
        """The features of which that is said; beside another writer's table who he is, as the fault may be his."""
        return [
            f"{feature} (by {self.instead[feature]})" if feature in self.instead else feature
            for feature, found in {**self.results, **self.races}.items()
            if found is wanted
        ]


def choices(
    lines: Iterable[Line], writers: Sequence[str], readers: Sequence[str], wordless: Mapping[str, Sequence[str]]
) -> list[Choice]:
    """Each writer with each reader, over all features that the lines have.

    wordless: the features that a reader has no words for, by its name (`lab.plan.Pairs.wordless`).
    """
    seen: dict[tuple[str, str, str], Line] = {}
    races: dict[frozenset[str], dict[str, Result]] = {}
    together: dict[frozenset[str], Meetings] = {}
    for line in lines:
        cell, found = line["cell"], result(line)
        if found is Result.WRITER_CANNOT:
            continue
        if raced(line):
            two = frozenset((cell["writer"], cell["reader"]))
            races.setdefault(two, {})[cell["behaviour"].removeprefix("P-")] = found
            together[two] = together.get(two, Meetings()) + _meetings(line)
        else:
            seen[cell["behaviour"], cell["writer"], cell["reader"]] = line
    features = list(dict.fromkeys(key[0] for key in seen))
    return [
        replace(
            _choice(seen, features, writer, reader),
            wordless=wordless.get(reader, ()),
            races=races.get(frozenset((writer, reader)), {}),
            meetings=together.get(frozenset((writer, reader)), Meetings()),
        )
        for writer in writers
        for reader in readers
    ]


def _meetings(line: Line) -> Meetings:
    return Meetings(**line.get("meetings", {}))


def raced(line: Line) -> bool:
    """Whether a cell's two engines wrote at once."""
    return isinstance(BEHAVIOURS.get(line["cell"]["behaviour"]), Race)


def _choice(
    seen: Mapping[tuple[str, str, str], Line],
    features: Sequence[str],
    writer: str,
    reader: str,
) -> Choice:
    results, instead = {}, {}
    for id in features:
        there = {w: result(line) for (f, w, r), line in seen.items() if f == id and r == reader}
        if not there:
            continue
        right = (w for w, found in there.items() if found is Result.RIGHT)
        who, name = writer if writer in there else next(right, next(iter(there))), id.removeprefix("P-")
        results[name] = there[who]
        if who != writer:
            instead[name] = who
    return Choice(writer, reader, results, instead, (), {}, Meetings())


def table(lines: Sequence[Line], found: Sequence[Choice], order: Sequence[str], width: int) -> RenderableType:
    """The matrix with its notes, then the chooser's lines, those of a silently wrong reader in red."""
    told = [
        Text(str(c), "bold white on red" if Result.WRONG in (*c.results.values(), *c.races.values()) else "")
        for c in found
    ]
    return Group(matrix.table(lines, order, width), *told)


def markdown(lines: Sequence[Line], found: Sequence[Choice], order: Sequence[str]) -> str:
    """Each feature's own matrix, writers down and readers across; the chooser's lines; what is wrong or crashed."""
    head = f"Of the pairs in [record-pairs.jsonl](record-pairs.jsonl): {matrix.summary(lines)}."
    blocks = ["# Pairs: who reads what whom wrote", "", head, "", *_loudest(lines), "## The version chooser", ""]
    blocks += [f"- {c}" for c in found]
    blocks += ["", *_races([line for line in lines if raced(line)])]
    blocks += _growth(lines)
    wordless = {(f"P-{name}", choice.reader) for choice in found for name in choice.wordless}
    for id in dict.fromkeys(line["cell"]["behaviour"] for line in lines):
        own = [line for line in lines if line["cell"]["behaviour"] == id]
        blocks += ["", *_feature(id, own, order, [reader for feature, reader in wordless if feature == id])]
    return "\n".join([*blocks, ""])


def findings(lines: Sequence[Line], script: Callable[[Line], str]) -> str:
    """What pairs show that none of the documents mentions: cause, code, and the few statements that show it alone.

    `lines` are of pairs alone, none of whose features a document mentions; what is merely not supported is left to the
    matrix. `script` tells the statements of a cell (`lab/repro.py`).
    """
    head = "Of the pairs in [record-pairs.jsonl](record-pairs.jsonl), the silently wrong first. Each has its page in"
    blocks = ["# Findings that no document mentions", f"{head} [traps](traps/README.md)."]
    found = []
    for page in traps.pages(lines).values():
        told = [line for line in page.failing if line["outcome"] in _FOUND]
        if told:
            found.append((min(_FOUND.index(line["outcome"]) for line in told), page, told))
    for worst, page, told in sorted(found, key=lambda one: one[0]):
        first = next(line for line in told if line["outcome"] == _FOUND[worst])
        sources = "; ".join(dict.fromkeys(BEHAVIOURS[line["cell"]["behaviour"]].source for line in told))
        blocks += [
            f"## {page.trap.title}",
            f"**{_FOUND[worst]}** in {_pairs(told)}.",
            "**Cause** " + " ".join(f"{reason[0].upper()}{reason[1:]}." for reason in _reasons(told)),
            "**Code** " + "; ".join(f"`{code}` ({', '.join(who)})" for code, who in page.code.items()),
            f"**Cure** {page.trap.remedy}." if page.trap.remedy else "",
            f"**Source** {sources}.",
            f"```sql\n{script(first)}\n```",
        ]
    return "\n\n".join(block for block in blocks if block) + "\n"


_FOUND = ("silently-wrong", "crash", "error")


def _reasons(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(line["reason"] or "" for line in lines))


def _pairs(lines: Sequence[Line]) -> str:
    """Feature by feature, by whom it was written and who reads it so."""
    told = []
    for feature in dict.fromkeys(line["cell"]["behaviour"] for line in lines):
        readers: dict[str, dict[str, None]] = {}  # the same cell may stand in two records
        for line in lines:
            if line["cell"]["behaviour"] == feature:
                readers.setdefault(line["cell"]["writer"], {})[line["cell"]["reader"]] = None
        alike: dict[str, list[str]] = {}
        for writer, names in readers.items():
            alike.setdefault(", ".join(names), []).append(writer)
        for same, writers in alike.items():
            who = ", ".join(writers) if len(writers) < _MANY else f"{len(writers)} writers"
            told.append(f"{feature} by {who} → {same}")
    return "; ".join(told)


_MANY = 5  # writers that are counted instead of named


def _loudest(lines: Sequence[Line]) -> list[str]:
    told: dict[tuple[Result, str], list[Line]] = {}
    for line in lines:
        found, known = result(line), expected(line)
        if found in (Result.WRONG, Result.CRASH):
            title = known.trap.title if known and known.trap else "; ".join(line["differences"])
            told.setdefault((found, title), []).append(line)
    rows = [f"- **{found}**: {title}: {_pairs(some)}" for (found, title), some in told.items()]
    why = "What none of the documents mentions has its cause in [findings](findings.md)."
    return ["## Silently wrong, and crashes", "", *(rows or ["None."]), "", why, ""]


def _feature(id: str, lines: Sequence[Line], order: Sequence[str], wordless: Sequence[str]) -> list[str]:
    by_pair = {(line["cell"]["writer"], line["cell"]["reader"]): line for line in lines}
    writers = [n for n in order if any(w == n for w, _ in by_pair)]
    readers = [n for n in order if n in wordless or any(r == n for _, r in by_pair)]
    title = BEHAVIOURS[id].title if id in BEHAVIOURS else ""
    rows = [f"## {id}: {title}", "", "| written by | " + " | ".join(r.replace("+", "<br>") for r in readers) + " |"]
    rows.append("|" + " --- |" * (len(readers) + 1))
    for writer in writers:
        own = by_pair.get((writer, writer))
        if own is not None and result(own) is Result.WRITER_CANNOT:
            rows.append(f"| {writer} | " + " | ".join("writer cannot" for _ in readers) + " |")
            continue
        squares = ("no words" if reader in wordless else _square(by_pair.get((writer, reader))) for reader in readers)
        rows.append(f"| {writer} | {' | '.join(squares)} |")
    return rows


def _square(line: Line | None) -> str:
    if line is None:
        return "·"
    found = result(line)
    return SHORT.get(found, str(found)) + (_second(line) if raced(line) else "") + (" !" if unexpected(line) else "")


def _second(line: Line) -> str:
    """Of a race: how many statements of either writer were done again or refused, and whether one can't read it."""
    told = []
    for word, here in (("retried", _retried), ("refused", lambda step: "failure" in step)):
        found = [step["name"].endswith(SECOND) for step in line["steps"] if "change" in step and here(step)]
        told += [f", {word} {found.count(False)} + {found.count(True)}"] if found else []
    unread = any("failure" in step and step["name"].startswith("whole") for step in line["steps"])
    told += [", one can't read what is left"] if unread and result(line) is Result.RIGHT else []
    return "".join(told)


def _retried(step: Line) -> bool:
    """Whether a statement was done though the catalog had refused a commit of it."""
    return "failure" not in step and CONFLICT in step["asked"]["commits"]


def _races(lines: Sequence[Line]) -> list[str]:
    """Who retries when another writer came first, who is refused, and in which words."""
    said: dict[tuple[str, str], list[Line]] = {}
    words: dict[tuple[str, str], tuple[str, list[str]]] = {}
    ran = [line for line in lines if result(line) is not Result.WRITER_CANNOT]
    for line in ran:
        for step in line["steps"]:
            if "change" in step:
                said.setdefault((step["by"], step["name"].partition("-")[0]), []).append(step)
        for step, known in refusals(line):
            told = refused(step, known)
            words.setdefault((known.reason, told.partition(":")[0]), (told, []))[1].append(step["by"])
    if not said:
        return []
    what = list(dict.fromkeys(op for _, op in said))
    rows = [f"| writer | {' | '.join(op.upper() for op in what)} |", "|" + " --- |" * (len(what) + 1)]
    for who in dict.fromkeys(who for who, _ in said):
        rows.append(f"| {who} | {' | '.join(_fared(said.get((who, op), ())) for op in what)} |")
    worded = [
        f"- {reason[0].upper()}{reason[1:]} ({', '.join(dict.fromkeys(who))}): `{one}`"
        for (reason, _), (one, who) in words.items()
    ]
    lost = sum(result(line) is Result.WRONG for line in ran)
    head = (
        f"Each two that can write, at one table at the same moment: {len(ran)} races; rows lost, doubled, or there "
        f"though their statement was refused in {lost} of them. {sum(map(_meetings, ran), Meetings())}: each "
        "statement began before the other had ended, else the round is repeated, twice at most. The statements of "
        "each writer, over all its races:"
    )
    return [
        "## Races",
        "",
        head,
        "",
        *rows,
        "",
        "What was refused, in these words, and why that is right:",
        "",
        *worded,
    ]


def _fared(steps: Sequence[Line]) -> str:
    done = [step for step in steps if "failure" not in step]
    told = f"{len(done)} of {len(steps)} done"
    again = sum(map(_retried, done))
    return told + (f", {again} of them after a 409" if again else "")


def _growth(lines: Sequence[Line]) -> list[str]:
    """What one more generation costs, by what each of these costs beside the others.

    Of a record's own timings, in seconds that engines were busy: they work side by side.
    """
    spent: dict[frozenset[str], float] = {}  # by who takes part: what a generation adds is all where it does
    written = set()
    for line in lines:
        cell = line["cell"]
        for step in line["steps"]:
            if step["by"] == cell["writer"] and step["name"] not in READS and "change" not in step:
                if (key := (cell["behaviour"], cell["writer"], step["name"])) in written:
                    continue  # one writer's work serves all its readers
                written.add(key)
                who = frozenset((cell["writer"],))
            else:
                who = frozenset((cell["writer"], cell["reader"]))
            spent[who] = spent.get(who, 0.0) + step["seconds"]
    total = sum(spent.values())
    shares = {
        name: sum(seconds for who, seconds in spent.items() if name in who)
        for name in sorted({name for who in spent for name in who})
    }
    rows = [
        f"| {name} | {seconds:.0f} | {seconds / (total - seconds):.0%} |"
        for name, seconds in shares.items()
        if seconds < total
    ]
    head = (
        f"All of this kept engines busy for {total:.0f} s, side by side. What it takes longer for a generation beside "
        "the others, with all that it writes, reads, has read by them, and races:"
    )
    return ["", "## One more generation", "", head, "", "| generation | seconds | more |", "| --- | --- | --- |", *rows]
