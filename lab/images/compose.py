"""The lab for use by hand with Docker Compose: written from the declarations, as are the snippets that connect to it.

Every service shares the network of one container, which publishes each port under its own number on loopback: an
object store's address stands in vended credentials, and must be right inside and outside.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.catalogs import polaris, reference
from lab.containers.engines import KINDS, PORTS, image_of
from lab.containers.part import image
from lab.containers.services import STORES, SeaweedFs
from lab.engines import GENERATIONS, WORKERS, spark
from lab.errors import LabError
from lab.images.context import PROJECT
from lab.model import Generation
from lab.runtime.folder import write_private
from lab.stores import s3

FILE = PROJECT / "compose" / "compose.yaml"
SECRETS = FILE.with_name(".env")
_FIRST_PORT = 19000  # below those that the lab's own runs and outgoing connections take
_HEAD = "# Written by `iceberg-lab compose write` from the lab's declarations; a test fails if they differ.\n"
_NEEDED = "run: iceberg-lab compose env"
# What `compose env` makes up; Compose takes them from compose/.env.
RANDOM = ("LAB_STORE_ACCESS_KEY", "LAB_STORE_SECRET_KEY", "LAB_TOKEN", "LAB_POLARIS_SECRET", "LAB_CLUSTER_SECRET")
# The generations that are run as a cluster too: profiles `cluster`, `spark-cluster`, `trino-cluster`.
CLUSTERS = {"spark": "spark-4.1.1+iceberg-1.11.0", "trino": "trino-483"}
_UNPUBLISHED = 19100  # from here on: what members of a cluster speak to each other by


def ports() -> dict[str, int]:
    """Variable → published port, for store, catalog, each engine and each cluster."""
    names = ["LAB_STORE_PORT", "LAB_CATALOG_PORT", "LAB_POLARIS_PORT"]
    for generation in _engines():
        names.append(_variable(generation, "PORT"))
        if PORTS[generation.kind] > 1 and _has_connect(generation):
            names.append(_variable(generation, "CONNECT_PORT"))
    names += ["LAB_SPARK_CLUSTER_PORT", "LAB_SPARK_CLUSTER_CONNECT_PORT", "LAB_SPARK_CLUSTER_PAGE_PORT"]
    names.append("LAB_TRINO_CLUSTER_PORT")
    return {name: _FIRST_PORT + number for number, name in enumerate(names)}


def composed() -> dict[str, Any]:
    """The content of compose.yaml."""
    # Variables of compose/.env; without them the numbers that it would have.
    port = {name: f"${{{name}:-{number}}}" for name, number in ports().items()}
    store = {
        "LAB_STORE_URL": _local(port["LAB_STORE_PORT"]),
        "LAB_STORE_ACCESS_KEY": _secret("LAB_STORE_ACCESS_KEY"),
        "LAB_STORE_SECRET_KEY": _secret("LAB_STORE_SECRET_KEY"),
        "LAB_CLIENT_ENVIRONMENT": _secret("LAB_CLIENT_ENVIRONMENT"),
    }
    return {
        "name": "iceberg-lab",
        "services": {
            "network": {
                "image": image("catalog", reference.VERSION),
                "command": ["network"],
                "init": True,
                "ports": [f"127.0.0.1:{number}:{number}" for number in port.values()],
            },
            "store": _service(
                # `iceberg-lab compose env --store minio` names the other one.
                f"${{LAB_STORE_IMAGE:-{SeaweedFs.IMAGE}}}",
                ["store", f"${{LAB_STORE:-{SeaweedFs.NAME}}}"],
                {"LAB_PORT": port["LAB_STORE_PORT"], **store},
            ),
            "catalog": _service(
                image("catalog", reference.VERSION),
                ["catalog"],
                {"LAB_PORT": port["LAB_CATALOG_PORT"], **store},
                after="store",
            ),
            "polaris": _polaris(port["LAB_POLARIS_PORT"]),
            **{_word(generation): _engine(generation, port) for generation in _engines()},
            **_spark_cluster(port),
            **_trino_cluster(port),
        },
    }


def written() -> str:
    """The text of compose.yaml."""
    return _HEAD + _yaml(composed())


def write() -> Path:
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(written())
    return FILE


def environment(store: str | None = None, *, anew: bool = False) -> Path:
    """Writes compose/.env with random secrets, for its owner's eyes; what it has already stays.

    store: else the one that it has, else the usual one. anew: secrets are made anew, all else stays.
    """
    if not FILE.exists():
        raise LabError(f"{FILE} is missing; write it first: iceberg-lab compose write")
    lines = SECRETS.read_text().splitlines() if SECRETS.exists() else []
    held = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    made = {name: (held.get(name) if not anew else None) or _random(name) for name in RANDOM}
    made |= {name: held.get(name) or str(number) for name, number in ports().items()}
    had = held.get("LAB_STORE", "")
    chosen = STORES[store or (had if had in STORES else SeaweedFs.NAME)]
    ours = {"LAB_STORE", "LAB_STORE_IMAGE", "LAB_CLIENT_ENVIRONMENT", *made}
    ours = ours.union(*(one.CLIENT_ENVIRONMENT for one in STORES.values()))
    made |= {name: value for name, value in held.items() if name not in ours}  # the user's own lines
    made |= {"LAB_STORE": chosen.NAME, "LAB_STORE_IMAGE": chosen.IMAGE, **chosen.CLIENT_ENVIRONMENT}
    made["LAB_CLIENT_ENVIRONMENT"] = f"'{json.dumps(dict(chosen.CLIENT_ENVIRONMENT))}'"
    write_private(SECRETS, "".join(f"{name}={value}\n" for name, value in made.items()))
    return SECRETS


def _random(name: str) -> str:
    return secrets.token_hex(10) if name.endswith("ACCESS_KEY") else secrets.token_urlsafe(30)


# ------------------------------------------------------------ snippets
_TOLD, _CATALOG = ("spark.sql.extensions",), spark.CATALOG  # of the adapter's settings; the others suit a test
_SNIPPETS = """\
# Connecting to the lab that Compose runs

