"""Addresses without their secrets."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit, urlunsplit

Credentials = tuple[str, str]  # user, password

_USER = re.compile(r"(?<=//)[^/@\s]+@")
_QUERY = re.compile(r"(?<=\S)\?[^\s'\")]+")


def redacted(text: str) -> str:
    """`text` with the user part of every URL in it, and every query (a signature may be in it), struck out."""
    return _QUERY.sub("?***", _USER.sub("***@", text))


def split_credentials(url: str) -> tuple[str, Credentials | None]:
    """`url` without its user part, and that part as credentials (quoting undone)."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    name, _, password = user.partition(":")
    return urlunsplit(parts._replace(netloc=host)), (unquote(name), unquote(password))


def with_credentials(url: str, credentials: Credentials) -> str:
    """`url` with a user part: the way proxies are told theirs."""
    parts = urlsplit(url)
    user = ":".join(quote(part, safe="") for part in credentials)
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}"))
