"""Keeps one command company, and ends it when the lab is gone: a process of its own, standard library only.

    python -I -S guard.py STDIN_FD GRACE COMMAND [ARGUMENT…]

Standard input is a socket whose other end only the lab holds. The guard reports the command's pid on it and
then reads; end of file means that the lab stopped the command or died (kill -9 included), and the command's
process group gets SIGTERM and, GRACE seconds later, SIGKILL. Sockets and sessions do this on every POSIX
system; no call here belongs to one platform.

A guard can be killed too. So a second watcher, a line of sh, reads a pipe that only the guard holds: end of
file without a farewell means that the guard was killed, and the group goes with it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress

SECOND_WATCHER = 'read -r farewell || kill -s KILL -- "-$0"'


def kill_group(group: int, sign: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone, or (macOS) only zombies are left
        os.killpg(group, sign)


def main(stdin: int, grace: float, command: list[str]) -> int:
    """Runs the command to its end. Returns its exit code, as a shell would show it."""
    child = subprocess.Popen(command, stdin=stdin, start_new_session=True)
    second = subprocess.Popen(
        ["/bin/sh", "-c", SECOND_WATCHER, str(child.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(stdin)
    lab = socket.socket(fileno=0)
    ended = threading.Event()

    def end_with_the_lab() -> None:
        with suppress(OSError):  # a reset is an end as well
            lab.sendall(b"%d\n" % child.pid)
            while lab.recv(64):
                pass
        if grace > 0:
            kill_group(child.pid, signal.SIGTERM)
            ended.wait(grace)
        kill_group(child.pid, signal.SIGKILL)

    threading.Thread(target=end_with_the_lab, daemon=True).start()
    code = child.wait()
    ended.set()
    kill_group(child.pid, signal.SIGKILL)  # what the command itself left behind
    with suppress(OSError):
        second.communicate(b"farewell\n")
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
