"""The gateway's first stage: by which door a request came in.

One gateway serves every profile: `http://…/horizon` is the catalog as Horizon acts, and what follows that segment is
the protocol's own. Whoever names none comes in by the open door, where no rule is kept.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

from lab.catalogs import profiles
from lab.catalogs.operations import CONTROL, climbs
from lab.catalogs.proxy import Forward, Request, Response, error
from lab.errors import LabError

_VERSION = "v1"


async def doors(request: Request, forward: Forward) -> Response:
    """The stage."""
    if _unsafe(request.path):
        return error(400, "BadRequestException", "A path may not climb, nor have control characters")
    _, segment, *rest = (*request.path.split("/", 2), "")
    if segment == _VERSION:
        return await forward(request)
    try:
        door = profiles.door(segment)
    except LabError as reason:
        return error(404, "NoSuchWarehouseException", str(reason))
    response = await forward(replace(request, door=door, sent=request.path, path=f"/{rest[0]}"))
    return replace(response, notes={**response.notes, "profile": door.profile.name, "tag": door.tag})


def _unsafe(path: str) -> bool:
    """Whether it climbs, encoded or not, or has control characters other than what parts a namespace's levels: a server
    may refuse these before it is a catalog."""
    read = unquote(path)
    return climbs(unquote(read)) or bool(CONTROL.search(read.replace("\x1f", "")))
