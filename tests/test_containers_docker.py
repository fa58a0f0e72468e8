"""The lab in containers on a real Docker engine: `pytest tests/ -m docker`. Needs the images of store and catalog."""

from __future__ import annotations

import io
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from minio import Minio as S3
from minio.credentials import AssumeRoleProvider
from minio.error import S3Error

from lab.containers import Catalog, Minio, Network
from lab.images.here import lacking
from lab.provision import Cache
from lab.stores import StoreEndpoint
from lab.tables.rest import RestCatalog

pytestmark = pytest.mark.docker
ROOT = Path(__file__).parents[1]
PLACES = ("--runtime", "containers", "--catalog", "reference", "--store", "seaweedfs")
MATRIX = ("matrix", *PLACES, "--generations", "duckdb*", "--behaviours")
SECONDS = 60.0


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[Any]:
    if why := lacking("reference", "seaweedfs", [], Cache()):
        pytest.skip(f"{why}; docs/containers.md says how to get there")
    import docker

    client = docker.from_env()
    yield client
    client.close()


class Lab:
    """The command, with a state folder of its own."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.environment = {**os.environ, "ICEBERG_LAB_STATE": str(state), "TESTCONTAINERS_RYUK_DISABLED": "true"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "lab", *words],
            cwd=ROOT,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def runs(self) -> list[str]:
        return [folder.name for folder in (self.state / "runs").glob("*")]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    found = Lab(tmp_path / "state")
    yield found
    found.run("down")


def ours(engine: Any, lab: Lab) -> list[Any]:
    """The containers of this lab's runs."""
    return [one for run in lab.runs() for one in _all(engine, f"iceberg-lab.run={run}")]


def _all(engine: Any, label: str) -> list[Any]:
    return list(engine.containers.list(all=True, filters={"label": label}, ignore_removed=True))


def eventually_none(engine: Any, lab: Lab) -> None:
    deadline = time.monotonic() + SECONDS
    while left := ours(engine, lab):
        assert time.monotonic() < deadline, f"left behind: {[one.name for one in left]}"
        time.sleep(0.3)


