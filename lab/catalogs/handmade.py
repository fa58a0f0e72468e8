"""Metadata that no writer here makes: the gateway tells a table otherwise than its catalog has it.

A table whose property `lab.told.transform` is `name:1,2` is loaded with that transform of those columns (field ids) in
every partition field: `source-ids` instead of `source-id`, as format version 3 wants it of a transform of several
arguments. Iceberg's library, which the reference catalog is made of, keeps no such field itself.
"""

from __future__ import annotations

import re

from lab.catalogs import TRANSFORM
from lab.catalogs.proxy import Forward, Request, Response

_LOADED = re.compile(r"/v1/(?:.+/)?namespaces/[^/]+/tables/[^/]+")


async def transformed(request: Request, forward: Forward) -> Response:
    """The stage. It changes what a table is loaded with (GET), and no commit's answer."""
    response = await forward(request)
    if request.method != "GET" or response.status != 200 or not _LOADED.fullmatch(request.path):
        return response
    table = response.json()
    told = table.get("metadata", {}).get("properties", {}).get(TRANSFORM)
    if told is None:
        return response
    name, _, sources = told.partition(":")
    for spec in table["metadata"]["partition-specs"]:
        for field in spec["fields"]:
            field.pop("source-id")
            field |= {"transform": name, "source-ids": [int(source) for source in sources.split(",")]}
    return response.with_json(table)
