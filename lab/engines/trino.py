"""Trino of any version: its server in a JVM of the lab's, spoken to by Trino's own client.

Settings are of two sorts. Those of the catalog (`iceberg.…`, `fs.…`, `s3.…`) belong to a catalog, not to a session:
one that varies them gets a catalog of its own beside `lab`, and what it says of `lab` is said of that one. By a door
each session has one, which goes with it. Any other setting is a session property (`lab.compression_codec`,
`join_distribution_type`).
"""

from __future__ import annotations

import hashlib
import logging
import uuid
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests
from trino.auth import Authentication
from trino.client import ClientSession, TrinoQuery, TrinoRequest
from trino.exceptions import Error, HttpError, TrinoQueryError

from lab.catalogs.signing import SERVICE
from lab.engines import WORKERS, environment, jvm, renamed, split, trino_rows
from lab.errors import LabError
from lab.model import Answer, Cause, Column, Failure, Generation, Rows, Statement
from lab.runtime.jvm import py4j_jar

if TYPE_CHECKING:
    from lab.catalogs import CatalogEndpoint
    from lab.catalogs.signing import Entry
    from lab.engines import Cluster
    from lab.provision import Cache
    from lab.runtime.host import Host
    from lab.runtime.process import Process

logging.getLogger("trino").setLevel(logging.WARNING)  # it tells of each attempt to connect

LOOPBACK = "127.0.0.1"
SETTINGS = {
    "iceberg.catalog.type": "rest",
    "iceberg.rest-catalog.vended-credentials-enabled": "true",
    "iceberg.rest-catalog.case-insensitive-name-matching": "true",  # Trino folds names; the lab's are in upper case
    "iceberg.security": "ALLOW_ALL",
    "s3.path-style-access": "true",
}
CATALOG = "lab"
_SERVER_JARS, _PLUGIN_JARS = "lib/*", "*.jar"  # where an archive has them
_OF_THE_CATALOG = ("iceberg.", "fs.", "s3.")
_SERVER = {
    "node.environment": "lab",
    "node.internal-address": LOOPBACK,
    "catalog.management": "dynamic",  # a worker's come with the work
    "http-server.log.enabled": "false",
}
_COORDINATOR = {
    # Made by a statement, a catalog has its workers at once; one of a file waits for a poll every five seconds.
    "catalog.store": "memory",
    "coordinator": "true",
    "node-scheduler.include-coordinator": "true",
    "web-ui.enabled": "false",
}
_OF_A_CLUSTER = {
    "node-scheduler.include-coordinator": "false",
    "query-manager.required-workers": str(WORKERS),  # a query waits for them, else the first to come has all its work
}
_SECRET = "LAB_CLUSTER_SECRET"  # noqa: S105 - the variable that the servers of a cluster read it from
JVM_OPTIONS = (
    "-Xmx1500m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # a run is over before the second compiler pays
    "--add-modules=jdk.incubator.vector",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Djol.skipDynamicAttach=true",  # measuring objects exactly costs two seconds at the start
    "-Djol.skipHotspotSAAttach=true",
)
_TRAINING = (
    "CREATE SCHEMA lab.{namespace}",
    "CREATE TABLE lab.{namespace}.t (id integer, v varchar, d decimal(10,2), at timestamp(6))",
    "INSERT INTO lab.{namespace}.t VALUES (1, 'a', 1.50, timestamp '2026-07-01 09:00:00'), (2, 'b', 2, null)",
    "SELECT * FROM lab.{namespace}.t ORDER BY id",
    "UPDATE lab.{namespace}.t SET v = 'c' WHERE id = 2",
    "DELETE FROM lab.{namespace}.t WHERE id = 1",
    "SELECT v, count(*) FROM lab.{namespace}.t GROUP BY v",
    "SHOW SCHEMAS IN lab",
    "SELECT nothing FROM lab.{namespace}.nowhere",  # failing loads classes as well
    "DROP TABLE lab.{namespace}.t",
    "DROP SCHEMA lab.{namespace}",
)


