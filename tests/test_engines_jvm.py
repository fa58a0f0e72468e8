"""Spark's and Trino's adapters without their engines: declarations, settings, values, cause chains."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import pickle
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from trino.exceptions import TrinoQueryError

from lab.catalogs import CatalogEndpoint
from lab.catalogs.signing import SignOn
from lab.engines import GENERATIONS, KINDS, adapter, jvm, read_generation, renamed, spark, spark_rows, trino, trino_rows
from lab.errors import LabError
from lab.model import Access, Call, Cause, Failure, Generation, Rows
from lab.values import Nanoseconds, decode, encode

UTC = dt.UTC
ZONED = "timestamp with time zone"
SPARK = Generation("spark-x", "spark", {"spark": "3.5.6"}, (), "17", settings={"spark.sql.own": "1"})
EXTENSIONS = "spark.sql.extensions"


# ---------------------------------------------------------------- declarations
def test_each_kind_has_an_adapter_and_a_generation() -> None:
    assert {generation.kind for generation in GENERATIONS.values()} == set(KINDS)
    for kind in KINDS:
        assert callable(adapter(kind).launch)
        assert callable(adapter(kind).Engine)


@pytest.mark.parametrize("name", [name for name, g in GENERATIONS.items() if g.kind == "spark"])
def test_a_sparks_name_versions_and_artefacts_agree(name: str) -> None:
    generation = GENERATIONS[name]
    versions = generation.versions
    short, scala = versions["spark"].rpartition(".")[0], versions["scala"]
    assert name == f"spark-{versions['spark']}+iceberg-{versions['iceberg']}"
    assert generation.artefacts[0] == f"pypi:pyspark=={versions['spark']}"
    assert (
        generation.artefacts[1]
        == f"maven:org.apache.iceberg:iceberg-spark-runtime-{short}_{scala}:{versions['iceberg']}"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('kind = "spark"\nartefacts = []', "add versions"),
        ('kind = "spark"\nartefacts = []\nversions = {}\njvm = "17"', "nothing reads jvm"),
        ('kind = "sprak"\nartefacts = []\nversions = {}', "'sprak' is none of duckdb, iceberg, pyiceberg, spark"),
        ('kind = "spark"\nartefacts = []\nversions = {}\nsettings = {a = "1"}', "both, for a"),
        ('kind = "spark"\nartefacts = []\nversions = {}\nwhy = {b = "1"}', "both, for b"),
        ('kind = "spark', "correct its TOML"),
    ],
)
def test_a_wrong_declaration_says_what_to_correct(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "spark-9.toml"
    file.write_text(text)
    with pytest.raises(LabError, match=complaint) as error:
        read_generation(file)
    assert str(error.value).startswith("spark-9.toml: ")


def test_a_generation_is_named_like_its_file(tmp_path: Path) -> None:
    file = tmp_path / "spark-9.8.7+iceberg-1.2.3.toml"
    file.write_text('kind = "spark"\nartefacts = ["pypi:x==1"]\nversions = {spark = "9.8.7"}')
    generation = read_generation(file)
    assert (generation.name, generation.artefacts) == ("spark-9.8.7+iceberg-1.2.3", ("pypi:x==1",))


# ---------------------------------------------------------------- a Spark of fakes
class Conf(dict[str, str]):
    """SparkConf and RuntimeConfig alike."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def remove(self, key: str) -> None:
        self.pop(key, None)

    unset = remove


class SparkSession:
    """Reads its context's settings when it is made, as Spark does."""

    def __init__(self, context: SparkContext) -> None:
        self.context = context
        self.root = Conf(context.settings)

    def newSession(self) -> SparkSession:
        child = SparkSession(self.context)
        child.root = Conf(self.root)
        return child

    def sparkContext(self) -> SparkContext:
        return self.context

    def sessionState(self) -> None: ...

    def conf(self) -> Conf:
        return self.root

    def getClass(self) -> Any:
        return SimpleNamespace(getName=lambda: "org.apache.spark.sql.SparkSession")


