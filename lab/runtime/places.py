"""Where a lab's parts live: the runtime, and which catalog and store it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.runtime.stack import MEMORY_BUDGET, Stack

if TYPE_CHECKING:
    from lab.provision import Cache


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

    def make(self, cache: Cache, folder: Path, *, memory: int = MEMORY_BUDGET) -> Stack:
        """A lab there. Raises LabError when it can't be had."""
        if self.runtime == "containers":
            from lab.runtime.containers import Containers  # Docker's client is loaded for those who use it

            return Containers(cache, folder, catalog=self.catalog, store=self.store, memory=memory)
        from lab.runtime.embedded import Embedded

        return Embedded(cache, folder, store=self.store, memory=memory)


EMBEDDED = Places()
