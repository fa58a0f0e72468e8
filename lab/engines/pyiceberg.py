"""PyIceberg: calls in a worker process, since it has no SQL.

A statement is a `Call(op, args)`, or its text as Python writes it:
`scan(namespace="ANALYTICS", table="ORDERS_V2")`. Names are case-sensitive, a nested namespace is dotted,
filters are PyIceberg's expression strings (`"ORDER_ID = 201 and PRODUCT is not null"`). Rows to write are
dicts by column name; a column left out is null.

    list_namespaces()                                                 → namespace
    create_namespace(namespace)
    drop_namespace(namespace)
    list_tables(namespace)                                            → table
    create_table(namespace, table, schema, properties, partition, location)
        schema: (name, Iceberg type, required) each; properties may hold `format-version`;
        partition: (column, transform) each, the transform in Iceberg's words (`day`, `bucket[16]`)
    drop_table(namespace, table, purge)
    rename_table(namespace, table, to)
        `to`: a name in the same namespace
    alter(namespace, table, change, column, to)
        change: add, drop, rename, widen or first; to: the type of an added or widened column, the new name
    partition_by(namespace, table, remove, add)
        remove: a partition field's name; add: (column, transform)
    set_ref(namespace, table, ref, kind)
        kind: a branch or a tag, of the current snapshot
    describe(namespace, table)                                        → name, type, required
    snapshots(namespace, table)    → snapshot_id, parent_id, sequence_number, committed_at, operation, summary
    scan(namespace, table, columns, filter, snapshot, case_sensitive, ref) → the rows, types as Iceberg names them
    scan_later(namespace, table, after, seconds)                      → the rows
        by one Table object that is kept so many seconds, after its `load` or after the `plan` of the scan
    filters(namespace, table, key, filters)
        filters: expression by name                                   → filter's name, key of each row that it keeps
    count_by(namespace, table, column)                                → that column, count
    append(namespace, table, rows, branch)
    append_later(namespace, table, rows, seconds)
        by a Table object that is kept so many seconds before
    overwrite(namespace, table, rows, filter)
        replaces the rows that match, or all
    delete(namespace, table, filter)
    update(namespace, table, filter, set, add)
        PyIceberg has no UPDATE. This is what its users do instead: read the rows that match, change them in
        memory (set: column → value, add: column → a number), `overwrite` the matching ones with them.
    expire_snapshots(namespace, table)
        all but the current one; PyIceberg takes them out of the metadata and deletes no file
    register(namespace, table, name)
        its present metadata under a further name
    add_column(namespace, table, name, type)
    set_properties(namespace, table, properties)
    upgrade(namespace, table, version)
    tag(namespace, table, name)
        the current snapshot
    rollback(namespace, table)
        to the snapshot before the current one

Settings are properties of PyIceberg's catalog.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from lab.engines import rest_properties
from lab.engines.worker import WORKERS, WorkerEngine
from lab.errors import UsageError
from lab.model import Call, Generation, Statement

if TYPE_CHECKING:
    from lab.catalogs import CatalogEndpoint
    from lab.catalogs.signing import Entry
    from lab.runtime.host import Host
    from lab.runtime.process import Process


def launch(host: Host, generation: Generation, catalog: CatalogEndpoint) -> tuple[Process | None, dict[str, Any]]:
    """Nothing to share: every Engine starts a worker of its own."""
    return None, {}


class Engine(WorkerEngine):
    engine_file = WORKERS / "pyiceberg.py"
    defaults = {
        # PyIceberg's own default too; only another value takes it away
        "header.X-Iceberg-Access-Delegation": "vended-credentials",
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
    }

    @staticmethod
    def entered(entry: Entry) -> dict[str, str]:
        return rest_properties(entry)

    @staticmethod
    def worded(statement: Statement) -> object:
        call = statement if isinstance(statement, Call) else _parsed(statement)
        return {"op": call.op, "args": call.args}


def _parsed(text: str) -> Call:
    """A call from its text, for people who type it. Raises UsageError."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        args = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
        if len(args) < len(call.keywords):  # **what
            raise ValueError
        return Call(call.func.id, args)
    except (SyntaxError, ValueError):
        example = 'scan(namespace="ANALYTICS", table="ORDERS_V2")'
        raise UsageError(f"PyIceberg has no SQL: write a call with named literals, such as {example}") from None
