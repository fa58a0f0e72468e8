"""Sessions over Spark Connect, without a Spark: who starts the server, what a client may set, what stays secret."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.catalogs import CatalogEndpoint
from lab.engines import GENERATIONS, spark, spark_connect
from lab.engines.spark_connect import LOCAL, REMOTE
from lab.errors import LabError
from lab.model import Call, Failure, Rows
from lab.provision import NotProvided
from lab.records.redact import MASK, Redactor
from lab.runtime import folder
from lab.runtime.host import Host

SPARK_4 = GENERATIONS["spark-4.0.1+iceberg-1.10.0"]
SPARK_3 = GENERATIONS["spark-3.5.6+iceberg-1.10.0"]
CLIENT = """
class Session:
    def __init__(self, catalog, settings):
        self.seen = [("remote", catalog["remote"]), *settings.items()]

    def execute(self, statement):
        if statement == "fail":
            raise RuntimeError("JVM stacktrace: ...")
        return [("key", "string"), ("value", "string")], self.seen

    def close(self):
        pass
"""


class Java:
    """As much of a JVM as starting the server needs; what the server saw when it started is kept."""

    def __init__(self) -> None:
        self.started: list[dict[str, str]] = []
        self.conf: dict[str, str] = {}
        properties: dict[str, str] = {}

        def put_if_absent(key: str, value: str) -> str | None:
            before = properties.get(key)
            properties.setdefault(key, value)
            return before

        def start(context: Any) -> None:
            if not self.started:
                self.started.append(dict(self.conf))

        module = SimpleNamespace(**{"MODULE$": SimpleNamespace(start=start, localPort=lambda: 4711)})
        service = SimpleNamespace(**{"SparkConnectService$": module})
        sql = SimpleNamespace(connect=SimpleNamespace(service=service))
        self.System = SimpleNamespace(getProperties=lambda: SimpleNamespace(putIfAbsent=put_if_absent))
        self.org = SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(sql=sql)))
        conf = SimpleNamespace(set=self.conf.__setitem__, remove=lambda key: self.conf.pop(key))
        self.context = SimpleNamespace(conf=lambda: conf)

    def serve(self, generation: Any = SPARK_4) -> str:
        return spark_connect.serve(SimpleNamespace(jvm=self), self.context, generation)


def test_the_server_is_on_loopback_behind_a_random_token_that_no_session_shows() -> None:
    java = Java()
    address = java.serve()
    assert java.serve() == address, "a second client joins the server that is there"
    (seen,) = java.started
    token = seen["spark.connect.authenticate.token"]
    assert len(token) > 30
    assert address == f"sc://localhost:4711/;token={token}"
    assert (seen["spark.connect.grpc.binding.address"], seen["spark.connect.grpc.binding.port"]) == ("127.0.0.1", "0")
    assert java.conf == {}
    assert Java().serve() != address
    assert Redactor().text(f"no channel to {address} (x)") == f"no channel to {LOCAL}:4711/;token={MASK} (x)"


def test_a_spark_without_the_server_says_what_is_missing() -> None:
    java = Java()
    with pytest.raises(NotProvided, match=r"spark-connect_2\.12:3\.5\.6.*run this on a Spark 4"):
        java.serve(SPARK_3)
    assert not java.started


@pytest.mark.parametrize("name", [name for name in GENERATIONS if name.startswith("spark-4")])
def test_every_spark_4_has_the_client_of_its_own_version(name: str) -> None:
    generation = GENERATIONS[name]
    assert f"pypi:pyspark-client=={generation.versions['spark']}" in generation.artefacts
    assert "env:spark-connect-client" in generation.artefacts


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    file = tmp_path / "client.py"
    file.write_text(CLIENT)
    monkeypatch.setattr(spark_connect.Client, "engine_file", file)
    monkeypatch.setattr(spark_connect.Client, "sites", lambda self: [tmp_path])
    folder.claim(tmp_path / "run")
    host = Host(None, tmp_path / "run")  # type: ignore[arg-type]
    one = spark_connect.Client(host, SPARK_4, CatalogEndpoint("http://c", "w", "http://s", "r"), {})
    yield one
    one.close()
    host.stop()


def test_a_session_is_a_worker_with_runtime_settings_and_the_clients_own_failures(client: Any) -> None:
    session = client.over("sc://localhost:1/;token=t", {"spark.sql.shuffle.partitions": "1"})
    answer = session.execute("SELECT 1")
    assert isinstance(answer, Rows)
    assert answer.rows == (("remote", "sc://localhost:1/;token=t"), ("spark.sql.shuffle.partitions", "1"))
    failed = session.execute("fail")
    assert isinstance(failed, Failure)
    assert [(cause.cls, cause.message) for cause in failed.causes] == [("RuntimeError", "JVM stacktrace: ...")]
    with pytest.raises(LabError, match="not the call scan"):
        session.execute(Call("scan"))


def test_nothing_of_the_servers_can_be_taken_away(client: Any) -> None:
    with pytest.raises(LabError, match=r"nothing of the server's can be taken away: spark\.sql\.extensions"):
        client.over(LOCAL, {"spark.sql.extensions": None})


def test_the_engine_hands_over_only_what_differs_and_shows_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[tuple[str, dict[str, Any]]] = []

    def over(self: object, remote: str, changes: Any) -> Any:
        handed.append((remote, dict(changes)))
        return SimpleNamespace(settings={})

    root = SimpleNamespace(sparkContext=lambda: None)
    builder = SimpleNamespace(getOrCreate=lambda: root)
    jvm = SimpleNamespace(
        org=SimpleNamespace(
            apache=SimpleNamespace(
                spark=SimpleNamespace(sql=SimpleNamespace(SparkSession=SimpleNamespace(builder=lambda: builder)))
            )
        )
    )
    monkeypatch.setattr(spark, "connect", lambda endpoint: SimpleNamespace(jvm=jvm))
    monkeypatch.setattr(spark_connect, "serve", lambda gateway, context, generation: "sc://secret")
    monkeypatch.setattr(spark_connect.Client, "over", over)
    where = CatalogEndpoint("http://c", "w", "http://s", "r")
    engine = spark.Engine(None, replace(SPARK_4, settings={}), where, {"port": 1, "token": "t"})  # type: ignore[arg-type]
    own = spark.SETTINGS["spark.sql.shuffle.partitions"]
    session = engine.session({REMOTE: LOCAL, "spark.sql.shuffle.partitions": own, "spark.sql.ansi.enabled": "true"})
    assert handed == [("sc://secret", {"spark.sql.ansi.enabled": "true"})]
    assert session.settings[REMOTE] == LOCAL
    assert session.settings["spark.sql.ansi.enabled"] == "true"
    with pytest.raises(LabError, match="the lab's own server"):
        engine.session({REMOTE: "sc://elsewhere"})
