"""Engines of the user's own: the lab starts nothing there, and says of each in one line what is amiss with it.

A file like this, anywhere, named like a generation with a name of the user's behind a sign,
`spark-4.1.1+iceberg-1.11.0@cluster.toml`. What the lab declares of `spark-4.1*` holds for it too:

    kind = "spark"                            # or "trino"
    remote = "sc://spark.example:15002"       # Spark Connect; of Trino http://host:8080 or https://host:8443
    catalog = "lab"                           # the engine's own name of the catalog that leads to the lab's
    user = "me"                               # optional
    token_variable = "SPARK_TOKEN"            # optional: the variable of the environment that holds the token;
                                              # Trino takes a password_variable too
    [versions]                                # as far as known; the engine is asked, and must say the same
    spark = "4.1.1"
    [settings]                                # optional: of each session
    "spark.sql.shuffle.partitions" = "8"
"""

from __future__ import annotations

import os
import re
import secrets
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from trino.auth import Authentication, BasicAuthentication, JWTAuthentication

from lab.engines import ENVIRONMENT, GENERATIONS, renamed, spark, spark_connect, trino
from lab.engines import Session as EngineSession
from lab.errors import LabError, UsageError
from lab.model import OWN, Answer, Cause, Failure, Generation, Remote, Rows, Statement, declared_name
from lab.provision import NotProvided
from lab.tables.rest import RestCatalog, RestError

if TYPE_CHECKING:
    from lab.catalogs import CatalogEndpoint
    from lab.catalogs.signing import Entry
    from lab.runtime.host import Host

FOLDER = "ICEBERG_LAB_REMOTES"  # the variable that names a folder of such files
MASK = "«redacted»"
_NAME = re.compile(rf"[\w.+-]+{OWN}[\w.-]+")
_SCHEMES = {"spark": ("sc",), "trino": ("http", "https")}
_BEHIND = {"spark": r"/?(?:;use_ssl=(?:true|false))?", "trino": "/?"}  # host and port
_PORTS = {"sc": 15002, "http": 8080, "https": 443}
_SECRETS = {"spark": ("token",), "trino": ("token", "password")}
_KEYS = {"kind", "remote", "catalog", "user", "token_variable", "password_variable", "versions", "settings"}
_REFUSED = re.compile(r"UNAUTHENTICATED|PERMISSION_DENIED|[Ii]nvalid (?:token|credentials)|\berror 40[13]\b|\b401\b")
_CATALOG_SETTINGS = ("iceberg.", "fs.", "s3.")
_CONNECT_SETTINGS = {"spark.sql.session.timeZone": "UTC"}


# ---------------------------------------------------------------- declarations
def declared(files: Iterable[Path]) -> tuple[Generation, ...]:
    """The user's engines: of these files, and of the folder that $ICEBERG_LAB_REMOTES names. Raises UsageError."""
    found: dict[str, Generation] = {}
    folder = os.environ.get(FOLDER)
    if folder and not Path(folder).is_dir():
        raise UsageError(f"{FOLDER} names {folder}, which is no folder; correct or unset it")
    for file in [*(sorted(Path(folder).glob("*.toml")) if folder else ()), *files]:
        generation = read(file)
        if found.setdefault(generation.name, generation) != generation:
            raise UsageError(f"two files declare {generation.name}; rename one behind its {OWN}")
    return tuple(found.values())


