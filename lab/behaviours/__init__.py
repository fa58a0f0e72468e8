"""The suite's behaviours: declared cases, found by themselves.

A module of this folder declares `Behaviour` objects at its top level; that is all it takes to add one. Features of the
pair matrix are in `pairs/`, a module each. What is expected otherwise on one catalog is in `catalogs.py`.
"""

from __future__ import annotations

import importlib
import pkgutil

from lab.behaviours.catalogs import expecting
from lab.model import Behaviour


def _collect() -> dict[str, Behaviour]:
    found: dict[str, Behaviour] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if not isinstance(value, Behaviour):
                continue
            if found.setdefault(value.id, value) is not value:
                raise ValueError(f"two behaviours have the id {value.id}")
    return {name: expecting(behaviour) for name, behaviour in found.items()}


BEHAVIOURS = _collect()
