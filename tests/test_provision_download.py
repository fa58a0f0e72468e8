"""A file is there as a whole or not at all, whatever the network, a kill or a second lab does."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest
from provision_registry import Registry, registry, write_lock

from lab.errors import LabError
from lab.provision import Cache, Lines, Lock, NotProvided
from lab.provision.download import CHUNK

__all__ = ["registry"]

JAR = "maven:org.example:thing:1.0"
PATH = "org/example/thing/1.0/thing-1.0.jar"
CONTENT = random.Random(7).randbytes(1_000_000)  # noqa: S311 (no secret)

FETCH = "import sys; from lab.provision import *; print(Cache(lock=Lock.read(Path(sys.argv[1]))).file(sys.argv[2]))"
CHILD = [sys.executable, "-c", f"from pathlib import Path; {FETCH}"]


@pytest.fixture
def lock(tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ICEBERG_LAB_CACHE", str(tmp_path / "cache"))
    return write_lock(tmp_path / "lock.json", {JAR: [registry.deploy(PATH, CONTENT)]})


@pytest.fixture
def cache(lock: Path) -> Cache:
    return Cache(lock=Lock.read(lock))


def part_of(cache: Cache) -> Path:
    return cache.root / "files" / "maven" / f"{PATH}.part"


def test_a_file_is_fetched_once_and_then_needs_no_network(registry: Registry, lock: Path, cache: Cache) -> None:
    assert [file.size for file in cache.missing([JAR])] == [len(CONTENT)]
    path = cache.file(JAR)
    assert (path.name, path.read_bytes()) == ("thing-1.0.jar", CONTENT)
    assert cache.missing([JAR]) == []
    assert Cache(lock=Lock.read(lock), offline=True).file(JAR) == path
    assert registry.asked == {f"/maven/{PATH}": 1}


def test_offline_without_the_file_says_so(lock: Path) -> None:
    with pytest.raises(NotProvided, match=r"thing-1.0.jar is not in .* offline"):
        Cache(lock=Lock.read(lock), offline=True).file(JAR)


def test_cut_connections_are_resumed(registry: Registry, cache: Cache) -> None:
    registry.cuts = [300_000, 200_000, 100_000]
    assert cache.file(JAR).read_bytes() == CONTENT
    starts = [int(asked.removeprefix("bytes=").rstrip("-")) for asked in registry.ranged]
    assert len(starts) == 3
    assert all(
        start > got - CHUNK for start, got in zip(starts, (300_000, 500_000 - CHUNK, 600_000 - 2 * CHUNK), strict=True)
    )


def test_a_server_without_ranges_starts_over(registry: Registry, cache: Cache) -> None:
    registry.ranges, registry.cuts = False, [300_000]
    assert cache.file(JAR).read_bytes() == CONTENT


def test_a_corrupted_transfer_is_fetched_again(registry: Registry, cache: Cache) -> None:
    registry.corrupt = 1
    assert cache.file(JAR).read_bytes() == CONTENT
    assert registry.asked[f"/maven/{PATH}"] == 2


def test_a_file_that_is_not_the_locked_one_is_never_handed_out(registry: Registry, cache: Cache) -> None:
    registry.files[f"/maven/{PATH}"] = CONTENT[::-1]
    with pytest.raises(LabError, match="its content is not what the lock says"):
        cache.file(JAR)
    assert not part_of(cache).exists() and not part_of(cache).with_suffix("").exists()


def test_a_busy_server_is_asked_again(registry: Registry, cache: Cache) -> None:
    registry.failing = 1
    assert cache.file(JAR).read_bytes() == CONTENT


def test_what_a_busy_server_refused_to_go_on_with_is_kept(registry: Registry, cache: Cache) -> None:
    part_of(cache).parent.mkdir(parents=True)
    part_of(cache).write_bytes(CONTENT[:400_000])
    registry.failing = 5  # more than one request is repeated
    assert cache.file(JAR).read_bytes() == CONTENT
    assert set(registry.ranged) == {"bytes=400000-"}


@pytest.mark.parametrize("left", [b"x" * 500, CONTENT + b"x", b"x" * len(CONTENT)], ids=["wrong", "longer", "as long"])
def test_a_wrong_part_is_thrown_away(registry: Registry, cache: Cache, left: bytes) -> None:
    part_of(cache).parent.mkdir(parents=True)
    part_of(cache).write_bytes(left)
    assert cache.file(JAR).read_bytes() == CONTENT


def test_a_missing_file_names_where_it_was_looked_for_without_secrets(
    registry: Registry, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = "pypi:gone==1.0"
    write_lock(lock, {wheel: [{"name": "gone-1.0-py3-none-any.whl", "size": 3, "sha256": "0" * 64}], JAR: []})
    monkeypatch.setenv("PIP_INDEX_URL", registry.url.replace("//", "//me:hunter2@") + "/simple")
    with pytest.raises(LabError, match=r"can't be fetched.*doctor") as raised:
        Cache(lock=Lock.read(lock)).file(wheel)
    assert "hunter2" not in str(raised.value)


def test_a_signed_address_does_not_reach_the_message(registry: Registry, cache: Cache) -> None:
    registry.redirects[f"/maven/{PATH}"] = "http://127.0.0.1:9/thing.jar?X-Signature=s3cr3t"
    with pytest.raises(LabError, match="can't be fetched") as raised:
        cache.file(JAR)
    assert "s3cr3t" not in str(raised.value)


def test_a_truncated_file_in_the_cache_is_fetched_again(cache: Cache) -> None:
    path = cache.file(JAR)
    path.write_bytes(CONTENT[:10])
    assert cache.file(JAR).read_bytes() == CONTENT


def test_wrong_contents_of_the_right_size_are_found_by_verify(cache: Cache) -> None:
    path = cache.file(JAR)
    path.write_bytes(CONTENT[::-1])
    assert cache.verify() == [str(path)]
    assert cache.verify() == []
    assert cache.file(JAR).read_bytes() == CONTENT


def test_a_jar_keeps_its_time_over_use_and_a_second_download(cache: Cache) -> None:
    first = cache.file(JAR).stat()
    cache.file(JAR).unlink()
    second = cache.file(JAR).stat()
    assert first.st_mtime == second.st_mtime
    assert second.st_atime > first.st_mtime


def test_two_labs_at_once_fetch_a_file_once(registry: Registry, lock: Path) -> None:
    labs = [subprocess.Popen([*CHILD, lock, JAR], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert len({lab.communicate(timeout=30)[0] for lab in labs}) == 1
    assert [lab.returncode for lab in labs] == [0, 0]
    assert registry.asked[f"/maven/{PATH}"] == 1


def test_a_killed_download_is_gone_on_with(registry: Registry, lock: Path, cache: Cache) -> None:
    registry.stall = Event()
    lab = subprocess.Popen([*CHILD, lock, JAR], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not (part_of(cache).exists() and part_of(cache).stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(lab.pid, signal.SIGKILL)
    lab.wait()
    left = part_of(cache).stat().st_size
    assert 0 < left < len(CONTENT)
    registry.stall.set()
    registry.stall = None
    assert cache.file(JAR).read_bytes() == CONTENT
    assert registry.ranged == [f"bytes={left}-"]


def test_an_interrupt_does_not_wait_for_downloads(registry: Registry, lock: Path, cache: Cache) -> None:
    registry.stall = Event()
    # A shell's background job starts with SIGINT ignored, and its children too: this one listens to it anyway.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    child = [sys.executable, "-c", listening + CHILD[-1]]
    lab = subprocess.Popen([*child, lock, JAR], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not part_of(cache).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(lab.pid, signal.SIGINT)
    try:
        assert lab.wait(timeout=5) != 0
    finally:
        lab.kill()


def test_downloads_are_told_of_from_beginning_to_end(registry: Registry, lock: Path) -> None:
    registry.corrupt, registry.cuts = 1, [10_000]
    said = io.StringIO()
    Cache(lock=Lock.read(lock), progress=Lines(said, least=0)).file(JAR)
    assert said.getvalue() == "fetching thing-1.0.jar (1.0 MB)\nfetched thing-1.0.jar\n"


def test_files_come_in_the_order_asked_for(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.provision.cache.DOWNLOADS", 1)
    names = [f"maven:g:a:{number}" for number in range(6)]
    content = {name: [registry.deploy(f"g/a/{n}/a-{n}.jar", b"%d" % n)] for n, name in enumerate(names)}
    cache = Cache(tmp_path / "cache", lock=Lock.read(write_lock(tmp_path / "lock.json", content)))
    cache.prefetch(reversed(names))
    cache.file(names[0])
    assert list(registry.asked) == [f"/maven/g/a/{n}/a-{n}.jar" for n in (5, 4, 3, 2, 1, 0)]


def test_a_full_disk_is_told_before_the_download(
    registry: Registry, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))
    with pytest.raises(LabError, match="10 free: make room"):
        cache.file(JAR)
    assert not registry.asked
