"""Testcontainers modules of the lab's parts, to be used on their own too: Iceberg in containers from Python.

    with Network(ports=4) as network, SeaweedFs(network) as store, Catalog(network, store) as catalog:
        with Spark(network, catalog, "spark-4.1.1+iceberg-1.11.0") as spark, Trino(network, catalog, "trino-483") as t:
            spark.session().execute("CREATE TABLE lab.demo.t (id int) USING iceberg")
            t.session().execute("SELECT * FROM lab.demo.t")

One container owns the network and publishes its ports under the same numbers on loopback, so that every address is
the same inside and outside: an object store's address stands in vended credentials, and must be right for all.

    Minio(network).with_user("reader", secret, "readonly")          # beside the administrator of its `endpoint`
    Polaris(network, store).with_catalog("sales")                   # the server alone; Gateway has the lab's before it
    Spark(network, catalog, name).with_setting("spark.sql.iceberg.vectorization.enabled", "false")
"""

from collections.abc import Iterable

from lab.containers.engines import KINDS, Library, Spark, Trino, image_of
from lab.containers.part import Network, Part, engine_answers, image
from lab.containers.services import CATALOGS, STORES, Catalog, Gateway, Minio, Polaris, SeaweedFs
from lab.model import Generation

__all__ = [
    "Catalog",
    "Gateway",
    "Library",
    "Minio",
    "Network",
    "Part",
    "Polaris",
    "SeaweedFs",
    "Spark",
    "Trino",
    "engine_answers",
    "image",
    "images_of",
]


def images_of(catalog: str, store: str, generations: Iterable[Generation]) -> list[str]:
    """The images that a lab with this catalog and store needs for these generations."""
    engines = [image_of(generation) for generation in generations if generation.kind in KINDS and not generation.remote]
    return list(dict.fromkeys([STORES[store].IMAGE, *CATALOGS[catalog].IMAGES, *engines]))
