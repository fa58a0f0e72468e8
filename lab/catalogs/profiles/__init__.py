"""A vendor's rules as data: one file of this folder each, and the doors by which engines meet them.

    title = "…"                  what acts like this
    extends = "horizon"          a profile whose parts hold here too, unless this one says otherwise
    scope = "session:role:{role}"  what a client asks the token endpoint for
    [settings]                   see SETTINGS
    [principals]                 engineer = ["ENGINEER"]: its roles, the first is active unless another is asked for
    [[roles.ENGINEER]]           a grant: `on` (glob of namespace.table), `privileges`, `future`
    [needs]                      LOAD_TABLE = ["SELECT"]: privileges that an operation takes, where not the usual ones
    [[rules]]                    `id` (the claim's), `source`, `trigger` (see `triggers.py`) with its own words, and
                                 `status`, `type`, `message` of the refusal; or `amend` instead of a refusal
                                 `beyond`: engines for which it refuses more than the claim, and why

A door is a profile's name, with what is otherwise than in its file, and the last part of the URI that an engine is
given for its catalog: `http://127.0.0.1:…/horizon~off=W-no-ctas~token-seconds=4`.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lab.errors import LabError


@dataclass(frozen=True)
class Setting:
    """What a setting is where nobody says otherwise, and what it may be: in words, and as a check."""

    default: str
    takes: str
    reads: Callable[[str], bool] = field(repr=False)


def _number(default: str, least: int, most: int, kind: Callable[[str], float] = float) -> Setting:
    def reads(value: str) -> bool:
        try:
            return least <= kind(value) <= most
        except ValueError:
            return False

    return Setting(default, f"{'whole numbers' if kind is int else 'numbers'} from {least} to {most}", reads)


def _choice(default: str, *others: str) -> Setting:
    return Setting(default, " or ".join((default, *others)), lambda value: value in (default, *others))


def _claim(default: str) -> Setting:
    return Setting(default, "a claim's id", lambda value: bool(re.fullmatch(r"[\w-]+", value)))


def _actions() -> Setting:
    def reads(value: str) -> bool:
        from lab.catalogs.vending import actions  # loads what speaks HTTP: most who ask for a setting need none

        try:
            return actions({"": value}, "") is not None
        except ValueError:
            return False

    return Setting("", "S3 actions that a session has, comma-separated", reads)


_DAY = 86_400
SETTINGS: Mapping[str, Setting] = {
    "token-seconds": _number("3600", -_DAY, 365 * _DAY),  # how long a token of the token endpoint lives; or is expired
    "expired-status": _choice("401", "419"),  # what an expired token is answered with; the REST specification has 419
    # how long vended keys live: 900 or more, or the store's own `SHORTEST_SECONDS`
    "vended-seconds": _number("3600", 1, 7 * _DAY, int),
    "vended-refresh": _choice("endpoint", "none"),  # where a client is told to get new keys; none: nowhere
    "vending-deny": _actions(),  # what vended sessions lack
    "vending-claim": _claim("H-delete-403"),  # whose rule it is that they lack them
    "shown-commits": _number("0", 0, 10**9, int),  # of a loaded table so many snapshots, the newest; 0: all
    "lag-seconds": _number("0", 0, 365 * _DAY),  # how long a commit made elsewhere stays unseen
    # of one table: passed on as its commit, or `whole` (see `transactions.py`)
    "transactions": _choice("single", "whole"),
    "token-claim": _claim("H-token-expiry"),  # whose rule a refused token is
    "privilege-claim": _claim("H-privileges"),
}
_CHANGE, _OFF, _TAG = "~", "off", "tag"
_TABLES = ("settings", "principals", "roles", "needs")
_PARTS = {"title", "extends", "scope", "rules", *_TABLES}
_RULE = {"id", "source", "trigger", "amend", "status", "type", "message", "beyond"}
_LEAST, _MOST = 400, 599  # statuses of refusals
_KINDS = {str: "text", int: "whole number", bool: "true or false", list: "list", dict: "table"}
_OF = {str: str, int: int, bool: bool, Sequence[str]: list, Mapping[str, str]: dict}  # a word's annotation, and TOML's
PRIVILEGES = (
    *("USAGE", "SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "OWNERSHIP"),
    *("CREATE SCHEMA", "CREATE ICEBERG TABLE", "CREATE VIEW"),
)
FILES = Path(__file__).parent


@dataclass(frozen=True)
class Grant:
    """Privileges on the tables and namespaces that `on` matches; on those made later too, if it is `future`."""

    on: str
    privileges: frozenset[str]
    future: bool = True


@dataclass(frozen=True)
class Rule:
    """What a vendor refuses, or changes without a word."""

    id: str
    source: str
    trigger: str
    words: Mapping[str, Any]  # the trigger's own
    status: int
    type: str
    message: str
    amends: bool
    beyond: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Profile:
    """A file of this folder."""

    name: str
    title: str
    scope: str
    settings: Mapping[str, str]
    principals: Mapping[str, tuple[str, ...]]
    roles: Mapping[str, tuple[Grant, ...]]
    needs: Mapping[str, tuple[str, ...]]
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Door:
    """A profile as it holds for who came in here. `tag` tells one session's requests from another's."""

    name: str
    profile: Profile = field(repr=False)
    settings: Mapping[str, str]
    rules: tuple[Rule, ...] = field(repr=False)
    without: frozenset[str] = frozenset()  # claims whose rules are taken away
    tag: str = ""

    def seconds(self, setting: str) -> float:
        return float(self.settings[setting])

    def off(self, claim: str) -> bool:
        """Whether the rules of this claim are taken away."""
        return claim in self.without


def tagged(terms: str, tag: str) -> str:
    """The door of one session under these terms."""
    return f"{terms}{_CHANGE}{_TAG}={tag}"


@lru_cache(256)
def door(segment: str) -> Door:
    """A profile with its changes, by a raw segment of a path. Raises LabError that says what can be changed."""
    name = unquote(segment)
    of, *changes = name.split(_CHANGE)
    found = known().get(of)
    if found is None:
        raise LabError(f"no profile is called {of!r}; there are: {', '.join(known())}")
    settings, off, tag = {**found.settings}, set(), ""
    for change in changes:
        what, _, value = change.partition("=")
        if what == _OFF:
            off.add(value)
        elif what == _TAG:
            tag = value
        else:
            settings |= _checked(name, {what: value}, f"change {_OFF}, ")
    claims = {rule.id for rule in found.rules} | {settings[f"{of}-claim"] for of in ("token", "privilege", "vending")}
    if unknown := off - claims:
        raise LabError(f"{of} has no rule {', '.join(sorted(unknown))}; it has {', '.join(sorted(claims))}")
    if settings["vending-claim"] in off:
        settings["vending-deny"] = ""
    return Door(name, found, settings, tuple(rule for rule in found.rules if rule.id not in off), frozenset(off), tag)


@cache
def known() -> Mapping[str, Profile]:
    """All profiles by name. Raises LabError that says what is wrong with a file."""
    return {file.stem: _profile(file.stem, _declared(file)) for file in sorted(FILES.glob("*.toml"))}


def _declared(file: Path, by: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a file says, with what it extends. by: the files that extend it, the first one first."""
    if file.name in by:
        raise LabError(f"{by[0]}: it extends itself, by {', '.join((*by[1:], file.name))}; let it extend another")
    try:
        declared = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as reason:
        raise LabError(f"{file.name}: {reason}") from None
    if unknown := sorted(declared.keys() - _PARTS):
        raise LabError(f"{file.name}: nothing reads {', '.join(unknown)}; remove it")
    _kinds(file.name, declared, title=str, extends=str, scope=str, rules=list, **dict.fromkeys(_TABLES, dict))
    if of := declared.pop("extends", None):
        base = _declared(file.with_name(f"{of}.toml"), (*by, file.name))
        for part in _TABLES:
            declared[part] = {**base.get(part, {}), **declared.get(part, {})}
        declared = {**base, **declared, "rules": [*base.get("rules", []), *declared.get("rules", [])]}
    return declared


