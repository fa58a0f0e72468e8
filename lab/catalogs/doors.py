"""The gateway's first stage: which door a request came in by, and how the catalog behind is to be asked then.

One gateway serves every profile. An engine names a profile as its `warehouse`; `/v1/config` answers with a prefix,
by which all that this engine asks afterwards is known. Whoever names none comes in by the open door.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from lab.catalogs import profiles
from lab.catalogs.profiles import Door
from lab.catalogs.proxy import Forward, Request, Response, error
from lab.errors import LabError

CONFIG = "/v1/config"
_WAREHOUSE = "warehouse"


class Doors:
    """The stage. `warehouse`: what the catalog behind calls its own."""

    def __init__(self, warehouse: str) -> None:
        self._warehouse = warehouse

    async def __call__(self, request: Request, forward: Forward) -> Response:
        try:
            door, rest = _door(request)
        except LabError as reason:
            return error(400, "BadRequestException", str(reason))
        if door is None:
            return await forward(request)
        inside = replace(request, door=door, sent=request.path)
        if request.path == CONFIG:
            response = await self._config(inside, forward)
        else:
            response = await forward(replace(inside, path=f"/v1/{rest}"))
        return replace(response, notes={**response.notes, "profile": door.profile.name, "tag": door.tag})

    async def _config(self, request: Request, forward: Forward) -> Response:
        query = urlencode({**dict(parse_qsl(request.query)), _WAREHOUSE: self._warehouse})
        response = await forward(replace(request, query=query))
        if response.status != 200 or request.door is None:
            return response
        config = response.json()
        config["overrides"] = {**config.get("overrides", {}), "prefix": request.door.name}
        return response.with_json(config)


class Behind:
    """The last stage before the catalog: puts its own prefix, which it asks for once, where the door's was."""

    def __init__(self, warehouse: str) -> None:
        self._query = urlencode({_WAREHOUSE: warehouse})
        self._prefix: str | None = None

    async def __call__(self, request: Request, forward: Forward) -> Response:
        if request.door is None or request.path == CONFIG:
            return await forward(request)
        if self._prefix is None:
            config = await forward(Request("GET", CONFIG, self._query))
            if config.status != 200:
                return config
            told = config.json()
            self._prefix = (told.get("overrides") or {}).get("prefix") or (told.get("defaults") or {}).get("prefix", "")
        prefix = f"{self._prefix}/" if self._prefix else ""
        return await forward(replace(request, path=f"/v1/{prefix}{request.path.removeprefix('/v1/')}"))


def _door(request: Request) -> tuple[Door | None, str]:
    """The door, and what of the path follows it. Raises LabError."""
    if request.path == CONFIG:
        return profiles.named(dict(parse_qsl(request.query)).get(_WAREHOUSE, "")), ""
    _, version, segment, *rest = (*request.path.split("/", 3), "", "", "")
    return (profiles.named(segment), rest[0]) if version == "v1" else (None, "")
