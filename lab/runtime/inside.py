"""What runs inside a container of the lab: one part of it, started by the same code that starts it on a laptop.

    python -m lab.runtime.inside store NAME             SeaweedFS or MinIO
    python -m lab.runtime.inside catalog                the reference catalog behind the lab's gateway
    python -m lab.runtime.inside gateway                the gateway alone, before a catalog elsewhere
    python -m lab.runtime.inside engine GENERATION      Spark, Trino or Iceberg's library
    python -m lab.runtime.inside spark-master GENERATION, spark-worker GENERATION, trino-worker GENERATION
                                                        members of a cluster, whose driver or coordinator is an engine
    python -m lab.runtime.inside network                nothing; whose network the others share
    python -m lab.runtime.inside health                 exit code 0 once the part in this container serves

Settings are environment variables, see `Settings`. Logs go to standard error. Standard output has a line of JSON
each for what the store or the gateway was asked (`lab/stores/access.py`, `lab/catalogs/proxy.py`), and {"ready": true}.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from lab.catalogs import CatalogEndpoint, Upstream, gateway, reference
from lab.engines import GENERATIONS, Cluster, adapter, spark, spark_cluster, spark_connect, trino
from lab.errors import LabError
from lab.model import Generation
from lab.provision import Cache
from lab.runtime import folder as folders
from lab.runtime.host import EVERYWHERE, Host
from lab.runtime.jvm import JavaEndpoint, connect
from lab.stores import StoreEndpoint, access, minio, named, s3

ARTEFACTS = Path("/opt/iceberg-lab")  # a cache of the lab's, filled when the image was built
_READY = "ready"
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Settings:
    """What a part is told, in LAB_… variables of these names in upper case. Keys and token are secrets."""

    port: int  # on which this part serves, 0 for any
    store_url: str = ""
    store_access_key: str = ""
    store_secret_key: str = ""
    store_users: str = "[]"  # JSON, users beside the administrator, see `lab.stores.minio.User`
    client_environment: str = "{}"  # JSON, see `lab.stores.StoreEndpoint`
    store_catalog: str = ""  # where the store is to serve its own catalog, see `lab.stores.StoreEndpoint`
    upstream: str = ""  # JSON, the `lab.catalogs.Upstream` of a gateway alone; a secret too
    sign_on_secret: str = ""  # what callers of the gateway's doors sign on by; without one nobody can
    catalog_uri: str = ""  # the gateway's
    warehouse: str = ""  # what engines name it by
    token: str = ""  # who shows it may drive Spark or the library, and use Spark Connect
    connect_port: int = 0  # where Spark Connect is to serve at once; 0 for not at all
    spark_master: str = ""  # spark://…, of the cluster whose master, worker or driver this is
    trino_coordinator: str = ""  # http://…, of the cluster whose worker or coordinator this is
    cluster_secret: str = ""  # by which its members know each other

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        said = {name: environment.get(f"LAB_{name.upper()}", "") for name in cls.__annotations__}
        port, connect_port = (int(said.pop(name) or 0) for name in ("port", "connect_port"))
        return cls(port=port, connect_port=connect_port, **{name: word for name, word in said.items() if word})

    @property
    def cluster(self) -> Cluster | None:
        head = self.spark_master or self.trino_coordinator
        return Cluster(head, self.cluster_secret) if head else None

    @property
    def store(self) -> StoreEndpoint:
        return StoreEndpoint(
            self.store_url,
            s3.REGION,
            s3.BUCKET,
            self.store_access_key,
            self.store_secret_key,
            access_record=str(folder() / "logs" / access.FILE),
            catalog=self.store_catalog,
            client_environment=json.loads(self.client_environment),
        )

    @property
    def catalog(self) -> CatalogEndpoint:
        store = self.store
        where = (self.catalog_uri, self.warehouse or reference.warehouse(store), store.url, store.region)
        return CatalogEndpoint(*where, store.client_environment)


def folder() -> Path:
    return Path.home() / "run"


def serve(part: str, name: str, host: Host, settings: Settings) -> None:
    """Starts a part and returns when it serves. Raises LabError."""
    match part:
        case "store":
            if users := json.loads(settings.store_users):
                minio.start(host, settings.store, [minio.User(**user) for user in users])
            else:
                named(name).start(host, settings.store)
        case "catalog":
            secret = settings.sign_on_secret or secrets.token_urlsafe(32)
            process, _ = gateway.launch(host)
            upstream = reference.start(host, settings.store, lambda: None)
            gateway.serve(host, process, settings.store, upstream, secret)
        case "gateway":
            secret = settings.sign_on_secret or secrets.token_urlsafe(32)
            process, _ = gateway.launch(host)
            gateway.serve(host, process, settings.store, Upstream(**json.loads(settings.upstream)), secret)
        case "engine":
            generation = GENERATIONS[name]
            launch, clustered = adapter(generation.kind).launch, (settings.cluster,) if settings.cluster else ()
            _, endpoint = launch(host, generation, settings.catalog, *clustered)
            if "token" in endpoint:
                _open(generation, JavaEndpoint(endpoint["port"], endpoint["token"]), settings)
        case "spark-master" | "spark-worker" | "trino-worker":
            _join(part, GENERATIONS[name], host, settings)
        case _:
            raise LabError(f"no part of the lab is called {part!r}; see: python -m lab.runtime.inside --help")


def _join(part: str, generation: Generation, host: Host, settings: Settings) -> None:
    """Starts a member of a cluster. Its port is that of Trino's worker, or of the page of Spark's daemon."""
    cluster = settings.cluster
    if cluster is None:
        raise LabError(f"{part} belongs to a cluster; name it: LAB_SPARK_MASTER or LAB_TRINO_COORDINATOR")
    if part == "trino-worker":
        trino.worker(host, generation, settings.catalog, cluster)
        return
    classpath = spark.files(host.cache, generation)
    if part == "spark-master":
        spark_cluster.master(host, generation, classpath, cluster, settings.port)
    else:
        spark_cluster.worker(host, generation, classpath, cluster, settings.port, settings.catalog)


def _open(generation: Generation, endpoint: JavaEndpoint, settings: Settings) -> None:
    """A second py4j server in this JVM for those outside; its own listens on loopback, with a token of its own."""
    with closing(connect(endpoint)) as driver:
        java = driver.jvm
        builder = java.py4j.GatewayServer.GatewayServerBuilder()
        builder = builder.javaAddress(java.java.net.InetAddress.getByName(EVERYWHERE)).javaPort(settings.port)
        builder.authToken(settings.token).build().start()
        if settings.connect_port:
            java.System.setProperty(spark_connect.TOKEN, settings.token)
            context = java.org.apache.spark.sql.SparkSession.builder().getOrCreate().sparkContext()
            spark_connect.serve(driver, context, generation, EVERYWHERE, settings.connect_port)


class _Follower(threading.Thread):
    """Copies what is written to files of the run's logs, as it comes: records to standard output, logs to error."""

    def __init__(self, logs: Path) -> None:
        super().__init__(daemon=True)
        self._logs = logs
        self._seen: dict[Path, int] = {}

    def run(self) -> None:
        while True:
            self.copy()
            time.sleep(_POLL_SECONDS)

    def copy(self) -> None:
        for file in self._logs.iterdir():
            with file.open("rb") as stream:
                stream.seek(self._seen.get(file, 0))
                new = stream.read()
            whole = new[: new.rfind(b"\n") + 1]
            if whole:
                self._seen[file] = self._seen.get(file, 0) + len(whole)
                out = sys.stdout if file.suffix == ".jsonl" else sys.stderr
                out.buffer.write(whole)
                out.buffer.flush()


