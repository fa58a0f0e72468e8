"""The lab's own plain client of an Iceberg REST catalog: to look at tables, and to make and clear namespaces.

It stands beside the engines, so that what they wrote is judged by none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import requests

from lab.errors import LabError

SECONDS = 60  # until an unanswered request is given up
DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}


class RestError(LabError):
    """The catalog's refusal: its HTTP status, and the type and message of its error model."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(f"the catalog answered {status} {kind}: {message}")
        self.status, self.kind = status, kind


@dataclass(frozen=True)
class LoadedTable:
    """A table as the catalog gives it.

    `metadata` is the whole metadata.json; `credentials` are the S3 properties (`s3.access-key-id`,
    `s3.endpoint`, …) vended for the table's files.
    """

    metadata_location: str
    metadata: Mapping[str, Any] = field(repr=False)
    credentials: Mapping[str, str] = field(repr=False)


class RestCatalog:
    """Speaks to the catalog at `uri`. Every method raises RestError, and LabError if nobody answers."""

    def __init__(self, uri: str, warehouse: str) -> None:
        self._base = f"{uri.rstrip('/')}/v1"
        self._http = requests.Session()
        self._http.trust_env = False  # a proxy of the host's must not come between two local processes
        config = self._ask("GET", "config", params={"warehouse": warehouse})
        properties = {**config.get("defaults", {}), **config.get("overrides", {})}
        self._separator = unquote(properties.get("namespace-separator", "%1F"))
        if prefix := properties.get("prefix"):
            self._base += f"/{quote(prefix, safe='')}"

    def load_table(self, namespace: str, table: str) -> LoadedTable:
        """Ask for vended credentials as engines do. A nested namespace is dotted."""
        answer = self._ask("GET", self._table(namespace, table), headers=DELEGATION)
        metadata = answer["metadata"]
        credentials = dict(answer.get("config", {}))
        fitting = [c for c in answer.get("storage-credentials", []) if metadata["location"].startswith(c["prefix"])]
        if fitting:
            credentials |= max(fitting, key=lambda vended: len(vended["prefix"]))["config"]
        return LoadedTable(answer["metadata-location"], metadata, credentials)

    def create_namespace(self, namespace: str) -> None:
        self._ask("POST", "namespaces", json={"namespace": namespace.split(".")})

    def namespaces(self, within: str = "") -> list[str]:
        """Those of the first level, or those of the next one within another, dotted."""
        asked = {"parent": within.replace(".", self._separator)} if within else {}
        return [".".join(levels) for levels in self._ask("GET", "namespaces", params=asked).get("namespaces", [])]

    def tables(self, namespace: str) -> list[str]:
        found = self._ask("GET", f"{self._namespace(namespace)}/tables").get("identifiers", [])
        return [table["name"] for table in found]

    def drop_namespace(self, namespace: str) -> None:
        """Drop it with all its tables; their files are purged where the catalog does that."""
        for table in self.tables(namespace):
            self._ask("DELETE", self._table(namespace, table), params={"purgeRequested": "true"})
        self._ask("DELETE", self._namespace(namespace))

    def _namespace(self, namespace: str) -> str:
        return f"namespaces/{quote(namespace.replace('.', self._separator), safe='')}"

    def _table(self, namespace: str, table: str) -> str:
        return f"{self._namespace(namespace)}/tables/{quote(table, safe='')}"

    def _ask(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        try:
            answer = self._http.request(method, f"{self._base}/{path}", timeout=SECONDS, **request)
        except requests.RequestException as failure:
            raise LabError(f"the catalog at {self._base} does not answer ({type(failure).__name__})") from None
        if not answer.ok:
            raise _refusal(answer)
        body: dict[str, Any] = answer.json() if answer.content else {}
        return body


def _refusal(answer: requests.Response) -> RestError:
    try:
        error = answer.json()["error"]
        return RestError(answer.status_code, error["type"], error["message"])
    except (ValueError, LookupError, TypeError):
        return RestError(answer.status_code, "without an error model", answer.reason)
