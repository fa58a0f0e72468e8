"""One behaviour at scale, on the small cluster: `python scripts/cluster.py [ROWS [FILES]]`, ten million in 8 files.

With the profile `cluster` up, and the variables of compose/.env in the environment (docs/containers.md). Both clusters
are asked as engines of a user's own would be (`lab/engines/remote.py`). Spark's generates a v3 table; each engine
deletes a tenth of its rows, merge-on-read; after each deletion both read the whole. Every answer is held against the
rows' formula.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from lab import generating
from lab.catalogs import CatalogEndpoint
from lab.engines import Engine, remote
from lab.images import compose
from lab.model import OWN, Failure, Rows
from lab.provision import Cache
from lab.runtime import folder as folders
from lab.runtime.host import Host
from lab.stores import s3
from lab.tables.rest import RestCatalog
from lab.tables.storage import Store
from lab.tables.xray import history, live

TABLE = "SCALE.ORDERS"
DELETIONS = {"spark": 3, "trino": 7}  # who deletes the rows whose ORDER_ID ends in what

T = TypeVar("T")


def main(rows: int, files: int) -> None:
    port = {name: os.environ.get(name) or str(number) for name, number in compose.ports().items()}
    catalog = CatalogEndpoint(
        f"http://127.0.0.1:{port['LAB_CATALOG_PORT']}",
        f"s3://{s3.BUCKET}/warehouse",
        f"http://127.0.0.1:{port['LAB_STORE_PORT']}",
        s3.REGION,
    )
    declared = {
        "spark": f'kind = "spark"\nremote = "sc://localhost:{port["LAB_SPARK_CLUSTER_CONNECT_PORT"]}"\n'
        'token_variable = "LAB_TOKEN"\n[versions]\nspark = "4.1.1"\n',
        "trino": f'kind = "trino"\nremote = "http://127.0.0.1:{port["LAB_TRINO_CLUSTER_PORT"]}"\n',
    }
    rest = RestCatalog(catalog.uri, catalog.warehouse)
    with TemporaryDirectory() as folder:
        run = Path(folder, "run")
        folders.claim(run)
        host = Host(Cache(None), run)
        engines = {}
        for kind, words in declared.items():
            file = Path(folder, f"{compose.CLUSTERS[kind]}{OWN}cluster.toml")
            file.write_text(words)
            engines[kind] = remote.connect(host, remote.read(file), catalog)
        try:
            _show(engines, rest, rows, files)
        finally:
            for engine in engines.values():
                engine.close()
            host.stop()


def _show(engines: dict[str, Engine], rest: RestCatalog, rows: int, files: int) -> None:
    for kind, engine in engines.items():
        print(f"{kind}: {', '.join(f'{what} {version}' for what, version in engine.versions().items())}")
    spark = engines["spark"]
    members = "SELECT coordinator, count(*) FROM system.runtime.nodes WHERE state = 'active' GROUP BY 1 ORDER BY 1"
    print(f"Trino's active members, coordinator or not: {_asked(engines['trino'], members).rows}")
    order = generating.Order(TABLE, "ORDERS_V3", rows, files)
    made = _timed(
        f"Spark writes {rows:,} rows",
        lambda: generating.generate(order, spark, "spark", spark, "spark", rest, lambda _: None),
    )
    print(f"          {made.files} files, {made.bytes / 1e6:.1f} MB; checked: {made.checked}")
    _delete_and_read(engines, rest, rows)
    _asked(spark, f"DROP TABLE lab.{TABLE} PURGE")


def _delete_and_read(engines: dict[str, Engine], rest: RestCatalog, rows: int) -> None:
    _asked(engines["spark"], f"ALTER TABLE lab.{TABLE} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    gone: list[int] = []
    for writer, last in DELETIONS.items():
        statement = f"DELETE FROM lab.{TABLE} WHERE ORDER_ID % 10 = {last}"
        _timed(f"{writer} deletes a tenth", lambda: _asked(engines[writer], statement))  # noqa: B023
        gone.append(last)
        print(f"          live files: {dict(_live(rest))}")
        true = _truth(rows, gone)
        for reader, engine in engines.items():
            question = f"SELECT count(*), sum(ORDER_ID) FROM lab.{TABLE}"
            answer = _timed(f"{reader} reads", lambda: _asked(engine, question))  # noqa: B023
            seen = tuple(map(int, answer.rows[0]))
            if seen != true:
                sys.exit(f"{reader} reads {seen} after {writer}'s deletion, not {true}")
            print(f"          {seen[0]:,} rows, as they should be")


def _truth(rows: int, gone: list[int]) -> tuple[int, int]:
    """Rows 1 to `rows` and the sum of their numbers, but for those that end in one of `gone`."""
    count, total = rows, rows * (rows + 1) // 2
    for last in gone:
        lost = range(last, rows + 1, 10)
        count, total = count - len(lost), total - len(lost) * (lost[0] + lost[-1]) // 2
    return count, total


def _live(rest: RestCatalog) -> Counter[str]:
    """How many live files of each kind manifests list."""
    table = rest.load_table(*TABLE.split("."))
    store = Store(table.credentials)
    return Counter(file.kind for file in live(store, history(table)[-1]))


def _asked(engine: Engine, statement: str) -> Rows:
    with closing(engine.session()) as session:
        answer = session.execute(statement)
    if isinstance(answer, Failure):
        sys.exit(f"{statement}\n" + "\n".join(f"  {cause.cls}: {cause.message[:500]}" for cause in answer.causes))
    return answer


def _timed(what: str, work: Callable[[], T]) -> T:
    started = time.monotonic()
    result = work()
    print(f"{time.monotonic() - started:7.1f} s  {what}", flush=True)
    return result


if __name__ == "__main__":
    asked = [int(word) for word in sys.argv[1:]] or [10_000_000]
    main(asked[0], asked[1] if len(asked) > 1 else 8)
