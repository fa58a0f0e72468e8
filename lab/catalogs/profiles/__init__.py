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

import re
import tomllib
from collections.abc import Callable, Mapping
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
_PARTS = {"title", "extends", "scope", "settings", "principals", "roles", "needs", "rules"}
_RULE = {"id", "source", "trigger", "amend", "status", "type", "message", "beyond"}
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


def _declared(file: Path) -> dict[str, Any]:
    try:
        declared = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as reason:
        raise LabError(f"{file.name}: {reason}") from None
    if unknown := sorted(declared.keys() - _PARTS):
        raise LabError(f"{file.name}: nothing reads {', '.join(unknown)}; remove it")
    if of := declared.pop("extends", None):
        base = _declared(file.with_name(f"{of}.toml"))
        for part in ("settings", "principals", "roles", "needs"):
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
    return Profile(
        name=name,
        title=declared["title"],
        scope=declared.get("scope", "{role}"),
        settings={**{key: setting.default for key, setting in SETTINGS.items()}, **settings},
        principals={who: tuple(roles) for who, roles in declared["principals"].items()},
        roles={
            role: tuple(Grant(g["on"], frozenset(g["privileges"]), g.get("future", True)) for g in grants)
            for role, grants in declared.get("roles", {}).items()
        },
        needs={op: tuple(privileges) for op, privileges in declared.get("needs", {}).items()},
        rules=tuple(_rule(name, each) for each in declared.get("rules", [])),
    )


def _rule(name: str, declared: Mapping[str, Any]) -> Rule:
    amends = "amend" in declared
    wanted = {"id", "source", "amend"} if amends else {"id", "source", "trigger", "status", "type", "message"}
    if missing := sorted(wanted - declared.keys()):
        raise LabError(f"{name}.toml, rule {declared.get('id')}: add {', '.join(missing)}")
    return Rule(
        id=declared["id"],
        source=declared["source"],
        trigger=declared["amend" if amends else "trigger"],
        words={key: value for key, value in declared.items() if key not in _RULE},
        status=declared.get("status", 200),
        type=declared.get("type", ""),
        message=declared.get("message", ""),
        amends=amends,
        beyond=declared.get("beyond", {}),
    )
