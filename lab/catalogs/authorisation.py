"""The gateway's stage that knows who may do what: a profile's roles and grants, held against each operation.

A grant without `future` is on what was there when it was given: on all but what engines made since, through a door.
Who creates a table owns it, and an owner may do anything with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from lab.catalogs.keyring import Caller
from lab.catalogs.operations import Malformed, Operation, Table, operation
from lab.catalogs.profiles import Door
from lab.catalogs.proxy import Forward, Request, Response, error

USAGE, SELECT, OWNERSHIP = "USAGE", "SELECT", "OWNERSHIP"
WRITE = "ADD_TABLE_SNAPSHOT"
_READS = (USAGE, SELECT)
# What an operation takes where a profile's `needs` does not say otherwise; any other one takes OWNERSHIP.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "LIST_NAMESPACES": (),
    "LOAD_NAMESPACE_METADATA": (USAGE,),
    "NAMESPACE_EXISTS": (USAGE,),
    "CREATE_NAMESPACE": ("CREATE SCHEMA",),
    "LIST_TABLES": (USAGE,),
    "LIST_VIEWS": (USAGE,),
    "CREATE_TABLE_DIRECT": (USAGE, "CREATE ICEBERG TABLE"),
    "CREATE_TABLE_STAGED": (USAGE, "CREATE ICEBERG TABLE"),
    "REGISTER_TABLE": (USAGE, "CREATE ICEBERG TABLE"),
    "CREATE_VIEW": (USAGE, "CREATE VIEW"),
    "LOAD_TABLE": _READS,
    "LOAD_TABLE_WITH_READ_DELEGATION": _READS,
    "TABLE_EXISTS": _READS,
    "LOAD_VIEW": _READS,
    "VIEW_EXISTS": _READS,
    "REPORT_READ_METRICS": _READS,
    WRITE: (USAGE, SELECT, "INSERT", "UPDATE", "DELETE", "TRUNCATE"),
    "SET_TABLE_SNAPSHOT_REF": (USAGE, SELECT, "INSERT", "UPDATE", "DELETE", "TRUNCATE"),
}
_NOT_FOUND = 404
CONFIG = "/v1/config"


@dataclass
class Authorisation:
    """The stage. It remembers who made which table through a door, for as long as the lab is up."""

    made: dict[Table, str] = field(default_factory=dict)

    async def __call__(self, request: Request, forward: Forward) -> Response:
        door, caller = request.door, request.caller
        if door is None or caller is None or request.path == CONFIG:
            return await forward(request)
        try:
            asked = operation(request)
        except Malformed as reason:
            return error(400, "BadRequestException", str(reason))
        if asked is None:  # what nobody can name nobody can be granted
            return error(406, "UnsupportedOperationException", f"{request.method} {request.path} is no operation here")
        if door.off(door.settings["privilege-claim"]):
            return await forward(request)
        for op, table in asked.on:
            if lacking := self.lacking(door, caller, op, table):
                return await self._refused(request, forward, door, asked, op, lacking)
        response = await forward(replace(request, may_write=not self.lacking(door, caller, WRITE, asked.on[0][1])))
        if response.status in (200, 204):
            self._remember(asked, caller)
        return response

    def lacking(self, door: Door, caller: Caller, op: str, table: Table) -> list[str]:
        """The privileges that the caller's role lacks for this operation; a profile without roles grants all."""
        grants = door.profile.roles
        if not grants or self.made.get(table) == caller.role:
            return []
        needed = door.profile.needs.get(op, NEEDS.get(op, (USAGE, OWNERSHIP)))
        name = f"{table[0]}.{table[1]}" if table[1] else table[0]
        held = {
            privilege
            for grant in grants.get(caller.role, ())
            if grant.future or table not in self.made
            for privilege in grant.privileges
            if _matches(name, grant.on) or (privilege == USAGE and _matches(table[0], grant.on.split(".")[0]))
        }
        return [] if OWNERSHIP in held else [privilege for privilege in needed if privilege not in held]

    async def _refused(
        self, request: Request, forward: Forward, door: Door, asked: Operation, op: str, lacking: Iterable[str]
    ) -> Response:
        """403 in Polaris's words; but what does not exist does not, whoever asks."""
        assert request.caller is not None
        if asked.table and not asked.names[0].startswith(("CREATE", "REGISTER")):
            path = asked.at(asked.namespace, asked.table)
            there = await forward(replace(request, method="GET", path=path, query="", body=b"", headers=()))
            if there.status == _NOT_FOUND:
                return there
        who = request.caller
        message = (
            f"Principal '{who.principal}' with activated PrincipalRoles '[{who.role}]' and activated grants via "
            f"'[{who.role}]' is not authorized for op {op}"
        )
        refused = error(403, "ForbiddenException", message, rule=door.settings["privilege-claim"])
        return replace(refused, notes={**refused.notes, "lacking": list(lacking)})

    def _remember(self, asked: Operation, caller: Caller) -> None:
        (op, table), *_ = asked.on
        if op in ("CREATE_TABLE_DIRECT", "REGISTER_TABLE"):
            self.made[table] = caller.role
        if op.startswith("DROP_TABLE"):
            self.made.pop(table, None)
        if op == "RENAME_TABLE" and (owner := self.made.pop(table, None)):
            self.made[asked.renamed_to] = owner
        for commit in asked.commits:
            if commit.creates:
                self.made[commit.on] = caller.role


def _matches(name: str, globs: str) -> bool:
    """In either case: an engine that folds names makes them in lower case."""
    return fnmatchcase(name.lower(), globs.lower())
