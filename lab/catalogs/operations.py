"""What a request of the REST catalog protocol is, in Polaris's words: an operation, on what, with which commits."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from lab.catalogs.proxy import Request

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
DELEGATION = "x-iceberg-access-delegation"
_PATH = re.compile(
    r"""
    (?P<base> /v1/ (?: (?! namespaces(?:/|$) | tables/ | views/ | transactions/ ) [^/]+/ )? )  # a prefix may follow
    (?: (?P<namespaces> namespaces )
        (?: / (?P<namespace> [^/]+ )
            (?: / (?P<kind> tables | views | register | properties )
                (?: / (?P<name> [^/]+ ) (?: / (?P<part> [a-z-]+ ) )? )? )? )?
      | (?P<other> tables/rename | views/rename | transactions/commit ) )
    """,
    re.VERBOSE,
)
_BY_PATH = {
    ("GET", "namespaces"): "LIST_NAMESPACES",
    ("POST", "namespaces"): "CREATE_NAMESPACE",
    ("GET", "namespace"): "LOAD_NAMESPACE_METADATA",
    ("HEAD", "namespace"): "NAMESPACE_EXISTS",
    ("DELETE", "namespace"): "DROP_NAMESPACE",
    ("POST", "properties"): "UPDATE_NAMESPACE_PROPERTIES",
    ("GET", "tables"): "LIST_TABLES",
    ("POST", "register"): "REGISTER_TABLE",
    ("GET", "table"): "LOAD_TABLE",
    ("HEAD", "table"): "TABLE_EXISTS",
    ("POST", "metrics"): "REPORT_READ_METRICS",
    ("GET", "credentials"): "LOAD_TABLE_WITH_READ_DELEGATION",
    ("POST", "tables/rename"): "RENAME_TABLE",
    ("GET", "views"): "LIST_VIEWS",
    ("POST", "views"): "CREATE_VIEW",
    ("GET", "view"): "LOAD_VIEW",
    ("HEAD", "view"): "VIEW_EXISTS",
    ("POST", "view"): "REPLACE_VIEW",
    ("DELETE", "view"): "DROP_VIEW",
    ("POST", "views/rename"): "RENAME_VIEW",
}
_BY_UPDATE = {
    "assign-uuid": "ASSIGN_TABLE_UUID",
    "upgrade-format-version": "UPGRADE_TABLE_FORMAT_VERSION",
    "add-schema": "ADD_TABLE_SCHEMA",
    "set-current-schema": "SET_TABLE_CURRENT_SCHEMA",
    "add-spec": "ADD_TABLE_PARTITION_SPEC",
    "set-default-spec": "SET_TABLE_DEFAULT_PARTITION_SPEC",
    "add-sort-order": "ADD_TABLE_SORT_ORDER",
    "set-default-sort-order": "SET_TABLE_DEFAULT_SORT_ORDER",
    "add-snapshot": "ADD_TABLE_SNAPSHOT",
    "set-snapshot-ref": "SET_TABLE_SNAPSHOT_REF",
    "remove-snapshots": "REMOVE_TABLE_SNAPSHOTS",
    "remove-snapshot-ref": "REMOVE_TABLE_SNAPSHOT_REF",
    "set-location": "SET_TABLE_LOCATION",
    "set-properties": "SET_TABLE_PROPERTIES",
    "remove-properties": "REMOVE_TABLE_PROPERTIES",
    "set-statistics": "SET_TABLE_STATISTICS",
    "remove-statistics": "REMOVE_TABLE_STATISTICS",
    "remove-partition-specs": "REMOVE_TABLE_PARTITION_SPECS",
}
# What a rename is to its new name: as Polaris has it, the right to make one there is needed too.
_MAKES = {"RENAME_TABLE": "CREATE_TABLE_DIRECT", "RENAME_VIEW": "CREATE_VIEW"}

Table = tuple[str, str]  # a namespace as on the wire, decoded (levels parted by 0x1F), and a name; "" for none


class Malformed(Exception):
    """A body that is not what the protocol has there."""


@dataclass(frozen=True)
class Commit:
    """What one table is to become: the specification's requirements and updates."""

    namespace: str  # as on the wire, decoded: levels parted by 0x1F
    table: str
    requirements: tuple[dict[str, Any], ...]
    updates: tuple[dict[str, Any], ...]

    @property
    def creates(self) -> bool:
        return any(one.get("type") == "assert-create" for one in self.requirements)

    def of(self, action: str) -> list[dict[str, Any]]:
        """The updates of this action."""
        return [update for update in self.updates if update.get("action") == action]

    @property
    def operations(self) -> tuple[str, ...]:
        """One an update. A created table's updates are parts of its creation."""
        named = (_BY_UPDATE.get(str(update.get("action")), "UPDATE_TABLE") for update in self.updates)
        return ("CREATE_TABLE_STAGED",) if self.creates else tuple(dict.fromkeys(named)) or ("UPDATE_TABLE",)

    @property
    def on(self) -> Table:
        return self.namespace, self.table