Addresses and secrets are variables of `compose/.env`; take them into a shell first:

```sh
set -a; . compose/.env; set +a
```
"""


def snippets() -> str:
    """A page of Markdown: how each engine and client connects. It names variables, never their values."""
    engines = [*map(_of_spark, _of_kind("spark")), *map(_of_trino, _of_kind("trino"))]
    return "\n".join([_SNIPPETS, *engines, _of_clusters(), _duckdb(), _pyiceberg()])


def _of_spark(generation: Generation) -> str:
    versions = generation.versions
    packages = ",".join(
        artefact.removeprefix("maven:") for artefact in generation.artefacts if artefact.startswith("maven:")
    )
    own = {key: value for key, value in spark.settings(generation).items() if key in _TOLD or key.startswith(_CATALOG)}
    conf = {
        **own,
        **generation.settings,
        f"{spark.CATALOG}.uri": "http://127.0.0.1:$LAB_CATALOG_PORT",
        f"{spark.CATALOG}.warehouse": _warehouse(),
        f"{spark.CATALOG}.s3.endpoint": "http://127.0.0.1:$LAB_STORE_PORT",
        f"{spark.CATALOG}.s3.path-style-access": "true",
        f"{spark.CATALOG}.client.region": s3.REGION,
    }
    options = " \\\n".join(f'  --conf "{key}={value}"' for key, value in conf.items())
    text = f"""\
## {generation.name}

A spark-sql {versions["spark"]} of your own, on the lab's catalog; it is vended its store keys:

```sh
spark-sql --packages {packages} \\
{options}
```
"""
    if _has_connect(generation):
        text += f"""
The lab's own Spark, over Connect (`docker compose -f compose/compose.yaml --profile {_word(generation)} up --wait`,
`pip install pyspark-client=={versions["spark"]}`):

{_over_connect(_variable(generation, "CONNECT_PORT"))}"""
    return text


def _over_connect(port: str) -> str:
    return f"""\
```python
import os
from pyspark.sql import SparkSession

port, token = os.environ["{port}"], os.environ["LAB_TOKEN"]
spark = SparkSession.builder.remote(f"sc://localhost:{{port}}/;token={{token}}").getOrCreate()
spark.sql("SHOW NAMESPACES IN lab").show()
```
"""


def _of_trino(generation: Generation) -> str:
    port = _variable(generation, "PORT")
    return f"""\
## {generation.name}

`docker compose -f compose/compose.yaml --profile {_word(generation)} up --wait`, then its command-line client, or
`pip install trino`:

{_to_trino(port)}"""


def _of_clusters() -> str:
    spark_, trino = (GENERATIONS[name] for name in CLUSTERS.values())
    return f"""\
## The small clusters

`docker compose -f compose/compose.yaml --profile cluster up --wait`: {spark_.name} with a master and {WORKERS} workers,
and {trino.name} with a coordinator and {WORKERS} workers (for one of them `--profile spark-cluster`, `trino-cluster`).