class SparkContext:
    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = Conf(settings)

    def conf(self) -> Conf:
        return self.settings


class FakeJvm:
    def __init__(self) -> None:
        self.context = SparkContext(spark.settings(SPARK))
        self.made: list[SparkSession] = []
        default = SparkSession(self.context)

        def make(context: SparkContext) -> SparkSession:
            self.made.append(SparkSession(context))
            return self.made[-1]

        make.builder = lambda: SimpleNamespace(getOrCreate=lambda: default)  # type: ignore[attr-defined]
        static = SimpleNamespace(isStaticConfigKey=lambda key: key == EXTENSIONS)
        sql = SimpleNamespace(SparkSession=make, internal=SimpleNamespace(SQLConf=static))
        self.jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(sql=sql))))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeJvm:
    gateway = FakeJvm()
    monkeypatch.setattr(spark, "connect", lambda endpoint: gateway)
    return gateway


def engine() -> spark.Engine:
    return spark.Engine(None, SPARK, CATALOG, {"port": 1, "token": "t"})  # type: ignore[arg-type]


def test_settings_are_the_adapters_then_the_generations_then_the_sessions(fake: FakeJvm) -> None:
    session = engine().session({"spark.sql.shuffle.partitions": "1", "spark.sql.own": None})
    assert session.settings[spark.CATALOG] == "org.apache.iceberg.spark.SparkCatalog"
    assert session.settings["spark.sql.shuffle.partitions"] == "1"
    assert "spark.sql.own" not in session.settings
    seen = session._spark.conf()
    assert (seen["spark.sql.shuffle.partitions"], "spark.sql.own" in seen) == ("1", False)


def test_sessions_do_not_see_each_others_settings(fake: FakeJvm) -> None:
    one = engine()
    one.session({"spark.sql.shuffle.partitions": "1"})
    assert one.session()._spark.conf()["spark.sql.shuffle.partitions"] == "2"


def test_a_static_setting_varies_by_a_root_of_its_own_and_leaves_the_context_as_it_was(fake: FakeJvm) -> None:
    one = engine()
    for _ in range(2):
        session = one.session({EXTENSIONS: None, "spark.sql.shuffle.partitions": "7"})
        assert EXTENSIONS not in session._spark.conf()
        assert EXTENSIONS not in session.settings
        assert session._spark.conf()["spark.sql.shuffle.partitions"] == "7"
    assert len(fake.made) == 1
    assert fake.context.conf() == spark.settings(SPARK)
    assert EXTENSIONS in one.session()._spark.conf()