def read(file: Path) -> Generation:
    """One declared engine of the user's. Raises UsageError that says what to correct."""
    try:
        said = tomllib.loads(file.read_text())
    except OSError as error:
        raise UsageError(f"--remote {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file.name}: correct its TOML: {error}") from None
    name, kind, url = file.stem, said.get("kind"), said.get("remote")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{file.name}: call it ENGINE-VERSION{OWN}NAME.toml, e.g. trino-483{OWN}mine.toml")
    if not isinstance(kind, str) or kind not in _SCHEMES:
        raise UsageError(f"{file.name}: kind {kind!r} is none of {', '.join(_SCHEMES)}")
    for secret in ("token", "password"):
        if secret in said:
            raise UsageError(
                f"{file.name}: take the {secret} out of the file; put it into a variable of the environment and name "
                f'that: {secret}_variable = "NAME"'
            )
    if unknown := sorted(said.keys() - _KEYS):
        raise UsageError(f"{file.name}: nothing reads {', '.join(unknown)}; remove it")
    wrong = [key for key in sorted(_KEYS - {"versions", "settings"}) if not isinstance(said.get(key, ""), str)]
    wrong += [key for key in ("versions", "settings") if not _texts(said.get(key, {}))]
    if wrong:
        raise UsageError(f"{file.name}: {', '.join(wrong)} must be text in quotation marks")
    if kind == "spark" and "password_variable" in said:
        raise UsageError(f"{file.name}: Spark Connect knows no password; name a token_variable")
    remote = Remote(
        _address(file.name, kind, url or ""),
        said.get("catalog", trino.CATALOG),
        said.get("user", "lab"),
        said.get("token_variable"),
        said.get("password_variable"),
    )
    if not re.fullmatch(r"\w+", remote.catalog):
        raise UsageError(f"{file.name}: catalog {remote.catalog!r} is no plain word; give it one in the engine")
    if kind == "spark" and remote.token_variable and urlsplit(remote.url).hostname in ("127.0.0.1", "::1"):
        raise UsageError(f"{file.name}: take localhost for remote; with a token the client speaks TLS elsewhere")
    if remote.url.startswith("http:") and (remote.token_variable or remote.password_variable):
        raise UsageError(f"{file.name}: Trino takes a secret over https:// only; correct remote")
    versions = said.get("versions", {})
    artefacts = (_client(file.name, versions.get("spark")), "env:spark-connect-client") if kind == "spark" else ()
    return Generation(name, kind, versions, artefacts, settings=said.get("settings", {}), remote=remote)


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _address(file: str, kind: str, url: str) -> str:
    example = {"spark": "sc://host:15002", "trino": "https://host:8443"}[kind]
    try:
        parts = urlsplit(url)
        sound = parts.scheme in _SCHEMES[kind] and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(f"{file}: remote is where it answers, e.g. {example}")
    if parts.username or parts.password:
        raise UsageError(f"{file}: take the secret out of remote; name the variable that holds it: token_variable")
    if not re.fullmatch(_BEHIND[kind], url.partition("//")[2][len(parts.netloc) :]):
        raise UsageError(
            f"{file}: take what follows the port out of remote (;use_ssl=true of Spark may stay); name the variable "
            "that holds the secret: token_variable"
        )
    return url


def _client(file: str, version: str | None) -> str:
    """The locked client of Spark Connect for a server: of its version, else the newest before; an older one will do.

    Without a version the oldest, which every server here understands.
    """
    artefacts = (artefact for generation in GENERATIONS.values() for artefact in generation.artefacts)
    clients = sorted({a for a in artefacts if a.startswith(spark_connect.CLIENT)}, key=_numbers)
    fitting = [a for a in clients if version is None or _numbers(a) <= _numbers(version)]
    if not fitting:
        known = ", ".join(a.removeprefix(spark_connect.CLIENT) for a in clients)
        raise UsageError(f"{file}: no client of Spark Connect is locked for Spark {version}; there are {known}")
    return fitting[-1] if version else fitting[0]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.rpartition("==")[2])][:3]


def secret(generation: Generation) -> str:
    """The token or password; empty where none is declared. Raises LabError when its variable is not set."""
    remote = generation.remote
    variable = remote and (remote.token_variable or remote.password_variable)
    if not variable:
        return ""
    if not (value := os.environ.get(variable)):
        raise LabError(f"{generation.name}: its file names ${variable}, which is not set; put the secret there")
    return value


def known_secret(generation: Generation) -> str:
    """As `secret`, and empty too where it is not to be had: for who hides it, and uses it not."""
    try:
        return secret(generation)
    except LabError:
        return ""


# ---------------------------------------------------------------- what a run talks to
class Session:
    """A session on the user's engine: says `lab` as that calls it, and tells no secret."""

    def __init__(self, within: EngineSession, settings: dict[str, str], catalog: str, hidden: str) -> None:
        self.settings = settings
        self._within, self._catalog, self._hidden = within, catalog, hidden

    def execute(self, statement: Statement) -> Answer:
        if isinstance(statement, str):
            statement = renamed(statement, self._catalog)
        answer = self._within.execute(statement)
        if isinstance(answer, Rows) or not self._hidden:
            return answer
        return Failure(tuple(Cause(c.cls, self._masked(c.message)) for c in answer.causes), answer.crash)

    def close(self) -> None:
        self._within.close()

    def _masked(self, text: str) -> str:
        return text.replace(self._hidden, MASK).replace(quote(self._hidden, safe=""), MASK)


