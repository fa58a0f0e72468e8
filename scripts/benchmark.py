"""Measures the lab: `python scripts/benchmark.py [NAME …] > docs/measured.json`. Takes some eight minutes.

Every figure is of this machine, with a warm cache. What is measured:

starts        seconds from asking for one engine to its first row, store and catalog being up
quick         seconds from typing the command for DuckDB and PyIceberg alone: to the first answer of each, to the matrix
all up        seconds until all generations answer, started together; resident memory of the lab then
matrix        seconds of the whole matrix, from nothing, and of the grid of encodings alone
overhead      a warm run's wall time against the same statements (those that make the tables included) sent bare to
              the same warm engines, one after the other
fresh start   a warm run's wall time against a fresh spark-sql start for each case
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from lab.asking import plain_read, seed
from lab.engines import GENERATIONS, adapter
from lab.engines.spark import JVM_OPTIONS, SETTINGS
from lab.model import ENGINES, Generation, Rows
from lab.plan import Selection, cases, select
from lab.provision import Cache
from lab.records.record import Recorder, machine
from lab.records.redact import Redactor
from lab.run import Engines, Run, Tables
from lab.runtime.embedded import Embedded
from lab.tables.orders import NAMESPACE, ORDERS_V2

PLAIN = f"SELECT * FROM lab.{NAMESPACE}.ORDERS_V2"
QUERIED = [generation for generation in GENERATIONS.values() if generation.kind in ENGINES]
SERIAL = "spark-3.5.6+iceberg-1.10.0"  # its cases are also run by fresh starts


def main() -> None:
    figures: dict[str, Any] = {"machine": machine()}
    wanted = sys.argv[1:]
    for name, measure in (
        ("starts", starts),
        ("quick", quick),
        ("all up", all_up),
        ("matrix", matrix),
        ("overhead", overhead),
        ("fresh start", fresh_start),
    ):
        if not wanted or name in wanted:
            print(f"measuring: {name}", file=sys.stderr)
            figures[name] = measure()
    print(json.dumps(figures, indent=2))


def starts() -> dict[str, float]:
    """Each generation alone, over a lab whose services are up; sorted by declaration."""
    found = {}
    for generation in QUERIED:
        with _lab() as lab:
            _analytics(lab)
            found[generation.name] = _timed(lambda lab=lab, g=generation: _first_row(lab, g))  # type: ignore[misc]
    return found


def quick() -> dict[str, float]:
    """The command's own lines tell when an engine answered."""
    names = ("duckdb-1.5.5", "pyiceberg-0.12.0")
    words = [sys.executable, "-m", "lab", "matrix", "--generations", ",".join(names)]
    found: dict[str, float] = {}
    started = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            for name in names:
                if f"[{name}]" in line:
                    found.setdefault(name, round(time.monotonic() - started, 1))
    return {**found, "matrix": round(time.monotonic() - started, 1)}


def matrix() -> dict[str, float]:
    def run(*words: str) -> float:
        command = [sys.executable, "-m", "lab", "matrix", "--runtime", "embedded", *words]
        return _timed(lambda: subprocess.run(command, check=True, capture_output=True))

    return {"all": run(), "encodings": run("--behaviours", "E-*")}


def all_up() -> dict[str, Any]:
    with _lab() as lab:
        started = time.monotonic()
        _analytics(lab)
        with ThreadPoolExecutor(len(QUERIED)) as pool:
            list(pool.map(lambda generation: _first_row(lab, generation), QUERIED))
        seconds = round(time.monotonic() - started, 1)
        processes = {p["name"]: round(p["rss"] / 2**20) for p in lab.status()["processes"]}
    return {"seconds": seconds, "MiB": processes, "MiB in all": sum(processes.values())}


def overhead() -> dict[str, Any]:
    """One generation at a time, so that nothing but the lab itself stands beside the engine."""
    found = {}
    for name in (SERIAL, "trino-483", "duckdb-1.5.5"):
        selection = select({"generations": name})
        with _lab() as lab:
            _run(lab, selection)  # warms engine, tables and compiler
            _run(lab, selection)
            wall, run = _run(lab, selection)
            bare = _bare(lab, GENERATIONS[name], run)
        found[name] = {"run": wall, "bare": bare, "ratio": round(wall / bare, 3)}
    return found


