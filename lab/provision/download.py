"""One file from a list of places to a path: resumed, verified, and there as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import requests

from lab.errors import LabError
from lab.provision import sources
from lab.provision.files import MTIME, PART, digest, sync_folder
from lab.provision.redact import redacted

CHUNK = 1 << 16  # what a cut connection costs at most
ATTEMPTS = 3  # in a row without one new byte, each with the retries of its request
SPOILED = 2  # a transfer may go wrong once; a wrong file stays wrong


class _Unusable(Exception):
    """This place doesn't have the file, or has another; the next one may."""


def download(
    session: requests.Session,
    places: Iterable[str | Path],
    target: Path,
    size: int,
    sha256: str,
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """Fetch `target` (`size` bytes of that checksum) from the first of `places` that has it.

    What a killed run left in its part file is gone on with. `advance` is told bytes as they come (negative when a
    wrong part is thrown away). The caller holds the target's lock. LabError with the reasons when no place has it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}{PART}")
    reasons = []
    try:
        free = shutil.disk_usage(target.parent).free
        if free < size - _size(part):
            raise LabError(
                f"{target.name} has {size} bytes and {target.parent} {free} free: make room, or set ICEBERG_LAB_CACHE"
            )
        advance(_size(part))
        for place in places:
            try:
                _fetch(session, place, part, size, sha256, advance)
            except _Unusable as error:
                reasons.append(f"{redacted(str(place))}: {error}")
            else:
                _publish(part, target)
                return
    except requests.RequestException as error:  # of the index: those of a place are retried
        reasons.append(redacted(str(error)))
    except OSError as error:
        raise LabError(f"{target} can't be written ({error}): make it writable, or set ICEBERG_LAB_CACHE") from None
    raise LabError(
        f"{target.name} can't be fetched ({'; '.join(reasons) or 'no index or repository has it'}): check the network, "
        "and the index and proxy that `iceberg-lab doctor` shows"
    )


def _fetch(
    session: requests.Session, place: str | Path, part: Path, size: int, sha256: str, advance: Callable[[int], None]
) -> None:
    """Fill `part` from one place until its checksum is right; _Unusable when that can't be reached."""
    fruitless = spoiled = 0
    while True:
        before, reason = _size(part), "it ended early"
        if before < size:
            try:
                if isinstance(place, Path):
                    _copy(place, part, advance)
                else:
                    _append(session, place, part, size, advance)
            except requests.RequestException as error:
                reason = redacted(str(error))
        after = _size(part)
        if after == size and digest(part) == sha256:
            return
        if after >= size:
            _discard(part, advance)
            spoiled, reason = spoiled + 1, "its content is not what the lock says"
        fruitless = 0 if before < after else fruitless + 1
        if spoiled == SPOILED or fruitless == ATTEMPTS:
            raise _Unusable(reason)
        time.sleep(sources.BACKOFF * 2**fruitless)


def _append(session: requests.Session, url: str, part: Path, size: int, advance: Callable[[int], None]) -> None:
    """Append what `part` lacks, or start it over where the server can't resume."""
    have = _size(part)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with session.get(url, headers=headers, stream=True, timeout=sources.TIMEOUT) as response:
        if response.status_code in (401, 403, 404, 407, 410):
            raise _Unusable(f"it answers {response.status_code} {response.reason}")
        if have and response.status_code in (200, 416):
            _discard(part, advance)
        response.raise_for_status()
        with part.open("ab") as out:
            for chunk in response.iter_content(CHUNK):
                out.write(chunk)
                advance(len(chunk))
                if out.tell() > size:
                    return


def _copy(source: Path, part: Path, advance: Callable[[int], None]) -> None:
    _discard(part, advance)
    shutil.copyfile(source, part)
    advance(_size(part))


def _discard(part: Path, advance: Callable[[int], None]) -> None:
    advance(-_size(part))
    part.unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _publish(part: Path, target: Path) -> None:
    with part.open("rb") as file:
        os.fsync(file.fileno())
    os.utime(part, (time.time(), MTIME))
    part.replace(target)
    sync_folder(target.parent)
