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
    def worded(statement: Statement) -> object:
        if isinstance(statement, Call):
            raise LabError(f"DuckDB takes SQL, not the call {statement.op}")
        return statement
