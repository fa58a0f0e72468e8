"""The run record: JSON lines, one object each, appended and flushed as soon as a cell was seen.

The first line describes the run, each further one a cell or a control; `schema.json` beside this file is the
published schema. What was observed before a kill is kept: a torn last line is the only damage one can do,
and `read` passes it over.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema

import lab
from lab.errors import LabError
from lab.model import (
    Cause,
    Cell,
    Change,
    ClaimVerdict,
    Column,
    ExpectationVerdict,
    Failure,
    Lineage,
    Observation,
    Outcome,
    Rows,
    StepResult,
    Verdict,
)
from lab.records.redact import Redactor
from lab.records.verdict import meetings
from lab.values import decode, encode

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Recorded:
    """A cell as it stands in a record: what was seen and how it was judged."""

    observation: Observation
    verdict: Verdict


def schema() -> dict[str, Any]:
    """The JSON schema of one line of a record."""
    loaded: dict[str, Any] = json.loads(files("lab.records").joinpath("schema.json").read_text("utf-8"))
    return loaded


class Recorder:
    """Appends to one run's record; safe to use from many threads."""

    def __init__(self, path: Path, run: str, redactor: Redactor) -> None:
        self.path, self.run, self.redactor = path, run, redactor
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")
        self._write({"type": "run", "schema": SCHEMA_VERSION, "lab": lab.__version__, "machine": machine()})

    def cell(self, seen: Observation, verdict: Verdict, documented: str | None) -> None:
        self._write(as_json(seen, verdict, documented))

    def control(self, cell: Cell, control: Cell, lines: list[str]) -> None:
        """Whether the outcome turned in the cell's control, in which the cause is removed."""
        record = {"cell": asdict(cell), "control": asdict(control), "turned": not lines, "differences": lines}
        self._write({"type": "control", **record})

    def close(self) -> None:
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        stamped = {"type": line["type"], "run": self.run, "time": dt.datetime.now(dt.UTC).isoformat(), **line}
        text = json.dumps(self.redactor.json(stamped), ensure_ascii=False)
        with self._lock:
            self._file.write(text + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())


