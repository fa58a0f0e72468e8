"""Spark's standalone cluster: a master and its workers, each a JVM on the class path of its generation.

All know each other by one secret, which stands in their environments: a setting would show in every session.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import requests

from lab.engines import WORKERS, Cluster, jvm
from lab.runtime.jvm import QUIET
from lab.runtime.process import StartFailed

if TYPE_CHECKING:
    from lab.catalogs import CatalogEndpoint
    from lab.model import Generation
    from lab.runtime.host import Host
    from lab.runtime.process import Process

_DEPLOY = "org.apache.spark.deploy"
_LOOPBACK = "127.0.0.1"
_START_SECONDS = 120.0
_DAEMON = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# A faster BLAS for MLlib, which Spark 4.1 asks for in each executor, and the lab's small Java comes without.
_UNKNOWN = "--add-modules=jdk.incubator.vector"
_JAVA = """\
#!/bin/sh
for word; do
    shift
    [ "$word" = {unknown} ] || set -- "$@" "$word"
done
exec {java} "$@"
"""
_MEMORY = "1g"  # of each worker's one executor
_OPTIONS = {
    "spark.authenticate": "true",
    "spark.master.rest.enabled": "false",  # it takes applications from anybody
    "spark.ui.killEnabled": "false",  # the master's page shows, and does nothing
    "spark.master.ui.decommission.allow.mode": "DENY",
}


def settings(cluster: Cluster, iceberg: list[Path]) -> dict[str, str]:
    """What makes a driver use the cluster. iceberg: the jars that executors have in front of Spark's own."""
    return {
        "spark.master": cluster.head,
        "spark.authenticate": "true",
        # Spark wants the key to be there, and reads the environment first.
        "spark.authenticate.secret": "in the environment",
        "spark.executor.extraClassPath": ":".join(map(str, iceberg)),
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
        "spark.executor.cores": "1",
        "spark.executor.memory": _MEMORY,
        # Executors have one address, which makes Spark take them for neighbours on one disk; they are not.
        "spark.shuffle.readHostLocalDisk": "false",
        # Tasks wait for every worker; else the first to come has them all.
        "spark.cores.max": str(WORKERS),
        "spark.scheduler.minRegisteredResourcesRatio": "1",
    }


def environment(cluster: Cluster) -> dict[str, str]:
    return {"_SPARK_AUTH_SECRET": cluster.secret}


def master(host: Host, generation: Generation, classpath: list[Path], cluster: Cluster, page: int) -> Process:
    """Starts the master at the cluster's head; its page and `/json/` are served on port `page`. Raises StartFailed."""
    port = cluster.head.rpartition(":")[2]
    words = ["--host", _LOOPBACK, "--port", port, "--webui-port", str(page)]
    # The page is published, what workers and drivers speak to is not.
    env = environment(cluster) | {"SPARK_LOCAL_IP": host.bind}
    process = _daemon(host, generation, "master.Master", classpath, words, env)
    _await(process, page, "aliveworkers")
    return process


def worker(
    host: Host, generation: Generation, classpath: list[Path], cluster: Cluster, page: int, catalog: CatalogEndpoint
) -> Process:
    """Starts a worker with one core; returns when the master has it. Raises StartFailed."""
    jars = next(path.parent for path in classpath if path.name.startswith("spark-core_"))
    folder = host.data(generation.name)
    words = ["--host", _LOOPBACK, "--cores", "1", "--memory", _MEMORY, "--work-dir", str(folder / "work")]
    env = {
        **jvm.ENVIRONMENT,
        **catalog.client_environment,
        **environment(cluster),
        "SPARK_LOCAL_IP": _LOOPBACK,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        # From these it makes the command of its executors.
        "JAVA_HOME": str(_java(host, generation)),
        "SPARK_HOME": str(jars.parent),
        "SPARK_SCALA_VERSION": generation.versions["scala"],
    }
    process = _daemon(
        host, generation, "worker.Worker", classpath, [*words, "--webui-port", str(page), cluster.head], env
    )
    _await(process, page, "masterurl")
    return process


def _java(host: Host, generation: Generation) -> Path:
    """A Java home for executors: the generation's own Java, without the module that it has not."""
    home = host.data("java")
    program = home / "bin" / "java"
    program.parent.mkdir(exist_ok=True)
    program.write_text(_JAVA.format(unknown=_UNKNOWN, java=shlex.quote(str(_program(host, generation)))))
    program.chmod(0o700)
    return home


def _program(host: Host, generation: Generation) -> Path:
    assert generation.java is not None
    return host.cache.java(generation.java) / "bin" / "java"


def _daemon(
    host: Host, generation: Generation, of: str, classpath: list[Path], words: list[str], env: Mapping[str, str]
) -> Process:
    argv = [
        str(_program(host, generation)),
        f"-Djava.io.tmpdir={host.data('tmp')}",
        "-XX:-UsePerfData",
        *QUIET,
        *_DAEMON,
        *(f"-D{key}={value}" for key, value in _OPTIONS.items()),
        *("-cp", ":".join(map(str, classpath))),
        *(f"{_DEPLOY}.{of}", *words),
    ]
    return host.process(of.partition(".")[0], argv, env=env)[0]


def _await(process: Process, page: int, key: str) -> None:
    """Waits until a daemon's page tells `key` of it."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with suppress(requests.RequestException):
            told = requests.get(f"http://{_LOOPBACK}:{page}/json/", timeout=5).json()
            if told.get(key, "") != "":
                return
        if not process.alive():
            raise StartFailed(process.name, "it ended", process.log)
        if time.monotonic() > deadline:
            raise StartFailed(process.name, f"its page tells no {key} after {_START_SECONDS:.0f} s", process.log)
        time.sleep(0.2)
