"""Puffin files: a deletion vector as bytes, and the blobs of any file, from the two specifications of Iceberg's."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from lab.errors import LabError

MAGIC = b"PFA1"
_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"
_INPUT_FIELD = 2147483645  # "row position", reserved
_CONTAINER = 1 << 16
_ARRAY_MOST = 4096  # positions in one container of the simple kind
_NO_RUNS = 12346  # Roaring's cookie


def puffin(positions: Sequence[int], data: str) -> bytes:
    """A file that holds one deletion vector, of the data file at `data`. Raises LabError as `vector` does."""
    blob = vector(positions)
    footer = {
        "blobs": [
            {
                "type": "deletion-vector-v1",
                "fields": [_INPUT_FIELD],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(MAGIC),
                "length": len(blob),
                "properties": {"referenced-data-file": data, "cardinality": str(len(set(positions)))},
            }
        ]
    }
    payload = json.dumps(footer).encode()
    return MAGIC + blob + MAGIC + payload + struct.pack("<ii", len(payload), 0) + MAGIC


def blobs(content: bytes, name: str) -> list[tuple[dict[str, Any], bytes]]:
    """Description and bytes of each blob of a file. Raises LabError that names it if it is no Puffin, or compressed."""
    try:
        length, flags, magic = struct.unpack("<ii4s", content[-12:])
        if content[:4] != MAGIC or magic != MAGIC or flags != 0:
            raise ValueError
        found = json.loads(content[-12 - length : -12])["blobs"]
    except (ValueError, struct.error, LookupError):
        raise LabError(f"{name} is no Puffin file with a plain footer; write it anew") from None
    return [(blob, content[blob["offset"] : blob["offset"] + blob["length"]]) for blob in found]


def vector(positions: Sequence[int]) -> bytes:
    """The blob: length, magic, a Roaring bitmap with 64-bit keys in its portable format, checksum.

    Raises LabError for positions beyond 32 bits, or more than 4,096 in 65,536 rows.
    """
    containers: dict[int, list[int]] = {}
    for position in sorted(set(positions)):
        if not 0 <= position < 1 << 32:
            raise LabError(f"a declared deletion vector takes positions of 32 bits, not {position}")
        containers.setdefault(position // _CONTAINER, []).append(position % _CONTAINER)
    if any(len(low) > _ARRAY_MOST for low in containers.values()):
        raise LabError(f"a declared deletion vector takes at most {_ARRAY_MOST} positions of {_CONTAINER} rows")
    heads = b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in containers.items())
    at = 8 + len(heads) + 4 * len(containers)
    offsets = b""
    for low in containers.values():
        offsets += struct.pack("<I", at)
        at += 2 * len(low)
    arrays = b"".join(struct.pack(f"<{len(low)}H", *low) for low in containers.values())
    bitmap = struct.pack("<II", _NO_RUNS, len(containers)) + heads + offsets + arrays
    content = _VECTOR_MAGIC + struct.pack("<QI", 1, 0) + bitmap
    return struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))
