"""Engines of the user's own, without any: a Trino of a few lines, a client of Spark Connect that is a fake."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from trino.auth import JWTAuthentication

from lab.behaviours import BEHAVIOURS
from lab.catalogs import CatalogEndpoint
from lab.engines import GENERATIONS, remote, spark_connect
from lab.errors import LabError, UsageError
from lab.model import Cell, ExpectationVerdict, Failure, Generation, Observation, Rows, StepResult, declared_name
from lab.plan import cases, recorded_remotes, select
from lab.provision import NotProvided
from lab.records.verdict import judge
from lab.runtime import folder
from lab.runtime.host import Host

SECRET = "s3cret/of=mine"  # noqa: S105 - of no server
SPARK = 'kind = "spark"\nremote = "sc://localhost:1"\n'


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


# ---------------------------------------------------------------- declarations
@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("trino-483", 'kind = "trino"\nremote = "http://h:1"', "ENGINE-VERSION@NAME"),
        ("x-1@m", 'kind = "duckdb"\nremote = "http://h:1"', "none of spark, trino"),
        ("x-1@m", 'kind = "trino"', "remote is where it answers, e.g. https://host:8443"),
        ("x-1@m", 'kind = "trino"\nremote = "sc://h:1"', "https://host:8443"),
        ("x-1@m", 'kind = "trino"\nremote = "http://h:port"', "https://host:8443"),
        ("x-1@m", 'kind = "trino"\nremote = "https://me:pw@h:1"', "take the secret out of remote"),
        ("x-1@m", 'kind = "spark"\nremote = "sc://h:1/;token=abc"', "take what follows the port out .* token_variable"),
        ("x-1@m", 'kind = "spark"\nremote = "sc://h/;password=abc"', "take what follows the port"),
        ("x-1@m", 'kind = "trino"\nremote = "https://h:1?access_token=abc"', "take what follows the port"),
        ("x-1@m", 'kind = ["spark"]\nremote = "sc://h:1"', "none of spark, trino"),
        ("x-1@m", 'kind = "spark"\nremote = "sc://127.0.0.1:1"\ntoken_variable = "T"', "take localhost for remote"),
        ("x-1@m", f'{SPARK}token = "abc"', 'token_variable = "NAME"'),
        ("x-1@m", 'kind = "trino"\nremote = "http://h:1"\ntoken_variable = "T"', "over https:// only"),
        ("x-1@m", f'{SPARK}password_variable = "T"', "knows no password"),
        ("x-1@m", f'{SPARK}catalog = "a b"', "no plain word"),
        ("x-1@m", f"{SPARK}catalog = 3", "catalog must be text"),
        ("x-1@m", f"{SPARK}[versions]\nspark = 4.1", "versions must be text"),
        ("x-1@m", f'{SPARK}[versions]\nspark = "3.5.6"', "no client of Spark Connect is locked for Spark 3.5.6"),
        ("x-1@m", f'{SPARK}java = "21"', "nothing reads java"),
        ("x-1@m", 'kind = "spark', "correct its TOML"),
    ],
)
def test_a_wrong_file_says_what_to_correct(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as error:
        remote.read(file(tmp_path, name, text))
    assert "\n" not in str(error.value)
    assert "abc" not in str(error.value)


def test_a_folder_of_files_is_read_and_a_missing_one_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = file(tmp_path, "spark-4.1.1@a", SPARK)
    monkeypatch.setenv(remote.FOLDER, str(tmp_path))
    assert [g.name for g in remote.declared([one])] == ["spark-4.1.1@a"]
    monkeypatch.setenv(remote.FOLDER, str(one))
    with pytest.raises(UsageError, match="no folder"):
        remote.declared([])
    monkeypatch.delenv(remote.FOLDER)
    with pytest.raises(UsageError, match="No such file"):
        remote.declared([tmp_path / "nowhere@x.toml"])


@pytest.mark.parametrize(
    ("version", "client"), [("4.1.1", "4.1.1"), ("4.2.0", "4.1.1"), ("4.1.0", "4.0.1"), (None, "4.0.1")]
)
def test_a_spark_is_spoken_to_by_a_client_that_is_not_newer(tmp_path: Path, version: str | None, client: str) -> None:
    text = SPARK + (f'[versions]\nspark = "{version}"' if version else "")
    assert f"{spark_connect.CLIENT}{client}" in remote.read(file(tmp_path, "spark-x@m", text)).artefacts


def test_a_secret_that_is_not_there_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = remote.read(file(tmp_path, "spark-4.1.1@m", f'{SPARK}token_variable = "MINE"'))
    monkeypatch.delenv("MINE", raising=False)
    with pytest.raises(LabError, match=r"\$MINE, which is not set"):
        remote.secret(one)
    assert remote.known_secret(one) == ""
    monkeypatch.setenv("MINE", SECRET)
    assert remote.secret(one) == SECRET
    assert SECRET not in repr(one)


# ---------------------------------------------------------------- plan and verdict
def own(name: str) -> Generation:
    return replace(GENERATIONS[declared_name(name)], name=name) if declared_name(name) in GENERATIONS else spark(name)


def spark(name: str) -> Generation:
    return Generation(name, "spark", {}, ())


def test_a_remote_is_a_generation_whose_declarations_are_those_of_its_name() -> None:
    mine = own("trino-483@mine")
    selected = select({"generations": "*@*", "behaviours": "H-*"}, remotes=[mine])
    assert selected.generations == (mine,)
    planned = {case.cell for case in cases(selected)}
    lab = cases(select({"generations": "trino-483", "behaviours": "H-*"}))
    assert planned == {replace(c.cell, writer=mine.name, reader=mine.name) for c in lab}
    for case in lab:
        cell = replace(case.cell, writer=mine.name, reader=mine.name)
        assert case.behaviour.expectation(cell) == case.behaviour.expectation(case.cell)
        assert case.behaviour.claim(cell) == case.behaviour.claim(case.cell)
    assert mine not in select({"generations": "trino-483"}, remotes=[mine]).generations
    with pytest.raises(UsageError, match="near: trino-483@mine"):
        select({"generations": "trino-483@mien"}, remotes=[mine])


def seen(generation: str, answer: Any, truth: Any = None) -> Observation:
    cell = Cell("H-read-v2", "default", generation, generation, "default", "reference", "seaweedfs", "embedded", 2)
    return Observation(cell, (StepResult("read", generation, "", 0.0, answer, truth=truth),), {}, {}, "", 0.0)


def test_what_nobody_declared_of_an_own_engine_is_told_and_fails_only_when_it_is_wrong() -> None:
    behaviour = replace(BEHAVIOURS["H-read-v2"], expect=())
    works, wrong = seen("spark-9@m", Rows((), ((1,),)), ((1,),)), seen("spark-9@m", Rows((), ((1,),)), ((2,),))
    error, crash = seen("spark-9@m", Failure(())), seen("spark-9@m", Failure((), crash=True))
    assert [judge(behaviour, one).expectation for one in (works, error)] == [None, None]
    assert [judge(behaviour, one).expectation for one in (wrong, crash)] == [ExpectationVerdict.UNEXPECTED] * 2
    assert judge(behaviour, seen("spark-9", Failure(()))).expectation is ExpectationVerdict.UNEXPECTED


def test_a_record_shows_its_remote_cells_wherever_it_is_read() -> None:
    line = {"type": "cell", "cell": {"writer": "trino-483@mine", "reader": "duckdb-1.5.5"}}
    assert [(g.name, g.kind) for g in recorded_remotes([{"type": "run"}, line, line])] == [("trino-483@mine", "trino")]


# ---------------------------------------------------------------- a Trino and a catalog of fakes
class Catalog:
    """Stands in for the lab's client of its catalog; the probe that was made is kept."""

    probes: list[str] = []

    def __init__(self, uri: str, warehouse: str) -> None: ...

    def create_namespace(self, name: str) -> None:
        self.probes.append(name)

    def drop_namespace(self, name: str) -> None: ...


