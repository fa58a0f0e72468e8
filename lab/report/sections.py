"""Titled tables with a word of explanation each, shown on a terminal or written as Markdown: one content, two forms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_MARKS = "#~"
_FOLDED = 9  # signs at least in a line of a cell that takes several
MOST = 20  # lines of a table, so that a large one can still be read


@dataclass(frozen=True)
class Section:
    """`gloss` explains to newcomers; `lines` are sentences that stand above the table; `rows` may be cut to MOST.
    Columns whose name begins with `#` are numbers, with `~` may take several lines. `style`: of the title."""

    title: str
    gloss: str = ""
    columns: tuple[str, ...] = ()
    rows: Sequence[Sequence[Any]] = ()
    lines: Sequence[str] = field(default_factory=tuple)
    style: str = "bold cyan"

    @property
    def cut(self) -> str:
        left = len(self.rows) - MOST
        return f"… and {left} more: --format json has them all" if left > 0 else ""

    @property
    def filled(self) -> list[int]:
        """Columns in which anything stands: an empty one tells nothing."""
        return [
            place
            for place in range(len(self.columns))
            if any(word(row[place]) for row in self.rows[:MOST]) or place == 0
        ]


def word(value: Any) -> str:
    if value is None or value == "":
        return ""
    return "yes" if value is True else "" if value is False else _printable(str(value))


def _printable(text: str) -> str:
    """A table's own words, without what would steer a terminal."""
    return "".join(sign if sign.isprintable() or sign == "\n" else "·" for sign in text)


def shown(sections: Iterable[Section]) -> RenderableType:
    parts: list[RenderableType] = []
    for section in sections:
        parts.append(Text(_printable(section.title), section.style))
        if section.gloss:
            parts.append(_indented(Text(section.gloss, "dim")))
        parts += [_indented(Text(_printable(line))) for line in section.lines]
        if section.rows:
            table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
            for place in section.filled:
                name = section.columns[place]
                whole = not name.startswith("~")
                align: Literal["right", "left"] = "right" if name.startswith("#") else "left"
                table.add_column(
                    name.lstrip(_MARKS),
                    justify=align,
                    overflow="fold",
                    no_wrap=whole,
                    min_width=None if whole else _FOLDED,
                )
            for row in section.rows[:MOST]:
                table.add_row(*(Text(word(row[place])) for place in section.filled))
            parts.append(_indented(table))
        if section.cut:
            parts.append(_indented(Text(section.cut, "dim")))
        parts.append(Text())
    return Group(*parts[:-1])


def _indented(part: RenderableType) -> Padding:
    return Padding.indent(part, 2)  # no wider than it needs to be: nothing trails into a pipe


def markdown(sections: Iterable[Section]) -> str:
    blocks = []
    for number, section in enumerate(sections):
        lines = [f"{'##' if number else '#'} {_cell(section.title)}", ""]
        if section.gloss:
            lines += [f"*{_cell(section.gloss)}*", ""]
        if section.lines:
            lines += [f"- {_cell(line)}" for line in section.lines] + [""]
        if section.rows:
            heads = [section.columns[place] for place in section.filled]
            lines.append("| " + " | ".join(_cell(head.lstrip(_MARKS)) for head in heads) + " |")
            lines.append("|" + "".join(" ---: |" if head.startswith("#") else " --- |" for head in heads))
            for row in section.rows[:MOST]:
                lines.append("| " + " | ".join(_cell(word(row[place])) for place in section.filled) + " |")
            lines.append("")
        if section.cut:
            lines += [section.cut, ""]
        blocks.append("\n".join(lines))
    return "\n".join(blocks).rstrip()


def _cell(text: str) -> str:
    """What stands in a table is data: it must not end the cell, or become a tag or emphasis."""
    flat = _printable(" ".join(text.split()))
    for sign in "\\`*_|<[":
        flat = flat.replace(sign, f"\\{sign}")
    return flat
