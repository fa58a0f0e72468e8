"""Iceberg's own Java library by itself: its REST client, its generic reader and its commits, in a small JVM.

No engine stands between a question and the library: it tells which release of the library reads what, and it
commits what no SQL makes. A statement is a `Call`; names are case-sensitive, a nested namespace is dotted:

    create_namespace(namespace)
        does nothing where it exists
    create_table(namespace, table, schema, properties, partition)
        schema as in metadata.json (`{"type": "struct", "fields": […]}`, `initial-default` included); a property
        of None is taken away from those that the catalog gives; `partition` may name a column to partition by
    drop_table(namespace, table)
        purges nothing
    alter(namespace, table, change, column)
        change: `drop`
    set_property(namespace, table, key, value)
    commit(namespace, table, data, deletes)
        one snapshot of these files, each in the words of the REST specification's ContentFile
        (`{"spec-id": 0, "content": "data", "file-path": …}`), metrics and bounds included. Since 1.10
    delete_equal(namespace, table, column, value)
        one snapshot that deletes the rows whose `column` is `value`, by an equality delete: as Flink's upsert does it
    set_statistics(namespace, table, blobs)
        a Puffin file of the current snapshot: {"type", "fields" (ids), "properties", "content" (bytes)} of each blob
    set_partition_statistics(namespace, table)
        of the current snapshot, computed by the library itself. In this way since 1.11
    write(file, schema, codec, rows)
        a Parquet file on this machine, by the library's own writer
    scan(namespace, table, columns)                                   → the rows, types as Iceberg names them

Settings are properties of the catalog.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError

from lab.engines import environment, jvm, rest_properties, split
from lab.errors import LabError
from lab.model import Answer, Call, Column, Generation, Rows, Statement
from lab.runtime.jvm import JavaEndpoint, connect, jvm_gateway, py4j_jar

if TYPE_CHECKING:
    from pathlib import Path

    from lab.catalogs import CatalogEndpoint
    from lab.catalogs.signing import Entry
    from lab.provision import Cache
    from lab.runtime.host import Host
    from lab.runtime.process import Process

SETTINGS = {
    "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    "header.X-Iceberg-Access-Delegation": "vended-credentials",
}
# No archive of classes: a session here says one thing or two, and nine releases' archives would fill a gigabyte.
JVM_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def launch(host: Host, generation: Generation, catalog: CatalogEndpoint) -> tuple[Process, dict[str, Any]]:
    """Starts the JVM. Raises StartFailed."""
    assert generation.java is not None
    jars = files(host.cache, generation)
    java = host.cache.java(generation.java)
    environment = {**jvm.ENVIRONMENT, **catalog.client_environment}
    process, endpoint = jvm_gateway(host, generation.name, java, [*jars, py4j_jar()], JVM_OPTIONS, environment)
    return process, {"port": endpoint.port, "token": endpoint.token}


def files(cache: Cache, generation: Generation) -> list[Path]:
    """All that `launch` takes from the cache beside Java."""
    return [
        jar
        for artefact in generation.artefacts
        for jar in (cache.closure(artefact) if artefact.startswith("maven-closure:") else [cache.file(artefact)])
    ]


class Engine:
    """A client of a launched JVM."""

    def __init__(
        self, host: Host, generation: Generation, catalog: CatalogEndpoint, endpoint: Mapping[str, Any]
    ) -> None:
        self._generation, self._catalog = generation, catalog
        self._gateway = connect(JavaEndpoint(endpoint["port"], endpoint["token"]))

    def session(self, settings: Mapping[str, str | None] = {}, entry: Entry | None = None) -> Session:
        """A catalog client of its own. Raises LabError when the JVM no longer answers."""
        effective = {k: v for k, v in {**self.settings(), **settings}.items() if v is not None}
        _, properties = split(effective)
        places = {
            "uri": self._catalog.uri,
            "warehouse": self._catalog.warehouse,
            "s3.endpoint": self._catalog.s3_endpoint,
            "s3.path-style-access": "true",
            "client.region": self._catalog.region,
        }
        return Session(self._gateway, {**places, **properties, **rest_properties(entry)}, effective)

    def versions(self) -> dict[str, str]:
        """Versions of Iceberg and Java, as they tell them themselves."""
        java = self._gateway.jvm
        return {
            "iceberg": java.org.apache.iceberg.IcebergBuild.version(),
            "java": java.System.getProperty("java.version"),
        }

    def settings(self) -> dict[str, str]:
        return {**environment(self._catalog), **SETTINGS, **self._generation.settings}

    def close(self) -> None:
        """Closes this client; the JVM goes on."""
        self._gateway.close()


class Session:
    """A catalog client; tables are loaded anew by every operation."""

    def __init__(self, gateway: Any, properties: Mapping[str, str], settings: dict[str, str]) -> None:
        self.settings = settings
        self._gateway = gateway
        self._properties = properties
        self._opened: Any = None
        self._operations: Mapping[str, Callable[..., Rows]] = {
            operation.__name__: operation
            for operation in (
                self.create_namespace,
                self.create_table,
                self.drop_table,
                self.alter,
                self.set_property,
                self.commit,
                self.delete_equal,
                self.set_statistics,
                self.set_partition_statistics,
                self.write,
                self.scan,
            )
        }

    def execute(self, statement: Statement) -> Answer:
        """Rows, or the Java cause chain. Raises LabError for what is no operation."""
        if not isinstance(statement, Call) or statement.op not in self._operations:
            raise LabError(f"Iceberg's library takes the calls {', '.join(self._operations)}, not {statement}")
        try:
            return self._operations[statement.op](**statement.args)
        except (Py4JError, OSError) as error:
            return jvm.failure(self._gateway, error)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    # ------------------------------------------------------------ operations
    def create_namespace(self, namespace: str) -> Rows:
        if not self._catalog.namespaceExists(self._namespace(namespace)):
            self._catalog.createNamespace(self._namespace(namespace))
        return Rows()

    def create_table(
        self,
        namespace: str,
        table: str,
        schema: Mapping[str, Any],
        properties: Mapping[str, str | None],
        partition: str | None = None,
    ) -> Rows:
        columns = self._iceberg.SchemaParser.fromJson(json.dumps(schema))
        builder = self._catalog.buildTable(self._name(namespace, table), columns)
        if partition is not None:
            builder = builder.withPartitionSpec(
                self._iceberg.PartitionSpec.builderFor(columns).identity(partition).build()
            )
        given = {key: value for key, value in properties.items() if value is not None}
        made = builder.withProperties(given).create()
        if taken := [key for key, value in properties.items() if value is None and made.properties().containsKey(key)]:
            change = made.updateProperties()
            for key in taken:
                change.remove(key)
            try:
                change.commit()
            except BaseException:
                self.drop_table(namespace, table)
                raise
        return Rows()

    def drop_table(self, namespace: str, table: str) -> Rows:
        self._catalog.dropTable(self._name(namespace, table), False)
        return Rows()

    def alter(self, namespace: str, table: str, change: str, column: str) -> Rows:
        if change != "drop":
            raise LabError(f"Iceberg's library drops a column here, and has no words to {change} one")
        self._catalog.loadTable(self._name(namespace, table)).updateSchema().deleteColumn(column).commit()
        return Rows()

    def set_property(self, namespace: str, table: str, key: str, value: str) -> Rows:
        self._catalog.loadTable(self._name(namespace, table)).updateProperties().set(key, value).commit()
        return Rows()

    def commit(
        self,
        namespace: str,
        table: str,
        data: Sequence[Mapping[str, Any]] = (),
        deletes: Sequence[Mapping[str, Any]] = (),
    ) -> Rows:
        loaded = self._catalog.loadTable(self._name(namespace, table))
        snapshot = loaded.newRowDelta() if deletes else loaded.newAppend()
        for file in data:
            (snapshot.addRows if deletes else snapshot.appendFile)(self._content(loaded, file))
        for file in deletes:
            snapshot.addDeletes(self._content(loaded, file))
        snapshot.commit()
        return Rows()

    def delete_equal(self, namespace: str, table: str, column: str, value: Any) -> Rows:
        loaded = self._catalog.loadTable(self._name(namespace, table))
        key = loaded.schema().select(self._strings([column]))
        writer = self._equality_deletes(loaded, key, f"{loaded.location()}/data/{uuid.uuid4()}-deletes.parquet")
        record = self._iceberg.data.GenericRecord.create(key)
        record.setField(column, value)
        writer.write(record)
        writer.close()
        loaded.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
        return Rows()

    def set_statistics(self, namespace: str, table: str, blobs: Sequence[Mapping[str, Any]]) -> Rows:
        loaded = self._catalog.loadTable(self._name(namespace, table))
        snapshot, puffin = loaded.currentSnapshot(), self._iceberg.puffin
        place = f"{loaded.location()}/metadata/{uuid.uuid4()}.stats"
        writer = puffin.Puffin.write(loaded.io().newOutputFile(place)).createdBy("iceberg-lab").build()
        for blob in blobs:
            content = self._gateway.jvm.java.nio.ByteBuffer.wrap(blob["content"])
            writer.add(
                puffin.Blob(
                    blob["type"],
                    list(blob["fields"]),
                    snapshot.snapshotId(),
                    snapshot.sequenceNumber(),
                    content,
                    None,
                    dict(blob["properties"]),
                )
            )
        writer.finish()
        told = self._iceberg.GenericStatisticsFile(
            snapshot.snapshotId(),
            place,
            writer.fileSize(),
            writer.footerSize(),
            getattr(self._iceberg.GenericBlobMetadata, "from")(writer.writtenBlobsMetadata()),
        )
        writer.close()
        loaded.updateStatistics().setStatistics(told).commit()
        return Rows()

    def set_partition_statistics(self, namespace: str, table: str) -> Rows:
        loaded = self._catalog.loadTable(self._name(namespace, table))
        told = self._iceberg.PartitionStatsHandler.computeAndWriteStatsFile(loaded)
        loaded.updatePartitionStatistics().setPartitionStatistics(told).commit()
        return Rows()

    def write(self, schema: Mapping[str, Any], codec: str, rows: Sequence[Sequence[Any]]) -> Rows:
        """A Parquet file as its bytes: this JVM's files may not be ours."""
        columns = self._iceberg.SchemaParser.fromJson(json.dumps(schema))
        factory = self._iceberg.data.GenericAppenderFactory(columns)
        factory.set("write.parquet.compression-codec", codec)
        output = self._iceberg.inmemory.InMemoryOutputFile()
        appender = factory.newAppender(output, self._iceberg.FileFormat.PARQUET)
        for row in rows:
            record = self._iceberg.data.GenericRecord.create(columns)
            for place, value in enumerate(row):
                record.set(place, value)
            appender.add(record)
        appender.close()
        return Rows((Column("file", "binary"),), ((bytes(output.toByteArray()),),))

    def scan(self, namespace: str, table: str, columns: Sequence[str] = ()) -> Rows:
        loaded = self._catalog.loadTable(self._name(namespace, table))
        reading = self._iceberg.data.IcebergGenerics.read(loaded)
        if columns:
            reading = reading.select(list(columns))
        names = list(columns) or [field.name() for field in loaded.schema().columns()]
        described = tuple(Column(name, loaded.schema().findType(name).toString()) for name in names)
        records = reading.build()
        try:
            found = [
                tuple(_python(record.getField(column.name), column.type) for column in described)
                for record in _each(records.iterator())
            ]
        finally:
            records.close()
        return Rows(described, tuple(found))

    # ------------------------------------------------------------ Java
    @property
    def _iceberg(self) -> Any:
        return self._gateway.jvm.org.apache.iceberg

    @property
    def _catalog(self) -> Any:
        """Opened by the first operation: what fails in opening it is that one's answer."""
        if self._opened is None:
            catalog = self._iceberg.rest.RESTCatalog()
            catalog.initialize("lab", self._properties)
            self._opened = catalog
        return self._opened

    def _namespace(self, namespace: str) -> Any:
        return self._iceberg.catalog.Namespace.of(self._strings(namespace.split(".")))

    def _name(self, namespace: str, table: str) -> Any:
        return self._iceberg.catalog.TableIdentifier.of(self._strings([*namespace.split("."), table]))

    def _strings(self, texts: Sequence[str]) -> Any:
        array = self._gateway.new_array(self._gateway.jvm.String, len(texts))
        for place, text in enumerate(texts):
            array[place] = text
        return array

    def _equality_deletes(self, table: Any, key: Any, place: str) -> Any:
        """A writer of an unpartitioned table's equality deletes by the columns of `key`."""
        data, ids = self._iceberg.data, self._gateway.new_array(self._gateway.jvm.int, key.columns().size())
        for at, column in enumerate(key.columns()):
            ids[at] = column.fieldId()
        metadata = self._iceberg.encryption.EncryptionKeyMetadata.EMPTY
        file = self._iceberg.encryption.EncryptedFiles.encryptedOutput(table.io().newOutputFile(place), metadata)
        if isinstance(data.GenericAppenderFactory, JavaClass):  # until 1.11; its successor is public since 1.11
            factory = data.GenericAppenderFactory(table.schema(), table.spec(), ids, key, None)
            return factory.newEqDeleteWriter(file, self._iceberg.FileFormat.PARQUET, None)
        builder = getattr(data, "GenericFileWriterFactory$Builder")(table)
        factory = builder.equalityFieldIds(ids).equalityDeleteRowSchema(key).build()
        return factory.newEqualityDeleteWriter(file, table.spec(), None)

    def _content(self, table: Any, file: Mapping[str, Any]) -> Any:
        tree = self._gateway.jvm.com.fasterxml.jackson.databind.ObjectMapper().readTree(json.dumps(file))
        return self._iceberg.ContentFileParser.fromJson(tree, table.specs())


def _each(iterator: Any) -> Any:
    while iterator.hasNext():
        yield iterator.next()


def _python(value: Any, kind: str) -> Any:
    """A field of Iceberg's generic record as in `lab.values`. Raises LabError for a type that has no value there."""
    if value is None or kind in ("boolean", "int", "long", "float", "double", "string"):
        return value
    if kind.startswith("decimal"):
        return Decimal(str(value))
    if kind == "binary":
        return bytes(value.array())
    if kind.startswith("fixed"):
        return bytes(value)
    if kind in _TEXTS:
        return _TEXTS[kind](value.toString())
    raise LabError(f"Iceberg's library shows no {kind} here; select other columns")


_TEXTS: Mapping[str, Callable[[str], Any]] = {
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "timestamptz": dt.datetime.fromisoformat,
    "uuid": uuid.UUID,
}
