"""Folders made once: built beside, renamed into place, and known by a manifest, so that damage is noticed.

ROOT/<key>/content        what was built
ROOT/<key>/manifest.json  what it was built of, and the size and checksum of each of its files
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from lab.provision.files import digest

_BUILDING = ".building"


@dataclass(frozen=True)
class Made:
    """A folder that stands."""

    key: str
    sources: tuple[str, ...]  # the artefacts it was made of
    size: int  # bytes on disk
    files: dict[str, tuple[int, str]]  # path → size in bytes, sha256
    last_used: float  # epoch seconds


class Folders:
    """The folders under `root`; safe for many threads and processes at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._whole: set[str] = set()
        for building in root.glob(f"*{_BUILDING}"):  # of a dead process, unless its lock is held
            with suppress(Timeout), self._lock(building.name.removesuffix(_BUILDING), timeout=0):
                shutil.rmtree(building, ignore_errors=True)

    def get(self, key: str, build: Callable[[Path], None], sources: tuple[str, ...] = ()) -> Path:
        """The content of `key`; made by `build(folder)`, of `sources`, unless it stands whole."""
        if not self.whole(key):
            with self._lock(key):
                if not self.whole(key):
                    self._make(key, build, sources)
        return self.root / key / "content"

    def whole(self, key: str) -> bool:
        """Whether `key` stands and each of its files has its size: looked at once per process, then trusted."""
        if key not in self._whole:
            try:
                files = self.made(key).files
                content = self.root / key / "content"
                if any((content / name).stat().st_size != size for name, (size, _) in files.items()):
                    return False
            except (OSError, ValueError):
                return False
            with suppress(OSError):  # a read-only cache forgets its last use
                os.utime(self.root / key / "manifest.json")
            self._whole.add(key)
        return True

    def made(self, key: str) -> Made:
        """What is known of `key`; OSError or ValueError when it doesn't stand."""
        manifest = self.root / key / "manifest.json"
        content = json.loads(manifest.read_text())
        files = {name: (size, sha256) for name, (size, sha256) in content["files"].items()}
        return Made(key, tuple(content["sources"]), content["size"], files, manifest.stat().st_mtime)

    def all(self) -> Iterator[Made]:
        """All folders that stand."""
        for manifest in sorted(self.root.glob("*/manifest.json")):
            if manifest.parent.name.endswith(_BUILDING):
                continue
            with suppress(OSError, ValueError):
                yield self.made(manifest.parent.name)

    def damaged(self, made: Made) -> list[str]:
        """Those of its files whose checksum is not that of the day it was made."""
        content = self.root / made.key / "content"
        return [
            name
            for name, (_, sha256) in made.files.items()
            if not (content / name).is_file() or digest(content / name) != sha256
        ]

    def remove(self, key: str) -> None:
        """Remove a folder. Its manifest goes first: a removal that is killed leaves nothing that looks whole."""
        with self._lock(key):
            self._whole.discard(key)
            (self.root / key / "manifest.json").unlink(missing_ok=True)
            shutil.rmtree(self.root / key, ignore_errors=True)

    def _make(self, key: str, build: Callable[[Path], None], sources: tuple[str, ...]) -> None:
        building = self.root / f"{key}{_BUILDING}"
        shutil.rmtree(building, ignore_errors=True)
        content = building / "content"
        content.mkdir(parents=True)
        try:
            build(content)
            paths = [path for path in sorted(content.rglob("*")) if path.is_file()]
            manifest = {
                "sources": sources,
                "size": sum({path.stat().st_ino: path.stat().st_size for path in paths}.values()),  # hard links once
                "files": {path.relative_to(content).as_posix(): (path.stat().st_size, digest(path)) for path in paths},
            }
            (building / "manifest.json").write_text(json.dumps(manifest))
            shutil.rmtree(self.root / key, ignore_errors=True)  # a damaged one
            building.replace(self.root / key)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
        self._whole.add(key)

    def _lock(self, key: str, timeout: float = -1) -> FileLock:
        locks = self.root / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / f"{key}.lock", timeout=timeout)