def test_the_context_is_as_it_was_when_a_root_can_not_be_made(fake: FakeJvm, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(session: SparkSession) -> None:
        raise Py4JError("no")

    monkeypatch.setattr(SparkSession, "sessionState", fail)
    with pytest.raises(Py4JError):
        engine().session({EXTENSIONS: "other.Extensions"})
    assert fake.context.conf()[EXTENSIONS] == spark.SETTINGS[EXTENSIONS]


def test_a_setting_of_the_whole_spark_is_refused(fake: FakeJvm) -> None:
    with pytest.raises(LabError, match=r"spark\.master holds for a whole Spark"):
        engine().session({"spark.master": "local[1]"})
    engine().session({"spark.master": spark.SETTINGS["spark.master"]})  # the one it has


# ---------------------------------------------------------------- Spark's rows
@pytest.fixture(scope="module")
def recorded() -> tuple[dict[str, Any], bytes]:
    content = json.loads(Path(__file__).with_name("spark_rows.json").read_text())
    return content["schema"], base64.b64decode("".join(content["batch"]))


def no_variant(value: bytes, metadata: bytes) -> str:
    raise AssertionError("there is none in it")


def test_rows_that_spark_pickled_come_out_typed(recorded: tuple[dict[str, Any], bytes]) -> None:
    schema, batch = recorded
    expected = {
        "i": 1,
        "l": 9007199254740993,
        "d": Decimal("1.50"),
        "f": struct.unpack("f", struct.pack("f", 1.1))[0],
        "b": True,
        "s": "é",
        "x": b"\x00\xff",
        "dt": dt.date(1969, 12, 31),
        "tz": dt.datetime(2026, 7, 1, 9, 0, 0, 1, tzinfo=UTC),
        "n": dt.datetime(1960, 1, 1),
        "ar": [dt.date(2026, 7, 1), None],
        "m": {"k": dt.datetime(2026, 7, 1, 9, tzinfo=UTC)},
        "st": {"y": b"\x01", "z": {"w": dt.date(2026, 7, 1)}},
        "nu": None,
        "mk": {(("a", 1),): 2},
        "iv": 86_400_000_000,
    }
    (row,) = spark_rows.rows([batch], schema, no_variant)
    assert dict(zip((field["name"] for field in schema["fields"]), row, strict=True)) == expected
    assert str(row[2]) == "1.50"
    assert decode(encode(row[:6])) == row[:6]


def pickled(kind: Any, value: Any) -> tuple[Any, ...]:
    """One column's value, through `rows`, as if Spark had pickled it."""
    schema = {"fields": [{"name": "c", "type": kind}]}
    (row,) = spark_rows.rows([pickle.dumps([(value,)])], schema, lambda value, metadata: f"{value!r} {metadata!r}")
    return row


def test_types_that_only_newer_sparks_have() -> None:
    variant = {"value": b"\x0c", "metadata": b"\x01", "__class__": "VariantVal"}
    array = {"type": "array", "elementType": "variant"}
    assert pickled(array, [variant, None]) == ([r"b'\x0c' b'\x01'", None],)
    assert pickled("geometry(OGC:CRS84)", {"bytes": b"\x01", "srid": 4326}) == (b"\x01",)
    assert pickled("time(6)", 3_723_400_000_000) == (dt.time(1, 2, 3, 400_000),)


@pytest.mark.parametrize(("kind", "value"), [("date", 2**30), ("timestamp", 2**62), ("interval", {})])
def test_what_has_no_python_value_is_told_as_such(kind: str, value: Any) -> None:
    with pytest.raises(LabError, match="cast it to a string"):
        pickled(kind, value)


def test_only_what_spark_pickles_is_unpickled() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"posix\.system"):
        spark_rows.rows([b"cposix\nsystem\n(S'true'\ntR."], {"fields": []}, no_variant)


class JavaSocket:
    """java.net.Socket and the streams around it, as far as rows are fetched through them."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))

    def setSoTimeout(self, milliseconds: int) -> None:
        self._socket.settimeout(milliseconds / 1000)

    def getInputStream(self) -> Any:
        return self

    getOutputStream = getInputStream

    def write(self, content: bytes) -> None:
        self._socket.sendall(content)

    def readAllBytes(self) -> bytes:
        return b"".join(iter(lambda: self._socket.recv(65_536), b""))

    def close(self) -> None:
        self._socket.close()


JAVA = SimpleNamespace(
    java=SimpleNamespace(
        net=SimpleNamespace(Socket=JavaSocket),
        io=SimpleNamespace(DataInputStream=lambda stream: stream, DataOutputStream=lambda stream: stream),
    )
)


class Frame:
    """A Dataset whose rows a socket serves, as Spark's do."""

    def __init__(self, frames: list[bytes], truncate: int = 0, error: Exception | None = None) -> None:
        self.error = error
        self.secret = b""
        self._answer = b"".join(struct.pack("!i", len(frame)) + frame for frame in frames)
        self._answer = self._answer[: len(self._answer) - truncate]
        self._server = socket.create_server(("127.0.0.1", 0))

    def collectToPython(self) -> Any:
        threading.Thread(target=self._serve, daemon=True).start()
        return self._server.getsockname()[1], "secret", self

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        with connection, self._server:
            (length,) = struct.unpack("!i", connection.recv(4))
            self.secret = connection.recv(length)
            connection.sendall(self._answer)

    def getResult(self) -> None:
        if self.error:
            raise self.error


