"""Object stores: where tables' files lie, and who may reach them. Knows nothing of catalogs."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class StoreEndpoint:
    """An S3 store, its STS under the same address, and the keys of its administrator (secrets)."""

    url: str
    region: str
    bucket: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    access_record: str = ""  # the file of `lab/stores/access.py`
