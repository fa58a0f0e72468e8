"""Where a locked file can be fetched from, and the HTTP session that fetches it."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from jgo.maven import MavenContext
from pypi_simple import DistributionPackage, NoSuchProjectError, PyPISimple
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from requests.utils import get_environ_proxies, get_netrc_auth, select_proxy
from urllib3 import Retry

from lab.provision.artefact import Maven, Pypi, parse
from lab.provision.lock import LockedFile
from lab.provision.settings import Settings

TIMEOUT = (10, 60)  # seconds to connect, and between two bytes
BACKOFF = 0.5  # seconds before another attempt; doubles with each that failed


class Session(requests.Session):
    """A session that obeys `Settings` alone: requests itself would let variables win over pip's and Maven's files."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.auth = _Known(settings)
        retry = Retry(3, backoff_factor=BACKOFF, status_forcelist=(429, 500, 502, 503, 504), raise_on_status=False)
        for scheme in ("http://", "https://"):
            self.mount(scheme, HTTPAdapter(max_retries=retry))
        self._repository_hosts = {urlsplit(url).netloc for _, url in settings.repositories}

    def merge_environment_settings(  # type: ignore[override]
        self, url: str, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> MutableMapping[str, Any]:
        host = urlsplit(url).netloc
        maven = self.settings.maven.proxy(url) if host in self._repository_hosts else None
        proxy = maven or self.settings.proxy or select_proxy(url, get_environ_proxies(url))
        trusted = {host, urlsplit(url).hostname} & self.settings.trusted_hosts
        return {
            "proxies": {"http": proxy, "https": proxy} if proxy else {},
            "stream": bool(stream),
            "verify": False if trusted else self.settings.certificates or True,
            "cert": self.settings.client_certificate,
        }


class _Known(AuthBase):
    """Basic authentication where the settings or the user's netrc know the host."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        url = request.url or ""
        credentials = self._settings.credentials.get(urlsplit(url).netloc) or get_netrc_auth(url)
        return HTTPBasicAuth(*credentials)(request) if credentials else request


class Sources:
    """Looks files up in the user's index and repositories."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.session = Session(settings)
        self._pages: dict[tuple[str, str], list[DistributionPackage]] = {}

    def urls(self, file: LockedFile) -> Iterator[str | Path]:
        """Where `file` may be had, likeliest first: a path of this machine or a URL without credentials.

        Lazily, for a lookup asks the index. Raises requests' errors.
        """
        named = parse(file.artefact)
        if isinstance(named, Maven):
            yield from (f"{url}/{maven_path(named)}" for _, url in self.settings.repositories)
        elif isinstance(named, Pypi):
            yield from filter(Path.is_file, (folder / file.name for folder in self.settings.find_links))
            for index in self.settings.indexes:
                yield from (found.url for found in self.distributions(index, named.name) if found.filename == file.name)

    def distributions(self, index: str, project: str) -> list[DistributionPackage]:
        """All files of a project in that index; its page is asked for once."""
        if (index, project) not in self._pages:
            try:
                page = PyPISimple(index, session=self.session).get_project_page(project, timeout=TIMEOUT)
                self._pages[index, project] = page.packages
            except NoSuchProjectError:
                self._pages[index, project] = []
        return self._pages[index, project]


@cache
def _context() -> MavenContext:
    return MavenContext()


def maven_path(named: Maven) -> str:
    """Where a repository keeps an artefact: "io/trino/trino-iceberg/476/trino-iceberg-476.zip"."""
    component = _context().project(named.group, named.artifact).at_version(named.version)
    artifact = component.artifact(named.classifier, named.extension)
    return f"{component.project.path_prefix.as_posix()}/{named.version}/{artifact.filename}"
