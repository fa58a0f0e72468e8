"""Where a table's files are read from: an S3 store, or the folder in which a metadata file lies."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol, cast
from urllib.parse import unquote, urlsplit

import fastavro
import urllib3
from minio import Minio
from minio.error import MinioException, S3Error

from lab.errors import LabError

_TAIL = 1 << 16  # bytes of a file's end that come with the first look at it: nearly every footer


class Unreadable(LabError):
    """A file that isn't there, can't be had, or is not what it should be; the message names it and says why."""


class Files(Protocol):
    """Reads a table's files by the locations that its metadata gives them. Every method raises Unreadable."""

    def read(self, location: str) -> bytes:
        """A whole file."""

    def part(self, location: str, start: int, length: int) -> bytes:
        """`length` bytes from `start` on, fewer at the end of the file."""

    def size(self, location: str) -> int:
        """In bytes."""

    def records(self, location: str) -> Iterator[dict[str, Any]]:
        """The records of an Avro file, one in memory at a time."""


class Bytes(Protocol):
    """What `bytes` and `Ranged` have in common: content that is looked at in slices."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> bytes: ...


class Ranged:
    """A file's content, fetched in the slices that are asked for, so that a large file's footer costs one request."""

    def __init__(self, files: Files, location: str) -> None:
        self._files, self._location = files, location
        self._size = files.size(location)
        self._tail_at = max(0, self._size - _TAIL)
        self._tail = files.part(location, self._tail_at, _TAIL) if self._size else b""

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, key: slice) -> bytes:
        start, stop, _ = key.indices(self._size)
        if start >= self._tail_at:
            return self._tail[start - self._tail_at : max(start, stop) - self._tail_at]
        return self._files.part(self._location, start, max(0, stop - start))


class Store:
    """Reads and writes objects with the credentials that came with a table. Locations are s3://bucket/key."""

    def __init__(self, credentials: Mapping[str, str]) -> None:
        region = credentials.get("s3.region") or credentials.get("client.region")
        endpoint = urlsplit(credentials.get("s3.endpoint") or f"https://s3.{region}.amazonaws.com")
        self._client = Minio(
            endpoint.netloc,
            access_key=credentials["s3.access-key-id"],
            secret_key=credentials["s3.secret-access-key"],
            session_token=credentials.get("s3.session-token"),
            secure=endpoint.scheme == "https",
            region=region,
        )

    def read(self, location: str) -> bytes:
        with self._opened(location) as answer:
            content: bytes = answer.read()
            return content

    def part(self, location: str, start: int, length: int) -> bytes:
        if length < 1:
            return b""
        with self._opened(location, start, length) as answer:
            content: bytes = answer.read()
            return content

    def size(self, location: str) -> int:
        bucket, key = _object(location)
        with _told(location):
            return self._client.stat_object(bucket, key).size or 0

    def records(self, location: str) -> Iterator[dict[str, Any]]:
        with self._opened(location) as answer:
            yield from _avro(cast(IO[bytes], answer), location)

    def write(self, location: str, content: bytes) -> None:
        bucket, key = _object(location)
        self._client.put_object(bucket, key, io.BytesIO(content), len(content))

    @contextmanager
    def _opened(self, location: str, offset: int = 0, length: int = 0) -> Iterator[Any]:
        bucket, key = _object(location)
        with _told(location):
            answer = self._client.get_object(bucket, key, offset=offset, length=length)
            try:
                yield answer
            finally:
                answer.close()
                answer.release_conn()


class Folder:
    """Reads a table that lies on disk, moved there or not: what its metadata places below the table's `location`
    is looked for below `root`, the folder that holds `metadata/`."""

    def __init__(self, root: Path, location: str) -> None:
        self._root = root
        self._location = location.rstrip("/")

    def read(self, location: str) -> bytes:
        with self._opened(location) as file:
            return file.read()

    def part(self, location: str, start: int, length: int) -> bytes:
        with self._opened(location) as file:
            file.seek(start)
            return file.read(length)

    def size(self, location: str) -> int:
        return self._path(location).stat().st_size

    def records(self, location: str) -> Iterator[dict[str, Any]]:
        with self._opened(location) as file:
            yield from _avro(file, location)

    @contextmanager
    def _opened(self, location: str) -> Iterator[IO[bytes]]:
        path = self._path(location)
        try:
            with path.open("rb") as file:
                yield file
        except OSError as error:
            raise Unreadable(f"{path} can't be read ({error.strerror})") from None

    def _path(self, location: str) -> Path:
        candidates = list(self._candidates(location))
        for path in candidates:
            if path.is_file():  # not a pipe or a device, which might never end
                return path
        raise Unreadable(f"{location} is not at {candidates[0]}; copy the table's folder there as a whole")

    def _candidates(self, location: str) -> Iterator[Path]:
        if location.startswith(f"{self._location}/"):
            yield self._root / location[len(self._location) + 1 :]
        parts = PurePosixPath(urlsplit(location).path).parts
        for folder in ("metadata", "data"):  # written when the table had another location
            if folder in parts:
                yield self._root.joinpath(*parts[len(parts) - 1 - parts[::-1].index(folder) :])
        yield disk_path(location)


def disk_path(location: str) -> Path:
    """The path of a `file:` URI or of a plain path."""
    scheme, colon, _ = location.partition(":")
    return Path(unquote(urlsplit(location).path)) if colon and scheme.lower() == "file" else Path(location)


def _object(location: str) -> tuple[str, str]:
    path = urlsplit(location, allow_fragments=False)
    if not path.scheme.startswith("s3") or not path.netloc or not path.path.strip("/"):
        raise Unreadable(f"{location} is not in this store, whose locations are s3://bucket/key")
    key = path.path.lstrip("/") + (f"?{path.query}" if path.query else "")
    return path.netloc, key


@contextmanager
def _told(location: str) -> Iterator[None]:
    """The store's refusal as one line that names the object."""
    try:
        yield
    except S3Error as error:
        raise Unreadable(f"{location} can't be read: the store says {error.code}") from None
    except (MinioException, urllib3.exceptions.HTTPError, ValueError) as error:
        raise Unreadable(f"{location} can't be read ({type(error).__name__})") from None


def _avro(file: IO[bytes], location: str) -> Iterator[dict[str, Any]]:
    try:
        for record in fastavro.reader(file):
            if not isinstance(record, dict):
                raise ValueError("not records")
            yield record
    except (OSError, urllib3.exceptions.HTTPError):
        raise
    except Exception as error:  # a decoder that meets damage fails in any way
        raise Unreadable(
            f"{location} is no Avro file that can be read ({type(error).__name__}): it is damaged, cut short or "
            "something else"
        ) from None
