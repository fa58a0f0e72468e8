"""The matrix of a run: behaviours down, the generation that answered across.

Works on the lines of a run record (`lab.records.record.as_json`), so that a record of last week or of another
machine shows as well as this run's. Pairs of one reader with many writers share a square.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lab.behaviours import BEHAVIOURS
from lab.model import ENGINES, NOBODY, Refusal
from lab.records.record import recorded
from lab.records.verdict import broken, otherwise
from lab.report import traps
from lab.report.line import Line, expected, failure, name, refusals, refused, root_cause, rule, unexpected

# outcome → how it shows: word and colour. Short, as nine of them stand side by side.
_OUTCOMES = {
    "works": ("works", "green"),
    "not-supported": ("unsupp.", "yellow"),
    "refused-by-rule": ("refused", "magenta"),
    "error": ("error", "red"),
    "crash": ("CRASH", "bold red"),
    "silently-wrong": ("WRONG", "bold white on red"),
    "not-run": ("not run", "dim"),
}
_CLAIMS = {"reproduced": " =", "differs": " ≠", "none": ""}
UNDECLARED = "Nothing is declared of this cell: an engine of your own"
LEGEND = (
    "unsupp.: not supported   refused: by a vendor's rule   WRONG: no error, but wrong rows or the work not done   "
    "= as the document says   "
    "≠ not as the document says   no sign: the document is silent   ! unexpected"
)


@dataclass(frozen=True)
class Square:
    """All cells of one behaviour and variant with one reader."""

    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        counts = Counter(_word(line) for line in self.lines)
        return "\n".join(word if len(self.lines) == 1 else f"{word} ×{n}" for word, n in counts.items())

    @property
    def colour(self) -> str:
        worst = max(self.lines, key=lambda line: list(_OUTCOMES).index(line["outcome"]))
        return "bold red reverse" if any(map(unexpected, self.lines)) else _OUTCOMES[worst["outcome"]][1]


@dataclass(frozen=True)
class Matrix:
    """Rows (behaviour, variant) by columns (generation) of squares; a pair that was not selected has none.

    Cells on another store than the first cell's have rows of their own.

    Variants whose names differ behind a slash only share a row, and there a square: `default/int`, `default/long`.
    """

    rows: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    squares: Mapping[tuple[str, str, str], Square]

    @classmethod
    def of(cls, lines: Iterable[Line], order: Sequence[str] = ()) -> Matrix:
        """From `cell` lines. order: the generations' order across; others follow as they come."""
        grouped: dict[tuple[str, str, str], list[Line]] = {}
        usual = None
        for line in lines:
            cell = line["cell"]
            usual = usual or cell["store"]
            variant = cell["variant"].partition("/")[0]
            if cell["store"] != usual:
                variant = f"{variant}, {cell['store']}"
            grouped.setdefault((cell["behaviour"], variant, cell["reader"]), []).append(line)
        readers = list(dict.fromkeys(reader for _, _, reader in grouped))
        return cls(
            tuple(dict.fromkeys((b, v) for b, v, _ in grouped)),
            tuple(sorted(readers, key=lambda r: order.index(r) if r in order else len(order))),
            {key: Square(tuple(found)) for key, found in grouped.items()},
        )


def table(lines: Sequence[Line], order: Sequence[str] = (), width: int = 240) -> RenderableType:
    """The matrix for a terminal of `width` columns, then what needs words.

    Where the generations do not fit side by side, further tables follow with the rest of them.
    """
    matrices = _matrices(lines, order)
    tables = [_table(matrix, columns) for matrix in matrices for columns in _fitting(matrix, width)]
    return Group(*tables, Text(LEGEND, "dim"), *_notes(lines), Text(summary(lines), "bold"))


def _table(matrix: Matrix, columns: Sequence[str]) -> Table:
    shown = Table(pad_edge=False, box=SIMPLE_HEAD)
    shown.add_column("behaviour", no_wrap=True)
    for column in columns:
        shown.add_column(_head(column), no_wrap=True)
    for behaviour, variant in matrix.rows:
        label = Text(behaviour) if variant == "default" else Text.assemble(behaviour, (f"\n  {variant}", "dim"))
        squares = (matrix.squares.get((behaviour, variant, column)) for column in columns)
        shown.add_row(label, *(Text(s.text, s.colour) if s else Text("·", "dim") for s in squares))
    return shown


