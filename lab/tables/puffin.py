"""Puffin files: a deletion vector as bytes, and the blobs of any file, from the two specifications of Iceberg's."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from lab.errors import LabError
from lab.tables.storage import Bytes, Unreadable

MAGIC = b"PFA1"
_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"
_INPUT_FIELD = 2147483645  # "row position", reserved
_CONTAINER = 1 << 16
_ARRAY_MOST = 4096  # positions in one container of the simple kind
_NO_RUNS, _RUNS = 12346, 12347  # Roaring's cookies
VECTOR = "deletion-vector-v1"
_COMPRESSED = 1  # bit of a footer's flags
_FOOTER_MOST = 1 << 26  # bytes; a longer one is taken for damage


def puffin(positions: Sequence[int], data: str) -> bytes:
    """A file that holds one deletion vector, of the data file at `data`. Raises LabError as `vector` does."""
    blob = vector(positions)
    footer = {
        "blobs": [
            {
                "type": VECTOR,
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
    found = footer(content, name)["blobs"]
    if any(content[-8:-4]):  # flags
        raise LabError(f"{name} is no Puffin file with a plain footer; write it anew")
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


def footer(content: Bytes, name: str) -> Mapping[str, Any]:
    """The footer of a Puffin file: `blobs` and `properties` as they stand in it. Raises Unreadable."""
    end = content[-12:] if len(content) >= 16 else b""
    if len(end) < 12 or end[8:] != MAGIC or content[:4] != MAGIC:
        raise Unreadable(f"{name} is no Puffin file: it does not begin and end with {MAGIC.decode()}")
    length, flags = struct.unpack("<iI", end[:8])
    start = len(content) - 12 - length
    if flags & _COMPRESSED:
        raise Unreadable(f"{name} has a footer compressed with LZ4, which is not unpacked here")
    if not 0 <= length <= _FOOTER_MOST or start < 8 or content[start - 4 : start] != MAGIC:
        raise Unreadable(f"{name} is no Puffin file that can be read: its footer's length is off")
    try:
        found = json.loads(content[start : start + length])
        for blob in found["blobs"]:
            assert isinstance(blob["offset"], int) and isinstance(blob["length"], int) and blob["type"]
    except (ValueError, LookupError, TypeError, AssertionError, RecursionError):
        raise Unreadable(f"{name} is no Puffin file that can be read: its footer is damaged") from None
    return dict(found)


def cardinality(blob: bytes) -> int:
    """How many rows a deletion vector's blob takes away. Raises ValueError that says where it is damaged."""
    if len(blob) < 20 or blob[4:8] != _VECTOR_MAGIC:
        raise ValueError("no deletion vector begins there")
    (length,) = struct.unpack_from(">I", blob)
    content = blob[4 : 4 + length]
    if len(blob) != length + 8:
        raise ValueError(f"it is {len(blob)} bytes long and says {length + 8}")
    if zlib.crc32(content) != struct.unpack_from(">I", blob, 4 + length)[0]:
        raise ValueError("its checksum does not match")
    try:
        (bitmaps,) = struct.unpack_from("<Q", content, 4)
        at, total = 12, 0
        for _ in range(bitmaps):
            count, at = _bitmap(content, at + 4)
            total += count
    except struct.error:
        raise ValueError("its bitmap ends too early") from None
    return total


def _bitmap(content: bytes, at: int) -> tuple[int, int]:
    """(rows, where it ends) of a 32-bit Roaring bitmap in its portable format."""
    (cookie,) = struct.unpack_from("<I", content, at)
    if cookie == _NO_RUNS:
        (containers,) = struct.unpack_from("<I", content, at + 4)
        at, runs = at + 8, b""
    elif cookie & 0xFFFF == _RUNS:
        containers = (cookie >> 16) + 1
        runs = content[at + 4 : at + 4 + (containers + 7) // 8]
        at += 4 + len(runs)
    else:
        raise ValueError("it holds no Roaring bitmap")
    counts = [struct.unpack_from("<H", content, at + 4 * place + 2)[0] + 1 for place in range(containers)]
    at += 4 * containers
    if not runs or containers >= 4:
        at += 4 * containers  # offsets
    for place, count in enumerate(counts):
        if runs and runs[place // 8] >> place % 8 & 1:
            at += 2 + 4 * int(struct.unpack_from("<H", content, at)[0])
        else:
            at += 2 * count if count <= _ARRAY_MOST else _CONTAINER // 8
    return sum(counts), at
