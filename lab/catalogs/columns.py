"""The columns of a schema as the REST protocol writes it, those within others too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_PARTS: Mapping[Any, tuple[str, ...]] = {"list": ("element",), "map": ("key", "value")}


def columns(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each field of a struct, at any depth: the schema's own, to be changed in place. An element, key or value is told
    as a field of that name. Raises AttributeError, KeyError, TypeError for what is no schema."""
    for field in schema.get("fields", ()):
        yield field
        yield from _within(field.get("type"))


def _within(kind: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(kind, Mapping):
        return
    yield from columns(kind)
    for part in _PARTS.get(kind.get("type"), ()):
        yield {"id": kind[f"{part}-id"], "name": part, "type": kind[part]}
        yield from _within(kind[part])
