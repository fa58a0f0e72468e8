"""What holds of every file in the cache."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

PART = ".part"  # ends the name of a file that isn't whole yet
MTIME = 315532800  # 1980-01-01. A JVM refuses a class-data archive when a jar's time has changed since it was made


def digest(path: Path) -> str:
    """The sha256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def mark_used(path: Path) -> None:
    """Remember in its access time that a file is in use: its other time must not change. A read-only cache forgets."""
    with suppress(OSError):
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last over a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
