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
from pathlib import Path

from lab.catalogs import reference
from lab.engines import GENERATIONS, adapter
from lab.errors import LabError
from lab.provision import Cache, Lines
from lab.stores import named

ROOT = Path("/opt/iceberg-lab")  # the cache inside an image; `lab/runtime/inside.py` reads it
FOLDERS = ("files", "trees", "java")  # what an image has of it, one layer each


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


def entries(cache: Cache, used: list[Path]) -> set[Path]:
    """What of the cache, relative to its root, holds the files that are used: files, and unpacked folders whole."""
    within = (path.relative_to(cache.root) for path in used if path.is_relative_to(cache.root))
    return {path if path.parts[0] == "files" else Path(*path.parts[:2]) for path in within if path.parts[0] in FOLDERS}


def main(part: str, name: str = "") -> None:
    cache = Cache(ROOT, progress=Lines(sys.stderr))
    used = files(cache, part, name)
    if release := java(part, name):
        used.append(cache.java(release))
    kept = entries(cache, used)
    for kind in FOLDERS:
        (ROOT / kind).mkdir(exist_ok=True)
    for path in (*(ROOT / "trees").iterdir(), *(ROOT / "java").iterdir()):
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
