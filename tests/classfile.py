"""The little of Java's class-file format that tells which methods a class has (JVM specification, chapter 4)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MAGIC = 0xCAFEBABE
# Sizes of constants by tag, without the tag; 1 (Utf8) has its length in it, 5 and 6 (long, double) take two places.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")


def methods(data: bytes) -> set[str]:
    """The names of a class's own methods, `<init>` among them. Raises ValueError for what is no class file."""
    reader = _Reader(data)
    if reader.number(4) != _MAGIC:
        raise ValueError("no class file")
    reader.take(4)  # version
    texts = dict(_texts(reader))
    reader.take(6)  # access, this, super
    reader.take(2 * reader.number(2))  # interfaces
    list(_members(reader))  # fields
    return {texts[name] for name in _members(reader)}


def _texts(reader: _Reader) -> Iterator[tuple[int, str]]:
    """The constant pool's strings, by place."""
    place, places = 1, reader.number(2)
    while place < places:
        tag = reader.number(1)
        if tag == 1:
            yield place, reader.take(reader.number(2)).decode("utf-8", "replace")
        else:
            reader.take(_SIZES[tag])
        place += 2 if tag in (5, 6) else 1


def _members(reader: _Reader) -> Iterator[int]:
    """The places of the names of fields or methods."""
    for _ in range(reader.number(2)):
        _, name, _, attributes = struct.unpack(">4H", reader.take(8))
        for _ in range(attributes):
            reader.take(2)
            reader.take(reader.number(4))
        yield name
