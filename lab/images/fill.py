"""What an image holds: exactly what its part's launch code asks the cache for.

    python -m lab.images.fill store NAME
    python -m lab.images.fill catalog
    python -m lab.images.fill engine GENERATION
    python -m lab.images.fill java RELEASE

runs in the image: unpacks, fetches what the build was not given, and removes what only unpacking needed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from lab.catalogs import reference
from lab.engines import GENERATIONS, adapter
from lab.errors import LabError
from lab.provision import Cache, Lines
from lab.stores import STORES, named

ROOT = Path("/opt/iceberg-lab")  # the cache inside an image; `lab/runtime/inside.py` reads it
FOLDERS = ("files", "trees", "java", "derived")  # what an image has of it, one layer each
_ARCHIVE = "classes-"  # begins the name of a derived folder that `lab/runtime/jvm.py` makes

PLAIN = "--plain"  # after a part: without an archive of its classes


def java(part: str, name: str = "") -> str | None:
    """The Java release that a part runs on."""
    if part == "engine":
        return GENERATIONS[name].java
    return {"catalog": reference.JAVA, "java": name}.get(part)


def files(cache: Cache, part: str, name: str = "") -> list[Path]:
    """All that a part takes from the cache beside Java, fetched and unpacked."""
    match part:
        case "store":
            return [named(name).program(cache)]
        case "catalog":
            return cache.closure(reference.ARTEFACT)
        case "engine":
            generation = GENERATIONS[name]
            return adapter(generation.kind).files(cache, generation)
        case "java":
            return []
    raise LabError(f"no part of the lab is called {part!r}")


def training(part: str, name: str = "") -> list[tuple[str, ...]]:
    """The other parts that a part needs around it to run as it will: what its archive of classes is made with."""
    if part == "engine" and GENERATIONS[name].kind in ("spark", "trino"):
        return [("store", STORES[0]), ("catalog",)]
    return [("store", STORES[0])] if part == "catalog" else []


def train(cache: Cache, part: str, name: str = "") -> None:
    """Runs the part once, with a store and a catalog on loopback, so that its archive of classes is made.

    Without one a start takes twice as long and no more: a warning says why there is none.
    """
    from lab.runtime.embedded import Embedded

    with tempfile.TemporaryDirectory() as folder, Embedded(cache, Path(folder) / "run") as lab:
        lab.host.archives = part == "catalog"
        lab.catalog()
        lab.host.archives = True
        if part == "engine":
            lab.engine(GENERATIONS[name])


def entries(cache: Cache, used: list[Path]) -> set[Path]:
    """What of the cache, relative to its root, holds the files that are used: files, and unpacked folders whole."""
    within = (path.relative_to(cache.root) for path in used if path.is_relative_to(cache.root))
    return {path if path.parts[0] == "files" else Path(*path.parts[:2]) for path in within}


def main(part: str, *words: str) -> None:
    name = next((word for word in words if word != PLAIN), "")
    cache = Cache(ROOT, progress=Lines(sys.stderr))
    used = files(cache, part, name)
    if release := java(part, name):
        used.append(cache.java(release))
    if training(part, name) and PLAIN not in words:
        try:
            train(cache, part, name)
        except LabError as reason:
            print(f"no archive of classes: {reason}", file=sys.stderr)
    for kind in FOLDERS:
        (ROOT / kind).mkdir(exist_ok=True)
    kept = entries(cache, [*used, *(ROOT / "derived").glob(f"{_ARCHIVE}*")])
    for path in (path for kind in FOLDERS[1:] for path in (ROOT / kind).iterdir()):
        if path.relative_to(ROOT) not in kept:
            shutil.rmtree(path)
    for path in (ROOT / "files").rglob("*"):
        if path.is_file() and path.relative_to(ROOT) not in kept:
            path.unlink()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except LabError as error:
        sys.exit(str(error))
