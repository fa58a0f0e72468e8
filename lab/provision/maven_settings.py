"""Maven's user settings: the mirrors, proxies and servers of ~/.m2/settings.xml."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

from lab.errors import LabError
from lab.provision.redact import Credentials, with_credentials


@dataclass(frozen=True)
class Mirror:
    """A mirror of repositories; `of` is Maven's own pattern ("central", "*,!local", "external:*")."""

    id: str
    of: str
    url: str

    def serves(self, repository: str) -> bool:
        """Whether this mirror stands in for the remote repository of that id."""
        patterns = [pattern.strip() for pattern in self.of.split(",")]
        return f"!{repository}" not in patterns and any(p in (repository, "*", "external:*") for p in patterns)


@dataclass(frozen=True)
class Proxy:
    """A proxy; `bypass` holds globs of host names that don't go through it."""

    protocol: str
    url: str
    bypass: tuple[str, ...] = ()


@dataclass(frozen=True)
class MavenSettings:
    mirrors: tuple[Mirror, ...] = ()
    proxies: tuple[Proxy, ...] = ()
    servers: Mapping[str, Credentials] = field(default_factory=dict)  # by the id of a mirror or repository

    def mirror(self, repository: str) -> Mirror | None:
        """The mirror of that repository: one that names it alone, else the first whose pattern fits."""
        exact = (mirror for mirror in self.mirrors if mirror.of == repository)
        fitting = (mirror for mirror in self.mirrors if mirror.serves(repository))
        return next(exact, None) or next(fitting, None)

    def proxy(self, url: str) -> str | None:
        """The proxy for `url`, if any: one declared for its protocol, else another."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        fitting = [p for p in self.proxies if not any(fnmatch(host, glob) for glob in p.bypass)]
        return next((p.url for p in sorted(fitting, key=lambda p: p.protocol != parts.scheme)), None)


def read(path: Path, env: Mapping[str, str] = os.environ) -> MavenSettings:
    """The settings in that file, empty where there is none; LabError when it is not XML.

    Passwords that Maven encrypted ("{…}") are left out: their key is Maven's alone.
    """
    try:
        root = ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 (the user's own file)
    except FileNotFoundError:
        return MavenSettings()
    except (ET.ParseError, OSError, UnicodeError) as error:
        raise LabError(f"{path} can't be read ({error}): correct it, or move it away") from None

    def items(kind: str) -> Iterator[dict[str, str]]:
        for element in root.iterfind(f"{{*}}{kind}/{{*}}*"):
            yield {child.tag.rpartition("}")[2]: _interpolated(child.text or "", env) for child in element}

    return MavenSettings(
        mirrors=tuple(
            Mirror(item.get("id", ""), item["mirrorOf"], item["url"].rstrip("/"))
            for item in items("mirrors")
            if {"mirrorOf", "url"} <= item.keys() and item.get("blocked") != "true"
        ),
        proxies=tuple(
            _proxy(item) for item in items("proxies") if "host" in item and item.get("active", "true") == "true"
        ),
        servers={
            item["id"]: (item["username"], item["password"])
            for item in items("servers")
            if {"id", "username", "password"} <= item.keys() and not re.fullmatch(r".*\{.+\}.*", item["password"])
        },
    )


def _proxy(item: Mapping[str, str]) -> Proxy:
    url = f"http://{item['host']}:{item.get('port', '8080')}"  # the proxy itself is spoken to in plain HTTP
    if "username" in item:
        url = with_credentials(url, (item["username"], item.get("password", "")))
    return Proxy(item.get("protocol", "http"), url, tuple(filter(None, item.get("nonProxyHosts", "").split("|"))))


def _interpolated(text: str, env: Mapping[str, str]) -> str:
    """`${env.NAME}` and `${user.home}` put in, as Maven does it."""
    values = {f"env.{name}": value for name, value in env.items()} | {"user.home": str(Path.home())}
    return re.sub(r"\$\{([^}]+)\}", lambda match: values.get(match[1], match[0]), text.strip())
