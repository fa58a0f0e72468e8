"""A container of the lab, and the network that all of a lab share."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer, Reaper
from testcontainers.core.exceptions import ContainerStartException
from testcontainers.core.waiting_utils import WaitStrategy, WaitStrategyTarget

from lab.errors import LabError
from lab.runtime import folder as folders
from lab.runtime.host import LOOPBACK, PUBLISHED_PORTS, free_port

OWNER = "iceberg-lab.owner"  # label: the process whose end is the container's, as `folders.identity` has it
START_SECONDS = 180.0
OLDEST_API = (1, 41)  # Docker 20.10
_READY = b'{"ready": true}'
_LOG_LINES = 12

T = TypeVar("T")


def engine_answers() -> str:
    """The version of the Docker engine that answers. Raises LabError that says what to do where none does."""
    try:
        client = docker.from_env()
    except (DockerException, ValueError) as error:  # the latter of a DOCKER_HOST that is no address
        raise LabError(
            f"no Docker engine answers ({flat(error)}); start one (docs/containers.md says how), "
            "or take local processes: --runtime embedded"
        ) from None
    version = client.version()
    client.close()
    if tuple(map(int, version["ApiVersion"].split("."))) < OLDEST_API:
        oldest = ".".join(map(str, OLDEST_API))
        raise LabError(
            f"Docker {version['Version']} speaks API {version['ApiVersion']}, the lab needs {oldest} (Docker 20.10): "
            "update it, or take local processes: --runtime embedded"
        )
    return str(version["Version"])


def image(kind: str, version: str) -> str:
    """What an image of the lab is called: `iceberg-lab/trino:483`."""
    return f"iceberg-lab/{kind}:{version}"


class Answers(WaitStrategy):
    """Waits until a check holds. Raises LabError with the container's last words when it ends or takes too long."""

    def __init__(self, check: Callable[[], bool]) -> None:
        super().__init__()
        self._check = check

    def wait_until_ready(self, container: WaitStrategyTarget) -> None:
        running = container.get_wrapped_container()
        deadline = time.monotonic() + START_SECONDS
        while not self._serves(running):
            running.reload()
            ended = running.status not in ("created", "running")
            if ended or time.monotonic() > deadline:
                code = running.attrs["State"]["ExitCode"]
                why = f"ended with exit code {code}" if ended else f"is not ready after {START_SECONDS:.0f} s"
                last = running.logs(stdout=False, stderr=True, tail=_LOG_LINES).decode(errors="replace")
                raise LabError(f"{running.name} {why}" + "".join(f"\n  | {line}" for line in last.splitlines()))
            time.sleep(0.1)

    def _serves(self, running: Any) -> bool:
        return self._check()


class Ready(Answers):
    """Waits for the line with which a part of the lab says that it serves."""

    def __init__(self) -> None:
        super().__init__(bool)

    def _serves(self, running: Any) -> bool:
        return _READY in running.logs(stdout=True, stderr=False)


class _Container(DockerContainer):
    """A container of the lab's: it ends with whoever made it, and says by itself when it serves."""

    def __init__(self, image: str, command: Sequence[str], **settings: Any) -> None:
        # It says itself when it serves; Docker's asking each second costs a process in each container.
        settings["healthcheck"] = {"test": ["NONE"]}
        super().__init__(image, init=True, labels={OWNER: owner()}, **settings)
        self.with_command(list(command))
        self.waiting_for(Ready())

    def with_label(self, name: str, value: str) -> Self:
        self._kwargs["labels"][name] = value
        return self

    def start(self) -> Self:
        """Returns when it serves. Raises LabError, in one line or with its last log lines."""
        if not testcontainers_config.ryuk_disabled:
            _await_ryuk()
        return told(super().start, self.image)


def _await_ryuk() -> None:
    """Starts what cleans up after Testcontainers' users. Raises LabError where it does not start."""
    try:
        told(Reaper.get_instance, testcontainers_config.ryuk_image)
    except (LabError, OSError, ContainerStartException, TimeoutError) as error:
        Reaper.delete_instance()
        why = flat(str(error).partition("; ")[0])
        raise LabError(
            f"Testcontainers' own cleaner, Ryuk, does not start ({why}); go on without it, the lab cleans up itself: "
            "export TESTCONTAINERS_RYUK_DISABLED=true"
        ) from None


