"""Whether a lab in containers can start here: is there a Docker engine, and does it have the images."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from lab.errors import LabError
from lab.model import Generation

# Where engines listen that nobody named by DOCKER_HOST; Docker's client is not even loaded where there is none.
_SOCKETS = ("/var/run/docker.sock", "~/.docker/run/docker.sock", "~/.colima/default/docker.sock", "~/.rd/docker.sock")


def lacking(catalog: str, store: str, generations: Iterable[Generation]) -> str:
    """Why such a lab can't start at once; empty when it can."""
    if "DOCKER_HOST" not in os.environ and not any(Path(s).expanduser().exists() for s in _SOCKETS):
        return "no Docker engine is here"
    import docker
    from docker.errors import ImageNotFound

    from lab.containers import engine_answers, images_of

    try:
        engine_answers()
    except LabError as error:
        return str(error).partition(";")[0]
    client = docker.from_env()
    for image in images_of(catalog, store, generations):
        try:
            client.images.get(image)
        except ImageNotFound:
            return f"there is no image {image}"
    return ""
