"""Any JVM as a process of the lab, driven from Python: py4j's own server class in front of its class path.

The server binds loopback, asks for a random token that it makes itself, and exits when its standard input
closes. No Java source is compiled, and no Python of the engine's own age is needed.
"""

from __future__ import annotations

import hashlib
import logging
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path

from lab.errors import LabError
from lab.runtime.host import LOOPBACK, Host
from lab.runtime.process import Process, tail

_log = logging.getLogger(__name__)
# It prints a stack trace of its own for each lost connection, though the caller has the exception, and also
# when a Java object's last reference goes after its JVM.
logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)

# A JVM whose archive does not fit says so on standard output, before the port that is awaited there.
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
_AHEAD_OF_TIME_SINCE = 25  # Java release whose cache (JEP 514) replaces class-data sharing archives
_ARCHIVE_SECONDS = 180.0


@dataclass(frozen=True)
class JavaEndpoint:
    """Where a JVM answers on loopback; the token is a secret."""

    port: int
    token: str


def py4j_jar() -> Path:
    """The jar of the installed py4j: for a class path that has none of its own."""
    return Path(find_jar_path())


def connect(endpoint: JavaEndpoint) -> JavaGateway:
    """A client of the JVM, from any process of this machine; `close()` it, the JVM goes on."""
    return JavaGateway(
        gateway_parameters=GatewayParameters(
            address=LOOPBACK,
            port=endpoint.port,
            auth_token=endpoint.token,
            auto_convert=True,
            auto_field=True,
        )
    )


def jvm_gateway(
    host: Host,
    name: str,
    java_home: Path,
    classpath: Sequence[Path],
    jvm_options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> tuple[Process, JavaEndpoint]:
    """Starts a JVM with py4j's server (its jar stands on `classpath`). Raises StartFailed with its last words."""
    argv = [
        str(java_home / "bin" / "java"),
        "-Duser.timezone=UTC",
        "-Dfile.encoding=UTF-8",
        f"-Djava.io.tmpdir={host.data('tmp')}",
        "-XX:-UsePerfData",  # no files in a temporary folder shared by all
        f"-XX:ErrorFile={host.log(f'{name}-crash')}",
        *QUIET,
        *jvm_options,
        "-cp",
        ":".join(map(str, classpath)),
        "py4j.GatewayServer",
        "--enable-auth",
        "--die-on-broken-pipe",
        "0",
    ]
    process, (port, token) = host.process(name, argv, env=env, first_lines=2)
    return process, JavaEndpoint(int(port), token)


def class_archive(
    host: Host,
    name: str,
    java_home: Path,
    classpath: Sequence[Path],
    jvm_options: Sequence[str],
    train: Callable[[JavaEndpoint], object],
    env: Mapping[str, str] | None = None,
) -> list[str]:
    """The options with which a JVM of this class path starts quickly, from an archive in the cache.

    Made once, in ten to thirty seconds, by a JVM of its own in which `train` does what the real one will do
    first. No directory may stand on the class path. Without an archive, a start is slow and no more: when it
    can't be made, a warning says why and there are no options.
    """
    digest = _digest(java_home, classpath, jvm_options)
    ahead_of_time = _release(java_home) >= _AHEAD_OF_TIME_SINCE
    base = Path()

    def build(folder: Path) -> None:
        if not host.archives:
            raise LabError("none is here, and none is made in a container")
        archive = folder / "classes"
        record = (
            [f"-XX:AOTCacheOutput={archive}"]
            if ahead_of_time
            else [f"-XX:SharedArchiveFile={base}", f"-XX:ArchiveClassesAtExit={archive}"]
        )
        trainee = f"{name}-archive"
        process, endpoint = jvm_gateway(host, trainee, java_home, classpath, [*jvm_options, *record], env)
        try:
            train(endpoint)
            process.stdin.close()  # a clean exit, at which the archive is written
            process.wait(_ARCHIVE_SECONDS)
        except subprocess.TimeoutExpired:
            raise LabError(f"{trainee} did not end; read {host.log(trainee)}{tail(host.log(trainee))}") from None
        finally:
            host.end(process)
        if not archive.is_file():
            raise LabError(f"{trainee} wrote no archive; read {host.log(trainee)}{tail(host.log(trainee))}")

    try:
        if not ahead_of_time:
            base = _base_archive(host, java_home)
        archive = host.cache.derived(f"classes-{name}-{digest}", build) / "classes"
    except Exception as error:  # of the JVM, of `train`, of the disk
        _log.warning("%s starts slowly, without an archive of its classes: %s", name, error)
        return []
    return [f"-XX:AOTCache={archive}"] if ahead_of_time else [f"-XX:SharedArchiveFile={base}:{archive}"]


def _base_archive(host: Host, java_home: Path) -> Path:
    """The archive of the Java runtime itself, which the trimmed runtimes come without."""

    def build(folder: Path) -> None:
        subprocess.run(
            [java_home / "bin" / "java", "-Xshare:dump", f"-XX:SharedArchiveFile={folder / 'base.jsa'}"],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=host.environment(),
        )

    return host.cache.derived(f"classes-java-{_digest(java_home, (), ())}", build) / "base.jsa"


def _release(java_home: Path) -> int:
    """The Java release of a home, as its own `release` file tells."""
    properties: dict[str, Any] = dict(
        line.split("=", 1) for line in (java_home / "release").read_text().splitlines() if "=" in line
    )
    return int(str(properties["JAVA_VERSION"]).strip('"').split(".")[0])


def _digest(java_home: Path, classpath: Sequence[Path], jvm_options: Sequence[str]) -> str:
    """What an archive depends on: a JVM refuses one made for other paths, sizes or times."""
    parts = [str(java_home), (java_home / "release").read_text(), *jvm_options]
    for path in classpath:
        stat = path.stat()
        parts.append(f"{path} {stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