def main(arguments: list[str]) -> int:
    """Runs a part until it is told to end (0) or dies (1)."""
    signal.signal(signal.SIGTERM, _end)
    match arguments:
        case ["health"]:
            return 0 if (folder() / _READY).exists() else 1
        case ["network"]:
            return _idle()
        case [part, *rest]:
            return _run(part, rest[0] if rest else "")
    print(__doc__)
    return 2


def _run(part: str, name: str) -> int:
    settings = Settings.read(os.environ)
    folders.claim(folder())
    host = Host(Cache(ARTEFACTS, offline=True), folder(), bind=EVERYWHERE, published=settings.port, archives=False)
    follower = _Follower(folder() / "logs")
    follower.start()
    try:
        serve(part, name, host, settings)
        _say_ready()
        while all(process.alive() for process in host.processes()):
            time.sleep(0.2)
        follower.copy()
        print(f"{part} {name}: a process has ended", file=sys.stderr)
    except LabError as error:
        print(error, file=sys.stderr)
    finally:
        host.stop()
    return 1


def _idle() -> int:
    folders.claim(folder())
    _say_ready()
    while True:
        signal.pause()


def _say_ready() -> None:
    (folder() / _READY).touch()
    print(json.dumps({"ready": True}), flush=True)


def _end(*_: Any) -> NoReturn:
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
