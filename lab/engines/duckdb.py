"""DuckDB with its iceberg extension: SQL in a worker process.

A setting whose name starts with `attach.` is an option of ATTACH (`attach.ACCESS_DELEGATION_MODE`), any other
one is SET in the session (`TimeZone`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.engines.worker import WORKERS, WorkerEngine
from lab.errors import LabError
from lab.model import Call, Generation, Statement

if TYPE_CHECKING:
    from lab.catalogs import CatalogEndpoint
    from lab.catalogs.signing import Entry
    from lab.runtime.host import Host
    from lab.runtime.process import Process


def launch(host: Host, generation: Generation, catalog: CatalogEndpoint) -> tuple[Process | None, dict[str, Any]]:
    """Nothing to share: every Engine starts a worker of its own."""
    return None, {}


class Engine(WorkerEngine):
    engine_file = WORKERS / "duckdb.py"
    defaults = {
        "TimeZone": "UTC",
        "attach.READ_ONLY": "false",  # an iceberg catalog is attached to be read only, unless told otherwise
        "attach.AUTHORIZATION_TYPE": "none",
        "attach.ACCESS_DELEGATION_MODE": "vended_credentials",
    }

    @staticmethod
    def entered(entry: Entry) -> dict[str, str]:
        told = {"attach.ENDPOINT": entry.uri}
        if entry.signed:
            raise LabError("DuckDB signs requests to AWS's own addresses alone")
        if entry.credential:
            client, _, secret = entry.credential.rpartition(":")
            told |= {"attach.CLIENT_ID": client, "attach.CLIENT_SECRET": secret}
            told |= {"attach.OAUTH2_SCOPE": entry.scope, "attach.OAUTH2_SERVER_URI": entry.token_uri}
        if entry.token:
            told["attach.TOKEN"] = entry.token
        return told | ({"attach.AUTHORIZATION_TYPE": "oauth2"} if entry.credential or entry.token else {})

    @staticmethod
    def worded(statement: Statement) -> object:
        if isinstance(statement, Call):
            raise LabError(f"DuckDB takes SQL, not the call {statement.op}")
        return statement
