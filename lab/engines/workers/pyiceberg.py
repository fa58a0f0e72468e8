"""PyIceberg in its worker: the operations that `lab/engines/pyiceberg.py` describes."""

from __future__ import annotations

import datetime as dt
import inspect
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyiceberg
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform
from pyiceberg.types import NestedField

from lab.engines.workers.serve import Misuse
from lab.values import Nanoseconds

Answer = tuple[list[tuple[str, str]], list[tuple[Any, ...]]]
NOTHING: Answer = ([], [])
EVERYTHING = AlwaysTrue()


def versions() -> dict[str, str]:
    return {"pyiceberg": pyiceberg.__version__, "pyarrow": pa.__version__}


class Session:
    """A catalog client of its own; tables are loaded anew by every operation."""

    def __init__(self, catalog: dict[str, str], settings: dict[str, str]) -> None:
        own = {
            "uri": catalog["uri"],
            "warehouse": catalog["warehouse"],
            "s3.endpoint": catalog["s3_endpoint"],
            "s3.region": catalog["region"],
        }
        self._catalog = RestCatalog("lab", **{**own, **settings})

    def close(self) -> None:
        self._catalog.close()

    def execute(self, statement: dict[str, Any]) -> Answer:
        operation = OPERATIONS.get(statement["op"])
        if operation is None:
            raise Misuse(f"PyIceberg has no operation {statement['op']!r}; there are {', '.join(OPERATIONS)}")
        try:
            inspect.signature(operation).bind(self._catalog, **statement["args"])
        except TypeError as mistake:
            raise Misuse(f"{statement['op']}: {mistake}") from None
        return operation(self._catalog, **statement["args"])


# ---------------------------------------------------------------- operations
def list_namespaces(catalog: RestCatalog) -> Answer:
    return [("namespace", "string")], [(".".join(name),) for name in catalog.list_namespaces()]


def create_namespace(catalog: RestCatalog, namespace: str) -> Answer:
    catalog.create_namespace(namespace)
    return NOTHING


def drop_namespace(catalog: RestCatalog, namespace: str) -> Answer:
    catalog.drop_namespace(namespace)
    return NOTHING


def list_tables(catalog: RestCatalog, namespace: str) -> Answer:
    return [("table", "string")], [(name[-1],) for name in catalog.list_tables(namespace)]


def create_table(
    catalog: RestCatalog,
    namespace: str,
    table: str,
    schema: Sequence[tuple[str, str, bool]],
    properties: Mapping[str, str] | None = None,
    partition: Sequence[tuple[str, str]] = (),
    location: str | None = None,
) -> Answer:
    columns = Schema(
        *(
            NestedField(field_id, name, kind, required=required)
            for field_id, (name, kind, required) in enumerate(schema, start=1)
        )
    )
    fields = [
        PartitionField(columns.find_field(name).field_id, field_id, parse_transform(transform), f"{name}_{transform}")
        for field_id, (name, transform) in enumerate(partition, start=1000)
    ]
    catalog.create_table(
        _name(namespace, table),
        columns,
        partition_spec=PartitionSpec(*fields) if fields else UNPARTITIONED_PARTITION_SPEC,
        properties=dict(properties or {}),
        location=location,
    )
    return NOTHING


def drop_table(catalog: RestCatalog, namespace: str, table: str, purge: bool = False) -> Answer:
    (catalog.purge_table if purge else catalog.drop_table)(_name(namespace, table))
    return NOTHING


def rename_table(catalog: RestCatalog, namespace: str, table: str, to: str) -> Answer:
    catalog.rename_table(_name(namespace, table), _name(namespace, to))
    return NOTHING


def alter(catalog: RestCatalog, namespace: str, table: str, change: str, column: str, to: str = "") -> Answer:
    with catalog.load_table(_name(namespace, table)).update_schema() as update:
        match change:
            case "add":
                update.add_column(column, _type(to))
            case "drop":
                update.delete_column(column)
            case "rename":
                update.rename_column(column, to)
            case "widen":
                update.update_column(column, field_type=_type(to))
            case "first":
                update.move_first(column)
            case _:
                raise Misuse(f"there is no change {change!r}; take add, drop, rename, widen or first")
    return NOTHING


def partition_by(catalog: RestCatalog, namespace: str, table: str, remove: str, add: Sequence[str]) -> Answer:
    column, transform = add
    with catalog.load_table(_name(namespace, table)).update_spec() as update:
        update.remove_field(remove)
        update.add_field(column, parse_transform(transform))
    return NOTHING


def set_ref(catalog: RestCatalog, namespace: str, table: str, ref: str, kind: str) -> Answer:
    loaded = catalog.load_table(_name(namespace, table))
    manage, current = loaded.manage_snapshots(), loaded.current_snapshot()
    assert current is not None
    change = manage.create_tag if kind == "tag" else manage.create_branch
    change(current.snapshot_id, ref).commit()
    return NOTHING