def test_batches_are_fetched_whole() -> None:
    frame = Frame([b"ok", b"one", b"two" * 100_000])
    assert spark_rows.fetch(JAVA, frame) == [b"one", b"two" * 100_000]
    assert frame.secret == b"secret"


def test_rows_cut_short_are_never_taken_for_all_of_them() -> None:
    with pytest.raises(ConnectionError, match="in the middle"):
        spark_rows.fetch(JAVA, Frame([b"ok", b"one"], truncate=1))
    with pytest.raises(Py4JError, match="pickling"):
        spark_rows.fetch(JAVA, Frame([b"ok", b"one"], error=Py4JError("pickling failed")))


# ---------------------------------------------------------------- cause chains
class Throwable:
    _target_id = "o1"

    def __init__(self, cls: str, message: str | None, cause: Throwable | None = None) -> None:
        self._cls, self._message, self.cause = cls, message, cause
        self._gateway_client = SimpleNamespace()

    def equals(self, other: object) -> bool:
        return self is other

    def getClass(self) -> Any:
        return SimpleNamespace(getName=lambda: self._cls)

    def getMessage(self) -> str | None:
        return self._message

    def getCause(self) -> Throwable | None:
        return self.cause


CHAIN = Throwable("a.Outer", "outer\nmore", Throwable("a.Middle", None, Throwable("a.Inner", "inner")))


def gateway(answer: Callable[[], Any]) -> Any:
    return SimpleNamespace(jvm=SimpleNamespace(System=SimpleNamespace(nanoTime=answer)))


def gone() -> Any:
    raise Py4JNetworkError("gone")


def test_a_chain_is_whole_and_outermost_first() -> None:
    error = Py4JJavaError("calling o1.sql", CHAIN)
    expected = (Cause("a.Outer", "outer\nmore"), Cause("a.Middle", ""), Cause("a.Inner", "inner"))
    assert jvm.failure(gateway(lambda: 1), error) == Failure(expected)
    assert jvm.describe(error) == "a.Outer: outer <- a.Middle <- a.Inner: inner"


def test_a_chain_that_loops_ends() -> None:
    outer = Throwable("a.Outer", "o", Throwable("a.Inner", "i"))
    assert outer.cause is not None
    outer.cause.cause = outer
    assert jvm.causes(outer) == (Cause("a.Outer", "o"), Cause("a.Inner", "i"))


@pytest.mark.parametrize("error", [Py4JNetworkError("empty"), Py4JError("calling o1.sql"), ConnectionResetError()])
def test_a_jvm_that_is_gone_is_a_crash(error: Exception) -> None:
    failure = jvm.failure(gateway(gone), error)
    assert failure.crash
    assert failure.causes[0].cls == "py4j.protocol.Py4JNetworkError"


def test_our_own_mistake_is_not_the_engines_failure() -> None:
    with pytest.raises(Py4JError, match="no such method"):
        jvm.failure(gateway(lambda: 1), Py4JError("no such method"))


def test_spark_executes_sql_only() -> None:
    for session in (spark.Session(None, None, {}), trino.Session(trino.Server(1), {}, {})):
        with pytest.raises(LabError, match="understands SQL, not the call append"):
            session.execute(Call("append"))


# ---------------------------------------------------------------- Trino
def signature(kind: str, *arguments: Any) -> dict[str, Any]:
    return {"rawType": kind, "arguments": [{"kind": "TYPE", "value": argument} for argument in arguments]}