def _bare(lab: Embedded, generation: Generation, run: Run) -> float:
    """The statements of that run once more, on tables of their own, one after the other and nothing else."""
    engines = Engines(lab)
    duckdb = GENERATIONS["duckdb-1.5.5"]
    with engines.using(generation) as engine, engines.using(duckdb, "seed") as seeder:
        sessions = {case.variant.name: engine.session(case.variant.settings) for case in run.cases}
        with closing(seeder.session()) as seeding:
            started = time.monotonic()
            for case in run.cases:
                old = run.namespace(case)
                new = f"{old}_BARE"
                seed(seeding, duckdb.kind, new, case.behaviour.table, case.variant.properties)
                for step in run.results[case.cell].result().observation.steps:
                    if step.by == generation.name:
                        sessions[case.variant.name].execute(step.statement.replace(old, new))
            seconds = time.monotonic() - started
        for session in sessions.values():
            session.close()
    engines.close()
    return round(seconds, 2)


def fresh_start() -> dict[str, Any]:
    """The reading cases each way: in a warm run, and by a spark-sql started for each."""
    selection = select({"generations": SERIAL, "tags": "read"})
    with _lab() as lab:
        _run(lab, selection)
        warm, run = _run(lab, selection)
        fresh = [_spark_sql(lab, GENERATIONS[SERIAL], PLAIN) for _ in run.cases]
    return {
        "cases": len(run.cases),
        "warm run": warm,
        "fresh starts": round(sum(fresh), 2),
        "times": round(sum(fresh) / warm, 1),
    }


def _spark_sql(lab: Embedded, generation: Generation, statement: str) -> float:
    """Spark's own command line in a JVM of its own, as a script would start it."""
    cache, catalog = lab.host.cache, lab.catalog()
    jars = [cache.file(a) for a in generation.artefacts if a.startswith("maven:")]
    (pyspark,) = (a for a in generation.artefacts if a.startswith("pypi:"))
    home = cache.tree(pyspark, "deps/jars/*") / "deps" / "jars"
    settings = SETTINGS | {
        "spark.sql.catalog.lab.uri": catalog.uri,
        "spark.sql.catalog.lab.warehouse": catalog.warehouse,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.catalogImplementation": "in-memory",
    }
    java = cache.java(generation.java or "") / "bin" / "java"
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            java,
            *JVM_OPTIONS,
            *(f"-D{k}={v}" for k, v in settings.items()),
            "-cp",
            ":".join([*map(str, jars), f"{home}/*"]),
        ]
        argv += ["org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver", "-e", statement]
        env = lab.host.environment() | {"SPARK_LOCAL_IP": "127.0.0.1"}
        started = time.monotonic()
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)
        seconds = time.monotonic() - started
    if "keyboard" not in done.stdout:
        raise SystemExit(f"spark-sql did not answer: {done.stderr[-2000:]}")
    return seconds


@contextmanager
def _lab() -> Iterator[Embedded]:
    with tempfile.TemporaryDirectory() as folder, Embedded(Cache(), Path(folder) / "runs" / "benchmark") as lab:
        yield lab


def _analytics(lab: Embedded) -> None:
    engines = Engines(lab)
    tables = Tables(lab, engines, GENERATIONS["duckdb-1.5.5"])
    for table in tables.analytics():
        table.result()
    tables.close()
    engines.close()


def _first_row(lab: Embedded, generation: Generation) -> None:
    with lab.using(generation) as endpoint:
        engine = adapter(generation.kind).Engine(lab.host, generation, lab.catalog(), endpoint)
        with closing(engine), closing(engine.session()) as session:
            answer = plain_read(session, generation, NAMESPACE, ORDERS_V2).answer
            assert isinstance(answer, Rows), answer


def _run(lab: Embedded, selection: Selection) -> tuple[float, Run]:
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder) / "record.jsonl", os.urandom(4).hex(), Redactor())
        run = Run(cases(selection), selection, lab, recorder)
        started = time.monotonic()
        run.start()
        run.wait()
        wall = round(time.monotonic() - started, 2)
        run.close()
        recorder.close()
    return wall, run


def _timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return round(time.monotonic() - started, 1)


if __name__ == "__main__":
    main()