def _fitting(matrix: Matrix, width: int) -> list[list[str]]:
    """The columns in groups that stand side by side within `width`."""
    first = max((max(len(b), len(v) + 2) for b, v in matrix.rows), default=0)
    groups: list[list[str]] = [[]]
    used = first
    for column in matrix.columns:
        texts = [_head(column), *(s.text for (_, _, c), s in matrix.squares.items() if c == column)]
        needed = 3 + max(len(line) for text in texts for line in text.split("\n"))
        if groups[-1] and used + needed > width:
            groups.append([])
            used = first
        groups[-1].append(column)
        used += needed
    return groups


def _head(column: str) -> str:
    """A generation's name as high as it is narrow: spark, 3.5.6, iceberg, 1.10.0."""
    return column.replace("+", "\n").replace("-", "\n")


def markdown(lines: Sequence[Line], order: Sequence[str] = ()) -> str:
    """The matrix as a Markdown table, with its notes as a list."""
    rows = [row for matrix in _matrices(lines, order) for row in [*_rows(matrix), ""]]
    notes = [f"  - {note.plain.strip()}" if note.plain[0] == " " else f"- {note.plain}" for note in _notes(lines)]
    return "\n".join([*rows, LEGEND, "", *notes, "", summary(lines), ""])


def _rows(matrix: Matrix) -> list[str]:
    head = ["behaviour", *(column.replace("+", "<br>") for column in matrix.columns)]
    rows = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for behaviour, variant in matrix.rows:
        label = behaviour if variant == "default" else f"{behaviour} *{variant}*"
        squares = (matrix.squares.get((behaviour, variant, column)) for column in matrix.columns)
        rows.append("| " + " | ".join([label, *(s.text.replace("\n", "<br>") if s else "·" for s in squares)]) + " |")
    return rows


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _cells(cells: int) -> str:
    return _count(cells, "cell")


def _matrices(lines: Sequence[Line], order: Sequence[str]) -> list[Matrix]:
    """One of the engines, and one for what is asked of something else: a behaviour says who takes part in it; and one
    of what nobody here can run."""
    apart: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        behaviour = BEHAVIOURS.get(line["cell"]["behaviour"])
        kinds = behaviour.kinds if behaviour else ENGINES
        apart.setdefault((NOBODY.kind,) if line["cell"]["reader"] == NOBODY.name else kinds, []).append(line)
    return [Matrix.of(some, order) for some in apart.values()]


def summary(lines: Sequence[Line]) -> str:
    """One line of counts."""
    counts = Counter(line["outcome"] for line in lines)
    outcomes = ", ".join(f"{counts[o]} {o}" for o in _OUTCOMES if counts[o])
    return f"{_cells(len(lines))}: {outcomes}; {sum(map(unexpected, lines))} unexpected"


