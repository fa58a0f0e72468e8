"""What stands between the lab and Docker, without a Docker engine: settings, logs, refusals, and who is swept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from testcontainers.core.exceptions import ContainerStartException

from lab.containers import images_of
from lab.containers.part import OWNER, Network, Ready, _await_ryuk, engine_answers, owner, sweep, told
from lab.engines import GENERATIONS
from lab.errors import LabError
from lab.images import build, context, here
from lab.images.declared import IMAGES
from lab.provision import Cache
from lab.runtime import inside
from lab.runtime.host import PORTS, PUBLISHED_PORTS
from lab.runtime.places import Places
from lab.runtime.process import lines


# ---------------------------------------------------------------- inside
def test_settings_are_variables_and_show_no_secret() -> None:
    said = {
        "LAB_PORT": "19000",
        "LAB_STORE_URL": "http://127.0.0.1:19001",
        "LAB_STORE_ACCESS_KEY": "key",
        "LAB_STORE_SECRET_KEY": "hidden",
        "LAB_CLIENT_ENVIRONMENT": '{"AWS_X": "when_required"}',
        "LAB_CATALOG_URI": "http://127.0.0.1:19002",
        "HOME": "/home/lab",
    }
    found = inside.Settings.read(said)
    assert (found.port, found.connect_port) == (19000, 0)
    assert found.store.client_environment == {"AWS_X": "when_required"}
    assert found.catalog.uri == "http://127.0.0.1:19002"
    assert found.catalog.client_environment == {"AWS_X": "when_required"}
    assert "hidden" not in repr(found.store)
    assert "hidden" not in repr(found.catalog)


def test_a_part_that_is_none_is_refused() -> None:
    with pytest.raises(LabError, match="no part of the lab is called 'cellar'"):
        inside.serve("cellar", "", None, inside.Settings(0))  # type: ignore[arg-type]


def test_records_go_to_output_and_logs_to_error_whole_lines_only(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    follower = inside._Follower(tmp_path)
    log, record = tmp_path / "gateway.log", tmp_path / "catalog-access.jsonl"
    log.write_text("one\ntw")
    record.write_text('{"a": 1}\n')
    follower.copy()
    with log.open("a") as more:
        more.write("o\n")
    follower.copy()
    out, err = capfd.readouterr()
    assert out == '{"a": 1}\n'
    assert err == "one\ntwo\n"


def test_health_is_what_the_part_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(inside, "folder", lambda: tmp_path)
    assert inside.main(["health"]) == 1
    inside._say_ready()
    assert inside.main(["health"]) == 0


# ---------------------------------------------------------------- outside
def test_lines_are_put_together_from_any_pieces() -> None:
    pieces: Iterator[bytes] = iter([b'{"a"', b": 1}\n{", b'"b": 2}\n{"never'])
    assert list(lines(pieces)) == [b'{"a": 1}\n', b'{"b": 2}\n']


class Running:
    """A container as docker-py shows it."""

    def __init__(self, status: str = "running", out: bytes = b"", err: bytes = b"", **labels: str) -> None:
        self.status, self._out, self._err, self.labels = status, out, err, labels
        self.name, self.attrs = "iceberg-lab-x-store", {"State": {"ExitCode": 3}}
        self.removed = False

    def logs(self, stdout: bool, stderr: bool, **_: Any) -> bytes:
        return self._out if stdout else self._err

    def reload(self) -> None: ...

    def remove(self, **how: bool) -> None:
        assert how == {"force": True, "v": True}
        self.removed = True

    def get_wrapped_container(self) -> Running:
        return self


def test_a_container_that_dies_in_its_start_is_told_with_its_last_lines() -> None:
    with pytest.raises(LabError, match=r"ended with exit code 3\n  \| no such file\n  \| the end") as told:
        Ready().wait_until_ready(Running("exited", err=b"no such file\nthe end\n"))  # type: ignore[arg-type]
    assert "iceberg-lab-x-store" in str(told.value)
    Ready().wait_until_ready(Running(out=b'{"x": 1}\n{"ready": true}\n'))  # type: ignore[arg-type]


def _refused(status: int, explanation: str) -> APIError:
    return APIError("refused", SimpleNamespace(status_code=status, reason="x", url="u"), explanation)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "image", "said"),
    [
        (
            ImageNotFound("gone"),
            "iceberg-lab/trino:483",
            "there is no image iceberg-lab/trino:483; build it: iceberg-lab",
        ),
        (
            _refused(404, "pull access denied for x"),
            "apache/polaris:1",
            "take what can be built here: --catalog reference",
        ),
        (_refused(500, "Get https://x: dial tcp: lookup x"), "apache/polaris:1", "can't be pulled"),
        (_refused(500, "Bind for 127.0.0.1:1 failed: port is already allocated"), "i", "a port was taken meanwhile"),
        (_refused(500, "write /x: no space left on device"), "i", "docker system df"),
        (_refused(400, "invalid"), "i", "Docker refuses to start i: invalid"),
        (DockerException("Connection aborted"), "i", "is it still running?"),
    ],
)
def test_a_refusal_of_dockers_is_one_line_that_says_what_to_do(error: Exception, image: str, said: str) -> None:
    def work() -> None:
        raise error

    with pytest.raises(LabError, match=r"^[^\n]*$") as refusal:
        told(work, image)
    assert said in str(refusal.value)


def test_only_what_dead_owners_left_is_swept() -> None:
    me = json.loads(owner())
    mine = Running(**{OWNER: owner()})
    dead = Running(**{OWNER: json.dumps({**me, "started": 1.0})})
    # Of another machine, or another container with processes of its own, on the same engine; of who knows whom.
    others = [Running(**{OWNER: word}) for word in (json.dumps({**me, "started": 1.0, "machine": "x"}), "me", "3")]
    asked: list[dict[str, Any]] = []

    def listed(**how: Any) -> list[Running]:
        asked.append(how)
        return [mine, dead, *others]

    assert sweep(SimpleNamespace(containers=SimpleNamespace(list=listed))) == 1
    assert (mine.removed, dead.removed) == (False, True)
    assert not [one for one in others if one.removed]
    assert asked[0]["filters"] == {"label": OWNER}


def test_one_who_is_gone_already_is_no_fault() -> None:
    from lab.containers.part import remove

    class Gone:
        def remove(self, **_: bool) -> None:
            raise NotFound("gone")

    remove(Gone())


@pytest.mark.parametrize(("api", "taken"), [("1.40", False), ("1.41", True), ("1.52", True), ("2.0", True)])
def test_an_old_engine_is_told_to_be_updated(api: str, taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    version = {"Version": "19.03", "ApiVersion": api}
    monkeypatch.setattr("docker.from_env", lambda: SimpleNamespace(version=lambda: version, close=lambda: None))
    if taken:
        assert engine_answers() == "19.03"
        return
    with pytest.raises(LabError, match=r"^Docker 19\.03 speaks API 1\.40, .* 1\.41 .*: update it, or .* embedded$"):
        engine_answers()


def test_no_engine_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with pytest.raises(LabError, match=r"^no Docker engine answers .*; start one .*, or .*--runtime embedded$") as told:
        engine_answers()
    assert "\n" not in str(told.value)


def test_ports_of_a_network_are_distinct_and_not_those_that_parts_draw_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([26001, 26001, 26002, 26001, 26003])
    monkeypatch.setattr("lab.containers.part.free_port", lambda of: next(drawn) if of is PUBLISHED_PORTS else 0)
    monkeypatch.setattr("lab.containers.part._Container.__init__", lambda *_: None)  # which asks for an engine
    network = Network(ports=3, image="x")
    assert [network.port() for _ in range(3)] == [26001, 26002, 26003]
    with pytest.raises(LabError, match=r"has 3 ports, and its parts want more"):
        network.port()
    assert not set(PORTS) & set(PUBLISHED_PORTS)


@pytest.mark.parametrize("error", [ImageNotFound("gone"), ConnectionRefusedError(), ContainerStartException("no")])
def test_a_ryuk_that_does_not_start_is_not_taken_for_the_labs_image(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise error

    monkeypatch.setattr("lab.containers.part.Reaper.get_instance", refuse)
    with pytest.raises(LabError, match=r"^Testcontainers' own cleaner, Ryuk, .*TESTCONTAINERS_RYUK_DISABLED=true$"):
        _await_ryuk()


# ---------------------------------------------------------------- the choice
def test_without_docker_its_client_is_not_even_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    monkeypatch.setattr(here, "_SOCKETS", ("/nowhere/docker.sock",))
    configuration = tmp_path / "config.json"
    monkeypatch.setattr(here, "_CONFIGURATION", str(configuration))
    monkeypatch.setattr(build, "engine_answers", lambda: pytest.fail("asked"))
    assert here.lacking("reference", "seaweedfs", [], Cache()) == "no Docker engine is here"


def test_an_engine_that_the_users_configuration_names_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    monkeypatch.setattr(here, "_SOCKETS", ())
    monkeypatch.setattr(here, "_CONFIGURATION", str(tmp_path / "config.json"))
    (tmp_path / "config.json").write_text('{"currentContext": "rootless"}')

    def dead() -> str:
        raise LabError("no Docker engine answers; start one")

    monkeypatch.setattr(build, "engine_answers", dead)
    assert here.lacking("reference", "seaweedfs", [], Cache()) == "no Docker engine answers"


def test_an_image_that_is_missing_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = images_of("reference", "seaweedfs", [GENERATIONS["trino-483"]])
    assert known == ["iceberg-lab/seaweedfs:4.48", "iceberg-lab/catalog:1.11.0", "iceberg-lab/trino:483"]

    docker = Docker({name: fresh(name) for name in known[:2]})
    docker.answers(monkeypatch)
    assert here.lacking("reference", "seaweedfs", [GENERATIONS["trino-483"]], Cache(tmp_path)) == (
        "there is no image iceberg-lab/trino:483"
    )
    assert here.lacking("reference", "seaweedfs", [GENERATIONS["duckdb-1.5.5"]], Cache(tmp_path)) == ""
    # Asked for all the same, a missing one is told by whoever starts it: it might be pulled.
    here.refuse_stale("reference", "seaweedfs", [GENERATIONS["trino-483"]], Cache(tmp_path))


def test_images_of_another_lab_are_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seaweedfs, catalog = images_of("reference", "seaweedfs", [])
    Docker({seaweedfs: fresh(seaweedfs), catalog: {build.INPUTS: "of another"}}).answers(monkeypatch)
    assert here.lacking("reference", "seaweedfs", [], Cache(tmp_path)) == f"{catalog} is not of this lab's code"
    with pytest.raises(
        LabError,
        match=r"^iceberg-lab/catalog:1\.11\.0 is not of .*: iceberg-lab images build 'catalog:1\.11\.0'$",
    ):
        here.refuse_stale("reference", "seaweedfs", [], Cache(tmp_path))


def fresh(name: str) -> dict[str, str]:
    return {build.INPUTS: context.inputs(IMAGES[name], Cache())}


class Docker:
    """An engine that has images with these labels."""

    def __init__(self, labels: dict[str, dict[str, str]]) -> None:
        self._labels, self.images = labels, self

    def get(self, name: str) -> Any:
        if name not in self._labels:
            raise ImageNotFound(name)
        return SimpleNamespace(labels=self._labels[name])

    def close(self) -> None: ...

    def answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DOCKER_HOST", "unix:///somewhere")
        monkeypatch.setattr(build, "engine_answers", lambda: "28")
        monkeypatch.setattr("docker.from_env", lambda **_: self)


def test_places_are_told_as_users_name_them() -> None:
    assert str(Places("containers", "polaris", "minio")) == "containers (polaris, minio)"
    assert Places.of({"pid": 1, "store": "minio", "runtime": "containers"}) == Places("containers", store="minio")
