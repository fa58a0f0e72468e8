"""Finds the table that somebody wants to look at, without any engine: in the lab that is up, or on disk."""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError, UsageError
from lab.provision import Cache
from lab.runtime import supervisor
from lab.stores import StoreEndpoint
from lab.tables import metadata
from lab.tables.rest import LoadedTable, RestCatalog, RestError
from lab.tables.storage import Files, Folder, Store, disk_path

_SECRETS = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
_MOST_BYTES = 1 << 30  # of a metadata.json on disk: a data file given by mistake is not read


@dataclass(frozen=True)
class Found:
    """What people call the table, its metadata, and where its files are read."""

    name: str
    table: LoadedTable
    files: Files

    @property
    def secrets(self) -> list[str]:
        """What came with the table and must not be shown."""
        return [value for key, value in self.table.credentials.items() if key in _SECRETS]


@contextmanager
def found(states: Path, table: str | None, file: str | None) -> Iterator[Found]:
    """`table` is NAMESPACE.TABLE in the lab that is up, `file` a metadata.json on disk or in that lab's store.

    states: where the lab that is up keeps its state. Raises LabError, with names that are near.
    """
    if file is not None and not file.startswith(("s3://", "s3a://", "s3n://")):
        yield on_disk(disk_path(file))
        return
    with tempfile.TemporaryDirectory() as folder:
        joined = supervisor.join(states, Cache(), Path(folder, "look"))
        if joined is None:
            raise LabError(
                "no lab is up whose table this could be; start one with: iceberg-lab up; or look at a table of your "
                "own by its file: iceberg-lab inspect --metadata FILE"
            )
        with joined as lab:
            if file is not None:
                store = Store(_administrator(lab.store()))
                yield Found(file, LoadedTable(file, metadata.parsed(store.read(file), file), {}), store)
            else:
                where = lab.catalog()
                yield in_catalog(RestCatalog(where.uri, where.warehouse), table or "")


def in_catalog(catalog: RestCatalog, name: str) -> Found:
    namespace, _, table = name.rpartition(".")
    try:
        if not namespace or not table:
            raise RestError(404, "NoSuchTableException", name)
        loaded = catalog.load_table(namespace, table)
    except RestError as error:
        if error.status not in (400, 404):
            raise
        there = [f"{each}.{one}" for each in catalog.namespaces() for one in catalog.tables(each)]
        by_lower = {each.lower(): each for each in there}
        near = [by_lower[each] for each in difflib.get_close_matches(name.lower(), by_lower, 3, 0.5)]
        lines = f"near: {', '.join(near)}" if near else f"there are: {', '.join(there[:10]) or 'none'}"
        raise UsageError(f"no table {name!r} in the lab that is up; {lines}") from None
    return Found(name, loaded, Store(loaded.credentials))


def on_disk(path: Path) -> Found:
    """A metadata.json, its files below the folder above it, whatever location the table had when it was written."""
    if path.is_dir():
        there = (path / "metadata" if (path / "metadata").is_dir() else path).glob("*.metadata.json")
        newest = max(there, key=_version, default=None)
        words = f"; take {newest}" if newest else ""
        raise UsageError(f"{path} is a folder; name the metadata file itself{words}")
    if not path.is_file():
        names = [each.name for each in path.parent.glob("*metadata.json")] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, names, 3, 0.3)
        beside = f"; near: {', '.join(near)}" if near else "; look for …metadata.json in the table's metadata folder"
        raise UsageError(f"there is no file {path}{beside}")
    if path.stat().st_size > _MOST_BYTES:
        raise UsageError(f"{path} is too large for a metadata.json; name the table's …metadata.json")
    content = metadata.parsed(path.read_bytes(), str(path))
    root = path.absolute().parent
    root = root.parent if root.name == "metadata" else root
    return Found(path.name, LoadedTable(str(path), content, {}), Folder(root, str(content.get("location", ""))))


def _version(path: Path) -> tuple[int, str]:
    """`00007-….metadata.json` and `v7.metadata.json` alike: the tenth comes after the ninth."""
    number = re.match(r"v?(\d+)", path.name)
    return int(number[1]) if number else -1, path.name


def _administrator(store: StoreEndpoint) -> dict[str, str]:
    return {
        "s3.endpoint": store.url,
        "s3.access-key-id": store.access_key,
        "s3.secret-access-key": store.secret_key,
        "s3.region": store.region,
    }
