"""Write lab/provision/lock.json anew: what the generations, `sets.toml` and the services need, with checksums.

    python scripts/lock.py [--upgrade]

Needs the index, the Maven repository, and `mvn` (only here: its resolution is the reference, and the lab itself
reads the flat list). What is locked stays as it is, for published files don't change; a set is resolved again when
its declaration changed, or all with --upgrade. Files of Maven artefacts land in the cache, since their checksum has
to be computed: repositories publish weaker ones, against which the file is held first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from lab.errors import LabError
from lab.provision import Cache
from lab.provision.artefact import Maven, Pypi, Set, parse
from lab.provision.files import PART, digest
from lab.provision.lock import LOCK, Lock
from lab.provision.settings import Settings
from lab.provision.sources import TIMEOUT, Sources, maven_path

ROOT = Path(__file__).parent.parent
SETS = ROOT / "lab" / "provision" / "sets.toml"
GENERATIONS = ROOT / "lab" / "engines" / "generations"

PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
MANYLINUX = ("manylinux1", "manylinux2010", "manylinux2014", *(f"manylinux_2_{minor}" for minor in range(5, 44)))

# What a marker sees there, and the platform tags of the newest system: they include those of older ones.
PLATFORMS: Mapping[str, tuple[Mapping[str, str], Sequence[str]]] = {
    **{
        f"Linux {machine}": (
            {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": machine},
            [f"{glibc}_{machine}" for glibc in MANYLINUX],
        )
        for machine in ("x86_64", "aarch64")
    },
    "macOS arm64": (
        {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
        list(mac_platforms((26, 0), "arm64")),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="resolve all sets again")
    upgrade = parser.parse_args().upgrade

    old = json.loads(LOCK.read_text()) if LOCK.exists() else {"artefacts": {}, "sets": {}}
    declared = tomllib.loads(SETS.read_text())
    sets = {
        str(Set(kind, name)): _resolved(kind, declaration, {} if upgrade else old["sets"].get(str(Set(kind, name)), {}))
        for kind in ("java", "env", "maven-closure")
        for name, declaration in declared[kind].items()
    }
    wanted = {member for resolved in sets.values() for member in resolved["members"]}
    for artefact in [*declared["services"], *_of_generations()]:
        named = parse(artefact)
        if not isinstance(named, Set):
            wanted.add(str(named))
        elif artefact not in sets and named.kind != "java":
            raise LabError(f"{artefact} is asked for and not declared in {SETS}")

    new = {"artefacts": dict(sorted(_locked(wanted, old["artefacts"]).items())), "sets": dict(sorted(sets.items()))}
    LOCK.write_text(json.dumps(new, indent=1) + "\n")
    _report(old, new)


def _of_generations() -> Iterable[str]:
    for path in sorted(GENERATIONS.glob("*.toml")):
        yield from tomllib.loads(path.read_text())["artefacts"]


# ---------------------------------------------------------------- sets
def _resolved(kind: str, declaration: Any, old: Mapping[str, Any]) -> dict[str, Any]:
    """The set as the lock holds it: its members, and a digest of the declaration that they were resolved from."""
    digested = hashlib.sha256(json.dumps(declaration, sort_keys=True).encode()).hexdigest()[:12]
    if old.get("declared") == digested:
        return dict(old)
    resolvers: Mapping[str, Callable[[Any], list[str]]] = {
        "java": lambda wheel: [str(parse(wheel))],
        "env": _environment,
        "maven-closure": _closure,
    }
    return {"declared": digested, "members": resolvers[kind](declaration)}


def _environment(declaration: Mapping[str, Any]) -> list[str]:
    """pip's resolution on the running Python, held against what other Pythons and platforms would ask for."""
    report = json.loads(
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-",
             "--only-binary=:all:", *declaration["requires"]],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout
    )  # fmt: skip
    found = {canonicalize_name(item["metadata"]["name"]): item for item in report["install"]}
    for item in found.values():
        extras = ["", *item.get("requested_extras", [])]
        for requirement in map(Requirement, item["metadata"].get("requires_dist", [])):
            if canonicalize_name(requirement.name) not in found and _asked_for_somewhere(requirement, extras):
                raise LabError(f"{requirement} is asked for elsewhere than here: add it to `requires` in {SETS}")
    return sorted(str(Pypi(name, item["metadata"]["version"])) for name, item in found.items())


def _asked_for_somewhere(requirement: Requirement, extras: Sequence[str]) -> bool:
    return requirement.marker is None or any(
        requirement.marker.evaluate(
            {**marks, "python_version": f"{major}.{minor}", "python_full_version": f"{major}.{minor}.0", "extra": extra}
        )
        for marks, _ in PLATFORMS.values()
        for major, minor in PYTHONS
        for extra in extras
    )


def _closure(declaration: Mapping[str, Any]) -> list[str]:
    """Maven's own runtime class path of the roots, in its order, less what is excluded."""
    with tempfile.TemporaryDirectory() as folder:
        pom, listing = Path(folder, "pom.xml"), Path(folder, "classpath")
        pom.write_text(_pom(declaration["roots"], declaration.get("bom")))
        subprocess.run(
            ["mvn", "--quiet", "--batch-mode", "--strict-checksums", "--file", pom, "dependency:build-classpath",
             "-DincludeScope=runtime", f"-Dmdep.outputFile={listing}", "-Dmdep.pathSeparator=\n",
             "-Dmdep.localRepoProperty=REPOSITORY"],
            check=True,
        )  # fmt: skip
        members = [_coordinate(line.removeprefix("REPOSITORY/")) for line in listing.read_text().split()]
    excluded = declaration.get("exclude", [])
    idle = [glob for glob in excluded if not any(fnmatch(_bare(member), glob) for member in members)]
    if idle:
        raise LabError(f"these exclusions fit nothing: {', '.join(idle)}. Remove them from {SETS}")
    return [member for member in members if not any(fnmatch(_bare(member), glob) for glob in excluded)]