Spark over Connect; its master tells of workers and executors at `http://127.0.0.1:$LAB_SPARK_CLUSTER_PAGE_PORT/json/`:

{_over_connect("LAB_SPARK_CLUSTER_CONNECT_PORT")}
Trino; `SELECT * FROM system.runtime.nodes` shows its nodes:

{_to_trino("LAB_TRINO_CLUSTER_PORT")}"""


def _to_trino(port: str) -> str:
    return f"""\
```sh
trino --server "http://127.0.0.1:${port}" --catalog lab --execute "SHOW SCHEMAS"
```

```python
import os
import trino

lab = trino.dbapi.connect(host="127.0.0.1", port=int(os.environ["{port}"]), user="lab", catalog="lab")
print(lab.cursor().execute("SHOW SCHEMAS").fetchall())
```
"""


def _duckdb() -> str:
    return f"""\
## DuckDB

```python
import os
import duckdb

lab = duckdb.connect()
lab.execute("INSTALL httpfs; LOAD httpfs; INSTALL avro; LOAD avro; INSTALL iceberg; LOAD iceberg")
lab.execute(f"SET s3_endpoint = '127.0.0.1:{{os.environ['LAB_STORE_PORT']}}'")
lab.execute("SET s3_use_ssl = false; SET s3_url_style = 'path'; SET s3_region = '{s3.REGION}'")
catalog = f"http://127.0.0.1:{{os.environ['LAB_CATALOG_PORT']}}"
lab.execute(f"ATTACH '{_warehouse()}' AS lab (TYPE iceberg, ENDPOINT '{{catalog}}', AUTHORIZATION_TYPE 'none')")
print(lab.sql("SHOW ALL TABLES"))
```
"""


def _pyiceberg() -> str:
    return f"""\
## PyIceberg

```python
import os
from pyiceberg.catalog import load_catalog

lab = load_catalog(
    "lab",
    **{{
        "type": "rest",
        "uri": f"http://127.0.0.1:{{os.environ['LAB_CATALOG_PORT']}}",
        "warehouse": "{_warehouse()}",
        "header.X-Iceberg-Access-Delegation": "vended-credentials",
        "s3.endpoint": f"http://127.0.0.1:{{os.environ['LAB_STORE_PORT']}}",
        "s3.region": "{s3.REGION}",
    }},
)
print(lab.list_namespaces())
```
"""


def _of_kind(kind: str) -> list[Generation]:
    return [generation for generation in GENERATIONS.values() if generation.kind == kind]


def _warehouse() -> str:
    return f"s3://{s3.BUCKET}/warehouse"


# ------------------------------------------------------------ services
def _service(
    of: str,
    command: list[str],
    variables: Mapping[str, Any],
    *,
    after: str | tuple[str, ...] = (),
    profiles: tuple[str, ...] = (),
) -> dict[str, Any]:
    service: dict[str, Any] = {"image": of}
    if command:
        service["command"] = command
    service |= {"init": True, "network_mode": "service:network"}
    if profiles:
        service["profiles"] = list(profiles)
    service["environment"] = {name: str(value) for name, value in variables.items()}
    service["depends_on"] = {"network": {"condition": "service_started"}}
    for other in (after,) if isinstance(after, str) else after:
        service["depends_on"][other] = {"condition": "service_healthy"}
    return service


def _engine(generation: Generation, port: Mapping[str, str]) -> dict[str, Any]:
    variables = {"LAB_PORT": port[_variable(generation, "PORT")], **_catalog(port)}
    if generation.kind != "trino":
        variables["LAB_TOKEN"] = _secret("LAB_TOKEN")
    if connect := port.get(_variable(generation, "CONNECT_PORT")):
        variables["LAB_CONNECT_PORT"] = connect
    command = ["engine", generation.name]
    return _service(image_of(generation), command, variables, after="catalog", profiles=profiles(generation))


def _catalog(port: Mapping[str, str]) -> dict[str, str]:
    """Where engines find catalog and store."""
    return {
        "LAB_STORE_URL": _local(port["LAB_STORE_PORT"]),
        "LAB_CATALOG_URI": _local(port["LAB_CATALOG_PORT"]),
        "LAB_CLIENT_ENVIRONMENT": _secret("LAB_CLIENT_ENVIRONMENT"),
    }


def _spark_cluster(port: Mapping[str, str]) -> dict[str, Any]:
    """Spark's standalone cluster: a master, workers, and the driver, with Spark Connect, that uses them."""
    master, page = _UNPUBLISHED, port["LAB_SPARK_CLUSTER_PAGE_PORT"]
    shared = {"LAB_SPARK_MASTER": f"spark://127.0.0.1:{master}", "LAB_CLUSTER_SECRET": _secret("LAB_CLUSTER_SECRET")}
    workers = {f"spark-worker-{n}": {"LAB_PORT": master + n, **_catalog(port), **shared} for n in _numbers()}
    driver = {
        "LAB_PORT": port["LAB_SPARK_CLUSTER_PORT"],
        **_catalog(port),
        "LAB_TOKEN": _secret("LAB_TOKEN"),
        "LAB_CONNECT_PORT": port["LAB_SPARK_CLUSTER_CONNECT_PORT"],
        **shared,
    }
    return {
        "spark-master": _member("spark", "spark-master", {"LAB_PORT": page, **shared}),
        **{name: _member("spark", "spark-worker", of, "spark-master") for name, of in workers.items()},
        "spark-cluster": _member("spark", "engine", driver, "catalog", *workers),
    }


