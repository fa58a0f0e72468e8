"""What the build of an image is given, and a digest of it all.

Dockerfile    of the image's folder
site/         the lab's Python dependencies, as pip puts them for the base's Python
lab/          the modules of this package that run in an image
cache/        what the builder's cache holds of the part's artefacts, in the cache's layout
jdk/, bin/    a full JDK, a program: what no registry serves and this machine has; else empty
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import subprocess
import sys
import tarfile
import threading
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache as once
from importlib.util import find_spec
from pathlib import Path

import lab
from lab.engines import GENERATIONS
from lab.errors import LabError
from lab.images import fill
from lab.images.declared import Image
from lab.provision import Cache, NotProvided
from lab.stores import STORES

PROJECT = Path(lab.__file__).parents[1]
# What an image runs, and what that asks for by name or by path instead of by import.
_ROOTS = (
    *("lab.runtime.inside", "lab.images.fill", "lab.runtime.guard", "lab.catalogs.gateway"),
    *("lab.engines.spark", "lab.engines.trino", "lab.engines.iceberg", *(f"lab.stores.{store}" for store in STORES)),
)
# Dependencies of what stays on the user's machine.
_OUTSIDE = ("click", "jsonschema", "pytest", "testcontainers")
_FOLDERS = ("site", "lab", "cache", "jdk", "bin")  # there, if only empty: a Dockerfile copies them
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Base:
    """What an image is built on."""

    name: str
    id: str
    python: str = ""  # "3.11"
    machine: str = ""  # "x86_64"


def folder(image: Image) -> Path:
    """Where its Dockerfile is. Raises LabError in a lab that was installed without them."""
    path = PROJECT / "images" / image.folder
    if not (path / "Dockerfile").is_file():
        raise LabError(f"{path} has no Dockerfile: images are built from a checkout of the lab")
    return path


@once
def modules() -> dict[str, Path]:
    """Path within the context → file: the modules that run in an image, found by their imports, and their data."""
    found: dict[str, Path] = {}
    todo = list(_ROOTS)
    while todo:
        name = todo.pop()
        origin = find_spec(name).origin if _exists(name) else None  # type: ignore[union-attr]
        if origin is None or (path := Path(origin)) in found.values():
            continue
        found[path.relative_to(PROJECT).as_posix()] = path
        todo += [name.rpartition(".")[0]] if "." in name else []
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                todo += [alias.name for alias in node.names if alias.name.split(".")[0] == "lab"]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lab":
                todo += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    declared = ("lab/engines/generations", "lab/catalogs/profiles")
    for path in [file for folder in ("lab/provision", *declared) for file in (PROJECT / folder).glob("*.*")]:
        if path.suffix in (".json", ".toml"):
            found[path.relative_to(PROJECT).as_posix()] = path
    return dict(sorted(found.items()))


def _exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a name of a module, not a module
        return False


def requirements() -> list[str]:
    """The lab's own pinned dependencies, less what only the user's machine needs."""
    declared = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    return [requirement for requirement in declared if requirement.partition("==")[0] not in _OUTSIDE]


def code() -> str:
    """A digest of the lab's code that runs in images, and of the rules by which its gateway acts."""
    digest = hashlib.sha256()
    for name, path in modules().items():
        if path.suffix == ".py" or path.parent.name == "profiles":
            digest.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def inputs(image: Image, cache: Cache) -> str:
    """A digest of what an image is made of, its base aside. Another one means that the image is stale."""
    digest = hashlib.sha256((folder(image) / "Dockerfile").read_bytes() + code().encode())
    if image.part[0] == "engine":
        digest.update(repr(GENERATIONS[image.part[1]]).encode())  # its settings go into its server
    java = f"java:{image.java}"
    for artefact in (*image.artefacts, *([java] if image.java else [])):
        for member in cache.lock.members(artefact):
            digest.update(json.dumps([member, *(file.sha256 for file in cache.lock.artefacts[member])]).encode())
    digest.update(json.dumps([image.part, dict(image.versions), requirements()]).encode())
    digest.update(json.dumps(dict(image.arguments)).encode())
    if image.program:
        digest.update(hashlib.sha256(image.program.read_bytes()).digest())
    if image.distribution:
        for path in sorted(filter(Path.is_file, image.distribution.rglob("*"))):
            digest.update(f"{path.relative_to(image.distribution)} {path.stat().st_size}".encode())
    return digest.hexdigest()[:16]


def site(cache: Cache, base: Base) -> Path:
    """The folder of the dependencies for the base's Python, made once by this machine's pip."""
    wanted = requirements()
    platforms = [f"manylinux_2_{minor}_{base.machine}" for minor in range(36, 16, -1)]  # of glibc
    platforms.append(f"manylinux2014_{base.machine}")

    def build(target: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--target", str(target), "--only-binary=:all:", "--implementation", "cp"]
        command += ["--python-version", base.python, *(f"--platform={one}" for one in platforms), *wanted]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
            raise LabError(f"pip has not the lab's dependencies for Python {base.python} on {base.machine}: {reason}")

    key = hashlib.sha256(json.dumps([base.python, base.machine, wanted]).encode()).hexdigest()[:12]
    return cache.derived(f"site-{key}", build)


def content(image: Image, cache: Cache, base: Base, lacks: list[str]) -> list[tuple[str, Path]]:
    """Name within the context → file or folder here. Fetches what the cache lacks and this machine can have.

    lacks: told why this machine has not what a stage of the Dockerfile then has to make.
    """
    found = [("Dockerfile", folder(image) / "Dockerfile"), ("site", site(cache, base)), *modules().items()]
    if image.distribution:
        found.append(("distribution", image.distribution))
    if image.program:
        return [*found, (f"bin/{image.program.name}", image.program)]
    native = platform.system() == "Linux" and platform.machine() == base.machine
    used: list[Path] = []
    try:
        if native or image.part[0] != "store":  # else it is a program of another system
            used += fill.files(cache, *image.part)
        if native and image.java:
            used.append(cache.java(image.java))
        for other in fill.training(*image.part) if native else ():
            used += fill.files(cache, *other)
            used += [cache.java(release)] if (release := fill.java(*other)) else []
    except NotProvided as reason:
        lacks.append(str(reason))
    made = cache.root / "derived"  # MinIO's program
    ours = [path for path in used if path.is_relative_to(cache.root) and not path.is_relative_to(made)]
    found += [("jdk", path) if path.is_dir() else (f"bin/{path.name}", path) for path in used if path not in ours]
    return [*found, *((f"cache/{entry}", cache.root / entry) for entry in sorted(fill.entries(cache, ours)))]


def stream(content: list[tuple[str, Path]]) -> Iterator[bytes]:
    """The context as a tar file, made while it is read."""
    read, write = os.pipe()

    def pack() -> None:
        with (
            suppress(BrokenPipeError),  # the engine stopped reading, and says why
            os.fdopen(write, "wb") as out,
            tarfile.open(fileobj=out, mode="w|", dereference=True) as tar,
        ):
            for name in _FOLDERS:
                empty = tarfile.TarInfo(name)
                empty.type, empty.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(empty)
            for name, path in content:
                tar.add(path, name, filter=_plain)

    threading.Thread(target=pack, daemon=True).start()
    with os.fdopen(read, "rb") as packed:
        while chunk := packed.read(_CHUNK):
            yield chunk


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Of nobody in particular, for everybody to read; times stay, for a JVM's archive knows its jars by them."""
    if member.name.endswith("__pycache__"):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = int(member.mtime)  # as exact as layers keep it
    member.mode = 0o755 if member.isdir() or member.mode & 0o111 else 0o644
    return member