def up_to_the_store(engine: Any, lab: Lab, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + SECONDS
    while len(ours(engine, lab)) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_run_works_and_leaves_nothing(engine: Any, lab: Lab) -> None:
    code, out, err = lab.run(*MATRIX, "H-read-v2", "--format", "json")
    assert code == 0, err
    (line,) = json.loads(out)
    assert (line["outcome"], line["cell"]["runtime"]) == ("works", "containers")
    assert ours(engine, lab) == []


@pytest.mark.parametrize("how", ["process", "group"])
def test_a_killed_run_leaves_no_container(how: str, engine: Any, lab: Lab) -> None:
    process = lab.start(*MATRIX, "H-*")
    up_to_the_store(engine, lab, process)
    if how == "group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()
    eventually_none(engine, lab)


def test_what_a_reaper_could_not_remove_the_next_start_does(engine: Any, lab: Lab) -> None:
    process = lab.start(*MATRIX, "H-*")
    up_to_the_store(engine, lab, process)
    reapers = subprocess.run(["pgrep", "-f", f"lab.runtime.reaper {lab.runs()[0]}"], text=True, capture_output=True)
    for pid in (*map(int, reapers.stdout.split()), process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    assert ours(engine, lab)
    left = ours(engine, lab)
    assert lab.run(*MATRIX, "H-read-v2")[0] == 0
    assert not {one.id for one in left} & {one.id for one in ours(engine, lab)}


def test_a_lab_that_is_up_keeps_its_secrets_and_down_leaves_nothing(engine: Any, lab: Lab) -> None:
    code, _, err = lab.run("up", *PLACES)
    assert code == 0, err
    try:
        containers = ours(engine, lab)
        assert len(containers) == 3
        state = lab.state / "supervisor.json"
        assert state.stat().st_mode & 0o777 == 0o600
        for one in containers:
            said = dict(line.split("=", 1) for line in one.attrs["Config"]["Env"])
            hidden = [said[name] for name in ("LAB_STORE_SECRET_KEY", "LAB_TOKEN") if said.get(name)]
            shown = f"{one.logs().decode()} {one.attrs['Config']['Cmd']} {one.top()}"
            assert not [secret for secret in hidden if secret in shown]
            assert {port[0]["HostIp"] for port in (one.attrs["HostConfig"]["PortBindings"] or {}).values()} <= {
                "127.0.0.1"
            }
            assert one.attrs["Config"]["User"] not in ("", "0", "root")
        code, _, err = lab.run(
            "matrix", "--runtime", "embedded", "--generations", "duckdb*", "--behaviours", "H-read-v2"
        )
        assert code == 3
        assert "a lab is up of containers (reference, seaweedfs)" in err
        code, _, err = lab.run("sql", "duckdb-1.5.5", "SELECT count(*) FROM lab.ANALYTICS.ORDERS_V2")
        assert code == 0, err
    finally:
        assert lab.run("down")[0] == 0
    assert ours(engine, lab) == []


def test_an_image_that_cannot_be_had_is_told_and_nothing_else_is_taken(engine: Any, lab: Lab) -> None:
    lab.environment["ICEBERG_LAB_POLARIS_IMAGE"] = "iceberg-lab/no-such-polaris:0"
    code, _, err = lab.run("matrix", "--runtime", "containers", "--store", "seaweedfs", "--generations", "duckdb*")
    assert code == 3
    assert "no-such-polaris" in err
    assert "Traceback" not in err
    assert ours(engine, lab) == []


def test_modules_are_of_use_on_their_own(engine: Any) -> None:
    if why := lacking("reference", "minio", [], Cache()):
        pytest.skip(f"{why}; docs/containers.md says how to get there")
    one = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::lab/public/*"]}
    keys = {name: secrets.token_hex(16) for name in ("reader", "guest")}
    with (
        Network(ports=2) as network,
        Minio(network)
        .with_user("reader", keys["reader"], "readonly")
        .with_user("guest", keys["guest"], {"Version": "2012-10-17", "Statement": [one]}) as store,
        Catalog(network, store) as catalog,
    ):
        rest = RestCatalog(catalog.endpoint.uri, catalog.endpoint.warehouse)
        rest.create_namespace("demo")
        assert rest.tables("demo") == []
        where = store.endpoint
        admin = _client(where, where.access_key, where.secret_key)
        for key in ("public/a", "private/b"):
            admin.put_object(where.bucket, key, io.BytesIO(b"x"), 1)
        reader, guest = (_client(where, name, secret) for name, secret in keys.items())
        assert reader.get_object(where.bucket, "private/b").data == b"x"
        assert guest.get_object(where.bucket, "public/a").data == b"x"
        for who, work in (
            (reader, lambda: reader.put_object(where.bucket, "c", io.BytesIO(b"x"), 1)),
            (guest, lambda: guest.get_object(where.bucket, "private/b")),
        ):
            with pytest.raises(S3Error) as refused:
                work()
            assert refused.value.code == "AccessDenied", who
        assert sts(where)
        said = json.dumps(store.get_wrapped_container().attrs["Config"]["Cmd"]) + "".join(
            map(bytes.decode, store.get_logs())
        )
        assert not [key for key in (*keys.values(), where.secret_key) if key in said]


def _client(where: StoreEndpoint, key: str, secret: str) -> S3:
    return S3(where.url.removeprefix("http://"), key, secret, secure=False, region=where.region)


def sts(where: StoreEndpoint) -> bool:
    """Whether its administrator gets a session that can read."""
    provider = AssumeRoleProvider(
        sts_endpoint=where.url, access_key=where.access_key, secret_key=where.secret_key, region=where.region
    )
    held = provider.retrieve()
    client = S3(
        where.url.removeprefix("http://"),
        session_token=held.session_token,
        access_key=held.access_key,
        secret_key=held.secret_key,
        secure=False,
        region=where.region,
    )
    return client.stat_object(where.bucket, "public/a").size == 1
