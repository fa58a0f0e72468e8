"""The gateway's stage that passes a transaction of one table on as that table's commit, before the reference catalog.

Of two transactions at once that catalog loses one and answers success to both: where it finds that the table has
changed since it began (`BaseTransaction.applyUpdates`) it takes the newer metadata, has no updates to repeat on it, and
commits nothing (`RESTCatalogAdapter.commitTransaction`, Iceberg 1.11.0). A table's own commit it refuses with 409, as
the specification wants both. A door's `transactions=whole` shows it as it is.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from lab.catalogs.proxy import Forward, Request, Response

_TRANSACTION = re.compile(r"(?P<base>/v1/(?:.+/)?)transactions/commit")


async def single(request: Request, forward: Forward) -> Response:
    """The stage."""
    found = _TRANSACTION.fullmatch(request.path)
    changes: list[dict[str, Any]] = (request.json() or {}).get("table-changes", []) if found else []
    whole = request.door is not None and request.door.settings["transactions"] == "whole"
    if found is None or whole or len(changes) != 1:
        return await forward(request)
    change = changes[0]
    namespace, name = (
        quote(part, safe="") for part in ("\x1f".join(change["identifier"]["namespace"]), change["identifier"]["name"])
    )
    path = f"{found['base']}namespaces/{namespace}/tables/{name}"
    body = json.dumps({key: change[key] for key in ("requirements", "updates")}).encode()
    response = await forward(replace(request, path=path, body=body))
    return replace(response, status=204, headers=(), body=b"") if response.status == 200 else response
