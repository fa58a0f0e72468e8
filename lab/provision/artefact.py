"""The names of artefacts: what a generation's file, `sets.toml` and the lock speak of.

pypi:NAME==VERSION                          a distribution of the Python index
maven:GROUP:ARTIFACT:VERSION[:CLASSIFIER][@EXTENSION]   one file of a Maven repository (extension: jar)
maven-closure:NAME   env:NAME   java:RELEASE            a set of the above, declared in `sets.toml`

>>> parse("maven:io.trino:trino-iceberg:476@zip")
Maven(group='io.trino', artifact='trino-iceberg', version='476', classifier='', extension='zip')
"""

from __future__ import annotations

from dataclasses import dataclass

from packaging.utils import canonicalize_name

from lab.errors import LabError


@dataclass(frozen=True)
class Pypi:
    """A distribution of the Python index; `name` is normalised."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"pypi:{self.name}=={self.version}"


@dataclass(frozen=True)
class Maven:
    """One file of a Maven repository."""

    group: str
    artifact: str
    version: str
    classifier: str = ""
    extension: str = "jar"

    def __str__(self) -> str:
        coordinate = ":".join(filter(None, (self.group, self.artifact, self.version, self.classifier)))
        return f"maven:{coordinate}" + ("" if self.extension == "jar" else f"@{self.extension}")


@dataclass(frozen=True)
class Set:
    """A declared set of files; `kind` is maven-closure, env or java."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


def parse(text: str) -> Pypi | Maven | Set:
    """The artefact that `text` names; LabError when it fits no form of the grammar above."""
    kind, _, rest = text.partition(":")
    if kind == "pypi":
        name, _, version = rest.partition("==")
        if name and version:
            return Pypi(canonicalize_name(name), version)
    elif kind == "maven":
        coordinate, _, extension = rest.partition("@")
        parts = coordinate.split(":")
        if len(parts) in (3, 4) and all(parts):
            return Maven(parts[0], parts[1], parts[2], "".join(parts[3:]), extension or "jar")
    elif kind in ("maven-closure", "env", "java") and rest:
        return Set(kind, rest)
    raise LabError(
        f"no artefact: {text!r}. Write pypi:NAME==VERSION, maven:GROUP:ARTIFACT:VERSION[:CLASSIFIER][@EXTENSION], "
        "maven-closure:NAME, env:NAME or java:RELEASE"
    )
