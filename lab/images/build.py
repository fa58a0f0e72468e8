"""Builds images by the Docker engine that answers, and tells which are there and whether they are stale.

The engine's classic builder is enough. An image carries a digest of all it was made of: a build that would change
nothing is not begun, and a runtime can tell an image that is older than the lab's code.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import re
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.utils import parse_repository_tag
from filelock import FileLock

from lab.containers.part import engine_answers, flat
from lab.errors import LabError
from lab.images import context, fill
from lab.images.context import Base
from lab.images.declared import IMAGES, Image
from lab.provision import Cache

OWN_BASE, PUBLIC_BASE = "iceberg-lab/base:bookworm", "python:3.11-slim-bookworm"
INPUTS, CODE = "iceberg-lab.inputs", "iceberg-lab.code"
BASE, VERSIONS = "iceberg-lab.base", "iceberg-lab.versions"
GIVEN = {"jdk": "JDK", "bin": "GO"}  # folder of the context → argument of a Dockerfile: the image that else provides it
_STAGE = "iceberg-lab.stage"  # label of what a build leaves behind of its first stages
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BUILD_SECONDS = 1800.0  # of silence


@dataclass(frozen=True)
class State:
    """An image as it is here."""

    image: Image
    id: str = ""  # empty when it isn't built
    size: int = 0  # bytes, with what it shares with others
    created: dt.datetime | None = None
    stale: bool = False  # made of something else than would go into it now


@contextmanager
def engine() -> Iterator[Any]:
    """A client of the Docker engine; its refusals, and a dead one, as one line that says what to do."""
    engine_answers()
    client = docker.from_env(timeout=_BUILD_SECONDS)
    try:
        yield client
    except (DockerException, requests.RequestException) as error:
        raise _told(error) from None
    finally:
        client.close()


def states(cache: Cache) -> list[State]:
    """All declared images, built or not. Raises LabError when no Docker engine answers."""
    with engine() as client:
        return [_state(client, image, cache) for image in IMAGES.values()]


def _state(client: Any, image: Image, cache: Cache) -> State:
    try:
        found = client.images.get(image.name)
    except ImageNotFound:
        return State(image)
    created = dt.datetime.fromisoformat(re.sub(r"\.\d+", "", found.attrs["Created"]))
    return State(image, found.id, found.attrs["Size"], created, stale(image, found.labels, cache))


def stale(image: Image, labels: Mapping[str, str], cache: Cache) -> bool:
    """Whether an image with these labels was made of something else than would go into it now."""
    return labels.get(INPUTS) != context.inputs(image, cache)


@contextmanager
def taken(name: str, *places: str) -> Iterator[Path]:
    """A program out of an image, pulled if it isn't here, from the first of these places that has it; for a while.

    Raises LabError.
    """
    with engine() as client, tempfile.TemporaryDirectory() as folder:
        try:
            source = client.containers.create(name)
        except ImageNotFound:
            try:
                source = client.containers.create(client.images.pull(name))
            except APIError as error:
                raise LabError(f"the image {name} can't be pulled ({flat(error.explanation or error)})") from None
        try:
            for place in places:
                with suppress(NotFound):
                    packed = io.BytesIO(b"".join(source.get_archive(place)[0]))
                    with tarfile.open(fileobj=packed) as tar:
                        tar.extractall(folder, filter="data")
                    yield Path(folder) / place.rpartition("/")[2]
                    return
        finally:
            source.remove(v=True)
        raise LabError(f"{name} has none of {', '.join(places)}; name another image")


def build(
    wanted: list[Image], cache: Cache, base: str | None, tell: Callable[[str], None], *, archives: bool = True
) -> None:
    """Builds those that are missing or not what they would be. Raises LabError; those built before it stay.

    archives: whether each part is run once, so that an archive of its classes is in its image.
    """
    # One build at a time: what a build leaves behind is told from what another still needs by nothing else.
    locks = cache.root / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with engine() as client, FileLock(locks / "images.lock"):
        chosen = _base(client, base, tell)
        for image in wanted:
            state = _state(client, image, cache)
            if state.id and not state.stale and client.images.get(image.name).labels.get(BASE) == chosen.id:
                tell(f"{image.name} is up to date")
                continue
            if not chosen.python:
                chosen = _asked(client, chosen)
            started = time.monotonic()
            tell(f"building {image.name} on {chosen.name}")
            _build(client, image, cache, chosen, tell, archives)
            size = client.images.get(image.name).attrs["Size"]
            tell(f"built {image.name}, {size / 1e6:,.0f} MB, in {time.monotonic() - started:.0f} s")
            client.images.prune({"label": _STAGE, "dangling": True})
            if state.id:
                with suppress(APIError):  # a container has it, or nothing in it has changed
                    client.images.remove(state.id)


def _base(client: Any, name: str | None, tell: Callable[[str], None]) -> Base:
    """The base that is named, else the lab's own if it was made, else the public one; pulled if it isn't here."""
    for candidate in [name] if name else [OWN_BASE, PUBLIC_BASE]:
        try:
            return Base(candidate, client.images.get(candidate).id)
        except ImageNotFound:
            continue
    wanted = name or PUBLIC_BASE
    tell(f"pulling {wanted}")
    try:
        repository, tag = parse_repository_tag(wanted)
        return Base(wanted, client.images.pull(repository, tag=tag or "latest").id)
    except APIError as error:
        raise LabError(
            f"the base image {wanted} can't be pulled ({flat(error.explanation or error)}): "
            "make one with scripts/base_image.sh, or name one that is here with --base"
        ) from None


def _asked(client: Any, base: Base) -> Base:
    """With its Python's release and its machine, which the dependencies have to fit."""
    question = "import platform as p, sys; print('%d.%d' % sys.version_info[:2], p.machine())"
    try:
        said = client.containers.run(base.name, ["python3", "-c", question], remove=True, network_mode="none")
    except APIError as error:
        raise LabError(f"{base.name} has no python3; name a base that has 3.11 or newer ({flat(error)})") from None
    python, machine = said.decode().split()
    if tuple(map(int, python.split("."))) < (3, 11):
        raise LabError(f"{base.name} has Python {python}; name a base that has 3.11 or newer")
    return Base(base.name, base.id, python, machine)


