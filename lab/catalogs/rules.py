"""The gateway's stage that acts as a vendor does: refuses what the door's profile refuses, amends what it amends.

Each answer that a rule made names the rule in the access record.
"""

from __future__ import annotations

from dataclasses import replace

from minio.error import S3Error

from lab.catalogs import amends
from lab.catalogs.operations import operation
from lab.catalogs.profiles import Door
from lab.catalogs.proxy import Forward, Request, Response, error
from lab.catalogs.triggers import TRIGGERS, Asked
from lab.stores import StoreEndpoint


class Rules:
    """The stage."""

    def __init__(self, store: StoreEndpoint) -> None:
        self._store = store

    async def __call__(self, request: Request, forward: Forward) -> Response:
        door = request.door
        found = operation(request) if door is not None and door.rules else None
        if door is None or found is None:
            return await forward(request)
        asked = Asked(found, request, forward, self._store)
        try:
            if refused := await self._refused(asked, door):
                return refused
            amended, done = self._amended(asked, door)
        except (AttributeError, KeyError, TypeError, ValueError, S3Error) as unreadable:  # what the client sent
            kind = type(unreadable).__name__
            return error(400, "BadRequestException", f"Malformed request: what a rule looks at can't be read ({kind})")
        return await self._answered(asked, amended, door, done)

    async def _refused(self, asked: Asked, door: Door) -> Response | None:
        for rule in door.rules:
            if not rule.amends and (why := await TRIGGERS[rule.trigger](asked, **rule.words)):
                refused = error(rule.status, rule.type, rule.message.replace("{why}", why), rule=rule.id)
                beyond = {"beyond": dict(rule.beyond)} if rule.beyond else {}
                return replace(refused, notes={**refused.notes, "why": why, **beyond})
        return None

    def _amended(self, asked: Asked, door: Door) -> tuple[Request, list[str]]:
        """The request as it goes on, and the claims by which its body is another."""
        request, done = asked.request, list[str]()
        for rule in door.rules:
            changed = amends.request(rule.trigger, asked, request, **rule.words) if rule.amends else None
            if changed is not None:
                done += [rule.id] * (changed.body != request.body)
                request = changed
        return request, done

    async def _answered(self, asked: Asked, request: Request, door: Door, done: list[str]) -> Response:
        response = await asked.forward(request)
        for rule in door.rules:
            answered = await amends.response(rule.trigger, asked, response, **rule.words) if rule.amends else None
            if answered is not None:
                response, done = answered, [*done, rule.id]
        return replace(response, notes={**response.notes, **({"amended": done} if done else {})})
