"""Whether a lab in containers can start here: is there a Docker engine, and are its images those of this lab."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.model import Generation
from lab.provision import Cache
from lab.runtime import folder as folders

# Where engines listen that nobody named; Docker's client is not even loaded where there is none.
_SOCKETS = (
    "/var/run/docker.sock",
    "$XDG_RUNTIME_DIR/docker.sock",
    "~/.docker/run/docker.sock",
    "~/.colima/default/docker.sock",
    "~/.orbstack/run/docker.sock",
    "~/.rd/docker.sock",
)
_CONFIGURATION = "~/.docker/config.json"


def lacking(catalog: str, store: str, generations: Iterable[Generation], cache: Cache) -> str:
    """Why such a lab can't start at once; empty when it can."""
    if not _named() and not any(Path(os.path.expandvars(s)).expanduser().exists() for s in _SOCKETS):
        return "no Docker engine is here"
    try:
        for name, found in _images(catalog, store, generations):
            if found is None:
                return f"there is no image {name}"
            if _stale(name, found, cache):
                return f"{name} is not of this lab's code"
    except LabError as error:
        return str(error).partition(";")[0]
    return ""


def _named() -> bool:
    """Whether the user says where an engine is: by a variable, or by the context that their configuration names."""
    return bool(
        {"DOCKER_HOST", "DOCKER_CONTEXT"} & os.environ.keys()
        or folders.read(Path(_CONFIGURATION).expanduser()).get("currentContext")
    )


def refuse_stale(catalog: str, store: str, generations: Iterable[Generation], cache: Cache) -> None:
    """Raises LabError for images whose answers would be those of another lab; missing ones are for who starts them."""
    stale = [
        name for name, found in _images(catalog, store, generations) if found is not None and _stale(name, found, cache)
    ]
    if stale:
        wanted = ",".join(name.removeprefix("iceberg-lab/") for name in stale)
        many = f"{len(stale)} images are" if len(stale) > 1 else f"{stale[0]} is"
        raise LabError(f"{many} not of this lab's code; build anew: iceberg-lab images build '{wanted}'")


def _images(catalog: str, store: str, generations: Iterable[Generation]) -> Iterator[tuple[str, Any]]:
    """Name and image, None where it is missing, of all that such a lab needs. Raises LabError without an engine."""
    from docker.errors import ImageNotFound

    from lab.containers import images_of
    from lab.images.build import engine

    with engine() as client:
        for name in images_of(catalog, store, generations):
            try:
                yield name, client.images.get(name)
            except ImageNotFound:
                yield name, None


def _stale(name: str, found: Any, cache: Cache) -> bool:
    from lab.images import context
    from lab.images.build import CODE, stale
    from lab.images.declared import IMAGES

    if name in IMAGES:
        return stale(IMAGES[name], found.labels, cache)
    own: str | None = found.labels.get(CODE)  # one that users have made of our code; of others we can't tell
    return own is not None and own != context.code()
