"""The lock: for every artefact its files with checksum and size, as `scripts/lock.py` wrote them.

`lock.json` holds `artefacts` (artefact → files: one of a Maven artefact; of a Python distribution every wheel
that some supported platform and Python may want, or its sdist) and `sets` (set → its members, in order).
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.tags import Tag, sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from lab.errors import LabError
from lab.provision.artefact import Maven, Set, parse
from lab.provision.errors import NotProvided

LOCK = Path(__file__).with_name("lock.json")


@dataclass(frozen=True)
class LockedFile:
    """One file as the lock knows it."""

    artefact: str
    name: str
    size: int  # bytes
    sha256: str  # hexadecimal


class Lock:
    """The lock's content, asked for the machine it runs on."""

    def __init__(
        self, artefacts: Mapping[str, Sequence[LockedFile]], sets: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.artefacts = artefacts
        self.sets = sets or {}

    @classmethod
    def read(cls, path: Path = LOCK) -> Lock:
        content = json.loads(path.read_text())
        return cls(
            {name: [LockedFile(name, **file) for file in files] for name, files in content["artefacts"].items()},
            {name: resolved["members"] for name, resolved in content["sets"].items()},
        )

    @property
    def names(self) -> set[str]:
        """Every artefact and set that is locked: what `Cache.prune` keeps."""
        return {*self.artefacts, *self.sets}

    def members(self, artefact: str) -> Sequence[str]:
        """The artefacts of a set, in lock order; of anything else, itself. A Java that no registry serves is empty."""
        named = parse(artefact)
        if not isinstance(named, Set):
            return [str(named)]
        if named.kind == "java":
            return self.sets.get(artefact, [])
        try:
            return self.sets[artefact]
        except KeyError:
            raise self._unknown(artefact) from None

    def file(self, artefact: str) -> LockedFile:
        """The file of `artefact` for this machine; NotProvided where none is served for it."""
        named = parse(artefact)
        files = self.artefacts.get(str(named))
        if files is None:
            raise self._unknown(artefact)
        if isinstance(named, Maven):
            return files[0]
        best = min(files, key=lambda file: _rank(file.name), default=None)
        if best is None or _rank(best.name) == _UNFIT:
            served = ", ".join(file.name.removesuffix(".whl").split("-", 2)[-1] for file in files)
            raise NotProvided(
                f"{named} is not served for Python {platform.python_version()} on {sys.platform} {platform.machine()}: "
                f"use a Python and a machine that one of these fits: {served}"
            )
        return best

    def _unknown(self, artefact: str) -> LabError:
        return LabError(f"{artefact} is not locked: declare it, then run python scripts/lock.py")


_UNFIT = sys.maxsize


@cache
def _machine_tags() -> dict[Tag, int]:
    return {tag: rank for rank, tag in enumerate(sys_tags())}


def _rank(filename: str) -> int:
    """How well a distribution's file fits this machine: 0 is best. An sdist fits any."""
    try:
        tags = parse_wheel_filename(filename)[3]
    except InvalidWheelFilename:
        return _UNFIT - 1
    return min((_machine_tags().get(tag, _UNFIT) for tag in tags), default=_UNFIT)