class _Engine(ABC):
    """A client of the user's engine, sure that it answers and that its catalog is the lab's."""

    def __init__(self, host: Host, generation: Generation, catalog: CatalogEndpoint) -> None:
        """Raises LabError with the one thing to mend."""
        assert generation.remote is not None
        self._generation, self._remote, self._catalog = generation, generation.remote, catalog
        self._secret = secret(generation)
        try:
            self._connect(host)
            with closing(self.session()) as session:
                self._versions = {**generation.versions, **self._ask_versions(session)}
                self._check_versions()
                self._check_catalog(session)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _connect(self, host: Host) -> None:
        """Prepares for sessions; says nothing to the engine yet."""

    def session(self, settings: Mapping[str, str | None] = {}, entry: Entry | None = None) -> Session:
        """A fresh session. Raises NotProvided for what only the engine's owner can change."""
        if entry is not None:
            raise NotProvided(
                "how an engine that the lab did not start signs on to the catalog is its owner's to change"
            )
        return self._session(settings)

    @abstractmethod
    def _session(self, settings: Mapping[str, str | None]) -> Session:
        """With these settings."""

    @abstractmethod
    def _ask_versions(self, session: Session) -> dict[str, str]: ...

    @abstractmethod
    def _known(self, session: Session) -> bool:
        """Whether the engine has a catalog of the declared name."""

    @abstractmethod
    def _cure(self) -> str:
        """What gives the engine a catalog that leads to the lab's."""

    def versions(self) -> dict[str, str]:
        return self._versions

    def settings(self) -> dict[str, str]:
        return dict(self._generation.settings)

    @abstractmethod
    def close(self) -> None:
        """Closes this client; the engine goes on."""

    def _asked(self, session: Session, statement: str) -> Rows:
        """Raises LabError where the engine answers nothing or takes nothing from us."""
        answer = session.execute(statement)
        if isinstance(answer, Rows):
            return answer
        words, name = " ← ".join(c.message for c in answer.causes), self._generation.name
        if _REFUSED.search(words):
            variable = self._remote.token_variable or self._remote.password_variable
            told = f"is what ${variable} holds right" if variable else "name a token_variable in its file"
            raise LabError(f"{name} refuses {self._remote.user!r} at {self._remote.url}: {told}?")
        words = " ".join(words.split())[:300]
        if self._generation.kind == "spark" and self._remote.token_variable:
            words += "; with a token the client speaks TLS to every host but localhost"
        raise LabError(f"{name} does not answer at {self._remote.url}; is it up, and remote right? ({words})")

    def _check_versions(self) -> None:
        for what, version in self._generation.versions.items():
            told = self._versions[what]
            if not told.startswith(version):
                name = self._generation.name
                raise LabError(f"{name} says that its {what} is {told}; its file declares {version}: correct that")

    def _check_catalog(self, session: Session) -> None:
        """Makes a namespace in the lab's catalog for a moment: who does not see it looks at another one."""
        name, own = self._generation.name, self._remote.catalog
        if not self._known(session):
            raise LabError(f"{name} has no catalog {own!r}; correct that in its file, or make it there: {self._cure()}")
        probe = f"probe_{secrets.token_hex(4)}"
        rest = RestCatalog(self._catalog.uri, self._catalog.warehouse)
        rest.create_namespace(probe)
        try:
            answer = session.execute("SHOW SCHEMAS IN lab")
        finally:
            with suppress(RestError):
                rest.drop_namespace(probe)
        if isinstance(answer, Failure):
            words = " ".join(answer.causes[-1].message.split())[:300]
            raise LabError(f"{name} can't reach the lab's catalog by its {own!r} ({words}); it wants: {self._cure()}")
        if probe not in {str(row[0]).lower() for row in answer.rows}:
            raise LabError(f"{name}: its catalog {own!r} leads elsewhere than to the lab's; it wants: {self._cure()}")

    def _alike(self) -> Mapping[str, str]:
        """Settings of the lab's own generation of that name."""
        known = GENERATIONS.get(declared_name(self._generation.name))
        return known.settings if known else {}

    def _refuse(self, settings: Iterable[str]) -> None:
        if kept := sorted(settings):
            raise NotProvided(f"{', '.join(kept)} is the owner's to change on an engine that the lab did not start")


