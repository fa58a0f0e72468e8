"""A recorded cell told again as a script: the smallest repro of what failed in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lab.behaviours import BEHAVIOURS
from lab.engines import GENERATIONS, dialect
from lab.model import Access, Behaviour, Variant
from lab.report.line import Line, failing

NAMESPACE = "DEMO"  # stands for the fresh one of each case


def script(line: Line) -> str:
    """The statements of a cell up to the failing one; comments say who says them and under which settings."""
    cell, by = line["cell"], ""
    behaviour = BEHAVIOURS[cell["behaviour"]]
    variant = next(v for v in behaviour.variants if v.name == cell["variant"])
    told = [f"-- {line['seeded_by']} makes the table, or its namespace", *_table(behaviour, variant, line["seeded_by"])]
    for step in line["steps"]:
        if step["by"] == "lab":
            continue
        if step["by"] != by:
            by = step["by"]
            second = by == cell["reader"] and by != cell["writer"]
            access = (variant.second_access or variant.access) if second else variant.access
            told += [f"-- {by}", *_door(access), *_settings(variant.second_settings if second else variant.settings)]
        told.append(f"{step['statement']};")
        if step is failing(line):
            break
    run = behaviour.id.upper().replace("-", "_") + "_[0-9A-F]{8}"  # the namespace of that one run
    return re.sub(rf"\b{run}\b", NAMESPACE, "\n".join(told), flags=re.IGNORECASE)


def _table(behaviour: Behaviour, variant: Variant, seed: str) -> list[str]:
    """What makes the case's table."""
    table, kind = behaviour.table, GENERATIONS[seed].kind
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
