"""The images that the declared generations and services ask for; there is no other list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import lab
from lab.catalogs import polaris as polaris_server
from lab.catalogs import reference
from lab.containers.engines import KINDS, image_of
from lab.containers.part import image
from lab.engines import GENERATIONS
from lab.errors import LabError, UsageError
from lab.images import fill
from lab.stores import minio, seaweedfs


@dataclass(frozen=True)
class Image:
    """An image, its folder under `images/`, and the part of the lab that runs in it."""

    name: str  # iceberg-lab/spark:4.1.1-iceberg-1.11.0
    title: str
    part: tuple[str, ...]  # words of `lab.images.fill` and `lab.runtime.inside`
    artefacts: tuple[str, ...]  # of the lock
    versions: Mapping[str, str] = field(hash=False)
    arguments: Mapping[str, str] = field(default_factory=dict, hash=False)  # of its Dockerfile alone
    distribution: Path | None = None  # unpacked here, given by the user
    program: Path | None = None  # the same of MinIO's

    @property
    def folder(self) -> str:
        return self.name.removeprefix("iceberg-lab/").partition(":")[0]

    @property
    def java(self) -> str | None:
        return fill.java(*self.part)


def _declared() -> list[Image]:
    engines = [
        Image(
            image_of(generation),
            generation.name,
            ("engine", generation.name),
            generation.artefacts,
            {**generation.versions, "java": generation.java or "", "lab": lab.__version__},
        )
        for generation in GENERATIONS.values()
        if generation.kind in KINDS
    ]
    return [
        Image(
            image("seaweedfs", seaweedfs.VERSION),
            "SeaweedFS",
            ("store", seaweedfs.NAME),
            seaweedfs.ARTEFACTS,
            {"seaweedfs": seaweedfs.VERSION, "lab": lab.__version__},
        ),
        Image(
            image("minio", minio.VERSION),
            "MinIO at its last release under Apache-2.0",
            ("store", minio.NAME),
            minio.ARTEFACTS,
            {"minio": minio.VERSION, "lab": lab.__version__},
            {"SOURCE": minio.SOURCE},
        ),
        Image(
            image("catalog", reference.VERSION),
            "Iceberg's reference catalog with the lab's gateway",
            ("catalog",),
            (reference.ARTEFACT,),
            {"iceberg": reference.VERSION, "java": reference.JAVA, "lab": lab.__version__},
        ),
        *engines,
    ]


IMAGES: dict[str, Image] = {one.name: one for one in _declared()}


def polaris(distribution: Path) -> Image:
    """The image of an unpacked binary distribution of Apache Polaris. Raises LabError for a folder that is none."""
    started = distribution / "server" / polaris_server.STARTED
    named = [
        found[1]
        for jar in distribution.glob("server/lib/main/org.apache.polaris.polaris-core-*.jar")
        if (found := re.search(r"polaris-core-(.+)\.jar$", jar.name))
    ]
    if not started.is_file() or not named:
        raise LabError(
            f"{distribution} is no unpacked distribution of Polaris: name the folder that has {started.name} in server/"
        )
    versions = {"polaris": named[0], "java": polaris_server.JAVA, "lab": lab.__version__}
    java = f"java:{polaris_server.JAVA}"
    return Image(
        image("polaris", named[0]),
        "Apache Polaris",
        ("java", polaris_server.JAVA),
        (java,),
        versions,
        distribution=distribution,
    )


def minio_of(program: Path, source: str) -> Image:
    """The image of MinIO's program out of another image, `source`, under that one's tag."""
    version = source.rpartition("/")[2].partition("@")[0].partition(":")[2] or "latest"
    return Image(
        image("minio", version),
        f"MinIO of {source}",
        ("store", minio.NAME),
        minio.ARTEFACTS,
        {"minio": version, "lab": lab.__version__},
        program=program,
    )


def chosen(globs: str | None) -> list[Image]:
    """Those that a comma-separated list of globs names, by image (`spark:4.1*`), kind or generation."""
    if not globs:
        return list(IMAGES.values())
    found: dict[str, Image] = {}
    for glob in filter(None, map(str.strip, globs.split(","))):
        matching = {
            one.name: one
            for one in IMAGES.values()
            for word in (one.name, one.name.removeprefix("iceberg-lab/"), one.folder, one.part[-1])
            if fnmatchcase(word, glob)
        }
        if not matching:
            raise UsageError(f"no image is called {glob!r}; see: iceberg-lab images list")
        found |= matching
    if not found:
        raise UsageError(f"{globs!r} names no image; see: iceberg-lab images list")
    return list(found.values())
