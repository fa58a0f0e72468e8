"""What an engine is given to sign on at one of the gateway's doors, and what the gateway noted of it afterwards."""

from __future__ import annotations

import json
import re
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from lab.catalogs import profiles
from lab.errors import LabError
from lab.model import Access

TOKENS, CREDENTIALS = "oauth/tokens", "/credentials"
BY = ("credential", "token", "pat", "pat-credential", "key-pair", "external", "sigv4", "nothing")
REGION, SERVICE = "us-east-1", "s3tables"  # of signed requests
HIDDEN = "(a secret of this lab)"
_COMMIT = re.compile(r"/tables/[^/]+$|/transactions/commit$")
_SECONDS = 30.0  # within which the record must show a request that was answered


@dataclass(frozen=True)
class Entry:
    """How one session comes in: what engines of any kind are told, each in its own words."""

    uri: str  # of the catalog, by a door of this session's own
    terms: str  # what that acts like, for the record
    tag: str  # by which the gateway's record tells its requests from others
    scope: str
    credential: str = field(default="", repr=False)  # ID:SECRET, or a secret alone
    token: str = field(default="", repr=False)
    aws: tuple[str, str] = field(default=("", ""), repr=False)

    def told(self, settings: dict[str, str]) -> dict[str, str]:
        """Settings as they may be recorded: without secrets, and without what is this session's alone."""
        secret = {value for value in (self.credential, *self.credential.split(":"), self.token, *self.aws) if value}
        return {
            key: HIDDEN if value in secret else f"…/{self.terms}" if value.startswith(self.uri) else value
            for key, value in settings.items()
        }

    @property
    def token_uri(self) -> str:
        """The token endpoint, which is where clients look for it that are told none."""
        return f"{self.uri}/v1/{TOKENS}"

    @property
    def signed(self) -> bool:
        """Whether its requests are signed by SigV4."""
        return bool(self.aws[0])

    @property
    def secrets(self) -> set[str]:
        return {value for value in (self.credential.rpartition(":")[2], self.token, self.aws[1]) if value}


@dataclass(frozen=True)
class SignOn:
    """A lab's secret, and the file in which its gateway notes each request."""

    secret: str = field(repr=False)
    record: str

    def entry(self, access: Access, uri: str, tag: str) -> Entry:
        """What a session is given, `tag` being its own. Raises LabError for a door that can't be.

        uri: the gateway's.
        """
        from lab.catalogs.keyring import Caller, Keyring  # loads what does the cryptography: most runs need none

        keys, name = Keyring(self.secret), profiles.tagged(access.profile, tag)
        door = profiles.door(name)
        roles = door.profile.principals.get(access.principal)
        if roles is None:
            known = ", ".join(door.profile.principals)
            raise LabError(f"{door.profile.name} knows no principal {access.principal!r}; there are: {known}")
        who = Caller(access.principal, roles[0], access.by)
        scope = door.profile.scope.replace("{role}", who.role)
        of, seconds = door.profile.name, door.seconds("token-seconds")
        shown: dict[str, Any] = {}
        match access.by:
            case "credential":
                shown["credential"] = f"{who.principal}:{keys.client_secret(who.principal)}"
            case "pat-credential":
                shown["credential"] = keys.pat(who.principal)
            case "key-pair":
                shown["credential"] = keys.key_pair_token(of, who.principal)
            case "token":
                shown["token"] = keys.token(of, who, seconds)
            case "pat":
                shown["token"] = keys.pat(who.principal)
            case "external":
                shown["token"] = keys.external(of, who, seconds)
            case "sigv4":
                shown["aws"] = keys.aws(who.principal)
        return Entry(f"{uri}/{name}", access.profile, tag, scope, **shown)

    def asked(self, entry: Entry, offset: int) -> tuple[dict[str, Any], int]:
        """What the gateway noted of a session since `offset` in its record, and the offset now.

        `rules`: claims whose rules refused something, `amended`: those that changed something, `narrowed`: those by
        which vended keys lack something, `tokens`: how many the token endpoint gave out, `keys`: how often a table came
        with keys, `refreshed`: whether new keys alone were got for one, `statuses`: of refused requests. Each once, in
        its order. `commits`: the status of each, so that a 409 before a 200 is a retry.

        Raises LabError when the record does not keep up.
        """
        new, offset = self._until(self._marked(entry), offset)
        noted = (json.loads(line) for line in new.splitlines() if entry.tag.encode() in line)
        lines = [line for line in noted if line.get("tag") == entry.tag]
        return {
            "rules": list(dict.fromkeys(line["rule"] for line in lines if "rule" in line)),
            **{
                how: list(dict.fromkeys(claim for line in lines for claim in line.get(how, ())))
                for how in ("amended", "narrowed")
            },
            "tokens": sum(line["path"].endswith(TOKENS) and line["status"] == 200 for line in lines),
            "keys": sum(line.get("vended", False) and not line["path"].endswith(CREDENTIALS) for line in lines),
            "refreshed": any(line["path"].endswith(CREDENTIALS) and line["status"] == 200 for line in lines),
            "statuses": list(dict.fromkeys(line["status"] for line in lines if "rule" in line)),
            "commits": [line["status"] for line in lines if line["method"] == "POST" and _COMMIT.search(line["path"])],
        }, offset

    def _marked(self, entry: Entry) -> bytes:
        """Has the gateway note a request that no client makes: when that is in the record, so is all before it."""
        mark = secrets.token_hex(8)
        with requests.Session() as http:
            http.trust_env = False
            http.get(f"{entry.uri}/mark/{mark}", timeout=_SECONDS)
        return mark.encode()

    def _until(self, mark: bytes, offset: int) -> tuple[bytes, int]:
        """The record from `offset` up to the line with the mark, and where that line ends."""
        deadline = time.monotonic() + _SECONDS
        with Path(self.record).open("rb") as file:
            while True:
                file.seek(offset)
                new = file.read()
                if (place := new.find(mark)) >= 0 and (end := new.find(b"\n", place)) >= 0:
                    return new[: new.rfind(b"\n", 0, place) + 1], offset + end + 1
                if time.monotonic() > deadline:
                    raise LabError(f"the gateway's record stands still; read {self.record}")
                time.sleep(0.005)
