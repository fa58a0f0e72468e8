"""Secrets out of whatever is written: known ones by value, unknown ones by their shape."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

MASK = "«redacted»"

# What engines, SDKs and proxies put into messages: signed URLs, authorisation headers, S3 properties, JWTs.
_NAMED = re.compile(
    r"""(?ix)
    (?P<name>
        x-amz-(?:signature|credential|security-token) | awsaccesskeyid
      | s3\.(?:access-key-id|secret-access-key|session-token)
      | (?:aws_)?(?:access_key_id|secret_access_key|session_token)
      | (?:client|token|shared)[-_.]?secret | access_token | refresh_token | password | credential
    )
    (?P<between>["']?\s*[=:]\s*["']?)
    (?P<value>[^\s"'&,;<>)}\]]+)
    """
)
_SHAPES = re.compile(
    r"""(?x)
      (?<=Bearer\s)[A-Za-z0-9._~+/=-]+
    | (?<=/;token=)[^\s;'"]+
  | (?<=AWS4-HMAC-SHA256\s)Credential=[^\n]+
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?
    | (?<=://)[^/\s@:]+:[^/\s@]+(?=@)
    | \b(?:AKIA|ASIA)[A-Z0-9]{12,}\b
    """
)

# Names of properties whose whole value is a secret, as catalogs, file systems and clouds spell them.
_SECRET_NAME = re.compile(
    r"""(?ix)
      secret | passw(?:or)?d | token | credential | signature | \bsas[-_.]
    | (?:access|account|shared|private|api)[-_.]?key
    """
)
_NO_SECRET = re.compile(r"(?i)true|false|")


class Redactor:
    """Replaces secrets in text and, recursively, in JSON values. `known` may grow while it is in use."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.known = {k for k in known if k}

    def text(self, text: str) -> str:
        for secret in sorted(self.known, key=len, reverse=True):
            text = text.replace(secret, MASK)
        text = _NAMED.sub(rf"\g<name>\g<between>{MASK}", text)
        return _SHAPES.sub(MASK, text)

    def json(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(k): self.json(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.json(v) for v in value]
        return value

    def properties(self, value: Any) -> Any:
        """Somebody's own JSON: as `json`, and the values of names that promise a secret too."""
        text = lru_cache(1 << 16)(self.text)  # a large table says the same names and words over and over

        @cache
        def secret(name: str) -> bool:
            return bool(_SECRET_NAME.search(name))

        def cleaned(value: Any) -> Any:
            if isinstance(value, str):
                return text(value)
            if isinstance(value, dict):
                return {text(k): _masked(v) if secret(k) else cleaned(v) for k, v in value.items()}
            if isinstance(value, list):
                return [cleaned(v) for v in value]
            return value

        return cleaned(value)


def _masked(value: Any) -> Any:
    """A secret's value, or what holds such values: only texts and numbers can be secret, switches are not."""
    if isinstance(value, dict):
        return {k: _masked(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_masked(v) for v in value]
    return value if value is None or _NO_SECRET.fullmatch(str(value)) else MASK
