"""The engines: one adapter per kind (a module of this folder), one declared generation per file in `generations/`."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from lab.catalogs.signing import REGION, SERVICE
from lab.errors import LabError
from lab.model import Answer, Generation, Statement

if TYPE_CHECKING:
    from lab.catalogs import CatalogEndpoint
    from lab.catalogs.signing import Entry
    from lab.provision import Cache
    from lab.runtime.host import Host
    from lab.runtime.process import Process

T = TypeVar("T")
# Settings so called are variables in the environment of the engine's process.
ENVIRONMENT = "env."
KINDS = ("duckdb", "iceberg", "pyiceberg", "spark", "trino")
WORKERS = 2  # of each cluster
_LAB = re.compile(r"(?<![\w.'\"/])lab(?![\w'\"])")  # the catalog's name, as a word of a statement
_REQUIRED = {"kind", "versions", "artefacts"}
_OPTIONAL = {"java", "settings", "why"}


@dataclass(frozen=True)
class Cluster:
    """Several servers that are one engine."""

    head: str  # URL of Spark's master (spark://…) or Trino's coordinator (http://…)
    secret: str = field(repr=False)  # by which its members know each other


class Session(Protocol):
    """What one case talks to: one engine under one set of settings, nothing left over from another case."""

    settings: dict[str, str]  # the effective ones, without secrets

    def execute(self, statement: Statement) -> Answer:
        """Rows, or the engine's own failure with its whole cause chain; that never raises."""

    def close(self) -> None: ...


class Engine(Protocol):
    """A client of what an adapter's `launch` made."""

    def session(self, settings: Mapping[str, str | None] = {}, entry: Entry | None = None) -> Session:
        """A fresh session; None takes a setting of the adapter's or the generation's away.

        entry: how it comes to the catalog where not by the open door; its secrets are in no `Session.settings`.
        """

    def versions(self) -> dict[str, str]:
        """Component → version, as the engine itself tells them."""

    def settings(self) -> dict[str, str]:
        """The adapter's and the generation's, without secrets."""

    def close(self) -> None: ...


class Adapter(Protocol):
    """The module of a kind."""

    def launch(
        self, host: Host, generation: Generation, catalog: CatalogEndpoint, cluster: Cluster | None = None
    ) -> tuple[Process | None, dict[str, Any]]:
        """Starts what sessions share: its process (None where each Engine starts its own) and where it answers.

        cluster: of Spark and Trino alone: whose driver or coordinator this is to be, instead of a whole engine.
        The endpoint is JSON and secret. Raises LabError with the reason when the engine does not start.
        """

    def files(self, cache: Cache, generation: Generation) -> list[Path]:
        """Of a kind with a JVM: all that `launch` takes from the cache beside Java, fetched and unpacked."""

    def Engine(
        self, host: Host, generation: Generation, catalog: CatalogEndpoint, endpoint: Mapping[str, Any]
    ) -> Engine: ...


def environment(catalog: CatalogEndpoint) -> dict[str, str]:
    """What a store wants in its clients' environment, as settings."""
    return {f"{ENVIRONMENT}{name}": value for name, value in catalog.client_environment.items()}


def rest_properties(entry: Entry | None, prefix: str = "") -> dict[str, str]:
    """An entry as the REST clients of Iceberg's own libraries are told it, in Java and in Python alike."""
    told: dict[str, str] = {}
    if entry is not None:
        told["uri"] = entry.uri
        if entry.credential:
            told |= {"credential": entry.credential, "scope": entry.scope, "oauth2-server-uri": entry.token_uri}
        if entry.token:
            told |= {"token": entry.token, "oauth2-server-uri": entry.token_uri}
        if entry.signed:
            told |= {"rest.sigv4-enabled": "true", "rest.signing-region": REGION, "rest.signing-name": SERVICE}
            told |= dict(zip(("rest.access-key-id", "rest.secret-access-key"), entry.aws, strict=True))
    return {f"{prefix}{key}": value for key, value in told.items()}


def split(settings: Mapping[str, T]) -> tuple[dict[str, T], dict[str, T]]:
    """Variables of the process's environment, by their own names, and the other settings."""
    variables = {key.removeprefix(ENVIRONMENT): v for key, v in settings.items() if key.startswith(ENVIRONMENT)}
    return variables, {key: value for key, value in settings.items() if not key.startswith(ENVIRONMENT)}


def renamed(text: str, catalog: str) -> str:
    """A statement or a setting's name in which the catalog `lab` is called otherwise."""
    return _LAB.sub(catalog, text)


def adapter(kind: str) -> Adapter:
    return cast(Adapter, importlib.import_module(f"lab.engines.{kind}"))


def read_generation(file: Path) -> Generation:
    """A declared generation, named like its file. Raises LabError that says what is wrong with the declaration."""
    try:
        declared = tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{file.name}: correct its TOML: {error}") from None
    if missing := sorted(_REQUIRED - declared.keys()):
        raise LabError(f"{file.name}: add {', '.join(missing)}")
    if unknown := sorted(declared.keys() - _REQUIRED - _OPTIONAL):
        raise LabError(f"{file.name}: nothing reads {', '.join(unknown)}; remove it")
    if declared["kind"] not in KINDS:
        raise LabError(f"{file.name}: kind {declared['kind']!r} is none of {', '.join(KINDS)}")
    settings, why = declared.get("settings", {}), declared.get("why", {})
    if unexplained := sorted(settings.keys() ^ why.keys()):
        raise LabError(f"{file.name}: give a setting and its why, both, for {', '.join(unexplained)}")
    return Generation(
        name=file.stem,
        kind=declared["kind"],
        versions=declared["versions"],
        artefacts=tuple(declared["artefacts"]),
        java=declared.get("java"),
        settings=settings,
        why=why,
    )


def _natural(file: Path) -> list[str | int]:
    """Release 1.4 before 1.10. The odd parts of a name are its numbers."""
    return [int(part) if odd else part for part, odd in zip(re.split(r"(\d+)", file.stem), cycle((0, 1)), strict=False)]


GENERATIONS: dict[str, Generation] = {
    generation.name: generation
    for generation in map(read_generation, sorted(Path(__file__).with_name("generations").glob("*.toml"), key=_natural))
}
LIBRARY = GENERATIONS["iceberg-java-1.11.0"]  # what writes where no engine can: of the catalog's own release
