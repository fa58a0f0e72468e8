"""A catalog of the user's own, or a vendor's: Horizon, S3 Tables, Unity, Glue, Polaris, whatever speaks REST.

A file like this, which the variable ICEBERG_LAB_CATALOG names. It holds no secret: these are in variables of the
environment, which it names.

    uri = "https://account.example.com/polaris/api/catalog"
    warehouse = "SALES"
    credential_variable = "SALES_CREDENTIAL"  # CLIENT_ID:CLIENT_SECRET; or token_variable; or signing_name; or nothing
    scope = "PRINCIPAL_ROLE:ALL"              # optional
    token_uri = "https://…/oauth/tokens"      # optional, else the catalog's own
    signing_name = "s3tables"                 # SigV4, keys as all tools find them: AWS_ACCESS_KEY_ID, …
    region = "us-east-1"                      # optional
    lower_case = true                         # optional: it takes names in lower case alone
    [store]                                   # optional: without keys the catalog vends them itself
    url = "https://s3.example.com"            # else Amazon's
    bucket = "sales"                          # with keys that may assume roles at its STS the gateway vends sessions
    access_key_variable = "STORE_KEY"
    secret_key_variable = "STORE_SECRET"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lab.catalogs import Traits, Upstream
from lab.errors import LabError, UsageError
from lab.provision import NotProvided
from lab.runtime.host import Host
from lab.stores import StoreEndpoint

NAME = "remote"
ARTEFACTS: tuple[str, ...] = ()
STORES = ("remote",)
FILE = "ICEBERG_LAB_CATALOG"  # the variable that names the file
_AWS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_TEXTS = {"uri", "warehouse", "credential_variable", "token_variable", "scope", "token_uri", "signing_name", "region"}
_OF_STORE = {"url", "bucket", "access_key_variable", "secret_key_variable"}
_SECRETS = {"credential", "token", "access_key", "secret_key", "secret", "password"}
_SIGN_ONS = ("credential_variable", "token_variable", "signing_name")


@dataclass(frozen=True)
class Remote:
    """What the file says. Secrets stay in the variables that it names."""

    uri: str
    warehouse: str
    credential_variable: str = ""
    token_variable: str = ""
    scope: str = ""
    token_uri: str = ""
    signing_name: str = ""
    region: str = "us-east-1"
    lower_case: bool = False
    store: Mapping[str, str] = field(default_factory=dict)

    @property
    def vends(self) -> bool:
        """Whether its tables' keys are its own and not the gateway's."""
        return "access_key_variable" not in self.store


def declared() -> Remote:
    """The file that the variable names. Raises NotProvided, and UsageError that says what to correct."""
    if not (name := os.environ.get(FILE)):
        raise NotProvided(
            f"--catalog remote is a catalog of your own: declare it in a file (docs/catalogs.md), {FILE}=FILE"
        )
    return read(Path(name))


def read(file: Path) -> Remote:
    """A declared catalog. Raises UsageError that says what to correct."""
    try:
        said = tomllib.loads(file.read_text())
    except OSError as error:
        raise UsageError(f"{FILE}={file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file.name}: correct its TOML: {error}") from None
    of_store = said.pop("store", {})
    if not isinstance(of_store, dict):
        raise UsageError(f"{file.name}: store is a table, [store]")
    if secrets := sorted((said.keys() | of_store.keys()) & _SECRETS):
        word = secrets[0]
        raise UsageError(
            f"{file.name}: take the {word} out of the file; put it into a variable of the environment and name that: "
            f'{word}_variable = "NAME"'
        )
    if unknown := sorted((said.keys() - _TEXTS - {"lower_case"}) | (of_store.keys() - _OF_STORE)):
        raise UsageError(f"{file.name}: nothing reads {', '.join(unknown)}; remove it")
    texts = {key: value for key, value in {**said, **of_store}.items() if key != "lower_case"}
    if wrong := sorted(key for key, value in texts.items() if not isinstance(value, str) or not value):
        raise UsageError(f"{file.name}: {', '.join(wrong)} must be text in quotation marks")
    if missing := [key for key in ("uri", "warehouse") if key not in said]:
        raise UsageError(f'{file.name}: {", ".join(missing)} is missing; e.g. {missing[0]} = "…"')
    if len(told := [key for key in _SIGN_ONS if key in said]) > 1:
        raise UsageError(f"{file.name}: {' and '.join(told)} are two ways to sign on; keep one")
    if len(keys := of_store.keys() - {"url"}) not in (0, 3):
        raise UsageError(f"{file.name}: [store] has {', '.join(sorted(keys))} alone; bucket and both keys go together")
    for key in ("uri", "token_uri", "url"):
        _address(file.name, key, str(texts.get(key, "https://host")))
    return Remote(**{**said, "uri": said["uri"].rstrip("/"), "store": of_store})


def _address(file: str, key: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(f"{file}: {key} is where it answers, e.g. https://host/api/catalog")
    if parts.username or parts.password or parts.query:
        raise UsageError(f"{file}: take the secret out of {key}; name the variable that holds it: token_variable")


def check() -> None:
    """See `lab.catalogs.Catalog`."""
    _upstream(declared())


def traits() -> Traits:
    """See `lab.catalogs.Catalog`."""
    of = declared()
    return Traits(lower_case=of.lower_case, vends=of.vends)


def choose(host: Host, store: StoreEndpoint) -> StoreEndpoint:
    """See `lab.catalogs.Catalog`: where the file says that its tables lie, with keys if it names any."""
    of = declared()
    url = of.store.get("url", f"https://s3.{of.region}.amazonaws.com").rstrip("/")
    access, secret = ("", "") if of.vends else (_held(of.store[f"{key}_key_variable"]) for key in ("access", "secret"))
    bucket = of.store.get("bucket", "")
    return replace(store, url=url, region=of.region, bucket=bucket, access_key=access, secret_key=secret)


def warehouse(store: StoreEndpoint) -> str:
    """See `lab.catalogs.Catalog`."""
    return declared().warehouse


def start(host: Host, store: StoreEndpoint, store_ready: Callable[[], object]) -> Upstream:
    """See `lab.catalogs.Catalog`: it runs."""
    return _upstream(declared())


def _upstream(of: Remote) -> Upstream:
    """How the gateway signs on there. Raises NotProvided when a variable is not set."""
    ways: dict[str, Any] = {"scope": of.scope, "region": of.region, "vends": of.vends}
    if of.credential_variable:
        ways |= {"credential": _held(of.credential_variable), "token_uri": of.token_uri or f"{of.uri}/v1/oauth/tokens"}
    elif of.token_variable:
        ways["token"] = _held(of.token_variable)
    elif of.signing_name:
        access, secret, session = _AWS
        key = f"{_held(access)}:{_held(secret)}"
        ways |= {"signing_name": of.signing_name, "credential": key, "session_token": os.environ.get(session, "")}
    return Upstream(of.uri, **ways)


def secrets() -> list[str]:
    """The values that must not be shown, as far as they can be had: none where no catalog is declared."""
    try:
        of = _upstream(declared())
    except LabError:
        return []
    return [word for word in (of.token, of.credential.partition(":")[2], of.session_token) if word]


def _held(variable: str) -> str:
    if not (value := os.environ.get(variable)):
        raise NotProvided(f"{FILE}: the catalog's file names ${variable}, which is not set; put the secret there")
    return value
