"""The gateway's stage that passes a transaction of one table on as that table's commit, before the reference catalog.

Of two transactions at once that catalog loses one and answers success to both: where it finds that the table has
changed since it began (`BaseTransaction.applyUpdates`) it takes the newer metadata, has no updates to repeat on it, and
commits nothing (`RESTCatalogAdapter.commitTransaction`, Iceberg 1.11.0). A table's own commit it refuses with 409, as
the specification wants both. A door's `transactions=whole` shows it as it is.
"""

from __future__ import annotations

import json
from dataclasses import replace

from lab.catalogs.operations import Malformed, operation
from lab.catalogs.proxy import Forward, Request, Response, error


async def single(request: Request, forward: Forward) -> Response:
    """The stage."""
    if not request.path.endswith("/transactions/commit"):
        return await forward(request)
    try:
        asked = operation(request)
    except Malformed as reason:
        return error(400, "BadRequestException", str(reason))
    whole = request.door is not None and request.door.settings["transactions"] == "whole"
    if asked is None or whole or len(asked.commits) != 1:
        return await forward(request)
    (commit,) = asked.commits
    body = json.dumps({"requirements": commit.requirements, "updates": commit.updates}).encode()
    response = await forward(replace(request, path=asked.at(*commit.on), body=body))
    return replace(response, status=204, headers=(), body=b"") if response.status == 200 else response