def as_json(seen: Observation, verdict: Verdict, documented: str | None) -> dict[str, Any]:
    """A cell's line, before time, run and redaction."""
    expected = verdict.expected
    return {
        "type": "cell",
        "cell": asdict(seen.cell),
        "outcome": str(verdict.outcome),
        "claim": str(verdict.claim),
        "expectation": None if verdict.expectation is None else str(verdict.expectation),
        "differences": list(verdict.differences),
        "claim_differences": list(verdict.claim_differences),
        "document": documented,
        "reason": expected.reason if expected else None,
        "cause": expected.cause if expected else None,
        "versions": {k: dict(v) for k, v in seen.versions.items()},
        "settings": {k: dict(v) for k, v in seen.settings.items()},
        "seeded_by": seen.seeded_by,
        "seconds": round(seen.seconds, 4),
        "missing": seen.missing,
        **({"meetings": asdict(met)} if (met := meetings(seen, expected)) else {}),
        "steps": [_step(s) for s in seen.steps],
    }


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a record in order. A torn last line (a run that was killed) is passed over.

    Raises LabError for a file that is no record, or one of a newer schema.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as e:
        raise LabError(f"no record at {path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise LabError(f"{path} is not a run record: it is no UTF-8 text") from e
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            value = json.loads(line)
        except ValueError as e:
            if number == len(lines):  # no newline after it: the writer died here
                return
            raise LabError(f"{path}:{number} is not a line of a run record: {e}") from e
        if not isinstance(value, dict) or "type" not in value:
            raise LabError(f"{path}:{number} is not a line of a run record")
        version = value.get("schema", SCHEMA_VERSION)
        if not isinstance(version, int):
            raise LabError(f"{path}:{number} is not a line of a run record")
        if version > SCHEMA_VERSION:
            raise LabError(f"{path} has schema {version}; this lab reads up to {SCHEMA_VERSION}: update the lab")
        yield value


def valid(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of somebody's record, each held against the published schema. Raises LabError for the first bad one."""
    validator = jsonschema.Draft202012Validator(schema())
    for number, line in enumerate(read(path), 1):
        error = jsonschema.exceptions.best_match(validator.iter_errors(line))
        if error is not None:
            raise LabError(f"{path}: line {number} does not obey the record's schema: {error.message[:200]}")
        yield line


def recorded(line: Mapping[str, Any]) -> Recorded:
    """A `cell` line back as observation and verdict, e.g. to judge it anew."""
    seen = Observation(
        cell=Cell(**line["cell"]),
        steps=tuple(_step_back(s) for s in line["steps"]),
        versions=line["versions"],
        settings=line["settings"],
        seeded_by=line["seeded_by"],
        seconds=line["seconds"],
        missing=line["missing"],
    )
    expectation = line["expectation"]
    verdict = Verdict(
        Outcome(line["outcome"]),
        ClaimVerdict(line["claim"]),
        None if expectation is None else ExpectationVerdict(expectation),
        tuple(line["differences"]),
        tuple(line["claim_differences"]),
    )
    return Recorded(seen, verdict)


def machine() -> dict[str, Any]:
    """What a reader needs to compare timings: system, architecture, cores, Python. Nothing that names a person."""
    return {
        "system": platform.system(),
        "arch": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _step(step: StepResult) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": step.name,
        "by": step.by,
        "statement": step.statement,
        "seconds": round(step.seconds, 4),
    }
    if isinstance(step.answer, Rows):
        out["columns"] = [[c.name, c.type] for c in step.answer.columns]
        out["rows"] = [[encode(v) for v in row] for row in step.answer.rows]
    if isinstance(step.answer, Failure):
        out["failure"] = [{"class": c.cls, "message": c.message} for c in step.answer.causes]
        out["crash"] = step.answer.crash
    if step.look is not None:
        out["look"] = step.look
    if step.truth is not None:
        out["truth"] = [[encode(v) for v in row] for row in step.truth]
        out["among"] = step.among
    if step.asked is not None:
        out["asked"] = dict(step.asked)
    if step.lineage is not None:
        out["lineage"] = asdict(step.lineage)
    if step.change is not None:
        out["change"] = asdict(step.change)
    if step.began is not None:
        out["began"] = round(step.began, 4)
    return out


def _step_back(line: Mapping[str, Any]) -> StepResult:
    answer: Rows | Failure | None = None
    if "rows" in line:
        columns = tuple(Column(*c) for c in line["columns"])
        answer = Rows(columns, tuple(tuple(decode(v) for v in row) for row in line["rows"]))
    elif "failure" in line:
        answer = Failure(tuple(Cause(c["class"], c["message"]) for c in line["failure"]), line["crash"])
    truth = line.get("truth")
    return StepResult(
        line["name"],
        line["by"],
        line["statement"],
        line["seconds"],
        answer,
        line.get("look"),
        None if truth is None else tuple(tuple(decode(v) for v in row) for row in truth),
        line.get("among", False),
        _lineage_back(line["lineage"]) if "lineage" in line else None,
        line.get("asked"),
        _change_back(line["change"]) if "change" in line else None,
        line.get("began"),
    )


def _change_back(line: Mapping[str, Any]) -> Change:
    inserted, added = (tuple(map(tuple, line[name])) for name in ("inserted", "added"))
    return Change(line["round"], inserted, tuple(line["deleted"]), added, line.get("repeats", 0))


def _lineage_back(line: Mapping[str, Any]) -> Lineage:
    updated, inserted, deleted = (tuple(line[name]) for name in ("updated", "inserted", "deleted"))
    return Lineage(line["since"], updated, inserted, deleted, line["upgraded"])
