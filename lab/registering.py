"""Makes a table of declared files: written, looked at, uploaded with vended credentials, committed as they are.

Nothing rewrites what is registered: the files carry the table's field ids, so that no name mapping is needed
either, and the same declaration makes the same v2 and v3 table.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lab.engines import GENERATIONS, Session
from lab.engines.worker import WORKERS, Worker, WorkerSession
from lab.errors import LabError
from lab.model import Call, DataFile, DeleteFile, Failure, Generation, Rows, Statement, Table
from lab.runtime.host import Host
from lab.tables import files, puffin
from lab.tables.parquet import Footer, footer
from lab.tables.rest import LoadedTable, RestCatalog
from lab.tables.storage import Store

WRITER: Generation = GENERATIONS["pyiceberg-0.12.0"]  # in its environment is the PyArrow that writes


class Writer:
    """Writes Parquet files: PyArrow in a worker, but for the one codec that only a JVM writes. Close it."""

    def __init__(self, host: Host) -> None:
        self._worker = Worker(host, "parquet-writer", WORKERS / "parquet.py", [host.cache.environment(WRITER.name)], {})
        self._arrow = WorkerSession(self._worker, 1, _worded, {}, {})

    def write(self, library: Session, table: Table, file: DataFile, to: Path) -> Footer:
        """Writes a declared data file and returns what it contains. Raises LabError where that is not as declared."""
        places = files.places(table, file)
        columns = [table.columns[place] for place in places]
        rows = [tuple(row[place] for place in places) for row in files.rows_of(table, file)]
        if file.path is not None:
            try:
                shutil.copyfile(file.path, to)
            except OSError as error:
                raise LabError(f"{file.path} can't be read ({error.strerror}); name a file that can") from None
        elif all(files.codec_of(file, name) == files.HADOOP_LZ4 for name, _ in columns):
            there = files.schema(Table(table.name, table.format_version, tuple(columns), ()))
            for field, place in zip(there["fields"], places, strict=True):
                field["id"] = place + 1
            made = _do(library, table, Call("write", {"schema": there, "codec": "lz4", "rows": rows}))
            to.write_bytes(made.rows[0][0])
        else:
            described = [
                {
                    "name": name,
                    "type": kind,
                    "id": files.field_ids(table)[name],
                    "encoding": file.encodings.get(name, "PLAIN"),
                    "codec": files.codec_of(file, name),
                }
                for name, kind in columns
            ]
            self._parquet(table, to, described, rows, file.page_version)
        found = footer(to.read_bytes(), str(file.path or to.name))
        files.compare(table, file, found)
        return found

    def write_deletes(self, table: Table, file: DeleteFile, data: str, to: Path) -> None:
        """Writes a declared delete file; `data` is the location of the data file that it names."""
        if file.kind == "deletion-vector":
            to.write_bytes(puffin.puffin(file.positions, data))
            return
        if file.kind == "position-delete":
            columns: Sequence[tuple[str, str, int]] = files.POSITION_COLUMNS
            rows: Sequence[Sequence[Any]] = [(data, position) for position in sorted(file.positions)]
        else:
            ids, types = files.field_ids(table), dict(table.columns)
            columns, rows = [(name, types[name], ids[name]) for name in file.columns], file.keys
        described = [
            {"name": name, "type": kind, "id": number, "encoding": "PLAIN", "codec": "zstd"}
            for name, kind, number in columns
        ]
        self._parquet(table, to, described, rows, 1)

    def close(self) -> None:
        self._arrow.close()
        self._worker.stop()

    def _parquet(
        self,
        table: Table,
        to: Path,
        columns: Sequence[Mapping[str, Any]],
        rows: Sequence[Sequence[Any]],
        page_version: int,
    ) -> None:
        args = {"file": str(to), "columns": list(columns), "page_version": page_version, "rows": list(rows)}
        _do(self._arrow, table, Call("write", args))


def has_puffin(table: Table) -> bool:
    """Whether files of the table, as it is declared, are called *.puffin."""
    vectors = any(isinstance(file, DeleteFile) and file.kind == "deletion-vector" for file in table.files)
    return vectors or table.statistics is not None


def register(
    library: Session,
    writer: Writer,
    rest: RestCatalog,
    namespace: str,
    table: Table,
    properties: Mapping[str, str | None],
) -> None:
    """Makes the table. Raises LabError that says in one line what is wrong; then there is no table, whatever it was."""
    files.check(table)
    try:
        _register(library, writer, rest, namespace, table, properties)
    except LabError:
        raise
    except Exception as error:  # the store's, or a fault of the lab's own: the run goes on without this table
        told = " ".join(str(error).split())[:300]
        raise LabError(f"{table.name} can't be registered: {type(error).__name__}: {told}") from error


def _register(
    library: Session,
    writer: Writer,
    rest: RestCatalog,
    namespace: str,
    table: Table,
    properties: Mapping[str, str | None],
) -> None:
    data = [file for file in table.files if isinstance(file, DataFile)]
    deletes = [file for file in table.files if isinstance(file, DeleteFile)]
    with tempfile.TemporaryDirectory() as folder:
        # All of them before there is a table: what can't be written leaves nothing behind.
        written = [
            (file, path := Path(folder, f"{number}.parquet"), writer.write(library, table, file, path))
            for number, file in enumerate(data)
        ]
        names = {"namespace": namespace, "table": table.name}
        settings = {"format-version": str(table.format_version), **table.properties, **properties}
        _do(library, table, Call("create_namespace", {"namespace": namespace}))
        made = {"schema": files.schema(table), "properties": settings, "partition": table.partition}
        _do(library, table, Call("create_table", {**names, **made}))
        try:
            place = _Place(rest.load_table(namespace, table.name))
            committed = [
                files.data_file(table, file, place.put(path), path.stat().st_size, found)
                for file, path, found in written
            ]
            if committed:
                _do(library, table, Call("commit", {**names, "data": committed}))
            if deletes:
                described = []
                for number, delete in enumerate(deletes):
                    path = Path(
                        folder, f"{number}.{'puffin' if delete.kind == 'deletion-vector' else 'deletes.parquet'}"
                    )
                    # An equality delete names no data file, and there may be none.
                    target = "" if delete.kind == "equality-delete" else committed[delete.file]["file-path"]
                    writer.write_deletes(table, delete, target, path)
                    described.append(files.delete_file(table, delete, place.put(path), path.stat().st_size, target))
                _do(library, table, Call("commit", {**names, "deletes": described}))
            if told := table.statistics:
                blobs = files.blobs(table, told.distinct)
                _do(library, table, Call("set_statistics", {**names, "blobs": blobs}))
                if told.partitions:
                    _do(library, table, Call("set_partition_statistics", names))
        except BaseException:
            with suppress(Exception):  # what went wrong first is what the user must be told
                library.execute(Call("drop_table", names))
            raise


def _do(session: Session, table: Table, call: Call) -> Rows:
    """Says what must not fail. Raises LabError of one line: which table, which operation, the innermost cause."""
    answer = session.execute(call)
    if isinstance(answer, Failure):
        cause = answer.causes[-1]
        told = " ".join(cause.message.split())[:300]
        raise LabError(
            f"{table.name} can't be made as declared: {call.op} failed of {cause.cls}: {told}; change its declaration"
        )
    return answer


class _Place:
    """Where a table's files go, with the keys that its catalog vends for them."""

    def __init__(self, loaded: LoadedTable) -> None:
        self._store = Store(loaded.credentials)
        self._location = loaded.metadata["location"].rstrip("/")

    def put(self, path: Path) -> str:
        """Uploads a file and returns its location."""
        location = f"{self._location}/data/{uuid.uuid4().hex[:12]}-{path.name}"
        self._store.write(location, path.read_bytes())
        return location


def _worded(statement: Statement) -> object:
    assert isinstance(statement, Call)
    return statement.args
