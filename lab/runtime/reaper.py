"""Removes a lab's containers when the lab ends, whatever it ends of: `python -m lab.runtime.reaper RUN`.

It waits for the end of its standard input, which only the lab holds, and then removes what carries the run's label.
For its users Testcontainers' own (Ryuk) does the same; this one needs no image, and is there where that is off.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import lab

RUN = "iceberg-lab.run"  # label: the run a container belongs to


def start(run: str, log: Path) -> subprocess.Popen[bytes]:
    """The reaper of a run, a process in a session of its own; closing its standard input sets it to work."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, run],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(lab.__file__).parents[1])},
        )


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()

    import docker

    from lab.containers.part import remove

    client = docker.from_env()
    for container in client.containers.list(all=True, filters={"label": f"{RUN}={sys.argv[1]}"}, ignore_removed=True):
        remove(container)


if __name__ == "__main__":
    main()