def field(name: str | None, kind: dict[str, Any]) -> dict[str, Any]:
    return {"fieldName": {"name": name} if name else None, "typeSignature": kind}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (signature("bigint"), 9007199254740993, 9007199254740993),
        (signature("decimal"), "4500.00", Decimal("4500.00")),
        (signature("real"), 1.1, struct.unpack("f", struct.pack("f", 1.1))[0]),
        (signature("double"), "Infinity", math.inf),
        (signature("varbinary"), "AP8=", b"\x00\xff"),
        (signature("date"), "1969-12-31", dt.date(1969, 12, 31)),
        (signature("time"), "01:02:03.400000", dt.time(1, 2, 3, 400_000)),
        (signature("timestamp"), "2026-07-01 09:00:00.000001", dt.datetime(2026, 7, 1, 9, 0, 0, 1)),
        (signature("timestamp"), "2026-07-01 09:00:00", dt.datetime(2026, 7, 1, 9)),
        (signature("timestamp"), "2026-07-01 09:00:00.123456789", Nanoseconds("2026-07-01T09:00:00.123456789")),
        (signature(ZONED), "2026-07-01 09:00:00.5 UTC", dt.datetime(2026, 7, 1, 9, 0, 0, 500_000, UTC)),
        (signature(ZONED), "2026-07-01 09:00:00 +02:00", dt.datetime(2026, 7, 1, 7, tzinfo=UTC)),
        (
            signature(ZONED),
            "2026-07-01 00:30:00.123456789 +01:00",
            Nanoseconds("2026-06-30T23:30:00.123456789+00:00"),
        ),
        (signature("array", signature("date")), ["2026-07-01", None], [dt.date(2026, 7, 1), None]),
        (signature("map", signature("integer"), signature("decimal")), {"1": "2.0"}, {1: Decimal("2.0")}),
        (signature("row", field("x", signature("date"))), ["2026-07-01"], {"x": dt.date(2026, 7, 1)}),
        (signature("row", field(None, signature("bigint"))), [2], {"field0": 2}),
        (signature("json"), '{"a":1}', '{"a":1}'),
        (signature("varchar"), None, None),
    ],
)
def test_trinos_values_come_out_exact(kind: dict[str, Any], value: Any, expected: Any) -> None:
    ((converted,),) = trino_rows.rows([[value]], [kind])
    assert converted == expected
    assert type(converted) is type(expected)


def test_a_trino_date_beyond_pythons_years_is_told_as_such() -> None:
    with pytest.raises(LabError, match="cast it to varchar"):
        trino_rows.rows([["+10000-01-01"]], [signature("date")])


ERROR = {
    "message": "Unexpected PUFFIN file format",
    "errorName": "ICEBERG_BAD_DATA",
    "failureInfo": {
        "type": "io.trino.spi.TrinoException",
        "message": "Unexpected PUFFIN file format",
        "cause": {"type": "java.lang.IllegalStateException", "suppressed": []},
    },
}


def test_trinos_error_name_stands_before_the_java_chain() -> None:
    assert trino.causes(TrinoQueryError(ERROR)) == (
        Cause("ICEBERG_BAD_DATA", "Unexpected PUFFIN file format"),
        Cause("io.trino.spi.TrinoException", "Unexpected PUFFIN file format"),
        Cause("java.lang.IllegalStateException", ""),
    )


class Query:
    """Trino's client, asked nothing."""

    columns = ({"name": "c", "type": "decimal(3, 1)", "typeSignature": signature("decimal")},)

    def __init__(self, request: Any, statement: str, legacy_primitive_types: bool) -> None:
        assert legacy_primitive_types, "else the client rounds nanoseconds"
        self.statement = statement

    def execute(self) -> Iterator[list[Any]]:
        if self.statement == "SELECT error":
            raise TrinoQueryError(ERROR)
        if self.statement == "SELECT crash":
            raise trino.Error("failed to execute")
        return iter([["1.5"]])


def test_a_trino_session_answers_rows_failures_and_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trino, "TrinoQuery", Query)
    session = trino.Session(trino.Server(1), {}, {})
    answer = session.execute("SELECT 1.5")
    assert isinstance(answer, Rows)
    assert (answer.columns[0].type, answer.rows) == ("decimal(3, 1)", ((Decimal("1.5"),),))
    error, crash = session.execute("SELECT error"), session.execute("SELECT crash")
    assert isinstance(error, Failure)
    assert isinstance(crash, Failure)
    assert (error.crash, crash.crash) == (False, True)