def _trino_cluster(port: Mapping[str, str]) -> dict[str, Any]:
    """A Trino coordinator and its workers. They start at once: a query waits until all are there."""
    first = _UNPUBLISHED + 1 + WORKERS
    shared = {
        **_catalog(port),
        "LAB_TRINO_COORDINATOR": _local(port["LAB_TRINO_CLUSTER_PORT"]),
        "LAB_CLUSTER_SECRET": _secret("LAB_CLUSTER_SECRET"),
    }
    workers = {f"trino-worker-{n}": {"LAB_PORT": first + n - 1, **shared} for n in _numbers()}
    coordinator = {"LAB_PORT": port["LAB_TRINO_CLUSTER_PORT"], **shared}
    return {
        "trino-cluster": _member("trino", "engine", coordinator, "catalog"),
        **{name: _member("trino", "trino-worker", of) for name, of in workers.items()},
    }


def _member(kind: str, part: str, variables: Mapping[str, Any], *after: str) -> dict[str, Any]:
    generation = GENERATIONS[CLUSTERS[kind]]
    profiles = ("cluster", f"{kind}-cluster")
    return _service(image_of(generation), [part, generation.name], variables, after=after, profiles=profiles)


def _numbers() -> range:
    return range(1, WORKERS + 1)


def _polaris(port: str) -> dict[str, Any]:
    """Polaris as published, or the image that ICEBERG_LAB_POLARIS_IMAGE names; its metastore is in memory."""
    keys = {name: _secret(name) for name in ("LAB_STORE_ACCESS_KEY", "LAB_STORE_SECRET_KEY")}
    variables = polaris.environment(port, _secret("LAB_POLARIS_SECRET"), keys)
    of = f"${{ICEBERG_LAB_POLARIS_IMAGE:-{polaris.OFFICIAL}}}"
    return _service(of, [], variables, after="store", profiles=("polaris",))


def profiles(generation: Generation) -> tuple[str, ...]:
    """`spark`, `spark-4.1` and `spark-4.1.1-iceberg-1.11.0`."""
    kind = _word(generation).rsplit("-", 1)[0] if generation.kind == "iceberg" else generation.kind
    minor = re.match(rf"{kind}-\d+(\.\d+)?", _word(generation))
    return tuple(dict.fromkeys((kind, *([minor[0]] if minor else []), _word(generation))))


def _engines() -> list[Generation]:
    return [generation for generation in GENERATIONS.values() if generation.kind in KINDS]


def _word(generation: Generation) -> str:
    return generation.name.replace("+", "-")


def _variable(generation: Generation, what: str) -> str:
    return f"LAB_{re.sub(r'[^A-Z0-9]', '_', generation.name.upper())}_{what}"


def _has_connect(generation: Generation) -> bool:
    return any(artefact.startswith("pypi:pyspark-client==") for artefact in generation.artefacts)


def _local(port: str) -> str:
    return f"http://127.0.0.1:{port}"


def _secret(name: str) -> str:
    return f"${{{name}:?{_NEEDED}}}"


def _yaml(value: Any, indent: str = "") -> str:
    """YAML of mappings, lists and scalars; the latter as JSON has them, which YAML takes."""
    if not isinstance(value, Mapping):
        return f" {json.dumps(value)}\n"
    text = "\n" if indent else ""
    for key, item in value.items():
        name = key if re.fullmatch(r"[\w.-]+", key) else json.dumps(key)
        text += f"{indent}{name}:" + _yaml(item, indent + "  ")
    return text