def _build(client: Any, image: Image, cache: Cache, base: Base, tell: Callable[[str], None], archives: bool) -> None:
    lacks: list[str] = []
    content = context.content(image, cache, base, lacks)
    arguments = {
        "BASE": base.name,
        "PART": " ".join((*image.part, *([] if archives else [fill.PLAIN]))),
        **image.arguments,
    }
    # A stage whose image is there to give what the context gives needs no image of its own.
    given = {name.partition("/")[0] for name, _ in content}
    arguments |= {argument: base.name for folder, argument in GIVEN.items() if folder in given}
    lines = client.api.build(
        fileobj=context.stream(content),
        custom_context=True,
        tag=image.name,
        buildargs=arguments,
        labels=_labels(image, cache, base),
        rm=True,
        forcerm=True,
        decode=True,
    )
    said: list[str] = []
    for line in lines:
        if "error" in line:
            if said[-1:] and " FROM " in said[-1]:
                stage = said[-1].partition(": ")[2]
                cure = "; ".join(lacks) or "name an image that is here"
                raise LabError(f"{image.name}: {stage}: can't be pulled ({flat(line['error'])[:120]}): {cure}")
            raise _told(LabError(line["error"]), said)
        text = _COLOUR.sub("", str(line.get("stream", ""))).strip()
        said = [*said, *text.splitlines()][-6:]
        if text.startswith("Step "):
            tell(f"  {text}")


def _labels(image: Image, cache: Cache, base: Base) -> dict[str, str]:
    return {
        INPUTS: context.inputs(image, cache),
        CODE: context.code(),
        BASE: base.id,
        VERSIONS: json.dumps(image.versions),
        "org.opencontainers.image.title": image.title,
        "org.opencontainers.image.version": image.name.partition(":")[2],
        "org.opencontainers.image.base.name": base.name,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }


def _told(error: Exception, said: list[str] | None = None) -> LabError:
    reason = flat(getattr(error, "explanation", None) or error)
    if "no space left" in reason.lower():
        return LabError(f"Docker has no space left ({reason}); see what takes it: docker system df")
    if isinstance(error, requests.RequestException) and not isinstance(error, APIError):  # which is one of them too
        return LabError(f"the Docker engine stopped answering ({reason}); is it still running?")
    last = "".join(f"\n  | {line}" for line in said or ())
    return LabError(f"Docker refuses: {reason}{last}")
