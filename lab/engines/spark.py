"""Spark of any generation: its own JVM, driven from here through py4j; no Python of Spark's is needed.

Every setting is a Spark configuration key. One that Spark calls static (`spark.sql.extensions`) can vary between
sessions too: such a session grows from a root of its own, beside the default one, in the same JVM. Over Spark
Connect (`spark.remote`, see `spark_connect.py`) a session has what a remote client has, and static settings stay.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from lab.engines import environment, jvm, rest_properties, spark_cluster, spark_connect, spark_rows, split
from lab.errors import LabError
from lab.model import Answer, Column, Generation, Rows, Statement
from lab.runtime.jvm import JavaEndpoint, connect

if TYPE_CHECKING:
    from lab.catalogs import CatalogEndpoint
    from lab.catalogs.signing import Entry
    from lab.engines import Cluster
    from lab.engines.worker import WorkerSession
    from lab.provision import Cache
    from lab.runtime.host import Host
    from lab.runtime.process import Process

CATALOG = "spark.sql.catalog.lab"
SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    CATALOG: "org.apache.iceberg.spark.SparkCatalog",
    f"{CATALOG}.type": "rest",
    f"{CATALOG}.header.X-Iceberg-Access-Delegation": "vended-credentials",
    f"{CATALOG}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    f"{CATALOG}.cache-enabled": "false",  # else another engine's commit stays unseen for 30 seconds
    "spark.master": "local[2]",  # the same tasks, hence files, on every machine
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",  # not 200: the tables are small, and a task costs milliseconds
    "spark.ui.enabled": "false",
}
# Spark's own list (org.apache.spark.launcher.JavaModuleOptions); 3.2 is older than it and content with it.
_OPENS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
        *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
        *("sun.security.action", "sun.util.calendar"),
    )
]
JVM_OPTIONS = (
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # a run is over before the second compiler pays
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Djdk.reflect.useDirectMethodHandle=false",
    *_OPENS,
)
_ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1"}  # never look the machine's name up
_TRAINING = (
    "CREATE NAMESPACE lab.{namespace}",
    "CREATE TABLE lab.{namespace}.t (id int, v string, d decimal(10,2), at timestamp) USING iceberg",
    "INSERT INTO lab.{namespace}.t VALUES (1, 'a', 1.50, timestamp'2026-07-01 09:00:00'), (2, 'b', 2, null)",
    "SELECT * FROM lab.{namespace}.t ORDER BY id",
    "UPDATE lab.{namespace}.t SET v = 'c' WHERE id = 2",
    "DELETE FROM lab.{namespace}.t WHERE id = 1",
    "SELECT v, count(*) FROM lab.{namespace}.t GROUP BY v",
    "SHOW NAMESPACES IN lab",
    "SELECT nothing FROM lab.{namespace}.nowhere",  # failing loads classes as well
    "DROP TABLE lab.{namespace}.t",
    "DROP NAMESPACE lab.{namespace}",
)


def launch(
    host: Host, generation: Generation, catalog: CatalogEndpoint, cluster: Cluster | None = None
) -> tuple[Process, dict[str, Any]]:
    """Starts the JVM, its default session in it and the catalog in that. Raises LabError with the reason."""
    conf = settings(generation) | _places(host, generation, catalog)
    variables = dict(_ENVIRONMENT)
    if cluster:
        conf |= spark_cluster.settings(cluster, _iceberg(host.cache, generation))
        variables |= spark_cluster.environment(cluster)

    def prepare(gateway: Any) -> Any:
        builder = gateway.jvm.org.apache.spark.sql.SparkSession.builder()
        for key, value in conf.items():
            builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext().setLogLevel("WARN")
        spark.sql("SHOW NAMESPACES IN lab")
        return spark

    def train(gateway: Any) -> None:
        session = Session(gateway, prepare(gateway), {})
        namespace = f"training_{uuid.uuid4().hex[:8]}"
        for statement in _TRAINING:
            session.execute(statement.format(namespace=namespace))

    process, endpoint = jvm.start(
        host, generation, files(host.cache, generation), JVM_OPTIONS, prepare, train, catalog, variables
    )
    return process, {"port": endpoint.port, "token": endpoint.token}


def files(cache: Cache, generation: Generation) -> list[Path]:
    """All that `launch` takes from the cache beside Java: its class path.

    Iceberg first, then Spark's jars: single files, as an archive of classes wants it.
    """
    (pyspark,) = (artefact for artefact in generation.artefacts if artefact.startswith("pypi:pyspark=="))
    jars = cache.tree(pyspark, "deps/jars/*") / "deps" / "jars"
    return [*_iceberg(cache, generation), *sorted(jars.glob("*.jar"))]


def settings(generation: Generation) -> dict[str, str]:
    """What a session of this generation has set by itself."""
    return {**SETTINGS, **generation.settings}


def _iceberg(cache: Cache, generation: Generation) -> list[Path]:
    return [cache.file(artefact) for artefact in generation.artefacts if artefact.startswith("maven:")]


def _places(host: Host, generation: Generation, catalog: CatalogEndpoint) -> dict[str, str]:
    """Addresses and folders: they differ from run to run and are no behaviour."""
    folder = host.data(generation.name)
    return {
        "spark.app.name": generation.name,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        f"{CATALOG}.uri": catalog.uri,
        f"{CATALOG}.warehouse": catalog.warehouse,
        f"{CATALOG}.s3.endpoint": catalog.s3_endpoint,
        f"{CATALOG}.s3.path-style-access": "true",
        f"{CATALOG}.client.region": catalog.region,
    }


class Engine:
    """A client of a launched JVM. Its sessions may be used from any thread."""

    def __init__(
        self, host: Host, generation: Generation, catalog: CatalogEndpoint, endpoint: Mapping[str, Any]
    ) -> None:
        """Raises LabError when the JVM no longer answers."""
        self._generation, self._catalog = generation, catalog
        self._remote = spark_connect.Client(host, generation, catalog, endpoint)
        self._gateway = connect(JavaEndpoint(endpoint["port"], endpoint["token"]))
        self._connect = endpoint.get("connect", {})  # else on loopback, where no matter
        self._lock = threading.Lock()
        try:
            default = self._gateway.jvm.org.apache.spark.sql.SparkSession.builder().getOrCreate()
        except Py4JError:
            log = host.log(generation.name)
            raise LabError(f"{generation.name} has ended; read {log}, then start it again") from None
        self._roots: dict[frozenset[tuple[str, str | None]], Any] = {frozenset(): default}

    def session(self, settings: Mapping[str, str | None] = {}, entry: Entry | None = None) -> Session | WorkerSession:
        """A fresh session. Raises LabError for a setting that can't vary between sessions."""
        own, settings = self.settings(), {**settings, **rest_properties(entry, f"{CATALOG}.")}
        effective = {key: value for key, value in {**own, **settings}.items() if value is not None}
        effective = entry.told(effective) if entry else effective
        changes = {key: value for key, value in settings.items() if own.get(key) != value}
        variables, changes = split(changes)
        if variables and spark_connect.REMOTE in changes:
            raise LabError(f"over Connect nothing of the server's environment can vary: {', '.join(variables)}")
        if remote := changes.pop(spark_connect.REMOTE, None):
            return self._connected(remote, changes, effective)
        if fixed := [key for key in changes if not key.startswith("spark.sql.")]:  # Spark takes and ignores them
            raise LabError(f"{', '.join(fixed)} holds for a whole Spark; declare it in a generation of its own")
        conf = self._gateway.jvm.org.apache.spark.sql.internal.SQLConf
        static = {key: value for key, value in changes.items() if conf.isStaticConfigKey(key)}
        spark = self._root(static).newSession()
        try:
            _assign(spark.conf(), {k: v for k, v in changes.items() if k not in static}, spark.conf().unset)
        except Py4JJavaError as error:
            raise LabError(f"Spark refuses a setting; correct it: {jvm.describe(error)}") from None
        return Session(self._gateway, spark, effective, jvm.variables(self._gateway, variables))

    def _connected(self, remote: str, changes: Mapping[str, str | None], effective: dict[str, str]) -> WorkerSession:
        if remote != spark_connect.LOCAL:
            raise LabError(f"{spark_connect.REMOTE} is {spark_connect.LOCAL} here, not {remote}: the lab's own server")
        with self._lock:
            address = spark_connect.serve(
                self._gateway, self._roots[frozenset()].sparkContext(), self._generation, **self._connect
            )
        session = self._remote.over(address, changes)
        session.settings = effective
        return session

    def versions(self) -> dict[str, str]:
        """Versions of Spark, Iceberg, Scala and Java."""
        java = self._gateway.jvm
        return {
            "spark": self._roots[frozenset()].version(),
            "iceberg": java.org.apache.iceberg.IcebergBuild.version(),
            "scala": java.scala.util.Properties.versionNumberString(),
            "java": java.System.getProperty("java.version"),
        }

    def settings(self) -> dict[str, str]:
        return {**environment(self._catalog), **settings(self._generation)}

    def close(self) -> None:
        """Closes this client; the JVM goes on."""
        self._remote.close()
        self._gateway.close()

    def _root(self, static: Mapping[str, str | None]) -> Any:
        """The session from which those with these static settings grow.

        Spark reads static settings from its context when a root is made; they stand there for that moment only.
        """
        key = frozenset(static.items())
        with self._lock:
            if key not in self._roots:
                default = self._roots[frozenset()]
                context = default.sparkContext()
                conf = context.conf()
                before = {name: conf.get(name, None) for name in static}
                try:
                    _assign(conf, static, conf.remove)
                    root = _constructor(self._gateway, default)(context)
                    root.sessionState()  # lazy: it reads the rest of them
                finally:
                    _assign(conf, before, conf.remove)
                self._roots[key] = root
            return self._roots[key]


