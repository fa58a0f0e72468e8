"""Measures what the gateway adds to a request: `python scripts/latency.py`. Takes a minute, and starts no engine.

Loads of one table, in milliseconds, the three ways in turns: of the bare catalog, by the open door, and by Horizon's
door with a token, whose rules have to look at the table too. All share this machine's cores, the client included.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from lab.catalogs import gateway, reference
from lab.catalogs.signing import Entry, SignOn
from lab.model import Access
from lab.provision import Cache
from lab.records.record import machine
from lab.runtime import folder as folders
from lab.runtime.host import Host
from lab.stores import STORES, named

LOADS = 600  # of each way, at each number of clients
CLIENTS = (1, 16)
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "x", "type": "long", "required": False}]}
TABLE = "/v1/namespaces/MEASURED/tables/T"


def main() -> None:
    with tempfile.TemporaryDirectory() as state:
        folder = Path(state, "runs", "this")
        folders.claim(folder)
        host = Host(Cache(), folder)
        try:
            store = named(STORES[0])
            endpoint = store.choose(host)
            store.start(host, endpoint)
            bare = reference.start(host, endpoint, lambda: None)
            process, uri = gateway.launch(host)
            sign_on = SignOn("of-this-measurement", str(folder / "logs" / gateway.ACCESS_RECORD))
            gateway.serve(host, process, endpoint, bare, sign_on.secret)
            entry = sign_on.entry(Access("horizon", by="token"), uri, "measured")
            print(json.dumps({"machine": machine(), **asyncio.run(measured(bare.uri, uri, entry))}, indent=2))
        finally:
            host.stop()


async def measured(bare: str, uri: str, entry: Entry) -> dict[str, Any]:
    ways = {
        "bare": (bare, {}),
        "open door": (uri, {}),
        "horizon": (entry.uri, {"authorization": f"Bearer {entry.token}"}),
    }
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        await http.post(f"{uri}/v1/namespaces", json={"namespace": ["MEASURED"]})
        await http.post(f"{uri}/v1/namespaces/MEASURED/tables", json={"name": "T", "schema": SCHEMA})
        told: dict[str, Any] = {}
        for clients in CLIENTS:
            seen: dict[str, list[float]] = {name: [] for name in ways}
            for turn in range(7):  # the first warms up
                for name, (base, headers) in ways.items():
                    took = await loads(http, base + TABLE, headers, clients, LOADS // 6)
                    seen[name] += took if turn else []
            medians = {name: round(statistics.median(times), 2) for name, times in seen.items()}
            added = {f"{name} adds": round(medians[name] - medians["bare"], 2) for name in ways if name != "bare"}
            told[f"{clients} client{'s' * (clients > 1)}"] = medians | added
    return told


async def loads(
    http: aiohttp.ClientSession, url: str, headers: dict[str, str], clients: int, count: int
) -> list[float]:
    """Milliseconds of `count` loads by so many clients at once."""
    left = iter(range(count))

    async def client() -> list[float]:
        took = []
        for _ in left:
            started = time.perf_counter()
            async with http.get(URL(url, encoded=True), headers=headers) as answer:
                await answer.read()
                assert answer.status == 200, answer.status
            took.append((time.perf_counter() - started) * 1000)
        return took

    return [one for each in await asyncio.gather(*(client() for _ in range(clients))) for one in each]


if __name__ == "__main__":
    main()