def _checked(where: str, given: Mapping[str, Any], there_are: str) -> dict[str, str]:
    """Settings as they are kept. Raises LabError."""
    if unknown := sorted(given.keys() - SETTINGS.keys()):
        raise LabError(f"{where}: nothing reads {', '.join(map(repr, unknown))}; {there_are}{', '.join(SETTINGS)}")
    settings = {key: str(value) for key, value in given.items()}
    for key, value in settings.items():
        if not SETTINGS[key].reads(value):
            raise LabError(f"{where}: {key} is not {value!r}; it takes {SETTINGS[key].takes}")
    return settings


def _profile(name: str, declared: Mapping[str, Any]) -> Profile:
    settings = _checked(f"{name}.toml", declared.get("settings", {}), "settings are ")
    rules = tuple(_rule(name, each) for each in declared.get("rules", []))
    needs = {op: _privileges(f"{name}.toml, needs", each) for op, each in declared.get("needs", {}).items()}
    roles = {role: _grants(f"{name}.toml, role {role}", each) for role, each in declared.get("roles", {}).items()}
    principals = {who: _texts(held) for who, held in declared.get("principals", {}).items()}
    if "title" not in declared or not principals or not all(principals.values()):
        raise LabError(f'{name}.toml: add a title, and [principals] with a role each: engineer = ["ENGINEER"]')
    if unknown := sorted({role for held in principals.values() for role in held} - roles.keys()) if roles else ():
        raise LabError(f"{name}.toml: principals have roles {', '.join(unknown)}; add [[roles.{unknown[0]}]] to it")
    return Profile(
        name=name,
        title=declared["title"],
        scope=declared.get("scope", "{role}"),
        settings={**{key: setting.default for key, setting in SETTINGS.items()}, **settings},
        principals=principals,
        roles=roles,
        needs=needs,
        rules=rules,
    )


