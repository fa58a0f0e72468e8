"""What reports read off one `cell` line of a run record (`lab.records.record.as_json`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.behaviours import BEHAVIOURS
from lab.model import Cell, Expect, Refusal
from lab.records.record import recorded
from lab.records.verdict import PLAIN_READ, refusal

Line = Mapping[str, Any]

# A refusal by a rule is the catalog's, not an engine's: its page is the behaviour's own, by the rule's name.
FAILED = ("not-supported", "error", "crash", "silently-wrong")


def unexpected(line: Line) -> bool:
    return bool(line["expectation"] == "unexpected")


def name(cell: Mapping[str, Any]) -> str:
    """A cell's short name: `H-v3-update/no-extensions [spark-3.5.6+iceberg-1.10.0]`."""
    variant = "" if cell["variant"] == "default" else f"/{cell['variant']}"
    who = cell["reader"] if cell["writer"] == cell["reader"] else f"{cell['writer']} → {cell['reader']}"
    return f"{cell['behaviour']}{variant} [{who}]"


def expected(line: Line) -> Expect | None:
    """What is declared today for a line's cell; None where its behaviour is no longer declared."""
    behaviour = BEHAVIOURS.get(line["cell"]["behaviour"])
    return behaviour.expectation(Cell(**line["cell"])) if behaviour else None


def failing(line: Line) -> Mapping[str, Any] | None:
    """The step of a cell that failed; None where none did.

    The plain read beside it is a check of the session, and what a race refuses as declared is no failure.
    """
    refused = {step["name"] for step, _ in refusals(line)}
    names = (PLAIN_READ, *refused)
    return next((step for step in line["steps"] if "failure" in step and step["name"] not in names), None)


def refusals(line: Line) -> list[tuple[Mapping[str, Any], Refusal]]:
    """Of a race, the steps that were not done because of what the other writer did, as that is declared."""
    if not (any("change" in step for step in line["steps"]) and any("failure" in step for step in line["steps"])):
        return []
    told, seen = expected(line), recorded(line).observation.steps
    both = ((step, refusal(back, told)) for step, back in zip(line["steps"], seen, strict=True))
    return [(step, known) for step, known in both if known]


def rule(line: Line) -> str:
    """The claims whose rule made a refused cell fail or a wrong one wrong, as the gateway noted them; empty for any
    other cell."""
    if line["outcome"] == "silently-wrong":
        return ", ".join(dict.fromkeys(c for step in line["steps"] for c in step.get("asked", {}).get("amended", ())))
    if line["outcome"] != "refused-by-rule":
        return ""
    narrowed = [claim for step in line["steps"] for claim in step.get("asked", {}).get("narrowed", ())]
    by = (failing(line) or {}).get("asked", {}).get("rules") or dict.fromkeys(narrowed)
    return ", ".join(by)


def chain(line: Line) -> list[str]:
    """The cause chain of a cell's failing step, `class: message` whole, outermost first."""
    step = failing(line)
    return [f"{c['class']}: {c['message']}" for c in step["failure"]] if step else []


def failure(line: Line) -> str:
    """The cause chain in one line; empty where nothing failed."""
    return " ← ".join(map(short, chain(line)))


def root_cause(line: Line) -> str:
    """The innermost cause in one line; empty where nothing failed."""
    return short(chain(line)[-1]) if chain(line) else ""


def refused(step: Mapping[str, Any], known: Refusal) -> str:
    """By which of its causes a refused statement's refusal is known, cut around the words that tell it."""
    (cls, words), *_ = known.failure.causes
    causes = (c for c in step["failure"] if f".{c['class']}".endswith(f".{cls}") and words in c["message"])
    cause = next(causes)
    return f"{cause['class']}: {_around(words, cause['message'])}"


def short(text: str, limit: int = 250) -> str:
    """In one line of so many signs, without the stack of native code that DuckDB's messages end with."""
    flat = " ".join(text.partition("Stack Trace:")[0].split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _around(words: str, text: str, limit: int = 250) -> str:
    """A text shortened so that these words of it stay: from its beginning, or else from half that before them."""
    flat = " ".join(text.split())
    place = flat.index(words)
    return short(flat, limit) if place + len(words) < limit else f"…{short(flat[place - limit // 2 :], limit)}"
