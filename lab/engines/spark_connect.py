"""Spark over Spark Connect: a session asks for it by Spark's own setting, `spark.remote`.

The server runs inside the generation's JVM, started by the first session that wants it; the client is Spark's own
Python one, of the same version, in a worker. Such a session has what a remote client has: runtime settings, and
failures as that client tells them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.engines.worker import WORKERS, WorkerEngine, WorkerSession
from lab.errors import LabError
from lab.model import Statement
from lab.provision import NotProvided

if TYPE_CHECKING:
    from lab.model import Generation

REMOTE = "spark.remote"
LOCAL = "sc://localhost"  # the setting's one value here; the port and the token are the lab's own affair
TOKEN = "iceberg-lab.connect.token"  # noqa: S105 - a Java system property of the engine's JVM, not the token
CLIENT = "pypi:pyspark-client=="
_SERVER = "spark.connect"


class Client(WorkerEngine):
    """Sessions over Connect with one generation."""

    engine_file = WORKERS / "spark_connect.py"
    defaults = {}

    @property
    def name(self) -> str:
        return f"{self._generation.name}-connect"

    def sites(self) -> list[Path]:
        """Spark's client is published as source alone, what it needs as wheels."""
        cache = self._host.cache
        return [cache.tree(_client(self._generation), "pyspark/*"), cache.environment("spark-connect-client")]

    @staticmethod
    def worded(statement: Statement) -> object:
        if not isinstance(statement, str):
            raise LabError(f"Spark understands SQL, not the call {statement.op}; give the step its SQL")
        return statement

    def over(self, remote: str, changes: Mapping[str, str | None]) -> WorkerSession:
        """A fresh session at this address, with these settings made by the client after it connected.

        A setting that Spark refuses then, as each static one, is the Failure of each of its statements.
        """
        unset = {key: value for key, value in changes.items() if value is None}
        if unset:
            raise LabError(f"over Connect nothing of the server's can be taken away: {', '.join(unset)}")
        set_ = {key: value for key, value in changes.items() if value is not None}
        return WorkerSession(self._living(), next(self._numbers), self.worded, {"remote": remote}, set_)


def serve(gateway: Any, context: Any, generation: Generation, bind: str = "127.0.0.1", port: int = 0) -> str:
    """The address, token included, of the Connect server in this JVM, which is started if it isn't there.

    bind, port: where it is to listen; 0 for a port of its own choice.
    Raises NotProvided for a Spark that comes without one.
    """
    _client(generation)
    java = gateway.jvm
    mine = secrets.token_urlsafe(32)
    token = java.System.getProperties().putIfAbsent(TOKEN, mine) or mine  # the first of two processes wins
    conf = context.conf()
    own = {
        f"{_SERVER}.grpc.binding.address": bind,
        f"{_SERVER}.grpc.binding.port": str(port),
        f"{_SERVER}.authenticate.token": token,
    }
    for key, value in own.items():
        conf.set(key, value)
    server = getattr(getattr(java.org.apache.spark.sql.connect.service, "SparkConnectService$"), "MODULE$")
    try:
        server.start(context)  # does nothing where it has started
    finally:
        for key in own:  # read by now; left there, every session would show the token
            conf.remove(key)
    return f"{LOCAL}:{server.localPort()}/;token={token}"


def _client(generation: Generation) -> str:
    artefact = next((artefact for artefact in generation.artefacts if artefact.startswith(CLIENT)), None)
    if artefact is not None:
        return artefact
    raise NotProvided(
        f"Spark before 4.0 comes without Spark Connect's server, and its jar (org.apache.spark:spark-connect_"
        f"{generation.versions['scala']}:{generation.versions['spark']}) is not among the locked artefacts; "
        "run this on a Spark 4 generation"
    )
