"""REST catalogs, and the gateway in front of whichever it is. Knows nothing of engines."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.model import Access

# Table properties that the gateway obeys, so that every engine meets what they say without settings of its own.
# Comma-separated S3 actions (`s3:DeleteObject`):
DENY = "lab.vending.deny"  # sessions vended for this table lack these
GRANT = "lab.bucket.grant"  # the bucket's policy grants these to the principal of this table's sessions
# A transform and the ids of its columns, `name:1,2`: what the table is said to be partitioned by (see `handmade.py`)
TRANSFORM = "lab.told.transform"


@dataclass(frozen=True)
class CatalogEndpoint:
    """What an engine is told of the catalog, and all it is told: there is no secret in it."""

    uri: str  # the gateway's
    warehouse: str
    s3_endpoint: str
    region: str
    client_environment: Mapping[str, str] = field(default_factory=dict, hash=False)  # see `StoreEndpoint`


def profile(properties: Mapping[str, str | None], access: Access | None = None) -> str:
    """Whose rules a catalog acts under that meets these table properties: part of each cell's key.

    `none`, what vended sessions lack (`vends-no-s3:DeleteObject`), or the terms of the door by which engines come in
    (`horizon~off=W-no-ctas`).
    """
    if access is not None:
        return access.profile
    return f"vends-no-{properties[DENY]}" if DENY in properties else "none"
