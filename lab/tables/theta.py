"""A theta sketch of a column's distinct values, as Iceberg's blob `apache-datasketches-theta-v1` holds it.

By Apache DataSketches' serialization, version 3, of a compact, ordered sketch that is still exact: it holds the hash
of every distinct value. No library of it is here, and what is declared is a handful of values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from lab.errors import LabError

BLOB = "apache-datasketches-theta-v1"
MOST = 4096  # distinct values until a sketch of the usual size begins to estimate
_SEED = 9001  # DataSketches' own default, which Iceberg's specification asks for
_SERIAL_VERSION, _COMPACT_FAMILY = 3, 3
_FLAGS = 0b11010  # read-only, compact, ordered
_WORD = (1 << 64) - 1


def theta(values: Iterable[bytes]) -> bytes:
    """The sketch of values in single-value serialization. Raises LabError for fewer than 2 or more than 4,096."""
    hashes = sorted({_murmur3(value, _SEED)[0] >> 1 for value in values})
    if not 2 <= len(hashes) <= MOST:
        raise LabError(f"a declared sketch takes 2 to {MOST} distinct values, not {len(hashes)}")
    seed = _murmur3(struct.pack("<Q", _SEED), 0)[0] & 0xFFFF
    head = struct.pack("<BBBBBBHIf", 2, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, _FLAGS, seed, len(hashes), 1.0)
    return head + struct.pack(f"<{len(hashes)}Q", *hashes)


def counted(sketch: bytes) -> int:
    """How many distinct values such a sketch has. Raises LabError for one of another make."""
    if len(sketch) < 16 or sketch[0] != 2 or sketch[2] != _COMPACT_FAMILY:
        raise LabError("a sketch that is not exact can't be counted here")
    number: int = struct.unpack_from("<I", sketch, 8)[0]
    return number


def _murmur3(content: bytes, seed: int) -> tuple[int, int]:
    """MurmurHash3's 128 bits for 64-bit machines."""
    one = two = seed
    for at in range(0, len(content) - 15, 16):
        first, second = struct.unpack_from("<QQ", content, at)
        one = (_turned(one ^ _mixed(first, 1), 27) + two) * 5 + 0x52DCE729 & _WORD
        two = (_turned(two ^ _mixed(second, 2), 31) + one) * 5 + 0x38495AB5 & _WORD
    tail = content[len(content) & ~15 :]
    first, second = struct.unpack("<QQ", tail.ljust(16, b"\0"))
    one, two = one ^ _mixed(first, 1) ^ len(content), two ^ _mixed(second, 2) ^ len(content)
    one = one + two & _WORD
    two = two + one & _WORD
    one, two = _final(one), _final(two)
    one = one + two & _WORD
    return one, two + one & _WORD


def _mixed(word: int, which: int) -> int:
    first, second = 0x87C37B91114253D5, 0x4CF5AD432745937F
    if which == 1:
        return _turned(word * first & _WORD, 31) * second & _WORD
    return _turned(word * second & _WORD, 33) * first & _WORD


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) & _WORD


def _final(word: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        word = (word ^ word >> 33) * factor & _WORD
    return word ^ word >> 33
