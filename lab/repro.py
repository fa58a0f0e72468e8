"""A recorded cell told again as a script: the smallest repro of what failed or was wrong in it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from lab.behaviours import BEHAVIOURS
from lab.behaviours.pairs.feature import Feature
from lab.engines import GENERATIONS, dialect
from lab.model import Access, Behaviour, Rows, StepResult, Variant
from lab.records.record import recorded
from lab.records.verdict import same_rows, wrong
from lab.report.line import Line, failing

ALL = " UNION ALL "
NAMESPACE = "DEMO"  # stands for the fresh one of each case


def script(line: Line) -> str:
    """The statements of a cell up to the failing one; comments say who says them and under which settings.

    Where rows are wrong, the reads before that were right are left out, and what came back stands below the wrong one.
    Of a race the rounds that made them wrong are left.
    """
    cell, by = line["cell"], ""
    amiss = {step.name: step for step in recorded(line).observation.steps if wrong(step)}
    behaviour = BEHAVIOURS[cell["behaviour"]]
    variant = next(v for v in behaviour.variants if v.name == cell["variant"])
    rounds = _rounds(amiss.values(), line["steps"])
    told = [f"-- {line['seeded_by']} makes the table, or its namespace", *_table(behaviour, variant, line["seeded_by"])]
    for step in line["steps"]:
        if step["by"] == "lab" or (amiss and "truth" in step and step["name"] not in amiss):
            continue
        if "change" in step and step["change"]["round"] not in rounds:
            continue
        if step["by"] != by:
            by = step["by"]
            second = by == cell["reader"] and by != cell["writer"]
            access = (variant.second_access or variant.access) if second else variant.access
            told += [f"-- {by}", *_door(access), *_settings(variant.second_settings if second else variant.settings)]
        if "change" in step:
            done = "refused" if "failure" in step else "acknowledged"
            told.append(f"-- {step['name']}, at the same moment as the other one of its round: {done}")
        told += _told(amiss[step["name"]]) if step["name"] in amiss else [f"{step['statement']};"]
        if step is failing(line) or step["name"] in amiss:
            break
    name = (behaviour.family or behaviour.id).upper().replace("-", "_")
    run = f"{name}_[0-9A-F]{{8}}"  # the namespace of that one run
    return re.sub(rf"\b{run}\b", NAMESPACE, "\n".join(told), flags=re.IGNORECASE)


def _rounds(amiss: Iterable[StepResult], steps: Iterable[Line]) -> set[int]:
    """The rounds of a race whose rows are wrong in the end; all of them where none is."""
    wrong_keys = set()
    for read in amiss:
        assert isinstance(read.answer, Rows)
        here, there = Counter(map(repr, read.answer.rows)), Counter(map(repr, read.truth or ()))
        wrong_keys |= {
            row[0] for row in (*read.answer.rows, *(read.truth or ())) if here[repr(row)] != there[repr(row)]
        }
    changes = [step["change"] for step in steps if "change" in step]
    touched = [
        (change["round"], {key for key, _ in (*change["inserted"], *change["added"])} | set(change["deleted"]))
        for change in changes
    ]
    return {number for number, keys in touched if keys & wrong_keys} or {number for number, _ in touched}


def _told(step: StepResult) -> list[str]:
    """A wrong read, of many filters in one statement the first wrong one alone; then its rows and the right ones."""
    assert isinstance(step.answer, Rows)
    statement, rows, right = step.statement, step.answer.rows, step.truth or ()
    filters = _filters(statement)
    for name, one in filters.items():
        here, there = (tuple(row for row in some if row[0] == name) for some in (rows, right))
        if not same_rows(here, there):
            first = 0 if ALL in statement else 1  # PyIceberg's own call returns no filter's name
            statement, rows, right = one, *(tuple(row[first:] for row in some) for some in (here, there))
            break
    return [f"{statement};", f"-- returned {sorted(rows, key=str)}", f"-- instead of {sorted(right, key=str)}"]


def _filters(statement: str) -> dict[str, str]:
    """Of many filters in one statement each alone, by its name: in SQL, or as PyIceberg's users call it."""
    if ALL in statement:
        return {one[len("SELECT '") : one.index("' AS ")]: one for one in statement.split(ALL)}
    if not statement.startswith("filters("):
        return {}
    call = ast.parse(statement, mode="eval").body
    assert isinstance(call, ast.Call)
    args = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    table, key = f"{args['namespace']}.{args['table']}", args["key"]
    return {
        name: f"catalog.load_table('{table}').scan(row_filter={said!r}, selected_fields=({key!r},)).to_arrow()"
        for name, said in args["filters"].items()
    }


def _table(behaviour: Behaviour, variant: Variant, seed: str) -> list[str]:
    """What makes the case's table."""
    table, kind = behaviour.table, GENERATIONS[seed].kind
    if isinstance(behaviour, Feature) and table.files:
        return [f"-- {table.name} is of files that no engine writes: iceberg-lab pairs --feature {behaviour.name}"]
    if table.files:
        return [f"-- {table.name} of {behaviour.id}, from data files: `iceberg-lab matrix` registers them"]
    namespace = behaviour.namespace or NAMESPACE
    if not table.given:
        return [f"{dialect.create_namespace(kind, namespace)};"]
    created = dialect.create(kind, namespace, table, variant.properties)
    statements = [
        dialect.create_namespace(kind, namespace),
        *created,
        dialect.insert(kind, namespace, table, table.rows),
    ]
    return [f"{statement};" for statement in statements]


def _door(access: Access | None) -> Iterator[str]:
    if access is not None:
        yield f"-- told by: iceberg-lab door {access.profile} --as {access.principal} --by {access.by}"


def _settings(settings: Mapping[str, str | None]) -> Iterator[str]:
    for key, value in settings.items():
        yield f"-- without {key}" if value is None else f"-- with {key}={value}"
