"""A package index and a Maven repository on loopback, with faults on demand, for the tests of provisioning."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest


@dataclass
class Registry:
    """What is served by path, what went wrong on purpose, and what was asked for."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True  # whether Range requests are understood
    cuts: list[int] = field(default_factory=list)  # each one ends a body after so many bytes
    corrupt: int = 0  # so many bodies come with a byte changed
    failing: int = 0  # so many answers are 503
    stall: Event | None = None  # a body stops half way until this is set
    authorization: str | None = None  # the header without which everything is 401
    asked: Counter[str] = field(default_factory=Counter)
    ranged: list[str] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)

    def publish(self, project: str, name: str, content: bytes) -> dict[str, Any]:
        """Put a file into the index; returns its entry for a lock."""
        self.files[f"/files/{name}"] = content
        listed = [path for path in self.files if path.startswith("/files/")]
        links = (f'<a href="{self.url}{path}">{Path(path).name}</a>' for path in listed)
        self.files[f"/simple/{project}/"] = "".join(links).encode()
        return entry(name, content)

    def deploy(self, path: str, content: bytes) -> dict[str, Any]:
        """Put a file into the Maven repository; returns its entry for a lock."""
        self.files[f"/maven/{path}"] = content
        return entry(Path(path).name, content)


def entry(name: str, content: bytes) -> dict[str, Any]:
    return {"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@contextmanager
def serving() -> Iterator[Registry]:
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            registry.asked[self.path] += 1
            if registry.authorization not in (None, self.headers.get("Authorization")):
                return self.answer(401)
            if self.path in registry.redirects:
                return self.answer(302, {"Location": registry.redirects[self.path]})
            if registry.failing:
                registry.failing -= 1
                return self.answer(503)
            body = registry.files.get(self.path)
            if body is None:
                return self.answer(404)
            if self.path.startswith("/simple/"):
                return self.answer(200, {"Content-Type": "text/html"}, body)
            asked = self.headers.get("Range")
            if not (registry.ranges and asked):
                return self.send(200, {}, body)
            registry.ranged.append(asked)
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(body):
                return self.answer(416)
            return self.send(206, {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}, body[start:])

        def send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            if registry.corrupt:
                registry.corrupt -= 1
                body = bytes([body[0] ^ 1]) + body[1:]
            self.begin(status, headers, len(body))
            if registry.stall:
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                registry.stall.wait(20)
                self.close_connection = True
                return
            end = registry.cuts.pop(0) if registry.cuts else len(body)
            self.wfile.write(body[:end])
            self.close_connection = end < len(body)

        def answer(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
            self.begin(status, headers or {}, len(body))
            self.wfile.write(body)

        def begin(self, status: int, headers: dict[str, str], size: int) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(size)}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield registry
    finally:
        if registry.stall:
            registry.stall.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """The registry, as this user's only index and Maven mirror; the machine's own settings are out."""
    home = tmp_path / "home"
    (home / ".m2").mkdir(parents=True)
    with serving() as served:
        (home / ".m2" / "settings.xml").write_text(
            f"<settings><mirrors><mirror><id>here</id><mirrorOf>*</mirrorOf><url>{served.url}/maven</url></mirror>"
            "</mirrors></settings>"
        )
        for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_PROXY", "PIP_NO_INDEX", "HTTP_PROXY", "http_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.url}/simple")
        monkeypatch.setattr("lab.provision.sources.BACKOFF", 0.001)
        # Asking pip costs half a second; test_provision_settings.py does, and so do the processes started in tests.
        monkeypatch.setattr("lab.provision.pip_settings.read", lambda env: {"index-url": env["PIP_INDEX_URL"]})
        yield served


def write_lock(
    path: Path, artefacts: dict[str, list[dict[str, Any]]], sets: dict[str, list[str]] | None = None
) -> Path:
    """A lock file as `scripts/lock.py` writes it."""
    resolved = {name: {"declared": "", "members": members} for name, members in (sets or {}).items()}
    path.write_text(json.dumps({"artefacts": artefacts, "sets": resolved}))
    return path


def archive(members: dict[str, str]) -> bytes:
    """A zip (wheel, jar) of these members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
    return out.getvalue()