class Part(_Container):
    """Runs one part of the lab (`lab/runtime/inside.py`) in a network of the lab's, which is up."""

    def __init__(self, network: Network, image: str, command: Sequence[str]) -> None:
        try:
            shared = network.get_container_id()
        except ContainerStartException:
            raise LabError("start the network before its parts: with Network(ports=…) as network") from None
        super().__init__(image, command, network_mode=f"container:{shared}")


class Network(_Container):
    """Owns the network of a lab's containers: a container that does nothing, and publishes ports on loopback."""

    def __init__(self, ports: int, image: str | None = None) -> None:
        """ports: how many its parts will need. image: any of the lab's, the catalog's if none is named."""
        super().__init__(image or _ANY, ["network"])
        self.numbers: list[int] = []
        while len(self.numbers) < ports:
            if (number := free_port(PUBLISHED_PORTS)) not in self.numbers:
                self.numbers.append(number)
        self.ports = {f"{port}/tcp": (LOOPBACK, port) for port in self.numbers}  # type: ignore[misc]
        self._left = iter(self.numbers)

    def port(self) -> int:
        """The next published port that no part has taken. Raises LabError when all are."""
        if (port := next(self._left, None)) is None:
            raise LabError(f"this network has {len(self.numbers)} ports, and its parts want more: Network(ports=…)")
        return port


_ANY = image("catalog", "1.11.0")


def owner() -> str:
    return json.dumps({**folders.identity(os.getpid()), "machine": _machine()})


def _machine() -> str:
    """Where this process's id means something: several machines, or their containers, may share a Docker engine."""
    names = Path("/proc/self/ns/pid")
    return f"{platform.node()} {names.readlink() if names.is_symlink() else ''}".strip()


def _dead(label: str) -> bool:
    """Whether a container's owner was a process of this machine, and is gone."""
    try:
        who = json.loads(label)
    except ValueError:
        return False
    return isinstance(who, dict) and who.get("machine") == _machine() and not folders.alive(who)


def sweep(client: Any | None = None) -> int:
    """Removes the containers whose owners are dead; how many that were. Nobody is asked who isn't the lab's."""
    docker_client = client or docker.from_env()
    dead = [
        one
        for one in docker_client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True)
        if _dead(one.labels[OWNER])
    ]
    for one in dead:
        remove(one)
    return len(dead)


def remove(container: Any) -> None:
    """Kills and removes a container with its anonymous volumes; one that is gone is gone."""
    try:
        container.remove(force=True, v=True)
    except NotFound:
        pass
    except APIError as error:
        if error.status_code != 409:  # somebody else is removing it
            raise


def told(work: Callable[[], T], image: str) -> T:
    """What `work` returns; Docker's refusals as one line that says what to do."""
    try:
        return work()
    except ImageNotFound:
        raise LabError(_missing(image)) from None
    except APIError as error:
        reason = flat(error.explanation or error)
        if error.status_code == 404 or "pull access denied" in reason or "failed to resolve" in reason:
            raise LabError(_missing(image)) from None
        if "port is already allocated" in reason or "address already in use" in reason:
            raise LabError(f"a port was taken meanwhile ({reason}); try again") from None
        if "no space left" in reason:
            raise LabError(f"Docker has no space left ({reason}); make some: docker system df") from None
        if "dial tcp" in reason or "lookup" in reason or "Timeout" in reason:
            raise LabError(f"{image} can't be pulled ({reason}). {_missing(image)}") from None
        raise LabError(f"Docker refuses to start {image}: {reason}") from None
    except (DockerException, requests.RequestException) as error:
        raise LabError(f"the Docker engine does not answer: {flat(error)}; is it still running?") from None


def _missing(image: str) -> str:
    if image.startswith("iceberg-lab/"):
        return f"there is no image {image}; build it: iceberg-lab images build"
    return (
        f"there is no image {image} here, and none can be pulled; name or build another (docs/containers.md), or take "
        "what can be built here: --catalog reference --store seaweedfs"
    )


def flat(reason: object) -> str:
    """A refusal of Docker's in one line, not too long."""
    return " ".join(str(reason).split())[:300]