Answers = Callable[[str], list[list[Any]] | str]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(remote, "RestCatalog", Catalog)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            statement = self.rfile.read(int(self.headers["Content-Length"])).decode()
            made.said.append(statement)
            made.headers.append(dict(self.headers))
            answer = made.answers(statement)
            status = 200
            if answer == "401":
                status, body = 401, {}
            elif isinstance(answer, str):
                error = {"errorName": answer, "errorType": "USER_ERROR", "message": f"{answer}: {SECRET}"}
                body = {"id": "1", "infoUri": "", "stats": {"state": "FAILED"}, "error": error}
            else:
                kind = {"name": "c", "type": "varchar", "typeSignature": {"rawType": "varchar", "arguments": []}}
                body = {"id": "1", "infoUri": "", "stats": {"state": "FINISHED"}, "columns": [kind], "data": answer}
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.said, made.headers, made.answers = [], [], healthy  # type: ignore[attr-defined]
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def healthy(statement: str) -> list[list[Any]] | str:
    match statement.split()[:2]:
        case ["SELECT", "version()"]:
            return [["483"]]
        case ["SHOW", "CATALOGS"]:
            return [["ice"], ["system"]]
        case ["SHOW", "SCHEMAS"]:
            return [[name] for name in ("analytics", *Catalog.probes)]
    return [["row"]]


