"""What a Parquet file really contains, read from its own footer and pages. No Parquet library, no engine.

Libraries show less than files hold: none tells a page's version, and some call both LZ4 codecs one. Numbers
and names are those of parquet-format's `parquet.thrift`; a footer is a Thrift struct in the compact protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.errors import LabError

MAGIC = b"PAR1"
TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
ENCODINGS = {
    0: "PLAIN",
    2: "PLAIN_DICTIONARY",
    3: "RLE",
    4: "BIT_PACKED",
    5: "DELTA_BINARY_PACKED",
    6: "DELTA_LENGTH_BYTE_ARRAY",
    7: "DELTA_BYTE_ARRAY",
    8: "RLE_DICTIONARY",
    9: "BYTE_STREAM_SPLIT",
}
# 5 is the deprecated one, with Hadoop's framing of its blocks.
CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3


@dataclass(frozen=True)
class Chunk:
    """One column of one row group.

    `encoding` and `page_version` are those of its first data page, as the page's own header has them; `encodings`
    are all that the footer names, levels and dictionary included. `values` counts nulls too. `statistics` names
    what the chunk tells of its values (`min_value`, `max_value`, `null_count`, …), `nulls` is that last one.
    """

    column: str
    field_id: int | None
    type: str
    codec: str
    encoding: str
    page_version: int
    encodings: tuple[str, ...]
    values: int
    nulls: int | None
    statistics: tuple[str, ...]
    bytes: int


@dataclass(frozen=True)
class Footer:
    """A file: its rows, who wrote it, and its chunks, row group by row group. Columns that nest are dotted."""

    rows: int
    created_by: str
    chunks: tuple[Chunk, ...]


def footer(content: bytes, name: str) -> Footer:
    """Of a whole file's content. Raises LabError that names the file when it is not Parquet."""
    if len(content) < 12 or content[:4] != MAGIC or content[-4:] != MAGIC:
        raise LabError(
            f"{name} is not a Parquet file: it does not begin and end with {MAGIC.decode()}; give one that is"
        )
    length = int.from_bytes(content[-8:-4], "little")
    try:
        meta = _Compact(content, len(content) - 8 - length).struct()
        field_ids = {path: element.get(9) for path, element in _leaves(meta[2])}
        chunks = tuple(_chunk(content, column[3], field_ids) for group in meta.get(4, []) for column in group[1])
    except (LookupError, ValueError, TypeError, RecursionError):
        raise LabError(f"{name} is not a Parquet file that can be read: its footer is damaged; write it anew") from None
    return Footer(meta[3], meta.get(6, b"").decode(), chunks)


def _leaves(schema: list[dict[int, Any]]) -> list[tuple[str, dict[int, Any]]]:
    """Dotted path and schema element of each leaf; the schema is a tree in pre-order, its root unnamed."""
    elements = iter(schema)

    def below(element: dict[int, Any], path: tuple[str, ...]) -> list[tuple[str, dict[int, Any]]]:
        found = []
        for _ in range(element.get(5, 0)):
            child = next(elements)
            place = (*path, child[4].decode())
            found += below(child, place) if child.get(5) else [(".".join(place), child)]
        return found

    return below(next(elements), ())


def _chunk(content: bytes, meta: Mapping[int, Any], field_ids: Mapping[str, int | None]) -> Chunk:
    column = ".".join(part.decode() for part in meta[3])
    at = meta[9] if not meta.get(11) else min(meta[9], meta[11])  # the dictionary's page comes first
    encoding, version = _first_data_page(content, at)
    told = meta.get(12, {})
    statistics = {3: "null_count", 4: "distinct_count", 1: "max", 2: "min", 5: "max_value", 6: "min_value"}
    return Chunk(
        column=column,
        field_id=field_ids[column],
        type=TYPES[meta[1]],
        codec=CODECS[meta[4]],
        encoding=ENCODINGS[encoding],
        page_version=version,
        encodings=tuple(sorted(ENCODINGS[number] for number in meta[2])),
        values=meta[5],
        nulls=told.get(3),
        statistics=tuple(sorted(name for number, name in statistics.items() if number in told)),
        bytes=meta[7],
    )


def _first_data_page(content: bytes, at: int) -> tuple[int, int]:
    """(encoding, page version) of the first data page from offset `at` on."""
    while True:
        reader = _Compact(content, at)
        header = reader.struct()
        if header[1] == _DATA_PAGE:
            return header[5][2], 1
        if header[1] == _DATA_PAGE_V2:
            return header[8][4], 2
        if header[1] != _DICTIONARY_PAGE:
            raise ValueError("an unknown kind of page")
        at = reader.at + header[3]


class _Compact:
    """Thrift's compact protocol, as much of it as Parquet uses: a struct → {field number: value}."""

    def __init__(self, content: bytes, at: int) -> None:
        if at < 0:
            raise ValueError("before the file")
        self._content = content
        self.at = at

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 0x0F
            number = number + delta if delta else self._zigzag()
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:  # a boolean within a list has a byte of its own
                return self._byte() == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._zigzag()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._varint())
            case 9 | 10:
                head = self._byte()
                count = head >> 4 if head >> 4 < 15 else self._varint()
                return [self._value(head & 0x0F) for _ in range(count)]
            case 12:
                return self.struct()
        raise ValueError(f"Parquet has no Thrift type {kind}")

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self._content):
            raise ValueError("past the file's end")
        return self._content[self.at - count : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
