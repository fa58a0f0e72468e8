"""The lab's gateway, all that engines know of the catalog: a process of its own around `proxy.py`.

    python -m lab.catalogs.gateway ADDRESS PORT     prints the port it chose (PORT, if not 0), reads one line of JSON
                                                    on standard input (see `Settings`), serves, and ends when
                                                    standard input does

An engine may be given the address as soon as there is one: what it asks waits until the catalog can answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lab
from lab.runtime.host import LOOPBACK, Host
from lab.runtime.process import Process
from lab.stores import StoreEndpoint

if TYPE_CHECKING:
    from lab.catalogs.polaris import Upstream

NAME = "gateway"
ACCESS_RECORD = "catalog-access.jsonl"  # in the run's logs/: a line per request


@dataclass(frozen=True)
class Settings:
    """What the gateway's process is told on its standard input; it holds the store's keys and the lab's secret."""

    upstream: str  # the catalog's URI
    store: dict[str, Any]  # a StoreEndpoint
    record: str  # file of the access record
    secret: str  # of the lab's keyring
    polaris: dict[str, Any] | None = None  # a polaris.Upstream, where the catalog wants a token


def launch(host: Host) -> tuple[Process, str]:
    """Starts the process. Returns it and its URI, which answers from `serve` on. Raises StartFailed."""
    process, (port,) = host.process(
        NAME,
        [sys.executable, "-P", "-m", "lab.catalogs.gateway", host.bind, str(host.published)],
        env={"PYTHONPATH": _packages()},
        first_lines=1,
    )
    return process, f"http://{LOOPBACK}:{port}"


def _packages() -> str:
    """The lab's own folder, and where this process itself was told to look for packages."""
    return os.pathsep.join(filter(None, (str(Path(lab.__file__).parents[1]), os.environ.get("PYTHONPATH"))))


def serve(host: Host, process: Process, store: StoreEndpoint, upstream: str | Upstream, secret: str) -> None:
    """Lets the gateway pass requests on to the catalog at `upstream`, with sessions of `store`.

    secret: the lab's, from which follows who may sign on (`keyring.py`).
    """
    uri, polaris = (upstream, None) if isinstance(upstream, str) else (upstream.uri, asdict(upstream))
    record = str(host.folder / "logs" / ACCESS_RECORD)
    settings = Settings(uri, asdict(store), record, secret, polaris)
    process.stdin.write(json.dumps(asdict(settings)).encode() + b"\n")


def main() -> None:
    # The protocol is named so that asyncio sets TCP_NODELAY: without it each answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((sys.argv[1], int(sys.argv[2])))
    listener.listen(128)
    print(listener.getsockname()[1], flush=True)

    import uvicorn  # slow to load, and nothing waits for them before the first request is served

    from lab.catalogs import handmade, polaris, proxy, stages, transactions, upstream

    line = sys.stdin.readline()
    if not line:
        return
    settings = Settings(**json.loads(line))
    pipeline = stages.pipeline(StoreEndpoint(**settings.store), settings.secret)
    pipeline.append(handmade.transformed)
    if settings.polaris is not None:
        of = polaris.Upstream(**settings.polaris)
        pipeline.append(upstream.Authorized(lambda: polaris.token(of)))
    else:
        pipeline.append(transactions.single)
    with Path(settings.record).open("a") as record:
        app = proxy.Proxy(settings.upstream, pipeline, record)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="on",
                timeout_graceful_shutdown=1,
            )
        )

        def end_with_the_lab() -> None:
            sys.stdin.read()
            server.should_exit = True

        threading.Thread(target=end_with_the_lab, daemon=True).start()
        asyncio.run(server.serve(sockets=[listener]))


if __name__ == "__main__":
    main()