def _assign(conf: Any, values: Mapping[str, str | None], remove: Callable[[str], object]) -> None:
    for key, value in values.items():
        if value is None:
            remove(key)
        else:
            conf.set(key, value)


def _constructor(gateway: Any, default: Any) -> Any:
    """The class of sessions: from 4.0 on `SparkSession` is abstract, and `classic` is the one with a context."""
    sql = gateway.jvm.org.apache.spark.sql
    return sql.classic.SparkSession if ".classic." in default.getClass().getName() else sql.SparkSession


class Session:
    """One Spark session: its own settings, temporary views and catalog client."""

    def __init__(
        self, gateway: Any, spark: Any, settings: dict[str, str], undo: Callable[[], object] = lambda: None
    ) -> None:
        self.settings = settings
        self._gateway = gateway
        self._spark = spark
        self._undo = undo

    def execute(self, statement: Statement) -> Answer:
        """Rows, or the Java cause chain. Raises LabError for what is no SQL or has no Python value."""
        if not isinstance(statement, str):
            raise LabError(f"Spark understands SQL, not the call {statement.op}; give the step its SQL")
        try:
            frame = self._spark.sql(statement)
            schema = frame.schema()
            columns = tuple(Column(field.name(), field.dataType().catalogString()) for field in schema.fields())
            if not columns:
                return Rows()
            description = json.loads(schema.json())
            batches = spark_rows.fetch(self._gateway.jvm, frame)
        except (Py4JError, OSError) as error:
            return jvm.failure(self._gateway, error)
        return Rows(columns, spark_rows.rows(batches, description, self._variant))

    def close(self) -> None:
        """Forgets the session; Spark collects it."""
        self._undo()
        self._gateway.detach(self._spark)

    def _variant(self, value: bytes, metadata: bytes) -> str:
        text: str = self._gateway.jvm.org.apache.spark.unsafe.types.VariantVal(value, metadata).toString()
        return text
