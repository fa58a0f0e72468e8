"""Images and the compose file against the declarations they come from; one small image built where Docker answers."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import APIError, ImageNotFound

from lab.engines import GENERATIONS, Cluster, spark_cluster, trino
from lab.errors import LabError, UsageError
from lab.images import build, compose, context, declared, fill
from lab.images.declared import IMAGES
from lab.provision import Cache
from lab.runtime import inside
from lab.stores import minio

PLACES = re.compile(r"/root|/work\b|/home/(?!lab)|\.internal")


def dockerfile(image: declared.Image) -> str:
    return (context.folder(image) / "Dockerfile").read_text()


# ---------------------------------------------------------------- declared
def test_each_generation_with_a_java_has_an_image() -> None:
    wanted = {g.name for g in GENERATIONS.values() if g.java}
    assert {image.part[1] for image in IMAGES.values() if image.part[0] == "engine"} == wanted


def test_images_are_called_by_kind_and_version() -> None:
    assert {"iceberg-lab/spark:4.1.1-iceberg-1.11.0", "iceberg-lab/trino:483", "iceberg-lab/minio:2021-04-22"} <= set(
        IMAGES
    )


def test_globs_name_images_by_kind_generation_and_tag() -> None:
    assert [i.name for i in declared.chosen("trino-476, spark:4.0*")] == [
        "iceberg-lab/trino:476",
        "iceberg-lab/spark:4.0.1-iceberg-1.10.0",
    ]
    with pytest.raises(UsageError, match="images list"):
        declared.chosen("flink")


@pytest.mark.parametrize("image", IMAGES.values(), ids=str)
def test_every_artefact_of_an_image_is_locked(image: declared.Image) -> None:
    lock = Cache().lock
    for artefact in image.artefacts:
        assert all(member in lock.artefacts for member in lock.members(artefact))


# ---------------------------------------------------------------- Dockerfiles
@pytest.mark.parametrize("folder", sorted(path.parent.name for path in context.PROJECT.glob("images/*/Dockerfile")))
def test_a_dockerfile_is_what_all_are(folder: str) -> None:
    text = (context.PROJECT / "images" / folder / "Dockerfile").read_text()
    final = text.split("FROM ")[-1]
    assert "ARG BASE=python:3.11-slim-bookworm" in text and final.startswith("${BASE}\n")
    assert "\nUSER 1000:1000\n" in final and "\nHEALTHCHECK --interval=" in final and "\nENTRYPOINT [" in final
    assert not PLACES.search(text)
    assert not re.search(r"secret|token|password", text, re.IGNORECASE)


def test_no_dockerfile_has_a_version_of_the_locks() -> None:
    """Versions stand in generations and the lock; a second list would drift."""
    versions = {version for image in IMAGES.values() for name, version in image.versions.items() if name != "java"}
    for image in IMAGES.values():
        assert not [version for version in versions if re.search(rf"[:=-]{re.escape(version)}\b", dockerfile(image))]


def test_health_is_what_the_part_itself_says() -> None:
    ready = Path("/home/lab") / inside.folder().relative_to(Path.home()) / inside._READY
    for image in IMAGES.values():
        assert f'CMD ["test", "-e", "{ready}"]' in dockerfile(image)
        assert 'ENTRYPOINT ["python3", "-m", "lab.runtime.inside"]' in dockerfile(image)


def test_the_program_of_minio_is_where_its_image_says() -> None:
    text = dockerfile(IMAGES[f"iceberg-lab/minio:{minio.VERSION}"])
    assert f"ENV {minio.NAMED}=/usr/local/bin/minio\n" in text


# ---------------------------------------------------------------- what a build is given
def test_the_modules_of_an_image_are_enough(tmp_path: Path) -> None:
    for name, path in context.modules().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(path.read_bytes())
    names = [name.removesuffix(".py").replace("/", ".") for name in context.modules() if name.endswith(".py")]
    loaded = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    imported = [name.removesuffix(".__init__") for name in names if ".workers" not in name]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-P", "-c", loaded, *imported], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "lab/images/build.py" not in context.modules() and "lab/behaviours/__init__.py" not in context.modules()


def test_what_is_outside_of_an_image_is_not_imported_in_it() -> None:
    text = "".join(path.read_text() for name, path in context.modules().items() if name.endswith(".py"))
    for package in context._OUTSIDE:
        assert not re.search(rf"^\s*(import|from) {package}\b", text, re.MULTILINE), package


def test_inputs_change_with_the_part_and_the_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", offline=True)
    one, other = IMAGES["iceberg-lab/trino:476"], IMAGES["iceberg-lab/trino:483"]
    assert context.inputs(one, cache) == context.inputs(one, cache) != context.inputs(other, cache)
    changed = tmp_path / "inside.py"
    changed.write_text("# changed")
    before = context.inputs(one, cache)
    monkeypatch.setattr(context, "modules", lambda: {**_modules, "lab/runtime/inside.py": changed})
    assert context.inputs(one, cache) != before
    monkeypatch.setattr(context, "modules", lambda: _modules)
    generation = GENERATIONS["trino-476"]
    settings = {**generation.settings, "fs.s3.enabled": "false"}
    monkeypatch.setitem(GENERATIONS, "trino-476", replace(generation, settings=settings))
    assert context.inputs(one, cache) != before, "its settings are read in the image"


_modules = context.modules()


def test_a_context_is_streamed_readable_for_all_and_of_nobody(tmp_path: Path) -> None:
    (tmp_path / "tree" / "__pycache__").mkdir(parents=True)
    (tmp_path / "tree" / "__pycache__" / "x.pyc").touch()
    (tmp_path / "tree" / "private").write_text("x")
    (tmp_path / "tree" / "private").chmod(0o600)
    os.utime(tmp_path / "tree" / "private", (315532800, 315532800))
    packed = b"".join(context.stream([("cache/tree", tmp_path / "tree")]))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        names = tar.getnames()
        member = tar.getmember("cache/tree/private")
    assert {"site", "jdk", "bin", "cache/tree/private"} <= set(names) and not any("pyc" in name for name in names)
    assert (member.mode, member.uid, member.mtime) == (0o644, 0, 315532800)


def test_an_image_keeps_what_its_part_asks_for_and_no_more(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    cache = Cache(root, offline=True)
    used = [root / "files/maven/a.jar", root / "trees/t-1/content/x/y", tmp_path / "jdk"]
    assert fill.entries(cache, used) == {Path("files/maven/a.jar"), Path("trees/t-1")}


def test_a_folder_that_is_no_polaris_says_what_would_be_one(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"quarkus-run\.jar"):
        declared.polaris(tmp_path)
    (tmp_path / "server/lib/main").mkdir(parents=True)
    (tmp_path / "server/quarkus-run.jar").touch()
    (tmp_path / "server/lib/main/org.apache.polaris.polaris-core-1.4.1.jar").touch()
    assert declared.polaris(tmp_path).name == "iceberg-lab/polaris:1.4.1"


# ---------------------------------------------------------------- errors
class FakeDocker:
    """An engine that has the named images, and whose builds say `lines`."""

    def __init__(self, images: Sequence[str] = (), lines: Sequence[dict[str, str]] = ()) -> None:
        self.images = self.containers = self.api = self
        self._images, self._lines = images, lines

    def get(self, name: str) -> Any:
        if name in self._images:
            return type(
                "Found", (), {"id": "sha256:1", "labels": {}, "attrs": {"Size": 1, "Created": "2026-11-30T07:00:00Z"}}
            )
        raise ImageNotFound(name)

    def pull(self, name: str, tag: str) -> Any:
        raise APIError(f"pulling {name}:{tag}", explanation="dial tcp: no such host")

    def run(self, *_: Any, **__: Any) -> bytes:
        return b"3.11 x86_64\n"

    def build(self, **_: Any) -> Iterator[dict[str, str]]:
        return iter(self._lines)

    def close(self) -> None: ...


def built(monkeypatch: pytest.MonkeyPatch, engine: FakeDocker, lacks: str = "") -> None:
    monkeypatch.setattr(build, "engine_answers", lambda: "28")
    monkeypatch.setattr(docker, "from_env", lambda **_: engine)
    monkeypatch.setattr(context, "content", lambda image, cache, base, found: found.append(lacks) or [])
    build.build([IMAGES["iceberg-lab/trino:483"]], Cache(), None, lambda line: None)


def test_a_base_that_cannot_be_pulled_tells_how_to_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match=r"no such host.*scripts/base_image.sh"):
        built(monkeypatch, FakeDocker())


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"stream": "Step 5/9 : COPY cache /opt/iceberg-lab\n"}, {"error": "write /x: no space left on device"}]
    with pytest.raises(LabError, match=r"no space left.*docker system df"):
        built(monkeypatch, FakeDocker([build.OWN_BASE], lines))


def test_a_stage_that_cannot_be_pulled_tells_what_would_do_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"stream": "Step 3/30 : FROM ${JDK} AS jdk\n"}, {"error": "dial tcp: no such host"}]
    with pytest.raises(LabError, match=r"FROM .*JDK.*install a JDK 25"):
        built(monkeypatch, FakeDocker([build.OWN_BASE], lines), "install a JDK 25")


def test_a_failing_step_shows_its_last_words_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"stream": "Step 9/30 : RUN x\n"},
        {"stream": "\x1b[91mnot locked: declare it\n\x1b[0m"},
        {"error": "code: 1"},
    ]
    with pytest.raises(LabError, match=r"code: 1\n  \| Step 9/30 : RUN x\n  \| not locked: declare it$"):
        built(monkeypatch, FakeDocker([build.OWN_BASE], lines))


# ---------------------------------------------------------------- compose
def test_the_compose_file_is_what_the_declarations_say() -> None:
    assert compose.FILE.read_text() == compose.written(), "run: iceberg-lab compose write"


def test_compose_publishes_on_loopback_alone_and_each_port_under_its_number() -> None:
    services = compose.composed()["services"]
    published = r"127\.0\.0\.1:(\$\{LAB_\w+_PORT:-\d+\}):\1"  # a variable of compose/.env, else its usual number
    assert all(re.fullmatch(published, port) for port in services["network"]["ports"])
    assert len(set(services["network"]["ports"])) == len(compose.ports())
    assert not [name for name, service in services.items() if name != "network" and "ports" in service]


def test_compose_has_every_engine_under_its_profiles_and_no_secret() -> None:
    services = compose.composed()["services"]
    assert services["spark-4.1.1-iceberg-1.11.0"]["profiles"] == ["spark", "spark-4.1", "spark-4.1.1-iceberg-1.11.0"]
    assert services["trino-483"]["profiles"] == ["trino", "trino-483"]
    assert {s["image"] for s in services.values()} >= {i.name for i in IMAGES.values() if i.part[0] == "engine"}
    for service in services.values():
        for name, value in service.get("environment", {}).items():
            if re.search("SECRET|TOKEN|ACCESS_KEY|CREDENTIALS", name):
                assert "${LAB_" in value and ":?run: iceberg-lab compose env}" in value


def test_compose_has_two_clusters_whose_members_name_one_head_and_share_a_secret() -> None:
    services = compose.composed()["services"]
    members = {name: one for name, one in services.items() if "cluster" in one.get("profiles", ())}
    spark = [name for name, one in members.items() if "spark-cluster" in one["profiles"]]
    trino = [name for name, one in members.items() if "trino-cluster" in one["profiles"]]
    assert spark == ["spark-master", "spark-worker-1", "spark-worker-2", "spark-cluster"]
    assert trino == ["trino-cluster", "trino-worker-1", "trino-worker-2"]
    for names, head in ((spark, "LAB_SPARK_MASTER"), (trino, "LAB_TRINO_COORDINATOR")):
        told = [members[name]["environment"] for name in names]
        assert len({(one[head], one["LAB_CLUSTER_SECRET"]) for one in told}) == 1
    assert {one["image"] for one in members.values()} <= IMAGES.keys()


def test_services_of_one_network_listen_on_ports_of_their_own() -> None:
    services = compose.composed()["services"].values()
    said = [one.get("environment", {}) for one in services]
    taken = [one[name] for one in said for name in ("LAB_PORT", "LAB_CONNECT_PORT") if name in one]
    taken += {one["LAB_SPARK_MASTER"].rpartition(":")[2] for one in said if "LAB_SPARK_MASTER" in one}
    assert len(set(taken)) == len(taken)


def test_workers_are_not_published() -> None:
    services = compose.composed()["services"]
    for name in ("spark-worker-1", "spark-worker-2", "trino-worker-1", "trino-worker-2"):
        assert int(services[name]["environment"]["LAB_PORT"]) not in compose.ports().values()


def test_no_setting_or_file_of_a_cluster_shows_its_secret() -> None:
    cluster = Cluster("spark://127.0.0.1:1", "hidden")
    assert "hidden" not in repr(cluster)
    assert "hidden" not in str(spark_cluster.settings(cluster, []))
    assert "hidden" in spark_cluster.environment(cluster).values()
    assert "hidden" not in str(trino._membership(cluster)) and not trino._membership(None, {"x": "y"})


def test_an_executor_is_not_asked_for_a_module_that_its_java_lacks(tmp_path: Path) -> None:
    echo = tmp_path / "java"
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    echo.chmod(0o700)
    script = spark_cluster._JAVA.format(unknown=spark_cluster._UNKNOWN, java=echo)
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "-Xmx1g"]
    done = subprocess.run(["sh", "-c", script, "java", *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-cp", "a b", "", "-Xmx1g"]


def test_a_member_of_no_cluster_says_what_to_name() -> None:
    with pytest.raises(LabError, match="LAB_SPARK_MASTER"):
        inside.serve("spark-master", "spark-4.1.1+iceberg-1.11.0", None, inside.Settings(0))  # type: ignore[arg-type]


def test_secrets_are_for_their_owner_random_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compose, "FILE", tmp_path / "compose.yaml")
    monkeypatch.setattr(compose, "SECRETS", tmp_path / ".env")
    with pytest.raises(LabError, match="compose write"):
        compose.environment("seaweedfs")
    compose.FILE.touch()
    first = compose.environment("seaweedfs").read_text()
    assert stat.S_IMODE(compose.SECRETS.stat().st_mode) == 0o600
    assert compose.environment("seaweedfs").read_text() == first
    secrets = [line for line in first.splitlines() if line.split("=")[0] in compose.RANDOM]
    own = "ICEBERG_LAB_POLARIS_IMAGE=mine"
    compose.SECRETS.write_text(first.replace("LAB_TRINO_483_PORT=19021", "LAB_TRINO_483_PORT=20999") + own + "\n")
    again = compose.environment("minio", anew=True).read_text()
    assert own in again and "LAB_TRINO_483_PORT=20999\n" in again, "what the user wrote stays"
    assert compose.environment().read_text() == again, "and so does the store"
    assert len(secrets) == len(compose.RANDOM) and not [line for line in secrets if line in again]
    assert "LAB_STORE=minio\n" in again and "AWS_REQUEST_CHECKSUM_CALCULATION=when_required\n" in again
    assert not [line.partition("=")[2] for line in secrets if line.partition("=")[2] in compose.snippets()]


def test_git_never_sees_the_secrets() -> None:
    ignored = (context.PROJECT / ".gitignore").read_text().splitlines()
    assert "/" + compose.SECRETS.relative_to(context.PROJECT).as_posix() in ignored


def test_snippets_are_programs_that_name_known_variables() -> None:
    text = compose.snippets()
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        compile(code, "snippet", "exec")
    named = set(re.findall(r"\bLAB_[A-Z0-9_]+", text))
    assert named <= {*compose.ports(), *compose.RANDOM}
    assert all(f"## {name}\n" in text for name, g in GENERATIONS.items() if g.kind in ("spark", "trino"))


# ---------------------------------------------------------------- with an engine
@pytest.fixture
def engine() -> Iterator[Any]:
    try:
        with build.engine() as client:
            client.images.get(build.OWN_BASE)
            yield client
    except LabError as reason:
        pytest.skip(str(reason))
    except ImageNotFound:
        pytest.skip("there is no base image: scripts/base_image.sh")


@pytest.mark.docker
def test_a_small_image_is_built_once_runs_as_nobody_and_becomes_healthy(engine: Any) -> None:
    said: list[str] = []
    image = declared.chosen("seaweedfs")
    build.build(image, Cache(), build.OWN_BASE, said.append)
    said.clear()
    build.build(image, Cache(), build.OWN_BASE, said.append)
    assert said == [f"{image[0].name} is up to date"]
    found = engine.images.get(image[0].name)
    assert json.loads(found.labels[build.VERSIONS])["seaweedfs"] == "4.48"
    container = engine.containers.run(found, ["network"], detach=True, network_mode="none", init=True)
    try:
        assert container.exec_run(["id", "-u"]).output.strip() == b"1000"
        for _ in range(60):
            container.reload()
            if container.attrs["State"]["Health"]["Status"] == "healthy":
                return

            time.sleep(0.5)
        pytest.fail(container.logs().decode())
    finally:
        container.remove(force=True, v=True)


def test_a_changed_rule_makes_an_image_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = tmp_path / "profiles" / "horizon.toml"
    profile.parent.mkdir()
    monkeypatch.setattr(context, "modules", lambda: {"lab/catalogs/profiles/horizon.toml": profile})
    digests = []
    for text in ('title = "a"', 'title = "b"', 'title = "a"'):
        profile.write_text(text)
        digests.append(context.code())
    assert digests[0] == digests[2] != digests[1]