def _notes(lines: Sequence[Line]) -> list[Text]:
    """One paragraph each; what belongs under the one before is indented."""
    notes = []
    pages, works = traps.pages(lines), traps.working(lines)
    for line in lines:
        if unexpected(line):
            notes.append(Text.assemble((f"! {name(line['cell'])}: ", "bold red"), "; ".join(line["differences"])))
        elif line["outcome"] == "silently-wrong":
            word = f"no error, but wrong by {by}" if (by := rule(line)) else "no error, but wrong"
            wrong = Text.assemble((f"{word}: {name(line['cell'])}: ", "bold white on red"))
            notes.append(wrong.append(Text(f"{line['reason']}. {_wrong_rows(line)}")))
            notes += _cures(line, pages)
    for missing in dict.fromkeys(line["missing"] for line in lines if line["missing"]):
        cells = sum(line["missing"] == missing for line in lines)
        notes.append(Text.assemble((f"not run ({_cells(cells)}): ", "yellow"), missing))
    for (outcome, by, reason), failed in _failing(lines).items():
        readers = ", ".join(dict.fromkeys(line["cell"]["reader"] for line in failed))
        word = f"{_OUTCOMES[outcome][0]} by {by}" if by else _OUTCOMES[outcome][0]
        head = f"{word} ({_cells(len(failed))}, {readers}): "
        notes.append(Text.assemble((head, _OUTCOMES[outcome][1]), f"{root_cause(failed[0])}. {reason or UNDECLARED}"))
        notes += _cures(failed[0], pages)
    for (by, reason), told in _refused(lines).items():
        head = f"refused in a race ({_count(len(told), 'statement')}, {by}): "
        notes.append(Text.assemble((head, "yellow"), f"{refused(*told[0])}. {reason}"))
    for (what, why, cause), differing in _differing(lines).items():
        who = ", ".join(name(line["cell"]).rstrip("]").partition(" [")[2] for line in differing)
        notes.append(
            Text.assemble((f"≠ {what} [{who}]: ", "cyan"), f"{why}. {f'Cause: {cause}' if cause else UNDECLARED}")
        )
        if differing[0]["outcome"] == "works":
            notes += map(_cure, traps.cures(differing, works))
    return notes


def _cures(line: Line, pages: Mapping[str, traps.Page]) -> list[Text]:
    """Under a failure: the cures that this record shows, as a user would paste them, and where to read on."""
    told = expected(line)
    page = pages.get(told.trap.id) if told and told.trap else None
    if page is None:
        return []
    first = line in page.failing[:1]  # once is enough: the same trap may stand in several notes
    cures = map(_cure, page.cured) if first else ()
    return [*cures, Text(f"  more: iceberg-lab why {page.trap.id}", "dim")]


def _cure(cured: traps.Cured) -> Text:
    return Text.assemble(("  cure: ", "green"), traps.cure_line(cured))


def _wrong_rows(line: Line) -> str:
    """What was wrong without an error: rows and looks that are not the truth, and invariants that were broken."""
    told = []
    for step in line["steps"]:
        truth = step.get("truth")
        if truth is None or step.get("among"):
            continue
        if "look" in step:
            wrong = {name: step["look"].get(name) for name, value in truth if step["look"].get(name) != value}
            told += [f"{step['name']} shows {wrong} instead of {dict(truth)}"] if wrong else []
        elif sorted(map(str, step.get("rows", []))) != sorted(map(str, truth)):
            told.append(f"{step['name']} {otherwise(step['rows'], truth)}")
    seen = recorded(line).observation
    return "; ".join([*told, *(f"{step.name}: {line}" for step in seen.steps for line in broken(step, seen))])


def _failing(lines: Sequence[Line]) -> dict[tuple[str, str, str], list[Line]]:
    """Expected failures by outcome, the rule that made it and the reason that is declared for them."""
    grouped: dict[tuple[str, str, str], list[Line]] = {}
    for line in lines:
        if failure(line) and not unexpected(line):
            grouped.setdefault((line["outcome"], rule(line), line["reason"]), []).append(line)
    return grouped


def _refused(lines: Sequence[Line]) -> dict[tuple[str, str], list[tuple[Line, Refusal]]]:
    """The refused statements of races, by who was refused and the reason that is declared for it."""
    grouped: dict[tuple[str, str], list[tuple[Line, Refusal]]] = {}
    for line in lines:
        for step, known in refusals(line):
            grouped.setdefault((step["by"], known.reason), []).append((step, known))
    return grouped


def _differing(lines: Sequence[Line]) -> dict[tuple[str, str, str], list[Line]]:
    """(behaviour with variant, how it differs from the claim, cause) → the cells."""
    grouped: dict[tuple[str, str, str], list[Line]] = {}
    for line in lines:
        if line["claim"] == "differs" and not unexpected(line):
            what = name(line["cell"]).partition(" [")[0]
            why = "; ".join(difference.partition("; seen: ")[0] for difference in line["claim_differences"])
            grouped.setdefault((what, why, line["cause"]), []).append(line)
    return grouped


def _word(line: Line) -> str:
    sign = " !" if unexpected(line) else _CLAIMS[line["claim"]]
    return _OUTCOMES[line["outcome"]][0] + sign
