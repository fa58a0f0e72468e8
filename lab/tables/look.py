"""The lab's own looks at a table, by name: facts that behaviours declare and documents claim. No engine is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial, update_wrapper
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

from minio import Minio
from minio.error import S3Error

from lab.catalogs.vending import session_name
from lab.stores import StoreEndpoint, access, s3
from lab.stores.access import Access
from lab.tables import puffin, theta
from lab.tables.files import deserialized
from lab.tables.orders import NAMESPACE as ORDERS_AT
from lab.tables.orders import ORDERS_V2
from lab.tables.parquet import Footer, footer
from lab.tables.rest import RestCatalog
from lab.tables.row_ids import moves, overlaps
from lab.tables.storage import Store
from lab.tables.xray import history as snapshots
from lab.tables.xray import referenced, xray
from lab.tables.xray import row_ids as ranges

Look = Callable[[RestCatalog, str, str], dict[str, Any]]
StoreAt = Callable[[], StoreEndpoint]


def history(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """metadata.json: the operation of each snapshot of the main branch, oldest first"""
    found = snapshots(rest.load_table(namespace, table))
    return {"operations": [s.get("summary", {}).get("operation") for s in found]}


def written(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """manifests of the last snapshot: data files added and removed, and each delete file added, by kind"""
    last = xray(rest, namespace, table)[-1]
    added = [file.kind for file in last.added]
    return {
        "operation": last.operation,
        "data_added": added.count("data"),
        "data_removed": sum(file.kind == "data" for file in last.removed),
        "deletes": sorted(kind for kind in added if kind != "data"),
    }


def schema(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """metadata.json: format version, the type of each column, its defaults (initial, write) where it has any, and the
    table's codec property"""
    metadata = rest.load_table(namespace, table).metadata
    (current,) = (s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"])
    ends = ("initial-default", "write-default")
    return {
        "format_version": metadata["format-version"],
        "types": {field["name"]: field["type"] for field in current["fields"]},
        "defaults": {
            f["name"]: [f.get(end) for end in ends] for f in current["fields"] if any(end in f for end in ends)
        },
        "codec": metadata.get("properties", {}).get("write.parquet.compression-codec"),
    }


def row_ids(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """metadata.json and the current manifests: next-row-id, and what of the specification's rules for row ids is
    broken by snapshots and data files"""
    loaded = rest.load_table(namespace, table)
    following = loaded.metadata.get("next-row-id")
    found = moves(loaded.metadata, snapshots(loaded))
    return {"next": following, "breaches": found + overlaps(ranges(loaded), following or 0)}


def names(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """the catalog's own listing: how a case's further namespace, its table and columns are stored, in which case"""
    found = _further(rest, namespace)
    (stored,) = rest.tables(found)
    schema = rest.load_table(found, stored).metadata["schemas"][-1]
    spelling = "upper" if found.isupper() else "lower" if found.islower() else "mixed"
    return {"namespace": spelling, "table": stored, "columns": [field["name"] for field in schema["fields"]]}


def nested(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """the catalog's own listing: which namespaces lie within a case's further one, and which tables in those"""
    outer = _further(rest, namespace)
    within = rest.namespaces(outer)
    return {
        "within": [name.removeprefix(f"{outer}.") for name in within],
        "tables": [stored for name in within for stored in rest.tables(name)],
    }


def _further(rest: RestCatalog, namespace: str) -> str:
    """The namespace of one level that a case made beside its own; some catalogs list those of more levels, too."""
    (found,) = (n for n in rest.namespaces() if n.lower().startswith(f"{namespace}_".lower()) and "." not in n)
    return found


def orphans(store: StoreAt, rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """the store's listing below the table's location against all that its metadata refers to: how many files of data
    and of metadata nobody refers to"""
    loaded = rest.load_table(namespace, table)
    location = loaded.metadata["location"].rstrip("/")
    listed = _listed(s3.client(store()), location)  # by the administrator: a session may lack the right to
    lost = listed - referenced(loaded, Store(loaded.credentials))
    metadata = sum(path.startswith(f"{location}/metadata/") for path in lost)
    return {"data": len(lost) - metadata, "metadata": metadata}


def reach(store: StoreAt, rest: RestCatalog, namespace: str, table: str, beside: tuple[str, str]) -> dict[str, Any]:
    """the table's own vended keys against the store: what they may do below its location, below another table's and
    beside both"""
    own, other = rest.load_table(namespace, table), rest.load_table(*beside)
    keys = s3.session(store(), own.credentials)
    bucket, inside = _place(own.metadata["location"])
    _, elsewhere = _place(other.metadata["location"])
    (_, known), (_, others) = _place(own.metadata_location), _place(other.metadata_location)
    probe = f"{inside}/data/probe"
    asked: Mapping[str, Callable[[], object]] = {
        "get": lambda: keys.get_object(bucket, known).close(),
        "list": lambda: list(keys.list_objects(bucket, f"{inside}/", recursive=True)),
        "put": lambda: keys.put_object(bucket, probe, BytesIO(b"probe"), 5),
        "delete": lambda: keys.remove_object(bucket, probe),
        "other_get": lambda: keys.get_object(bucket, others).close(),
        "other_list": lambda: list(keys.list_objects(bucket, f"{elsewhere}/", recursive=True)),
        "other_put": lambda: keys.put_object(bucket, f"{elsewhere}/data/probe", BytesIO(b"probe"), 5),
        "other_delete": lambda: keys.remove_object(bucket, others),
        "longer_name_put": lambda: keys.put_object(bucket, f"{inside}2/data/probe", BytesIO(b"probe"), 5),
        "bucket_list": lambda: list(keys.list_objects(bucket)),
    }
    return {name: _allowed(ask) for name, ask in asked.items()}


def _allowed(ask: Callable[[], object]) -> bool:
    """Whether the store does it; what it refuses otherwise than for lack of a right is a fault."""
    try:
        ask()
    except S3Error as refusal:
        if refusal.code != "AccessDenied":
            raise
        return False
    return True


def _place(location: str) -> tuple[str, str]:
    """Bucket and key of an s3 location."""
    path = urlsplit(location)
    return path.netloc, path.path.strip("/")


def _listed(admin: Minio, location: str) -> set[str]:
    """The location of every object below s3://bucket/prefix."""
    path = urlsplit(location)
    found = admin.list_objects(path.netloc, f"{path.path.strip('/')}/", recursive=True)
    return {f"{path.scheme}://{path.netloc}/{each.object_name}" for each in found}


def leftovers(store: StoreAt, rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """the store's listing below the namespace against the catalog's: its tables, and how many objects of data and of
    metadata lie where no table is"""
    found = {name: rest.load_table(namespace, name).metadata["location"].rstrip("/") for name in rest.tables(namespace)}
    above = found[table].rpartition("/")[0]
    lost = [
        path
        for path in _listed(s3.client(store()), above)
        if not any(path.startswith(f"{location}/") for location in found.values())
    ]
    metadata = sum("/metadata/" in path for path in lost)
    return {"tables": sorted(name.upper() for name in found), "data": len(lost) - metadata, "metadata": metadata}


def deletes(store: StoreAt, rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """the store's access record: delete requests for the table's objects (a batch is one), the keys that they named as
    far as the record tells, for how many of these no object existed, and how many requests were refused"""
    endpoint, location = store(), rest.load_table(namespace, table).metadata["location"].rstrip("/")
    prefix = urlsplit(location).path.lstrip("/")
    return deletions(access.below(endpoint, s3.client(endpoint), f"{prefix}/", session_name(location)))


def opened(store: StoreAt, rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """the store's access record: how many of the table's Parquet files were read, in whole or in part"""
    endpoint, location = store(), rest.load_table(namespace, table).metadata["location"].rstrip("/")
    prefix = urlsplit(location).path.lstrip("/")
    asked = access.below(endpoint, s3.client(endpoint), f"{prefix}/", session_name(location))
    return {"files": len(readings(asked))}


def readings(requests: Iterable[Access]) -> set[str]:
    """The keys of Parquet files that these requests read, in whole or in part."""
    got = (asked for asked in requests if asked.operation == "GET" and asked.status in (200, 206))
    return {asked.key for asked in got if asked.key.endswith(".parquet")}


def deletions(requests: Iterable[Access]) -> dict[str, Any]:
    """What the requests for one table, in the store's order, tell of deletes. Keys of a refused batch are not told."""
    existing: set[str] = set()
    single = batches = named = absent = refused = 0
    removing: set[str] = set()  # batches that removed anything
    for asked in requests:
        if asked.operation == "POST" and asked.status == 204:  # a key of a batch, told before the batch itself
            removing.add(asked.request)
        elif asked.operation == "DELETE":
            single += 1
            refused += asked.status == 403
        elif asked.operation == "POST" and not asked.key:
            batches += 1
            refused += asked.request not in removing
            continue
        else:
            if asked.operation in ("PUT", "POST") and asked.status == 200:
                existing.add(asked.key)
            continue
        named += 1
        absent += asked.key not in existing
        if asked.status == 204:
            existing.discard(asked.key)
    return {"requests": single + batches, "batches": batches, "keys": named, "of_nothing": absent, "refused": refused}


def stored(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """footers and first data pages of the data files that the table's history added: how each column is stored"""
    columns: dict[str, dict[str, Any]] = {}
    for _, found in _footers(rest, namespace, table):
        for chunk in found.chunks:
            told = {
                "type": chunk.type,
                "encoding": chunk.encoding,
                "codec": chunk.codec,
                "page_version": chunk.page_version,
                "values": chunk.values,
                "nulls": chunk.nulls,
                "statistics": list(chunk.statistics),
            }
            before = columns.setdefault(chunk.column, told)
            columns[chunk.column] = {key: told[key] if told[key] == before[key] else "differs" for key in told}
    return columns


def metrics(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """manifests: what they tell of each column, data file by data file in the order in which they were added: its
    lowest and highest value (bounds) and its count of nulls"""
    schema = rest.load_table(namespace, table).metadata["schemas"][-1]
    added = [file for snapshot in xray(rest, namespace, table) for file in snapshot.added if file.kind == "data"]
    return {
        column["name"]: {
            "lowest": [_told(column, file.lower) for file in added],
            "highest": [_told(column, file.upper) for file in added],
            "nulls": [file.nulls.get(column["id"]) for file in added],
        }
        for column in schema["fields"]
    }


def _told(column: Mapping[str, Any], bounds: Mapping[int, bytes]) -> Any:
    """A column's bound as JSON has it: a number, a text, or None where there is none."""
    if column["id"] not in bounds:
        return None
    value = deserialized(column["type"], bounds[column["id"]])
    return value if isinstance(value, int | float | str) else str(value)


def statistics(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """metadata.json and its Puffin files: of each blob its type, its columns, the number of distinct values told of
    them and that in the sketch itself; and the rows of each file of partition statistics"""
    loaded = rest.load_table(namespace, table)
    store, found = Store(loaded.credentials), []
    columns = {field["id"]: field["name"] for field in loaded.metadata["schemas"][-1]["fields"]}
    for file in loaded.metadata.get("statistics", []):
        path = file["statistics-path"]
        for blob, content in puffin.blobs(store.read(path), path):
            names = [columns[number] for number in blob["fields"]]
            found.append([blob["type"], *names, int(blob["properties"]["ndv"]), theta.counted(content)])
    paths = [file["statistics-path"] for file in loaded.metadata.get("partition-statistics", [])]
    return {"blobs": found, "partitions": [footer(store.read(path), path).rows for path in paths]}


def compressed(rest: RestCatalog, namespace: str, table: str) -> dict[str, Any]:
    """footers of the data files that the last snapshot added: their codecs, their writer, and the table's property"""
    last = _footers(rest, namespace, table)
    newest = [found for snapshot, found in last if snapshot == last[-1][0]]
    properties = rest.load_table(namespace, table).metadata.get("properties", {})
    return {
        "codecs": sorted({chunk.codec for found in newest for chunk in found.chunks}),
        "created_by": sorted({found.created_by for found in newest}),
        "property": properties.get("write.parquet.compression-codec"),
    }


def _footers(rest: RestCatalog, namespace: str, table: str) -> list[tuple[int, Footer]]:
    """(snapshot, footer) of every data file that a snapshot of the table added, oldest first."""
    store = Store(rest.load_table(namespace, table).credentials)
    return [
        (snapshot.snapshot_id, footer(store.read(file.path), file.path))
        for snapshot in xray(rest, namespace, table)
        for file in snapshot.added
        if file.kind == "data"
    ]


LOOKS: Mapping[str, Look] = {
    "history": history,
    "written": written,
    "schema": schema,
    "row_ids": row_ids,
    "names": names,
    "nested": nested,
    "stored": stored,
    "metrics": metrics,
    "statistics": statistics,
    "compressed": compressed,
}


_OF_THE_STORE = (orphans, leftovers, deletes, opened)
# What looks into the store as its administrator.
AT_STORE = frozenset(look.__name__ for look in (*_OF_THE_STORE, reach))


def looks(store: StoreAt, beside: tuple[str, str] = (ORDERS_AT, ORDERS_V2.name)) -> Mapping[str, Look]:
    """All looks of a lab, those at its store included; `store` is asked for only by these.

    beside: namespace and name of a table that no other's keys may reach.
    """
    at_store = {look.__name__: update_wrapper(partial(look, store), look) for look in _OF_THE_STORE}
    return {**LOOKS, **at_store, "reach": update_wrapper(partial(reach, store, beside=beside), reach)}
