"""What engines in a JVM share: how one is started, and how its failures are read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from lab.errors import LabError
from lab.model import Cause, Failure, Generation
from lab.runtime.jvm import JavaEndpoint, class_archive, connect, jvm_gateway
from lab.runtime.process import StartFailed

if TYPE_CHECKING:
    from lab.catalogs import CatalogEndpoint
    from lab.runtime.host import Host
    from lab.runtime.process import Process

_log = logging.getLogger(__name__)
# py4j prints a stack trace for each lost connection, some by the root logger; here that is an answer.
logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
logging.getLogger().addFilter(lambda record: record.module != "java_gateway")

# Without vended credentials the SDK fails at once instead of asking a cloud machine's metadata service.
ENVIRONMENT = {"AWS_EC2_METADATA_DISABLED": "true"}
# The SDK's variable → its system property of the same meaning, and what both are where neither is set.
_PROPERTIES = {
    "AWS_REQUEST_CHECKSUM_CALCULATION": ("aws.requestChecksumCalculation", "when_supported"),
    "AWS_RESPONSE_CHECKSUM_VALIDATION": ("aws.responseChecksumValidation", "when_supported"),
}
JVM = "py4j.protocol.Py4JNetworkError"  # the cause's class when the process itself is gone


def start(
    host: Host,
    generation: Generation,
    classpath: Sequence[Path],
    options: Sequence[str],
    prepare: Callable[[Any], object],
    train: Callable[[Any], object],
    catalog: CatalogEndpoint,
    more: Mapping[str, str] | None = None,
) -> tuple[Process, JavaEndpoint]:
    """Starts the engine's JVM and has `prepare` (given its gateway) bring the engine up in it.

    In its environment is what clients of the catalog's store need, and `more`.

    `train` brings another one up, once, and exercises it: what it loads goes to the archive of classes that makes
    every later start quick. Raises StartFailed.
    """
    name, environment = generation.name, {**ENVIRONMENT, **catalog.client_environment, **(more or {})}
    assert generation.java is not None, f"{name} declares no Java release"
    java = host.cache.java(generation.java)

    def trained(endpoint: JavaEndpoint) -> None:
        with closing(connect(endpoint)) as gateway:
            train(gateway)

    try:
        archive = class_archive(host, name, java, classpath, options, trained, environment)
    except Exception as error:  # whatever it is: the archive saves seconds and no more
        _log.warning("%s starts slowly, without an archive of its classes: %s", name, describe(error))
        archive = []
    process, endpoint = jvm_gateway(host, name, java, classpath, [*options, *archive], environment)
    try:
        with closing(connect(endpoint)) as gateway:
            prepare(gateway)
    except BaseException as error:
        host.end(process)
        if isinstance(error, Py4JError):
            raise StartFailed(name, describe(error), process.log) from None
        raise
    return process, endpoint


def variables(gateway: Any, changes: Mapping[str, str | None]) -> Callable[[], object]:
    """Makes the AWS SDK act in a running JVM as if these variables were so (None: not there). Returns what undoes it.

    It asks a system property before each variable, whenever it makes a client; that holds for the whole JVM, in which
    a run has one session at a time. Raises LabError for a variable that is not the SDK's.
    """
    if strange := sorted(changes.keys() - _PROPERTIES.keys()):
        raise LabError(
            f"{', '.join(strange)} holds for a whole JVM; of its environment only {', '.join(_PROPERTIES)} varies"
        )
    if not changes:
        return lambda: None
    system = gateway.jvm.System
    for name, value in changes.items():
        key, absent = _PROPERTIES[name]
        system.setProperty(key, absent if value is None else value)
    return lambda: [system.clearProperty(_PROPERTIES[name][0]) for name in changes]


def causes(throwable: Any) -> tuple[Cause, ...]:
    """A Java throwable's chain, outermost first: class names and messages as Java has them."""
    seen: list[Any] = []
    while throwable is not None and not any(throwable.equals(other) for other in seen):  # Java allows a loop
        seen.append(throwable)
        throwable = throwable.getCause()
    return tuple(Cause(link.getClass().getName(), link.getMessage() or "") for link in seen)


def failure(gateway: Any, error: Exception) -> Failure:
    """What a call into the engine's JVM failed of. Raises `error` itself where it is not the engine's."""
    try:
        if isinstance(error, Py4JJavaError):
            return Failure(causes(error.java_exception))
        gateway.jvm.System.nanoTime()
    except (Py4JError, OSError):
        return Failure((Cause(JVM, "the engine's process ended during the statement"),), crash=True)
    raise error


def describe(error: Exception) -> str:
    """An error on one line, the innermost cause's words last."""
    if not isinstance(error, Py4JJavaError):
        return f"{type(error).__name__}: {error}"
    chain = causes(error.java_exception)
    return " <- ".join(": ".join((link.cls, *link.message.strip().splitlines()[:1])) for link in chain)