class _Trino(_Engine):
    def _connect(self, host: Host) -> None:
        parts = urlsplit(self._remote.url)
        auth: Authentication | None = None
        if self._secret:
            by_token = self._remote.token_variable is not None
            auth = JWTAuthentication(self._secret) if by_token else BasicAuthentication(self._remote.user, self._secret)
        port = parts.port or _PORTS[parts.scheme]
        self._server = trino.Server(port, parts.hostname or "", parts.scheme, self._remote.user, auth)

    def _session(self, settings: Mapping[str, str | None]) -> Session:
        own = self._generation.settings
        taken = {key for key, value in settings.items() if value is None and key not in own}
        self._refuse(taken | {k for k in settings if k.startswith((*_CATALOG_SETTINGS, ENVIRONMENT))})
        effective = {key: value for key, value in {**own, **settings}.items() if value is not None}
        within = trino.Session(self._server, effective, effective, self._remote.catalog)
        return Session(within, effective, self._remote.catalog, self._secret)

    def close(self) -> None:
        """Nothing to close: each statement is a request of its own."""

    def _ask_versions(self, session: Session) -> dict[str, str]:
        return {"trino": str(self._asked(session, "SELECT version()").rows[0][0])}

    def _known(self, session: Session) -> bool:
        return (self._remote.catalog.lower(),) in self._asked(session, "SHOW CATALOGS").rows

    def _cure(self) -> str:
        return trino.create_catalog(self._remote.catalog, {**trino.SETTINGS, **self._alike()}, self._catalog)


class _Spark(_Engine):
    def _connect(self, host: Host) -> None:
        self._client = spark_connect.Client(host, self._generation, self._catalog, {})

    def _session(self, settings: Mapping[str, str | None]) -> Session:
        wanted = {key: value for key, value in settings.items() if key != spark_connect.REMOTE}  # it is so anyway
        own = {**_CONNECT_SETTINGS, **self._generation.settings}
        taken = {key for key, value in wanted.items() if value is None and key not in own}
        self._refuse(taken | {key for key in wanted if key.startswith(ENVIRONMENT)})
        effective = {key: value for key, value in {**own, **wanted}.items() if value is not None}
        made = {self._setting(key): value for key, value in effective.items()}
        return Session(self._client.over(self._address(), made), effective, self._remote.catalog, self._secret)

    def close(self) -> None:
        self._client.close()

    def _address(self) -> str:
        url = self._remote.url
        if not self._secret:
            return url
        return f"{url if '/;' in url else url.rstrip('/') + '/'};token={quote(self._secret, safe='')}"

    def _setting(self, key: str) -> str:
        """The lab's catalog as a part of a setting's name, as this engine calls it."""
        if key == spark.CATALOG or key.startswith(f"{spark.CATALOG}."):
            return f"spark.sql.catalog.{self._remote.catalog}{key.removeprefix(spark.CATALOG)}"
        return key

    def _ask_versions(self, session: Session) -> dict[str, str]:
        told = {"spark": str(self._asked(session, "SELECT version()").rows[0][0]).partition(" ")[0]}
        iceberg = session.execute("SELECT lab.system.iceberg_version()")  # since Iceberg 1.3
        if isinstance(iceberg, Rows):
            told["iceberg"] = str(iceberg.rows[0][0])
        return told

    def _known(self, session: Session) -> bool:
        ((_, value),) = self._asked(session, f"SET spark.sql.catalog.{self._remote.catalog}").rows
        return bool(value != "<undefined>")

    def _cure(self) -> str:
        where = {"uri": self._catalog.uri, "warehouse": self._catalog.warehouse, "s3.path-style-access": "true"}
        every = {k: v for k, v in spark.SETTINGS.items() if k.startswith(spark.CATALOG)}
        every |= {f"{spark.CATALOG}.{key}": value for key, value in where.items()}
        return " ".join(f"--conf {self._setting(key)}={value}" for key, value in every.items())


def connect(host: Host, generation: Generation, catalog: CatalogEndpoint) -> _Engine:
    """A client of the user's engine. Raises LabError with the one thing to mend."""
    return {"spark": _Spark, "trino": _Trino}[generation.kind](host, generation, catalog)