LAB = CatalogEndpoint("http://127.0.0.1:4711", "s3://lab/warehouse", "http://127.0.0.1:4712", "us-east-1")


def connected(server: Any, folder: Path, more: str = 'catalog = "ice"\n') -> Any:
    url = f"http://127.0.0.1:{server.server_port}"
    text = f'kind = "trino"\nremote = "{url}"\nuser = "me"\n{more}[versions]\ntrino = "483"\n'
    generation = remote.read(file(folder, "trino-483@m", text))
    return remote.connect(None, generation, LAB)  # type: ignore[arg-type]


def test_a_trino_of_the_users_is_asked_by_its_own_names(server: Any, tmp_path: Path) -> None:
    engine = connected(server, tmp_path)
    assert engine.versions() == {"trino": "483"}
    answer = engine.session({"lab.compression_codec": "GZIP"}).execute("SELECT * FROM lab.a.b WHERE x = 'lab.c'")
    assert isinstance(answer, Rows)
    assert server.said[-1] == "SELECT * FROM ice.a.b WHERE x = 'lab.c'"
    assert server.headers[-1]["X-Trino-User"] == "me"
    assert server.headers[-1]["X-Trino-Session"] == "ice.compression_codec=GZIP"
    assert "SHOW SCHEMAS IN ice" in server.said
    with pytest.raises(NotProvided, match=r"fs\.s3\.enabled is the owner's to change"):
        engine.session({"fs.s3.enabled": "false"})
    with pytest.raises(NotProvided, match="owner's to change"):
        engine.session({"query_max_run_time": None})


@pytest.mark.parametrize(
    ("start", "answer", "told"),
    [
        ("SELECT version", "401", "refuses 'me' .*name a token_variable"),
        ("SELECT version", [["482"]], "says that its trino is 482; its file declares 483"),
        ("SHOW CATALOGS", [["hive"]], "no catalog 'ice'; .*CREATE CATALOG IF NOT EXISTS ice USING iceberg .*:4711"),
        ("SHOW SCHEMAS", "ICEBERG_CATALOG_ERROR", "can't reach the lab's catalog by its 'ice'"),
        ("SHOW SCHEMAS", [["analytics"]], "leads elsewhere than to the lab's"),
    ],
)
def test_what_is_amiss_is_told_in_one_line(server: Any, tmp_path: Path, start: str, answer: Any, told: str) -> None:
    server.answers = lambda statement: answer if statement.startswith(start) else healthy(statement)
    with pytest.raises(LabError, match=told) as error:
        connected(server, tmp_path)
    assert "\n" not in str(error.value)


def test_a_trino_that_is_not_there_is_told(server: Any, tmp_path: Path) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(LabError, match=r"does not answer at http://127\.0\.0\.1:\d+; is it up"):
        connected(server, tmp_path)