@dataclass(frozen=True)
class Operation:
    """`names`: what is done, more than one word for a commit. `table` is empty where it is not one table's."""

    names: tuple[str, ...]
    namespace: str = ""
    table: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    commits: tuple[Commit, ...] = ()
    delegated: bool = False  # vended credentials are asked for
    base: str = "/v1/"  # with the catalog's prefix, if it has one
    on: tuple[tuple[str, Table], ...] = ()  # what is done to what: each of `names`, and what takes a right of its own
    renamed_to: Table = ("", "")

    def at(self, namespace: str, table: str) -> str:
        """The path of a table of this catalog."""
        return f"{self.base}namespaces/{quote(namespace, safe='')}/tables/{quote(table, safe='')}"


def operation(request: Request) -> Operation | None:
    """What a request behind a door is; None for what the protocol does not know. Raises Malformed."""
    found = _PATH.fullmatch(request.path)
    if found is None:
        return None
    try:
        return _operation(request, found)
    except (AttributeError, KeyError, TypeError, ValueError) as shape:
        raise Malformed(f"Malformed request: {type(shape).__name__} in its body") from None


def _operation(request: Request, found: re.Match[str]) -> Operation | None:
    namespace, name = (unquote(found[part] or "") for part in ("namespace", "name"))
    sent = request.json() if request.body else {}
    body = dict(sent)
    what = found["part"] or found["other"] or _what(found)
    delegated, base = bool(request.header(DELEGATION)), found["base"]
    match request.method, what:
        case "POST", "table" | "transactions/commit":
            if what == "table":
                commits: tuple[Commit, ...] = (_commit(body, (namespace, name)),)
            else:
                commits = tuple(_commit(change, _named(change["identifier"])) for change in body["table-changes"])
            on = tuple((op, commit.on) for commit in commits for op in commit.operations)
            names = tuple(dict.fromkeys(op for op, _ in on))
            if not names:
                raise ValueError("no table is changed")
            return Operation(names, namespace, name, body, commits, delegated, base, on)
        case "POST", "tables":
            name = _text(body["name"])
            op = "CREATE_TABLE_STAGED" if body.get("stage-create") else "CREATE_TABLE_DIRECT"
        case "DELETE", "table":
            purge = "purgerequested=true" in request.query.lower()
            op = f"DROP_TABLE_WITH{'' if purge else 'OUT'}_PURGE"
        case asked:
            if asked not in _BY_PATH:
                return None
            op = _BY_PATH[asked]
    table, to = (namespace, name), ("", "")
    if op.startswith("RENAME"):
        table, to = _named(body["source"]), _named(body["destination"])
    elif op == "CREATE_NAMESPACE":
        table = (_levels(body["namespace"]), "")
    elif op in ("REGISTER_TABLE", "CREATE_VIEW"):
        table = (namespace, _text(body["name"]))
    made = ((_MAKES[op], to),) if op in _MAKES else ()
    return Operation((op,), *table, body, (), delegated, base, ((op, table), *made), to)


def _named(told: dict[str, Any]) -> Table:
    return _levels(told["namespace"]), _text(told["name"])


def _levels(namespace: Any) -> str:
    if not isinstance(namespace, list):
        raise TypeError(namespace)
    return "\x1f".join(map(_text, namespace))


def _text(value: Any) -> str:
    """A name in a body: the catalog makes a folder of it. Raises TypeError, Malformed."""
    if not isinstance(value, str):
        raise TypeError(value)
    if climbs(value) or CONTROL.search(value):
        raise Malformed(f"Malformed request: {value!a} can't be a name: it climbs, or has control characters")
    return value


def climbs(path: str) -> bool:
    """Whether a part of it is `.` or `..`: whoever resolves it would leave the folder that it is in."""
    return not {".", ".."}.isdisjoint(path.split("/"))


def _what(found: re.Match[str]) -> str:
    if not found["namespace"]:
        return "namespaces"
    if not found["kind"]:
        return "namespace"
    return found["kind"] if not found["name"] else found["kind"].removesuffix("s")


def _commit(change: dict[str, Any], on: Table) -> Commit:
    requirements, updates = (tuple(map(dict, change.get(part) or ())) for part in ("requirements", "updates"))
    return Commit(*on, requirements, updates)