def describe(catalog: RestCatalog, namespace: str, table: str) -> Answer:
    fields = catalog.load_table(_name(namespace, table)).schema().fields
    columns = [("name", "string"), ("type", "string"), ("required", "boolean")]
    return columns, [(field.name, str(field.field_type), field.required) for field in fields]


def snapshots(catalog: RestCatalog, namespace: str, table: str) -> Answer:
    columns = [
        ("snapshot_id", "long"),
        ("parent_id", "long"),
        ("sequence_number", "long"),
        ("committed_at", "timestamptz"),
        ("operation", "string"),
        ("summary", "map<string, string>"),
    ]
    rows = []
    for snapshot in catalog.load_table(_name(namespace, table)).snapshots():
        summary = snapshot.summary
        rows.append(
            (
                snapshot.snapshot_id,
                snapshot.parent_snapshot_id,
                snapshot.sequence_number,
                dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC),
                summary.operation.value if summary else None,
                summary.additional_properties if summary else {},
            )
        )
    return columns, rows


def scan(
    catalog: RestCatalog,
    namespace: str,
    table: str,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    snapshot: int | str | None = None,
    case_sensitive: bool = True,
    ref: str | None = None,
) -> Answer:
    wanted = catalog.load_table(_name(namespace, table)).scan(
        row_filter=filter or EVERYTHING,
        selected_fields=tuple(columns or ("*",)),
        case_sensitive=case_sensitive,
        snapshot_id=None if snapshot is None else int(snapshot),
    )
    wanted = wanted if ref is None else wanted.use_ref(ref)
    described = [(field.name, str(field.field_type)) for field in wanted.projection().fields]
    return described, _rows(wanted.to_arrow(), described)


def scan_later(catalog: RestCatalog, namespace: str, table: str, after: str, seconds: float) -> Answer:
    kept = catalog.load_table(_name(namespace, table))
    wanted = kept.scan()
    described = [(field.name, str(field.field_type)) for field in wanted.projection().fields]
    if after == "load":
        time.sleep(seconds)
        return described, _rows(wanted.to_arrow(), described)
    tasks = list(wanted.plan_files())
    time.sleep(seconds)
    return described, _rows(ArrowScan(kept.metadata, kept.io, kept.schema(), EVERYTHING).to_table(tasks), described)


def _rows(read: pa.Table, described: Sequence[tuple[str, str]]) -> list[tuple[Any, ...]]:
    return list(zip(*(_python(read.column(name)) for name, _ in described), strict=True))


def filters(catalog: RestCatalog, namespace: str, table: str, key: str, filters: Mapping[str, str]) -> Answer:
    loaded = catalog.load_table(_name(namespace, table))
    described = [("filter", "string"), (key, str(loaded.schema().find_type(key)))]
    found = {name: loaded.scan(row_filter=said, selected_fields=(key,)).to_arrow() for name, said in filters.items()}
    return described, [(name, value) for name, read in found.items() for value in _python(read.column(key))]


def count_by(catalog: RestCatalog, namespace: str, table: str, column: str) -> Answer:
    wanted = catalog.load_table(_name(namespace, table)).scan(selected_fields=(column,))
    described = [(column, str(wanted.projection().find_type(column))), ("count", "long")]
    counted = wanted.to_arrow().group_by(column).aggregate([([], "count_all")])
    return described, list(zip(_python(counted.column(column)), counted["count_all"].to_pylist(), strict=True))


def append(
    catalog: RestCatalog, namespace: str, table: str, rows: Sequence[Mapping[str, Any]], branch: str = "main"
) -> Answer:
    loaded = catalog.load_table(_name(namespace, table))
    loaded.append(_arrow(loaded, rows), branch=branch)
    return NOTHING


def append_later(
    catalog: RestCatalog, namespace: str, table: str, rows: Sequence[Mapping[str, Any]], seconds: float
) -> Answer:
    kept = catalog.load_table(_name(namespace, table))
    time.sleep(seconds)
    kept.append(_arrow(kept, rows))
    return NOTHING


def overwrite(
    catalog: RestCatalog,
    namespace: str,
    table: str,
    rows: Sequence[Mapping[str, Any]],
    filter: str | None = None,
) -> Answer:
    loaded = catalog.load_table(_name(namespace, table))
    loaded.overwrite(_arrow(loaded, rows), overwrite_filter=filter or EVERYTHING)
    return NOTHING


def delete(catalog: RestCatalog, namespace: str, table: str, filter: str) -> Answer:
    catalog.load_table(_name(namespace, table)).delete(filter)
    return NOTHING