def test_no_failure_tells_the_secret() -> None:
    class Within:
        settings: dict[str, str] = {}

        def execute(self, statement: str) -> Failure:
            from lab.model import Cause

            return Failure((Cause("E", f"at sc://h/;token={SECRET}"), Cause("E", "token=s3cret%2Fof%3Dmine")))

    answer = remote.Session(Within(), {}, "lab", SECRET).execute("x")  # type: ignore[arg-type]
    assert [cause.message for cause in answer.causes] == [  # type: ignore[union-attr]
        f"at sc://h/;token={remote.MASK}",
        f"token={remote.MASK}",
    ]


def test_a_token_is_trinos_bearer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", SECRET)
    monkeypatch.setattr(remote._Engine, "_check_catalog", lambda self, session: None)
    monkeypatch.setattr(remote._Engine, "_asked", lambda self, session, statement: Rows((), (("483",),)))
    text = 'kind = "trino"\nremote = "https://h"\ntoken_variable = "MINE"'
    engine: Any = remote.connect(None, remote.read(file(tmp_path, "trino-483@m", text)), LAB)  # type: ignore[arg-type]
    assert (engine._server.scheme, engine._server.port) == ("https", 443)
    assert engine._server.auth == JWTAuthentication(SECRET)


# ---------------------------------------------------------------- a Spark of fakes
CLIENT = """
class Session:
    def __init__(self, catalog, settings):
        if "token=right" not in catalog["remote"]:
            raise RuntimeError("UNAUTHENTICATED: " + catalog["remote"])
        self.settings = settings

    def execute(self, statement):
        if statement == "SELECT version()":
            return [("v", "string")], [("4.1.1 abc",)]
        if statement.startswith("SET "):
            return [("key", "string"), ("value", "string")], [(statement[4:], "org.apache.iceberg.spark.SparkCatalog")]
        if statement == "settings":
            return [("k", "string"), ("v", "string")], list(self.settings.items())
        if statement.startswith("SELECT ice.system"):
            return [("v", "string")], [("1.11.0",)]
        return [("v", "string")], [(statement,)]

    def close(self):
        pass
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    (tmp_path / "client.py").write_text(CLIENT)
    monkeypatch.setattr(spark_connect.Client, "engine_file", tmp_path / "client.py")
    monkeypatch.setattr(spark_connect.Client, "sites", lambda self: [tmp_path])
    monkeypatch.setattr(remote, "RestCatalog", Catalog)
    folder.claim(tmp_path / "run")
    one = Host(None, tmp_path / "run")  # type: ignore[arg-type]
    yield one
    one.stop()


def test_a_spark_of_the_users_is_spoken_to_over_connect(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'{SPARK}catalog = "ice"\ntoken_variable = "MINE"\n[settings]\n"spark.sql.own" = "1"\n'
    generation = remote.read(file(tmp_path, "spark-4.1.1@m", text))
    monkeypatch.setenv("MINE", "wrong-one")
    with pytest.raises(LabError, match=r"refuses .* is what \$MINE holds right") as error:
        remote.connect(host, generation, LAB)
    assert "wrong-one" not in str(error.value)
    monkeypatch.setenv("MINE", "right")
    with pytest.raises(LabError, match=r"leads elsewhere.*catalog\.ice\.uri=http://127\.0\.0\.1:4711"):
        remote.connect(host, generation, LAB)
    monkeypatch.setattr(remote._Engine, "_check_catalog", lambda self, session: None)
    engine = remote.connect(host, generation, LAB)
    assert engine.versions() == {"spark": "4.1.1", "iceberg": "1.11.0"}
    given = {"spark.remote": "sc://localhost", "spark.sql.catalog.lab.cache-enabled": "true"}
    answer = engine.session(given).execute("settings")
    assert isinstance(answer, Rows)
    assert dict(answer.rows) == {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.own": "1",
        "spark.sql.catalog.ice.cache-enabled": "true",
    }
    with pytest.raises(NotProvided, match=r"spark\.sql\.extensions is the owner's"):
        engine.session({"spark.sql.extensions": None})
    engine.close()
