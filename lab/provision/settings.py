"""What a download obeys: pip's and Maven's own settings, in one place, and as `doctor` shows them.

No registry's address stands in this code: defaults are those of pypi_simple and jgo.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from lab.provision import maven_settings, pip_settings
from lab.provision.maven_settings import MavenSettings
from lab.provision.redact import Credentials, redacted, split_credentials

_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


@dataclass(frozen=True)
class Settings:
    """Addresses and how they are reached. Credentials stand in `credentials`, not in an index's or repository's URL."""

    indexes: tuple[str, ...]  # asked in this order; none with pip's no-index
    repositories: tuple[tuple[str, str], ...]  # Maven's: (id, URL), mirrors put in
    find_links: tuple[Path, ...] = ()  # folders of distributions
    proxy: str | None = None  # pip's; where there is none, the environment's count
    certificates: str | None = None  # a bundle of CAs; None: the default of requests
    client_certificate: str | None = None
    trusted_hosts: frozenset[str] = frozenset()  # host or host:port whose certificate isn't looked at
    maven: MavenSettings = field(default_factory=MavenSettings)
    credentials: Mapping[str, Credentials] = field(default_factory=dict)  # by host[:port]

    @classmethod
    def read(cls, env: Mapping[str, str] = os.environ, home: Path | None = None) -> Settings:
        """The settings of this user and machine; LabError when a file of theirs can't be read."""
        from jgo.maven import MavenContext
        from pypi_simple import PYPI_SIMPLE_ENDPOINT

        pip = pip_settings.read(env)
        maven = maven_settings.read((home or Path.home()) / ".m2" / "settings.xml", env)
        credentials: dict[str, Credentials] = {}

        def known(url: str, own: Credentials | None = None) -> str:
            bare, embedded = split_credentials(url)
            if found := own or embedded:
                credentials[urlsplit(bare).netloc] = found
            return bare

        repositories = []
        for name, url in MavenContext().remote_repos.items():
            mirror = maven.mirror(name)
            chosen = mirror.url if mirror else url
            repositories.append((name, known(chosen, maven.servers.get(mirror.id if mirror else name))))
        indexes = [] if _on(pip.get("no-index")) else [pip.get("index-url") or PYPI_SIMPLE_ENDPOINT]
        if indexes:
            indexes += pip.get("extra-index-url", "").split()
        return cls(
            indexes=tuple(known(url) for url in indexes),
            repositories=tuple(repositories),
            find_links=tuple(filter(Path.is_dir, map(_folder, pip.get("find-links", "").split()))),
            proxy=pip.get("proxy"),
            certificates=next(filter(None, [pip.get("cert"), *map(env.get, _CA_VARIABLES)]), None),
            client_certificate=pip.get("client-cert"),
            trusted_hosts=frozenset(pip.get("trusted-host", "").split()),
            maven=maven,
            credentials=credentials,
        )

    def shown(self, env: Mapping[str, str] = os.environ) -> list[tuple[str, str]]:
        """What `doctor` shows, as (label, value), without secrets."""
        rows: list[tuple[str, str | None]] = [
            *(("Python index", url) for url in self.indexes or ["none (pip's no-index)"]),
            *(("folder of distributions", str(folder)) for folder in self.find_links),
            *((f"Maven repository {name}", url) for name, url in self.repositories),
            ("pip's proxy", self.proxy),
            *((f"Maven's proxy for {proxy.protocol}", proxy.url) for proxy in self.maven.proxies),
            *((name, env.get(name) or env.get(name.lower())) for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")),
            ("CA certificates", self.certificates or "those that come with Python's requests"),
            ("client certificate", self.client_certificate),
            *(("trusted without certificate", host) for host in sorted(self.trusted_hosts)),
            *(("credentials known for", host) for host in sorted(self.credentials)),
        ]
        return [(label, redacted(value)) for label, value in rows if value]


def _on(value: str | None) -> bool:
    return (value or "").lower() in ("1", "true", "yes", "on")


def _folder(link: str) -> Path:
    """A find-links entry as a folder; a page on the web becomes a path that doesn't exist."""
    return Path(url2pathname(urlsplit(link).path)) if link.startswith("file:") else Path(link).expanduser()