CATALOG = CatalogEndpoint("http://127.0.0.1:1", "s3://lab/warehouse", "http://127.0.0.1:2", "us-east-1")
MATCHING = "iceberg.rest-catalog.case-insensitive-name-matching"


def test_trinos_session_properties_vary_within_its_catalog() -> None:
    one = trino.Engine(None, GENERATIONS["trino-483"], CATALOG, {"port": 1})  # type: ignore[arg-type]
    session = one.session({"lab.parquet_max_read_block_size": "1MB", MATCHING: "true"})  # the latter is what it has
    assert session._request._client_session.catalog == "lab"
    assert session._request._client_session.properties == {"lab.parquet_max_read_block_size": "1MB"}
    assert session.settings["lab.parquet_max_read_block_size"] == "1MB"
    assert session.settings["fs.s3.enabled"] == "true"


def test_trinos_catalog_settings_vary_by_a_catalog_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(trino.Session, "execute", lambda self, statement: said.append(statement) or Rows())
    one = trino.Engine(None, GENERATIONS["trino-483"], CATALOG, {"port": 1})  # type: ignore[arg-type]
    session = one.session({MATCHING: None, "lab.parquet_max_read_block_size": "1MB"})
    again = one.session({MATCHING: None})
    other = one.session({MATCHING: "false"})
    assert said[0] == said[1] != said[2]
    assert MATCHING not in said[0]
    assert f"\"{MATCHING}\" = 'false'" in said[2]
    assert all(statement.startswith("CREATE CATALOG IF NOT EXISTS lab_") for statement in said)
    assert MATCHING not in session.settings
    client = session._request._client_session
    assert client.catalog == again._request._client_session.catalog != other._request._client_session.catalog
    assert client.properties == {f"{client.catalog}.parquet_max_read_block_size": "1MB"}
    assert "block_size" not in said[0], "a session property is none of the catalog's"


def test_a_door_has_a_catalog_of_its_own_that_ends_with_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(trino.Session, "execute", lambda self, statement: said.append(statement) or Rows())
    one = trino.Engine(None, GENERATIONS["trino-483"], CATALOG, {"port": 1})  # type: ignore[arg-type]
    entry = SignOn("secret", "").entry(Access("horizon"), CATALOG.uri, "cafe")
    session, shared = one.session({}, entry), one.session({MATCHING: "false"})
    made = [statement.split()[5] for statement in said]
    for closed in (session, session, shared, one.session()):
        closed.close()
    assert said[2:] == [f"DROP CATALOG {made[0]}"], "once, and none that other sessions may want"
    monkeypatch.setattr(trino.Session, "execute", lambda self, statement: said.append(statement) or Failure(()))
    one.session({}, entry).close()
    assert len(said) == 4, "what was not made is not dropped"


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("SELECT * FROM lab.A.T", "SELECT * FROM other.A.T"),
        ("SHOW SCHEMAS FROM lab", "SHOW SCHEMAS FROM other"),
        ("INSERT INTO lab.a.t VALUES ('lab.x')", "INSERT INTO other.a.t VALUES ('lab.x')"),
        ('SELECT "lab", slab.x, a.lab FROM labs', 'SELECT "lab", slab.x, a.lab FROM labs'),
    ],
)
def test_a_statement_says_lab_whatever_the_catalog_is_called(statement: str, told: str) -> None:
    assert renamed(statement, "other") == told


def test_no_address_stands_among_recorded_settings() -> None:
    for generation in GENERATIONS.values():
        module = {"spark": spark, "trino": trino}.get(generation.kind)
        if module:
            assert not [value for value in module.settings(generation).values() if "127.0.0.1" in value or "/" in value]
