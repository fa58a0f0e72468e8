"""Spark Connect's own Python client in its worker: what a remote user of Spark has, and nothing more."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import grpc
import pyspark
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType, VariantType

SECONDS = 15


class Session:
    """A session of its own on the server; its settings are set after it connected."""

    def __init__(self, catalog: dict[str, str], settings: dict[str, str]) -> None:
        _reached(catalog["remote"])
        self._spark = SparkSession.builder.remote(catalog["remote"]).create()
        for name, value in settings.items():
            self._spark.conf.set(name, value)

    def execute(self, statement: str) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        frame = self._spark.sql(statement)
        fields = frame.schema.fields
        if not fields:
            return [], []
        kinds = [field.dataType for field in fields]
        rows = [tuple(map(_value, row, kinds)) for row in frame.collect()]
        return [(field.name, field.dataType.simpleString()) for field in fields], rows

    def close(self) -> None:
        self._spark.stop()


def _reached(address: str) -> None:
    """Fails within seconds where the client itself would try for ten minutes."""
    channel = DefaultChannelBuilder(address).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=SECONDS)
    except grpc.FutureTimeoutError:
        raise TimeoutError(f"no server of Spark Connect answered within {SECONDS} seconds") from None
    finally:
        channel.close()


def versions() -> dict[str, str]:
    return {"pyspark-client": pyspark.__version__}


def _value(value: Any, kind: DataType) -> Any:
    """The client's value as the lab's: an instant gets its zone back (the worker's is UTC), a row is a mapping."""
    convert = _CONVERT.get(type(kind))
    return value if convert is None or value is None else convert(value, kind)


_CONVERT: dict[type[DataType], Callable[[Any, Any], Any]] = {
    TimestampType: lambda value, kind: value.replace(tzinfo=dt.UTC),
    VariantType: lambda value, kind: value.toJson(),
    ArrayType: lambda value, kind: [_value(item, kind.elementType) for item in value],
    MapType: lambda value, kind: {_value(k, kind.keyType): _value(v, kind.valueType) for k, v in value.items()},
    StructType: lambda value, kind: {f.name: _value(value[f.name], f.dataType) for f in kind.fields},
}
