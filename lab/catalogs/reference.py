"""Iceberg's own reference implementation of the REST catalog, over SQLite, on loopback.

The classes are those that Iceberg tests its clients with: a servlet over an adapter over a JdbcCatalog. Its
stock main class binds every interface and hands its own store keys to anyone, so it is put together here
instead, from Python, in a JVM of its own. Only this process and the gateway hold the store's keys.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests
from py4j.protocol import Py4JJavaError

from lab import stores
from lab.catalogs import Traits, Upstream
from lab.runtime.host import LOOPBACK, Host
from lab.runtime.jvm import JavaEndpoint, class_archive, connect, jvm_gateway, py4j_jar
from lab.runtime.process import StartFailed
from lab.stores import StoreEndpoint

ARTEFACT = "maven-closure:reference-catalog"
JAVA = "21"
NAME = "reference-catalog"
ARTEFACTS = (f"java:{JAVA}", ARTEFACT)
STORES = stores.STORES
VERSION = "1.11.0"  # of Iceberg, in the closure
_JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Commits of many tables wait for each other here instead of failing; the file ends with the run, so no fsync.
_SQLITE = "busy_timeout=60000&journal_mode=WAL&synchronous=OFF&transaction_mode=IMMEDIATE"
_CONNECTIONS = 4


def check() -> None:
    """See `lab.catalogs.Catalog`: it is fetched."""


def traits() -> Traits:
    """See `lab.catalogs.Catalog`."""
    return Traits()


def choose(host: Host, store: StoreEndpoint) -> StoreEndpoint:
    """See `lab.catalogs.Catalog`: any store will do."""
    return store


def warehouse(store: StoreEndpoint) -> str:
    """See `lab.catalogs.Catalog`; it is also where tables lie."""
    return f"s3://{store.bucket}/warehouse"


def start(host: Host, store: StoreEndpoint, store_ready: Callable[[], object]) -> Upstream:
    """See `lab.catalogs.Catalog`. At its URI anyone may do anything; it starts without the store."""
    java = host.cache.java(JAVA)
    classpath = [*host.cache.closure(ARTEFACT), py4j_jar()]

    def train(endpoint: JavaEndpoint) -> None:
        store_ready()
        _first_table(_serve(endpoint, host.data("training") / "catalog.sqlite", store))

    archive = class_archive(host, NAME, java, classpath, _JVM_OPTIONS, train, store.client_environment)
    process, endpoint = jvm_gateway(host, NAME, java, classpath, [*_JVM_OPTIONS, *archive], store.client_environment)
    try:
        uri = _serve(endpoint, host.data(NAME) / "catalog.sqlite", store)
        return Upstream(uri, root=warehouse(store), loses_transactions=True)
    except Py4JJavaError as failure:
        host.end(process)
        raise StartFailed(NAME, str(failure.java_exception), process.log) from None


def _first_table(uri: str) -> None:
    """What a lab asks first, so that its classes are in the archive: a table made, loaded and dropped."""
    tables = f"{uri}/v1/namespaces/training/tables"
    schema = {"type": "struct", "fields": [{"id": 1, "name": "x", "type": "long", "required": False}]}
    commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "y"}}]}
    with requests.Session() as http:
        for method, url, body in (
            ("POST", f"{uri}/v1/namespaces", {"namespace": ["training"]}),
            ("POST", tables, {"name": "t", "schema": schema}),
            ("POST", f"{tables}/t", commit),
            ("GET", f"{tables}/t", None),
            ("DELETE", f"{tables}/t?purgeRequested=true", None),
        ):
            http.request(method, url, json=body, timeout=60).raise_for_status()


def _serve(endpoint: JavaEndpoint, database: Path, store: StoreEndpoint) -> str:
    gateway = connect(endpoint)
    try:
        iceberg, jetty = gateway.jvm.org.apache.iceberg, gateway.jvm.org.eclipse.jetty
        catalog = iceberg.jdbc.JdbcCatalog()
        catalog.initialize(
            "lab",
            {
                "uri": f"jdbc:sqlite:{database}?{_SQLITE}",
                "jdbc.schema-version": "V1",  # the one that has views
                "clients": str(_CONNECTIONS),
                "warehouse": warehouse(store),
                "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
                "s3.endpoint": store.url,
                "s3.path-style-access": "true",
                "s3.access-key-id": store.access_key,
                "s3.secret-access-key": store.secret_key,
                "client.region": store.region,
            },
        )
        servlet = iceberg.rest.RESTCatalogServlet(iceberg.rest.RESTCatalogAdapter(catalog))
        return _listen(gateway, jetty, servlet)
    finally:
        gateway.close()


def _listen(gateway: Any, jetty: Any, servlet: Any) -> str:
    configuration = jetty.server.HttpConfiguration()
    # A nested namespace is one path segment with an encoded separator, which Jetty calls suspicious.
    configuration.setUriCompliance(jetty.http.UriCompliance.UNSAFE)
    factories = gateway.new_array(jetty.server.ConnectionFactory, 1)
    factories[0] = jetty.server.HttpConnectionFactory(configuration)
    server = jetty.server.Server()
    connector = jetty.server.ServerConnector(server, factories)
    connector.setHost(LOOPBACK)
    connector.setPort(0)
    server.addConnector(connector)
    context = jetty.ee10.servlet.ServletContextHandler()
    context.getServletHandler().setDecodeAmbiguousURIs(True)
    context.addServlet(jetty.ee10.servlet.ServletHolder(servlet), "/*")
    server.setHandler(context)
    server.start()
    return f"http://{LOOPBACK}:{connector.getLocalPort()}"
