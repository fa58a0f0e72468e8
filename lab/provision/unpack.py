"""Archives into folders: wheels, jars, zips, tarballs."""

from __future__ import annotations

import os
import posixpath
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import IO

from lab.errors import LabError
from lab.provision.files import MTIME

_SUFFIXES = (".tar.gz", ".zip", ".whl", ".jar")


def unpack(archive: Path, folder: Path, keep: str = "*") -> None:
    """Unpack the members that match glob `keep` ("*" crosses folders); LabError when none does.

    A top folder called like the archive is stripped.
    """
    top = next((archive.name.removesuffix(suffix) for suffix in _SUFFIXES if archive.name.endswith(suffix)), "")

    def place(name: str) -> str | None:
        stripped = name.removeprefix(f"{top}/")
        return stripped if fnmatch(stripped, keep) else None

    if not _write(archive, folder, place):
        raise LabError(f"{archive.name} holds nothing that matches {keep!r}: correct the pattern")


def install(wheel: Path, site: Path) -> None:
    """Put a wheel's modules into `site`, as an installer does; its scripts, headers and data are left out.

    By hand and not by pip: pip may be absent, and there is nothing to resolve or build.
    """

    def place(name: str) -> str | None:
        first, _, rest = name.partition("/")
        if not first.endswith(".data"):
            return name
        kind, _, inner = rest.partition("/")
        return inner if kind in ("purelib", "platlib") else None

    _write(wheel, site, place)


@dataclass(frozen=True)
class _Member:
    name: str
    executable: bool
    content: IO[bytes] | None  # None: the same as member `same_as`
    same_as: str = ""


def _write(archive: Path, folder: Path, place: Callable[[str], str | None]) -> int:
    """Write each file of `archive` to where `place` puts its name (None: nowhere); returns how many."""
    links: list[tuple[Path, str]] = []
    count = 0
    for member in (_tar if archive.name.endswith("gz") else _zip)(archive):
        target = place(member.name)
        if target is None:
            continue
        count += 1
        path = _inside(folder, target)
        path.parent.mkdir(parents=True, exist_ok=True)
        if member.content is None:
            links.append((path, member.same_as))
            continue
        with path.open("wb") as out:
            shutil.copyfileobj(member.content, out, 1 << 20)
        path.chmod(0o755 if member.executable else 0o644)
        os.utime(path, (MTIME, MTIME))
    for path, same_as in links:
        target = place(same_as)
        if target is None:
            raise LabError(f"{archive.name}: {path.name} is a link to {same_as}, which is not kept: widen the pattern")
        path.hardlink_to(_inside(folder, target))
    return count


def _zip(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            if not info.is_dir():
                with file.open(info) as content:
                    yield _Member(info.filename, bool(info.external_attr >> 16 & 0o111), content)


def _tar(archive: Path) -> Iterator[_Member]:
    with tarfile.open(archive, "r:gz") as file:
        for info in file:
            if info.isreg():
                yield _Member(info.name, bool(info.mode & 0o111), file.extractfile(info))
            elif info.islnk():
                yield _Member(info.name, False, None, info.linkname)
            elif info.issym():
                linked = posixpath.normpath(posixpath.join(posixpath.dirname(info.name), info.linkname))
                yield _Member(info.name, False, None, linked)


def _inside(folder: Path, name: str) -> Path:
    """The path of a member; LabError for a name that leads out of `folder`."""
    path = folder / posixpath.normpath(name)
    if not path.is_relative_to(folder) or ".." in path.parts[len(folder.parts) :]:
        raise LabError(f"an archive names a file outside itself ({name}): don't use it, and tell its publisher")
    return path
