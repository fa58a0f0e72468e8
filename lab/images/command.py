"""`iceberg-lab images` and `iceberg-lab compose`: the lab's container images, and the lab for use by hand."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from lab.errors import UsageError
from lab.images import build as builder
from lab.images import compose as composing
from lab.images import declared
from lab.provision import Cache, shown_on
from lab.stores import STORES

MINIO_AT = ("/usr/bin/minio", "/opt/bin/minio", "/usr/local/bin/minio", "/opt/bitnami/minio/bin/minio")
_OUT = Console(markup=False, width=None if sys.stdout.isatty() else 240)
_ERR = Console(stderr=True, markup=False, width=None if sys.stderr.isatty() else 240)


@click.group()
def images() -> None:
    """The lab's container images: build them, see which are there."""


@images.command()
@click.argument("globs", required=False)
@click.option("--base", metavar="IMAGE", help="any Debian-like image with Python 3.11 or newer")
@click.option(
    "--polaris", metavar="FOLDER", type=Path, help="an unpacked distribution of Polaris: build its image alone"
)
@click.option(
    "--minio", metavar="IMAGE", help="an image of MinIO's, whose program to take: build the lab's of it alone"
)
@click.option("--plain", is_flag=True, help="without archives of classes: minutes sooner built, engines start later")
@click.option("--verbose", is_flag=True, help="tell each step of each build")
def build(
    globs: str | None, base: str | None, polaris: Path | None, minio: str | None, plain: bool, verbose: bool
) -> None:
    """Build all images, or those that comma-separated GLOBS name: 'spark*,catalog', 'trino-483'.

    \b
    The base is --base, else iceberg-lab/base:bookworm if scripts/base_image.sh made it, else python:3.11-slim-bookworm.
    One that would not change is not built again.
    """
    if bool(globs) + bool(polaris) + bool(minio) > 1:
        raise UsageError("--polaris and --minio build one image alone; name nothing beside them")
    with _ERR.status("") as status:

        def tell(line: str) -> None:
            if verbose or not line.startswith(" "):
                _ERR.print(line, highlight=False)
            status.update(line.strip()[:100])

        with ExitStack() as stack:
            if polaris:
                wanted = [declared.polaris(polaris)]
            elif minio:
                wanted = [declared.minio_of(stack.enter_context(builder.taken(minio, *MINIO_AT)), minio)]
            else:
                wanted = declared.chosen(globs)
            builder.build(wanted, Cache(progress=shown_on(_ERR)), base, tell, archives=not plain)


@images.command("list")
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True)
def list_(form: str) -> None:
    """Which images there are: size, age, and whether they are stale, that is older than the lab's code."""
    rows = [
        {
            "image": state.image.name,
            "size": state.size,
            "created": state.created.isoformat() if state.created else None,
            "state": "missing" if not state.id else "stale" if state.stale else "fresh",
            "versions": dict(state.image.versions),
        }
        for state in builder.states(Cache())
    ]
    if form == "json":
        print(json.dumps(rows, indent=1))
        return
    table = Table("image", "size", "created", "state", "versions", pad_edge=False)
    for row in rows:
        size = f"{row['size'] / 1e6:,.0f} MB" if row["size"] else ""  # type: ignore[operator]
        versions = " ".join(f"{name} {version}" for name, version in row["versions"].items())  # type: ignore[union-attr]
        table.add_row(str(row["image"]), size, str(row["created"] or "")[:16], str(row["state"]), versions)
    _OUT.print(table)


@click.group()
def compose() -> None:
    """The lab for use by hand: docker compose -f compose/compose.yaml up --wait."""


@compose.command()
def write() -> None:
    """Write compose/compose.yaml anew from the declarations."""
    print(composing.write())


@compose.command()
@click.option("--store", type=click.Choice(STORES), help=f"else the one that compose/.env has, else {STORES[0]}")
@click.option("--anew", is_flag=True, help="make up new secrets; containers that have the old ones must start again")
def env(store: str | None, anew: bool) -> None:
    """Write compose/.env: random secrets, for your eyes only, and ports, which are yours to change there."""
    print(composing.environment(store, anew=anew))


@compose.command()
def snippets() -> None:
    """Print how spark-sql, pyspark, Trino, DuckDB and PyIceberg connect: variables, no values."""
    print(composing.snippets())
