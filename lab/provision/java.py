"""A Java home: a runtime unpacked from a wheel, or a full JDK found on this machine, or one that cjdk fetches."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from lab.provision.errors import NotProvided
from lab.provision.redact import redacted
from lab.provision.settings import Settings

VECTOR = "jdk.incubator.vector"  # what a trimmed runtime lacks and Trino asks for

# Where installers and version managers put JDKs; globs under the root or the user's home, each match a Java home.
_USUAL = (
    "/usr/lib/jvm/*", "/usr/java/*", "/usr/local/java/*", "/opt/java/*", "/opt/jdk*", "/opt/*/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*", "~/.jdks/*", "~/.gradle/jdks/*", "~/.asdf/installs/java/*",
    "~/.local/share/mise/installs/java/*", "~/.jenv/versions/*",
)  # fmt: skip


def make_executable(home: Path) -> None:
    """Mark the programs of a Java home executable: wheels don't keep that."""
    for program in [*(home / "bin").iterdir(), home / "lib" / "jspawnhelper"]:
        if program.exists():
            program.chmod(0o755)


def find(wanted: Callable[[int], bool], places: Iterable[Path]) -> Path | None:
    """The full JDK of the lowest `wanted` release, among `places` and where JDKs usually are; None if there is none."""
    homes = {home.resolve() for home in [*_candidates(os.environ), *places]}
    # Without lib/modules it is no runtime: on macOS /usr/bin/java is a stub that asks the user to install one.
    runtimes = (home for home in homes if (home / "bin" / "java").is_file() and (home / "lib" / "modules").is_file())
    announced = sorted((_announced(home), home) for home in runtimes)
    likely = (home for number, home in announced if number == _UNTOLD or wanted(number))
    return next((home for home in likely if wanted(_full_release(home))), None)


def fetch(release: int, folder: Path, settings: Settings) -> None:
    """Have cjdk put a JDK of that release into `folder`; NotProvided, with its reason, when it can't.

    In a process of its own: cjdk takes proxy and certificates from the environment alone.
    """
    env = dict(os.environ)
    if settings.proxy:
        env |= {"HTTPS_PROXY": settings.proxy, "HTTP_PROXY": settings.proxy}
    if settings.certificates:
        env["REQUESTS_CA_BUNDLE"] = settings.certificates
    command = [sys.executable, "-P", "-m", "cjdk", "--jdk", f"temurin:{release}", "--cache-dir", str(folder)]
    done = subprocess.run([*command, "--no-progress", "cache"], env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["cjdk gave none"])[-1]
        raise NotProvided(redacted(reason.partition(" (Caused")[0]))


def _candidates(env: Mapping[str, str]) -> Iterator[Path]:
    yield from (Path(env[name]) for name in ("JAVA_HOME", "JDK_HOME") if env.get(name))
    if java := shutil.which("java"):
        yield Path(java).resolve().parent.parent
    for pattern in _USUAL:
        root = Path.home() if pattern.startswith("~") else Path("/")
        yield from root.glob(pattern.lstrip("~").lstrip("/"))


_UNTOLD = 10**6  # sorts last


def _announced(home: Path) -> int:
    """The release that a home's `release` file tells, without starting it; -1 when it has no vector module."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _UNTOLD
    version = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    if modules and VECTOR not in modules[1].split():
        return -1
    return int(version[1]) if version else _UNTOLD


def _full_release(home: Path) -> int:
    """The release of the Java at `home`, asked by starting it; -1 when it doesn't start or has no vector module."""
    try:
        done = subprocess.run(
            [home / "bin" / "java", "--list-modules"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return -1
    modules = dict(line.partition("@")[::2] for line in done.stdout.splitlines())
    number = re.match(r"\d+", modules.get("java.base", ""))
    return int(number[0]) if number and VECTOR in modules else -1
