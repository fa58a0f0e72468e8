"""A behaviour's page, in Markdown: what `iceberg-lab why` answers when asked for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.model import Behaviour
from lab.report import matrix, traps
from lab.report.line import FAILED, Line, expected


def markdown(behaviour: Behaviour, lines: Sequence[Line], order: Sequence[str], script: Callable[[Line], str]) -> str:
    """The claim, what each generation did, and for each of its traps cause, cure, cost and the smallest script.

    `order` is the generations', `script` tells the statements of a cell (`lab/repro.py`).
    """
    own = [line for line in lines if line["cell"]["behaviour"] == behaviour.id]
    claim = behaviour.document or "nothing: the question is the lab's own"
    parts = [f"# {behaviour.id}: {behaviour.title}", f"**The document says** {claim} ({behaviour.source})."]
    parts.append(matrix.markdown(own, order) if own else "This record has no cell of it.")
    known = traps.pages(lines)
    for trap_id in dict.fromkeys(t.trap.id for t in behaviour.expect if t.trap and t.trap.id in known):
        mine = [line for line in own if line["outcome"] in FAILED and _trap(line) == trap_id]
        if mine:
            parts.append(traps.markdown(known[trap_id]).replace("# ", "## ", 1))
            parts.append(f"The statements of one failing cell:\n\n```sql\n{script(mine[0])}\n```")
    return "\n\n".join(parts) + "\n"


def _trap(line: Line) -> str | None:
    told = expected(line)
    return told.trap.id if told and told.trap else None