def launch(
    host: Host, generation: Generation, catalog: CatalogEndpoint, cluster: Cluster | None = None
) -> tuple[Process, dict[str, Any]]:
    """Starts the server and runs a first query. Raises LabError with the reason."""
    port = 0

    def prepare(gateway: Any) -> Session:
        nonlocal port
        port = host.published or host.port()
        own = {**_COORDINATOR, "node.bind-ip": host.bind, "discovery.uri": f"http://{LOOPBACK}:{port}"}
        _serve(gateway, host, generation, port, own | _membership(cluster, _OF_A_CLUSTER))
        session = Session(Server(port), {}, {})
        for statement in (create_catalog(CATALOG, settings(generation), catalog), "SHOW SCHEMAS IN lab"):
            if isinstance(answer := session.execute(statement), Failure):
                raise LabError(f"{generation.name} has no catalog: {answer.causes[-1].message}")
        return session

    def train(gateway: Any) -> None:
        session = prepare(gateway)
        namespace = f"training_{uuid.uuid4().hex[:8]}"
        for statement in _TRAINING:
            session.execute(statement.format(namespace=namespace))

    process, _ = jvm.start(
        host, generation, _classpath(host, generation), JVM_OPTIONS, prepare, train, catalog, _variables(cluster)
    )
    return process, {"port": port}


def worker(host: Host, generation: Generation, catalog: CatalogEndpoint, cluster: Cluster) -> Process:
    """Starts a server that works for the cluster's coordinator; it may be there later. Raises LabError."""

    def prepare(gateway: Any) -> None:
        own = {"coordinator": "false", "node.bind-ip": LOOPBACK, "discovery.uri": cluster.head}
        _serve(gateway, host, generation, host.published or host.port(), own | _membership(cluster))

    return jvm.start(
        host, generation, _classpath(host, generation), JVM_OPTIONS, prepare, prepare, catalog, _variables(cluster)
    )[0]


def files(cache: Cache, generation: Generation) -> list[Path]:
    """All that `launch` takes from the cache beside Java."""
    server, plugin = generation.artefacts
    return [*_jars(cache, server, _SERVER_JARS), *_jars(cache, plugin, _PLUGIN_JARS)]


def _jars(cache: Cache, artefact: str, pattern: str) -> list[Path]:
    """A server's or a plugin's jars: a locked list of Maven's, or those of a published archive that match."""
    if artefact.startswith("maven-closure:"):
        return cache.closure(artefact)
    return sorted(cache.tree(artefact, pattern).glob(pattern))


def create_catalog(name: str, settings: Mapping[str, str], catalog: CatalogEndpoint) -> str:
    """What makes Trino know this catalog."""
    properties = {
        "iceberg.rest-catalog.uri": catalog.uri,
        **settings,
        "iceberg.rest-catalog.warehouse": catalog.warehouse,
        "s3.endpoint": catalog.s3_endpoint,
        "s3.region": catalog.region,
    }
    pairs = ", ".join(f"\"{key}\" = '{value}'" for key, value in properties.items())
    return f"CREATE CATALOG IF NOT EXISTS {name} USING iceberg WITH ({pairs})"


def _classpath(host: Host, generation: Generation) -> list[Path]:
    return [*_jars(host.cache, generation.artefacts[0], _SERVER_JARS), py4j_jar()]


def _variables(cluster: Cluster | None) -> dict[str, str]:
    return {_SECRET: cluster.secret} if cluster else {}


def _membership(cluster: Cluster | None, settings: Mapping[str, str] = {}) -> dict[str, str]:
    """What the servers of a cluster are told, no secret among it, and these settings; nothing without a cluster."""
    return {"internal-communication.shared-secret": f"${{ENV:{_SECRET}}}", **settings} if cluster else {}


