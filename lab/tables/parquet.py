"""What a Parquet file really contains, read from its own footer and pages. No Parquet library, no engine.

Libraries show less than files hold: none tells a page's version, and some call both LZ4 codecs one. Numbers
and names are those of parquet-format's `parquet.thrift`; a footer is a Thrift struct in the compact protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.tables.storage import Bytes, Unreadable

MAGIC = b"PAR1"
ENCRYPTED = b"PARE"
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
Plain = bytes  # a value of a column's physical type, in its PLAIN encoding
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
    row_group: int
    minimum: Plain | None
    maximum: Plain | None
    bloom_filter: bool
    page_index: bool


@dataclass(frozen=True)
class Footer:
    """A file: its rows, who wrote it, its chunks row group by row group, and each group's rows. Columns that nest
    are dotted. `keys`: names of its key-value metadata."""

    rows: int
    created_by: str
    chunks: tuple[Chunk, ...]
    row_groups: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()


def footer(content: Bytes, name: str) -> Footer:
    """Of a file's content, which is looked at in few slices. Raises LabError that names what is not Parquet."""
    head, tail = content[:4], content[-8:]
    if tail[4:] == ENCRYPTED and head in (MAGIC, ENCRYPTED):
        raise Unreadable(f"{name} is an encrypted Parquet file: its footer can't be read without its key")
    if len(content) < 12 or head != MAGIC or tail[4:] != MAGIC:
        raise Unreadable(
            f"{name} is not a Parquet file: it does not begin and end with {MAGIC.decode()}; give one that is"
        )
    length = int.from_bytes(tail[:4], "little")
    try:
        meta = _Compact(content[max(0, len(content) - 8 - length) : len(content) - 8]).struct()
        field_ids = {path: element.get(9) for path, element in _leaves(meta[2])}
        groups = meta.get(4, [])
        chunks = tuple(
            _chunk(content, column, number, field_ids) for number, group in enumerate(groups) for column in group[1]
        )
        return Footer(
            meta[3],
            meta.get(6, b"").decode(),
            chunks,
            tuple(group[3] for group in groups),
            tuple(pair[1].decode() for pair in meta.get(5, [])),
        )
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError):
        raise Unreadable(
            f"{name} is not a Parquet file that can be read: its footer is damaged; write it anew"
        ) from None


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


def _chunk(content: Bytes, told_of: Mapping[int, Any], group: int, field_ids: Mapping[str, int | None]) -> Chunk:
    meta = told_of[3]
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
        row_group=group,
        minimum=told.get(6, told.get(2)),
        maximum=told.get(5, told.get(1)),
        bloom_filter=14 in meta,
        page_index=6 in told_of,
    )


def _first_data_page(content: Bytes, at: int) -> tuple[int, int]:
    """(encoding, page version) of the first data page from offset `at` on."""
    if at < 0:
        raise ValueError("before the file")
    while True:
        header, size = _page_header(content, at)
        if header[1] == _DATA_PAGE:
            return header[5][2], 1
        if header[1] == _DATA_PAGE_V2:
            return header[8][4], 2
        if header[1] != _DICTIONARY_PAGE or header[3] < 0:
            raise ValueError("an unknown kind of page")
        at += size + header[3]


def _page_header(content: Bytes, at: int) -> tuple[dict[int, Any], int]:
    """A header and its size, which nothing tells before: it holds values of the page as statistics."""
    for most in (1 << 10, 1 << 16, 1 << 24):
        reader = _Compact(content[at : at + most])
        try:
            return reader.struct(), reader.at
        except (LookupError, ValueError):
            if at + most >= len(content):
                raise
    raise ValueError("a page's header without end")


class _Compact:
    """Thrift's compact protocol, as much of it as Parquet uses: a struct → {field number: value}."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

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
