"""The suite's behaviours: declared cases, found by themselves.

A module of this folder declares `Behaviour` objects at its top level; that is all it takes to add one.
"""

from __future__ import annotations

import importlib
import pkgutil

from lab.model import Behaviour


def _collect() -> dict[str, Behaviour]:
    found: dict[str, Behaviour] = {}
    for module in pkgutil.iter_modules(__path__):
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if not isinstance(value, Behaviour):
                continue
            if found.setdefault(value.id, value) is not value:
                raise ValueError(f"two behaviours have the id {value.id}")
    return found


BEHAVIOURS = _collect()
