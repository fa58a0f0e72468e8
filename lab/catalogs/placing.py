"""The gateway's stage that keeps tables below the warehouse, at every door and at the open one.

The reference catalog takes any location; a table that is said to lie at the warehouse itself, or above it, would be
vended keys of all tables. It is refused as Polaris does that. Two tables of one location, or one within another's, are
not told apart: that takes a look at all tables, and a nested namespace lies by default within a table of its name.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.catalogs.operations import CONTROL, Malformed, Operation, climbs, operation
from lab.catalogs.proxy import Forward, Request, Response, error

_SCHEMES = ("s3", "s3a", "s3n")
_OF_NAMESPACES = ("CREATE_NAMESPACE", "UPDATE_NAMESPACE_PROPERTIES")


class Placing:
    """The stage. `root`: where the warehouse lies (`s3://bucket/path`); empty where the catalog itself sees to it."""

    def __init__(self, root: str) -> None:
        self._root = root

    async def __call__(self, request: Request, forward: Forward) -> Response:
        try:
            asked = operation(request)
        except Malformed as reason:
            return error(400, "BadRequestException", str(reason))
        wrong = [one for one in locations(asked) if not below(one, self._root)] if asked and self._root else []
        return refused(wrong[0], self._root) if wrong else await forward(request)


def refused(location: str, root: str) -> Response:
    """403 in Polaris's words."""
    message = f"Invalid locations '[{location}]': {location} is not in the list of allowed locations: [{root}/]"
    return error(403, "ForbiddenException", message)


def locations(asked: Operation) -> Iterator[str]:
    """Each location that a client names for a table or a namespace. A view's is vended no keys."""
    (name, *_), body = asked.names, asked.body
    if name.startswith("CREATE_TABLE") and body.get("location"):
        yield str(body["location"])
    for part in ("properties", "updates") if name in _OF_NAMESPACES else ():
        if location := (body.get(part) or {}).get("location"):
            yield str(location)
    yield from (str(one.get("location")) for commit in asked.commits for one in commit.of("set-location"))


def place(location: str) -> tuple[str, str]:
    """Bucket and key prefix of a location, read to the letter: no fragment, no query. Raises ValueError."""
    scheme, _, rest = location.partition("://")
    bucket, _, path = rest.partition("/")
    prefix = path.strip("/")
    if scheme not in _SCHEMES or not bucket or not prefix or climbs(prefix) or CONTROL.search(location):
        raise ValueError("not a location below a bucket")
    return bucket, prefix


def below(location: str, root: str) -> bool:
    """Whether it lies below the root: neither the root itself, nor above or beside it. Slashes count once."""
    try:
        found, least = ([part for part in "/".join(place(one)).split("/") if part] for one in (location, root))
    except ValueError:
        return False
    return len(found) > len(least) and found[: len(least)] == least
