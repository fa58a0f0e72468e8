"""REST catalogs, and the gateway in front of whichever it is. Knows nothing of engines."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CatalogEndpoint:
    """What an engine is told of the catalog, and all it is told: there is no secret in it."""

    uri: str  # the gateway's
    warehouse: str
    s3_endpoint: str
    region: str