def _serve(gateway: Any, host: Host, generation: Generation, port: int, role: Mapping[str, str]) -> None:
    """Starts the server in a JVM and waits until it serves."""
    config = _configure(host, generation, port, role)
    gateway.jvm.System.setProperty("config", str(config))
    gateway.jvm.io.trino.server.Server().start(generation.versions["trino"])


def _configure(host: Host, generation: Generation, port: int, role: Mapping[str, str]) -> Path:
    """Writes what the server reads into a folder of the run's; returns its main file."""
    plugin = _jars(host.cache, generation.artefacts[1], _PLUGIN_JARS)
    folder = host.data(generation.name)
    iceberg = folder / "plugin" / "iceberg"
    iceberg.mkdir(parents=True, exist_ok=True)
    for jar in plugin:
        (iceberg / jar.name).unlink(missing_ok=True)
        (iceberg / jar.name).symlink_to(jar)
    # From Maven the plugin's jars come without the file that names its class.
    with zipfile.ZipFile(iceberg / "services.jar", "w") as services:
        services.writestr("META-INF/services/io.trino.spi.Plugin", "io.trino.plugin.iceberg.IcebergPlugin\n")
    _write(folder / "log.properties", {"": "WARN"})
    return _write(
        folder / "config.properties",
        {
            **_SERVER,
            **role,
            "node.id": f"{generation.name}-{port}",
            "http-server.http.port": str(port),
            "plugin.dir": str(folder / "plugin"),
            "log.levels-file": str(folder / "log.properties"),
        },
    )


def _write(file: Path, properties: Mapping[str, str]) -> Path:
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return file


def settings(generation: Generation) -> dict[str, str]:
    """What the catalog of this generation has set by itself."""
    return {**SETTINGS, **generation.settings}


def _entered(entry: Entry) -> dict[str, str]:
    """The catalog's settings by which Trino comes in so."""
    rest = "iceberg.rest-catalog."
    told = {f"{rest}uri": entry.uri}
    if entry.credential:
        told |= {f"{rest}oauth2.credential": entry.credential, f"{rest}oauth2.scope": entry.scope}
    if entry.token:
        told[f"{rest}oauth2.token"] = entry.token
    if entry.credential or entry.token:
        told |= {f"{rest}security": "OAUTH2", f"{rest}oauth2.server-uri": entry.token_uri}
    if entry.signed:
        told |= {f"{rest}security": "SIGV4", f"{rest}signing-name": SERVICE}
        told |= dict(zip(("s3.aws-access-key", "s3.aws-secret-key"), entry.aws, strict=True))
    return told


class Engine:
    """A client of a launched server. Its sessions may be used from any thread."""

    def __init__(
        self, host: Host, generation: Generation, catalog: CatalogEndpoint, endpoint: Mapping[str, Any]
    ) -> None:
        self._generation, self._catalog = generation, catalog
        self._server = Server(int(endpoint["port"]))

    def session(self, settings: Mapping[str, str | None] = {}, entry: Entry | None = None) -> Session:
        """A fresh session. Raises LabError with Trino's words for a catalog that can't be made with its settings."""
        own, settings = self.settings(), {**settings, **(_entered(entry) if entry else {})}
        changes = {key: value for key, value in settings.items() if own.get(key) != value}
        if fixed := split(changes)[0]:
            raise LabError(f"{', '.join(fixed)} is in the environment of a whole Trino, not of a session")
        effective = {key: value for key, value in {**own, **changes}.items() if value is not None}
        properties = {k: v for k, v in effective.items() if k in changes and not k.startswith(_OF_THE_CATALOG)}
        name, unmade = CATALOG, None
        if any(key.startswith(_OF_THE_CATALOG) for key in changes):
            name, unmade = self._another({k: v for k, v in effective.items() if k.startswith(_OF_THE_CATALOG)})
        if unmade is not None and entry is None:
            told = unmade.causes[0].message
            raise LabError(f"{self._generation.name} makes no catalog with these settings: {told}")
        effective = entry.told(effective) if entry else effective
        return Session(self._server, properties, effective, name, unmade, own=entry is not None)

    def _another(self, settings: Mapping[str, str]) -> tuple[str, Failure | None]:
        """The name of a catalog with these settings, which stays for whoever wants the same, and why it is not made."""
        name = f"{CATALOG}_{hashlib.sha256(repr(sorted(settings.items())).encode()).hexdigest()[:8]}"
        answer = Session(self._server, {}, {}).execute(create_catalog(name, settings, self._catalog))
        return name, answer if isinstance(answer, Failure) else None

    def versions(self) -> dict[str, str]:
        """Version of Trino, as it tells itself; that of Iceberg inside it, as declared: Trino can't be asked."""
        answer = Session(self._server, {}, {}).execute("SELECT version()")
        if isinstance(answer, Failure):
            raise LabError(f"{self._generation.name} does not answer: {answer.causes[0].message}; start it again")
        return {**self._generation.versions, "trino": answer.rows[0][0]}

    def settings(self) -> dict[str, str]:
        return {**environment(self._catalog), **settings(self._generation)}

    def close(self) -> None:
        """Nothing to close: each statement is a request of its own."""