def _texts(declared: Any) -> tuple[str, ...]:
    """A list's texts; none where it is anything else."""
    texts = declared if isinstance(declared, list) else []
    return tuple(texts) if all(isinstance(one, str) for one in texts) else ()


def _kinds(where: str, declared: Mapping[str, Any], **kinds: type) -> None:
    """Raises LabError where a part is of another kind."""
    if wrong := [key for key, kind in kinds.items() if key in declared and type(declared[key]) is not kind]:
        raise LabError(f"{where}: {wrong[0]} is no {_KINDS[kinds[wrong[0]]]}; see the others in {FILES.name}/")


def _grants(where: str, declared: Any) -> tuple[Grant, ...]:
    grants = []
    for each in declared if isinstance(declared, list) else [declared]:
        given = each if isinstance(each, dict) else {}
        if not {"on", "privileges"} <= given.keys() <= {"on", "privileges", "future"}:
            raise LabError(f"{where}: a grant has on and privileges, and maybe future; write [[roles.ROLE]] above them")
        _kinds(where, given, on=str, privileges=list, future=bool)
        grants.append(Grant(given["on"], frozenset(_privileges(where, given["privileges"])), given.get("future", True)))
    return tuple(grants)


def _privileges(where: str, declared: Any) -> tuple[str, ...]:
    _kinds(where, {"privileges": declared}, privileges=list)
    if unknown := [str(one) for one in declared if one not in PRIVILEGES]:
        raise LabError(f"{where}: there is no privilege {', '.join(unknown)}; there are: {', '.join(PRIVILEGES)}")
    return tuple(declared)


def _rule(name: str, declared: Any) -> Rule:
    from lab.catalogs import amends, triggers  # load what speaks HTTP and reads manifests; doors alone need them

    if not isinstance(declared, dict):
        raise LabError(f"{name}.toml: a rule is a table; write [[rules]] above it")
    where = f"{name}.toml, rule {declared.get('id')}"
    amending = "amend" in declared
    wanted = {"id", "source", "amend"} if amending else {"id", "source", "trigger", "status", "type", "message"}
    if missing := sorted(wanted - declared.keys()):
        raise LabError(f"{where}: add {', '.join(missing)}")
    kinds = {"id": str, "source": str, "trigger": str, "amend": str, "status": int, "type": str, "message": str}
    _kinds(where, declared, **kinds, beyond=dict)
    if not _LEAST <= declared.get("status", _LEAST) <= _MOST:
        raise LabError(f"{where}: status is {declared['status']}; a refusal's is from {_LEAST} to {_MOST}")
    rule = Rule(
        id=declared["id"],
        source=declared["source"],
        trigger=declared["amend" if amending else "trigger"],
        words={key: value for key, value in declared.items() if key not in _RULE},
        status=declared.get("status", 200),
        type=declared.get("type", ""),
        message=declared.get("message", ""),
        amends=amending,
        beyond=declared.get("beyond", {}),
    )
    _worded(where, rule, {**amends.REQUESTS, **amends.RESPONSES} if amending else triggers.TRIGGERS)
    return rule


def _worded(where: str, rule: Rule, functions: Mapping[str, Callable[..., Any]]) -> None:
    """Raises LabError where a rule names no function, or has not the words that it takes, each of its kind."""
    what = "amend" if rule.amends else "trigger"
    if rule.trigger not in functions:
        raise LabError(f"{where}: there is no {what} {rule.trigger!r}; there are: {', '.join(functions)}")
    takes = list(inspect.signature(functions[rule.trigger], eval_str=True).parameters.values())[1 + rule.amends :]
    words = {one.name: one for one in takes if one.name not in ("body", "table")}
    takes_words = f"{what} {rule.trigger} takes {', '.join(words) or 'no words'}"
    if unknown := sorted(rule.words.keys() - words.keys()):
        raise LabError(f"{where}: nothing reads {', '.join(unknown)}; {takes_words}")
    if missing := sorted(key for key, one in words.items() if one.default is one.empty and key not in rule.words):
        raise LabError(f"{where}: add {', '.join(missing)}; {takes_words}")
    kinds = {key: kind for key, one in words.items() for of, kind in _OF.items() if one.annotation == of}
    _kinds(where, rule.words, **kinds)