def update(
    catalog: RestCatalog,
    namespace: str,
    table: str,
    filter: str,
    set: Mapping[str, Any] = {},
    add: Mapping[str, int] = {},
) -> Answer:
    loaded = catalog.load_table(_name(namespace, table))
    rows = loaded.scan(row_filter=filter).to_arrow()
    schema = loaded.schema().as_arrow()
    _known(loaded, {**set, **add})
    for name, number in add.items():
        field = schema.field(name)
        sums = [value + number for value in rows.column(name).to_pylist()]
        rows = rows.set_column(schema.get_field_index(name), field, pa.array(sums, field.type))
    for name, value in set.items():
        field = schema.field(name)
        rows = rows.set_column(schema.get_field_index(name), field, pa.array([value] * len(rows), field.type))
    loaded.overwrite(rows, overwrite_filter=filter)
    return NOTHING


def expire_snapshots(catalog: RestCatalog, namespace: str, table: str) -> Answer:
    loaded = catalog.load_table(_name(namespace, table))
    current = loaded.current_snapshot()
    past = [snapshot.snapshot_id for snapshot in loaded.snapshots() if snapshot != current]
    loaded.maintenance.expire_snapshots().by_ids(past).commit()
    return NOTHING


def register(catalog: RestCatalog, namespace: str, table: str, name: str) -> Answer:
    catalog.register_table(_name(namespace, name), catalog.load_table(_name(namespace, table)).metadata_location)
    return NOTHING


def set_properties(catalog: RestCatalog, namespace: str, table: str, properties: Mapping[str, str]) -> Answer:
    with catalog.load_table(_name(namespace, table)).transaction() as transaction:
        transaction.set_properties(dict(properties))
    return NOTHING


def add_column(catalog: RestCatalog, namespace: str, table: str, name: str, type: str) -> Answer:
    with catalog.load_table(_name(namespace, table)).update_schema() as update:
        update.add_column(name, NestedField(1, name, type, required=False).field_type)
    return NOTHING


def upgrade(catalog: RestCatalog, namespace: str, table: str, version: int) -> Answer:
    with catalog.load_table(_name(namespace, table)).transaction() as transaction:
        transaction.upgrade_table_version(version)
    return NOTHING


def tag(catalog: RestCatalog, namespace: str, table: str, name: str) -> Answer:
    loaded = catalog.load_table(_name(namespace, table))
    loaded.manage_snapshots().create_tag(loaded.current_snapshot().snapshot_id, name).commit()
    return NOTHING


def rollback(catalog: RestCatalog, namespace: str, table: str) -> Answer:
    loaded = catalog.load_table(_name(namespace, table))
    loaded.manage_snapshots().rollback_to_snapshot(loaded.current_snapshot().parent_snapshot_id).commit()
    return NOTHING


OPERATIONS = {
    operation.__name__: operation
    for operation in (
        list_namespaces,
        create_namespace,
        drop_namespace,
        list_tables,
        create_table,
        drop_table,
        rename_table,
        alter,
        partition_by,
        set_ref,
        describe,
        snapshots,
        scan,
        scan_later,
        filters,
        count_by,
        append,
        append_later,
        overwrite,
        delete,
        update,
        expire_snapshots,
        register,
        add_column,
        set_properties,
        upgrade,
        tag,
        rollback,
    )
}


def _type(kind: str) -> Any:
    """A primitive type of Iceberg's by its name."""
    return Schema(NestedField(1, "it", kind, required=False)).find_type("it")


def _name(namespace: str, table: str) -> tuple[str, ...]:
    return (*namespace.split("."), table)


# ---------------------------------------------------------------- values
def _known(table: Table, names: Mapping[str, Any]) -> None:
    """Arrow would drop a value of an unknown column without a word."""
    unknown = [name for name in names if name not in table.schema().column_names]
    if unknown:
        raise Misuse(f"the table has no column {', '.join(unknown)}")


def _arrow(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    for row in rows:
        _known(table, row)
    return pa.Table.from_pylist(list(rows), schema=table.schema().as_arrow())


def _python(column: pa.ChunkedArray) -> list[Any]:
    if "[ns" not in str(column.type):
        values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
        return values
    return [_exact(scalar) for scalar in column]


def _exact(scalar: Any) -> Any:
    """A scalar with nanoseconds whole: Arrow refuses to make a Python datetime of them."""
    kind = scalar.type
    if not scalar.is_valid or "[ns" not in str(kind):
        return scalar.as_py()
    if pa.types.is_timestamp(kind):
        seconds, nanoseconds = divmod(scalar.value, 10**9)
        moment = dt.datetime.fromtimestamp(seconds, dt.UTC).replace(tzinfo=None).isoformat()
        return Nanoseconds(f"{moment}.{nanoseconds:09}{'+00:00' if kind.tz else ''}")
    if pa.types.is_struct(kind):
        return {name: _exact(scalar[name]) for name in scalar}
    if pa.types.is_map(kind):
        return {_exact(pair["key"]): _exact(pair["value"]) for pair in scalar.values}
    return [_exact(item) for item in scalar]