@dataclass(frozen=True)
class Server:
    """Where a Trino answers, and as whom it is asked."""

    port: int
    host: str = LOOPBACK
    scheme: str = "http"
    user: str = "lab"
    auth: Authentication | None = None


class Session:
    """One client session: its properties, in the zone UTC."""

    def __init__(
        self,
        server: Server,
        properties: Mapping[str, str],
        settings: dict[str, str],
        catalog: str = CATALOG,
        unmade: Failure | None = None,
        *,
        own: bool = False,
    ) -> None:
        """catalog: what Trino calls the catalog that is `lab` in statements and session properties.

        unmade: why that catalog could not be made, which then is the answer of each statement: Trino signs on when a
        catalog is made.  own: the catalog is nobody else's, and ends with this session.
        """
        self.settings = settings
        self._unmade = unmade
        self._catalog = catalog
        self._own = own and unmade is None
        self._request = TrinoRequest(
            host=server.host,
            port=server.port,
            http_scheme=server.scheme,
            auth=server.auth,
            client_session=ClientSession(
                user=server.user,
                catalog=catalog,
                source="iceberg-lab",
                timezone="UTC",
                properties={renamed(key, catalog): value for key, value in properties.items()},
            ),
        )

    def execute(self, statement: Statement) -> Answer:
        """Rows, or the failure: first Trino's error name and message, then the Java cause chain it came of."""
        if not isinstance(statement, str):
            raise LabError(f"Trino understands SQL, not the call {statement.op}; give the step its SQL")
        if self._unmade is not None:
            return self._unmade
        query = TrinoQuery(self._request, renamed(statement, self._catalog), legacy_primitive_types=True)
        try:
            data = list(query.execute())
        except TrinoQueryError as error:
            return Failure(causes(error))
        except (Error, HttpError, requests.RequestException) as error:
            kind = type(error)
            return Failure((Cause(f"{kind.__module__}.{kind.__qualname__}", str(error)),), crash=True)
        described = query.columns or []
        columns = tuple(Column(column["name"], column["type"]) for column in described)
        return Rows(columns, trino_rows.rows(data, [column["typeSignature"] for column in described]))

    def close(self) -> None:
        """Drops a catalog of its own, with the tokens and clients it holds; else there is nothing to close: a session
        is what each request says of itself."""
        if self._own:
            self._own = False
            self.execute(f"DROP CATALOG {self._catalog}")


def causes(error: TrinoQueryError) -> tuple[Cause, ...]:
    """`ICEBERG_BAD_DATA` with the message a user sees, then each Java exception with its class and message."""
    chain = [Cause(error.error_name or "", error.message)]
    link = error.failure_info
    while link is not None:
        chain.append(Cause(link["type"], link.get("message") or ""))
        link = link.get("cause")
    return tuple(chain)
