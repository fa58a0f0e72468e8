"""Where a lab's parts live: the runtime, and which catalog and store it has."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lab
from lab import catalogs
from lab.catalogs import polaris, remote
from lab.runtime.stack import MEMORY_BUDGET, Stack

if TYPE_CHECKING:
    from lab.provision import Cache

# What services and engines are made of; behaviours, tables and reports may change while a lab is up.
_CODE = ("catalogs", "containers", "engines", "provision", "runtime", "stores")
_NAMED: Mapping[tuple[str, str], tuple[str, ...]] = {  # by users, instead of ours: of which runtime and part it decides
    ("embedded", "minio"): ("ICEBERG_LAB_MINIO",),
    ("containers", "minio"): ("ICEBERG_LAB_MINIO_IMAGE",),
    ("embedded", polaris.NAME): (polaris.FOLDER, polaris.URL),
    ("containers", polaris.NAME): ("ICEBERG_LAB_POLARIS_IMAGE",),
    ("embedded", remote.NAME): (remote.FILE,),
}


@dataclass(frozen=True)
class Places:
    """A choice of each, by the names that users know."""

    runtime: str = "embedded"
    catalog: str = "reference"
    store: str = "seaweedfs"

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> Places:
        """From a mapping that has more than these; what it lacks is the default."""
        return cls(**{name: str(words[name]) for name in cls.__annotations__ if name in words})

    def __str__(self) -> str:
        return f"{self.runtime} ({self.catalog}, {self.store})"

    def as_json(self) -> dict[str, str]:
        return asdict(self)

    def configuration(self) -> str:
        """A digest of all that decides what a lab there is, but its secrets: one of another is not reused."""
        root = Path(lab.__file__).parent
        files = sorted(file for part in _CODE for file in (root / part).rglob("*.*") if "__pycache__" not in file.parts)
        named = [name for part in (self.catalog, self.store) for name in _NAMED.get((self.runtime, part), ())]
        digest = hashlib.sha256(json.dumps([self.as_json(), *map(os.environ.get, named)]).encode())
        for file in files:
            digest.update(file.relative_to(root).as_posix().encode() + hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()[:16]

    def check(self) -> None:
        """Raises NotProvided, with what the user has to supply, where there can be no such lab."""
        if self.runtime == "embedded":
            catalogs.named(self.catalog).check()

    def make(self, cache: Cache, folder: Path, *, memory: int = MEMORY_BUDGET) -> Stack:
        """A lab there. Raises LabError when it can't be had."""
        if self.runtime == "containers":
            from lab.runtime.containers import Containers  # Docker's client is loaded for those who use it

            return Containers(cache, folder, catalog=self.catalog, store=self.store, memory=memory)
        from lab.runtime.embedded import Embedded

        return Embedded(cache, folder, catalog=self.catalog, store=self.store, memory=memory)


EMBEDDED = Places()
