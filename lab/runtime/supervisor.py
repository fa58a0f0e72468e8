"""The lab that stays: what `up` starts, what runs join, and what ends it.

The supervisor is a detached process that owns a `Stack`. It answers over a loopback connection with a
random key; both stand in a state file that only its user can read. It ends at `down`, or when nobody used it
for a while. A run that joins it asks it for engines and never stops it.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any, cast

import psutil
from filelock import FileLock

import lab
from lab.catalogs import CatalogEndpoint
from lab.catalogs.gateway import ACCESS_RECORD
from lab.catalogs.signing import SignOn
from lab.errors import LabError
from lab.model import Generation
from lab.provision import Cache, NotProvided
from lab.runtime import folder as folders
from lab.runtime.host import LOOPBACK, Host
from lab.runtime.places import EMBEDDED, Places
from lab.runtime.process import tail
from lab.runtime.stack import MEMORY_BUDGET, Stack
from lab.stores import StoreEndpoint

IDLE_SECONDS = 2 * 3600.0
_STATE = "supervisor.json"
_START_SECONDS = 30.0
_END_SECONDS = 20.0
_NOT_USE = {"status"}  # asking how it is does not keep it alive

_ERRORS: dict[str, type[LabError]] = {"NotProvided": NotProvided, "LabError": LabError}  # the narrower first

State = dict[str, Any]  # pid, started, port, key, folder
_SHAPE: dict[str, type | tuple[type, ...]] = {
    "pid": int,
    "started": (int, float),
    "port": int,
    "key": str,
    "folder": str,
}


# ---------------------------------------------------------------- from outside
def running(states: Path) -> State | None:
    """The state of the supervisor that is up, secret key included; what a dead one left is cleaned up.

    states: the folder of the state file, per user.
    """
    path = states / _STATE
    state = folders.read(path)
    if not state:
        return None
    whole = all(isinstance(state.get(name), kind) for name, kind in _SHAPE.items())
    if whole and folders.alive(state):
        return state
    path.unlink(missing_ok=True)
    folders.sweep(states / "runs")
    return None


def start(
    states: Path,
    *,
    idle: float = IDLE_SECONDS,
    memory: int = MEMORY_BUDGET,
    places: Places = EMBEDDED,
    command: tuple[str, ...] = ("-m", "lab.runtime.supervisor"),
) -> bool:
    """Starts a supervisor, with a folder of its own beside the runs'. False when one is up already.

    idle: seconds without use after which it ends; memory: bytes, see `Stack`; places: where its parts live.
    Services and engines start when first asked for. Raises LabError when it does not come up.
    """
    folder = states / "runs" / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-up-{secrets.token_hex(2)}"
    states.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(states / f"{_STATE}.lock"):
        if running(states):
            return False
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = folder / "supervisor.log"
        settings = {"states": str(states), "folder": str(folder), "idle": idle, "memory": memory, **places.as_json()}
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", *command, json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(Path(lab.__file__).parents[1])},
            )
        deadline = time.monotonic() + _START_SECONDS
        while folders.read(states / _STATE).get("pid") != process.pid:
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise LabError(f"the lab did not come up; read {log}{tail(log)}")
            time.sleep(0.05)
    return True


def status(states: Path) -> dict[str, Any] | None:
    """What `Stack.status` says of the lab that is up, with its own pid, uptime and seconds idle; else None."""
    state = running(states)
    if state is None:
        return None
    try:
        with _connected(state) as ask:
            return cast(dict[str, Any], ask("status"))
    except LabError:
        if running(states) is None:  # it has ended meanwhile
            return None
        raise


def down(states: Path) -> bool:
    """Ends the lab that is up, by force if it does not answer. False when none was up."""
    state = running(states)
    if state is None:
        return False
    with suppress(LabError), _connected(state) as ask:
        ask("end")
    if not _ended(state):
        with suppress(psutil.NoSuchProcess):
            psutil.Process(state["pid"]).kill()  # its guards end what it started
        _ended(state)
    running(states)
    return True


def _ended(state: State) -> bool:
    deadline = time.monotonic() + _END_SECONDS
    while folders.alive(state):  # a zombie that nobody reaps yet counts as ended
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def join(states: Path, cache: Cache, folder: Path, places: Places | None = None) -> Joined | None:
    """The lab that is up, for a run whose own folder is `folder`; None when there is none.

    Raises LabError when its parts live elsewhere than in `places`, where that matters, or are of other code.
    """
    state = running(states)
    if state is None:
        return None
    if places not in (None, Places.of(state)):
        raise LabError(
            f"a lab is up of {Places.of(state)}, and this asks for {places}; end it with iceberg-lab down, or ask "
            "for the same"
        )
    if state.get("configuration") != Places.of(state).configuration():
        raise LabError(
            "the lab that is up is of other code, images or programs than this one; end it with iceberg-lab down, and "
            "start it anew with iceberg-lab up"
        )
    return Joined(cache, folder, state)


class Joined:
    """The lab that is up, with the interface of `Stack`. What this run starts itself lives in its own folder."""

    def __init__(self, cache: Cache, folder: Path, state: State) -> None:
        folders.sweep(folder.parent)
        folders.claim(folder)
        self.host = Host(cache, folder)
        self._state = state
        self._held = ExitStack()
        self._held.enter_context(_connected(state))("hold")  # while this is open, the lab is in use

    def store(self) -> StoreEndpoint:
        return cast(StoreEndpoint, self._ask("store"))

    def catalog(self) -> CatalogEndpoint:
        return cast(CatalogEndpoint, self._ask("catalog"))

    def sign_on(self) -> SignOn:
        return cast(SignOn, self._ask("sign_on"))

    def engine(self, generation: Generation) -> dict[str, Any]:
        return cast(dict[str, Any], self._ask("engine", generation))

    @contextmanager
    def using(self, generation: Generation) -> Iterator[dict[str, Any]]:
        """See `Stack.using`; the lease ends with this process too."""
        with _connected(self._state) as ask:
            yield cast(dict[str, Any], ask("using", generation))

    def status(self) -> dict[str, Any]:
        return cast(dict[str, Any], self._ask("status"))

    def stop(self) -> None:
        """Ends what this run started itself; the lab stays up."""
        self._held.close()
        self.host.stop()
        folders.release(self.host.folder)

    def __enter__(self) -> Joined:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _ask(self, *question: object) -> object:
        with _connected(self._state) as ask:  # a connection each, so that many threads ask at once
            return ask(*question)


def _connect(state: State) -> Connection[Any, Any]:
    try:
        return Client((LOOPBACK, state["port"]), authkey=bytes.fromhex(state["key"]))
    except (OSError, EOFError, AuthenticationError) as reason:
        raise LabError(f"the lab that is up does not answer ({reason}); end it with: iceberg-lab down") from None


@contextmanager
def _connected(state: State) -> Iterator[Callable[..., object]]:
    with _connect(state) as connection:

        def ask(*question: object) -> object:
            try:
                connection.send(question)
                succeeded, answer = connection.recv()
            except (OSError, EOFError):
                raise LabError("the lab that was up has ended; start it anew with: iceberg-lab up") from None
            if not succeeded:
                kind, message = answer
                raise _ERRORS[kind](message)
            return answer

        yield ask


# ---------------------------------------------------------------- the process
class Supervisor:
    """Serves a `Stack` to runs until it is told to end or nobody uses it."""

    def __init__(self, stack: Stack, states: Path, idle: float, places: Places = EMBEDDED) -> None:
        self._stack = stack
        self._states = states
        self._idle = idle
        self._lock = threading.Lock()
        self._started = self._used = time.time()
        self._busy = 0  # connections of those who use it
        self._ended = threading.Event()
        self._key = secrets.token_bytes(32)
        self._listener = Listener((LOOPBACK, 0), backlog=64)
        state = {
            **folders.identity(os.getpid()),
            "port": cast(tuple[str, int], self._listener.address)[1],
            "key": self._key.hex(),
            "folder": str(stack.host.folder),
            **places.as_json(),
            "configuration": places.configuration(),
        }
        folders.write_private(states / _STATE, json.dumps(state))

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        """Returns when the lab has ended, with all that it started."""
        threading.Thread(target=self._accept, daemon=True).start()
        try:
            while not self._ended.wait(min(5.0, self._idle / 10)):
                if self.idle() > self._idle:
                    logging.warning("ends: not used for %.0f s", self._idle)
                    return
        finally:
            if folders.read(self._states / _STATE).get("pid") == os.getpid():
                (self._states / _STATE).unlink(missing_ok=True)  # from here on nobody finds it
            self._stack.stop()

    def idle(self) -> float:
        """Seconds since the last use, a request to the gateway from outside of any run included."""
        with self._lock:
            if self._busy:
                return 0.0
            used = self._used
        with suppress(OSError):
            used = max(used, (self._stack.host.folder / "logs" / ACCESS_RECORD).stat().st_mtime)
        return max(0.0, time.time() - used)

    def _accept(self) -> None:
        while not self._ended.is_set():
            connection = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        counted = False
        leases: list[Any] = []
        try:
            with connection:
                # Not by the listener itself, where one who connects and says nothing would keep all others out.
                deliver_challenge(connection, self._key)
                answer_challenge(connection, self._key)
                while True:
                    verb, *arguments = connection.recv()
                    if not counted and verb not in _NOT_USE:
                        counted = True
                        self._count(1)
                    connection.send(self._answer(verb, arguments, leases))
                    if verb == "end":
                        self.end()
        except (OSError, EOFError, AuthenticationError):
            pass  # they are done, or do not know the key
        finally:
            for lease in leases:
                lease.__exit__(None, None, None)
            if counted:
                self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            self._busy += change
            self._used = time.time()

    def _answer(self, verb: str, arguments: list[Any], leases: list[Any]) -> tuple[bool, Any]:
        try:
            match verb:
                case "hold" | "end":
                    return True, None
                case "store":
                    return True, self._stack.store()
                case "catalog":
                    return True, self._stack.catalog()
                case "sign_on":
                    return True, self._stack.sign_on()
                case "engine":
                    return True, self._stack.engine(*arguments)
                case "using":
                    lease = self._stack.using(*arguments)
                    endpoint = lease.__enter__()
                    leases.append(lease)
                    return True, endpoint
                case "status":
                    own = {
                        "pid": os.getpid(),
                        "uptime": round(time.time() - self._started, 1),
                        "idle": round(self.idle(), 1),
                    }
                    return True, {**self._stack.status(), **own}
        except LabError as error:
            return False, (next(name for name, kind in _ERRORS.items() if isinstance(error, kind)), str(error))
        except Exception as error:
            logging.exception("%s failed", verb)
            return False, ("LabError", f"the lab that is up failed: {type(error).__name__}; read its supervisor.log")
        return False, ("LabError", f"the lab that is up does not know {verb!r}; end it with: iceberg-lab down")


def serve(make: Callable[[Path, int], Stack], settings: dict[str, Any]) -> None:
    """Runs a supervisor in this process. `make(folder, memory)` gives it its lab."""
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    stack = make(Path(settings["folder"]), int(settings["memory"]))
    supervisor = Supervisor(stack, Path(settings["states"]), float(settings["idle"]), Places.of(settings))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: supervisor.end())
    supervisor.run()


def main() -> None:
    settings = json.loads(sys.argv[1])
    serve(lambda folder, memory: Places.of(settings).make(Cache(), folder, memory=memory), settings)


if __name__ == "__main__":
    main()