def _bare(artefact: str) -> str:
    return artefact.removeprefix("maven:")


def _coordinate(path: str) -> str:
    *group, artifact, version, name = path.split("/")
    stem, _, extension = name.removeprefix(f"{artifact}-{version}").rpartition(".")
    return str(Maven(".".join(group), artifact, version, stem.removeprefix("-"), extension))


def _pom(roots: Sequence[str], bom: str | None) -> str:
    def dependency(coordinate: str, more: str = "") -> str:
        named = parse(f"maven:{coordinate}")
        assert isinstance(named, Maven)
        classifier = f"<classifier>{escape(named.classifier)}</classifier>" if named.classifier else ""
        return (
            f"<dependency><groupId>{escape(named.group)}</groupId><artifactId>{escape(named.artifact)}</artifactId>"
            f"<version>{escape(named.version)}</version>{classifier}{more}</dependency>"
        )

    managed = dependency(bom, "<type>pom</type><scope>import</scope>") if bom else ""
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>lock</groupId><artifactId>lock</artifactId>"
        "<version>1</version><packaging>pom</packaging>"
        f"<dependencyManagement><dependencies>{managed}</dependencies></dependencyManagement>"
        f"<dependencies>{''.join(map(dependency, roots))}</dependencies></project>"
    )


# ---------------------------------------------------------------- files
def _locked(wanted: set[str], old: Mapping[str, Any]) -> dict[str, Any]:
    sources, cache = Sources(Settings.read()), Cache(lock=Lock({}))

    def files(artefact: str) -> list[dict[str, Any]]:
        named = parse(artefact)
        if isinstance(named, Pypi):
            return _distributions(sources, named)
        assert isinstance(named, Maven)
        return [_maven_file(sources, cache, named)]

    todo = sorted(wanted - old.keys())
    with ThreadPoolExecutor(8) as pool:
        new = dict(zip(todo, pool.map(files, todo), strict=True))
    return {artefact: old[artefact] for artefact in wanted & old.keys()} | new


def _distributions(sources: Sources, named: Pypi) -> list[dict[str, Any]]:
    """The wheels of that version that some target may want; its sdist where there are none."""
    targets = {tag for _, tags in PLATFORMS.values() for python in PYTHONS for tag in _tags(python, tags)}
    wheels, sdists = [], []
    for found in (found for index in sources.settings.indexes for found in sources.distributions(index, named.name)):
        if found.version != named.version or "sha256" not in found.digests or found.is_yanked:
            continue
        file = {"name": found.filename, "size": found.size, "sha256": found.digests["sha256"]}
        try:
            fits = targets & parse_wheel_filename(found.filename)[3]
        except InvalidWheelFilename:
            sdists.append(file)
        else:
            wheels += [file] if fits else []
    if not (wheels or sdists):
        raise LabError(f"no index has a file of {named}")
    return sorted(wheels or sdists, key=lambda file: str(file["name"]))


def _tags(python: tuple[int, int], platforms: Sequence[str]) -> Iterable[Tag]:
    interpreter = f"cp{python[0]}{python[1]}"
    yield from cpython_tags(python, [interpreter], platforms)
    yield from compatible_tags(python, interpreter, platforms)


def _maven_file(sources: Sources, cache: Cache, named: Maven) -> dict[str, Any]:
    path = cache.root / "files" / "maven" / maven_path(named)
    url = f"{sources.settings.repositories[0][1]}/{maven_path(named)}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + PART)
        with sources.session.get(url, stream=True, timeout=TIMEOUT) as response, part.open("wb") as out:
            response.raise_for_status()
            for chunk in response.iter_content(1 << 20):
                out.write(chunk)
        part.replace(path)
    with sources.session.get(f"{url}.sha1", timeout=TIMEOUT) as response:
        response.raise_for_status()
        published = response.text.split()[0]
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha1").hexdigest() != published:
            raise LabError(f"{path} is not what the repository publishes: remove it and run this again")
    return {"name": path.name, "size": path.stat().st_size, "sha256": digest(path)}


def _report(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """What changed, and what this lock can't serve."""
    for sign, some, others in (("+", new, old), ("-", old, new)):
        for name in sorted(some["artefacts"].keys() - others["artefacts"].keys()):
            print(sign, name)
    for platform, (_, tags) in PLATFORMS.items():
        for python in PYTHONS:
            fitting = set(_tags(python, tags))
            for name, files in new["artefacts"].items():
                wheels = [file["name"] for file in files if file["name"].endswith(".whl")]
                if wheels and not any(fitting & parse_wheel_filename(wheel)[3] for wheel in wheels):
                    print(f"not served for {platform}, Python {python[0]}.{python[1]}: {name}")
    size = sum(max(file["size"] for file in files) for files in new["artefacts"].values())
    print(f"{len(new['artefacts'])} artefacts, at most {size / 1e9:.1f} GB on one machine: {LOCK}")


if __name__ == "__main__":
    try:
        main()
    except LabError as error:
        sys.exit(str(error))
