"""The worker's side: answer the lab's questions about one engine, in that engine's own environment.

Run as `python -I -S serve.py ENGINE.py VALUES.py SITE...`: ENGINE.py is one of its neighbours, VALUES.py the
lab's encoding, each SITE a folder of provisioned packages. Nothing else of the lab or of its environment can
be imported here, so that no version ever meets another one.

ENGINE.py offers `versions() -> dict[str, str]` and `Session(catalog, settings)` with `execute(statement)` →
(columns as (name, type) pairs, rows) and `close()`. The protocol is one JSON object per line:

    {"do": "versions"}                                                → {"versions": {…}}
    {"do": "open", "session": 1, "catalog": {…}, "settings": {…}}     → {}
    {"do": "execute", "session": 1, "statement": …}                   → {"columns": [[name, type]…],
                                                                         "rows": [[value…]…]}
    {"do": "close", "session": 1}                                     → {}
    any of them, when the engine fails                                → {"failure": [[class, message]…]}
    any of them, when the lab asked for what can't be                 → {"misuse": "why"}

A catalog is {"uri", "warehouse", "s3_endpoint", "region"}. The last two open nothing; they keep an engine
that was vended nothing from asking a store on the internet.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import os
import queue
import re
import sys
import threading
from types import ModuleType
from typing import Any, BinaryIO, cast


class Misuse(Exception):
    """The lab's own mistake, not the engine's failure; raised by engine modules under this name."""


def main(engine_file: str, values_file: str, *sites: str) -> None:
    questions = _private(0, "rb", os.open(os.devnull, os.O_RDONLY))
    answers = _private(1, "wb", 2)  # what libraries print goes where standard error goes, never into an answer
    faulthandler.enable()
    asked: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(questions, asked), daemon=True).start()

    sys.path.extend(sites)
    sys.modules["lab.engines.workers.serve"] = sys.modules["__main__"]
    values = _load("lab.values", values_file)
    engine = _load("engine", engine_file)
    sessions: dict[int, Any] = {}
    while True:
        answer = _answer(engine, sessions, values, json.loads(asked.get()))
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _private(fd: int, mode: str, replacement: int) -> BinaryIO:
    """The stream behind `fd`, kept for the protocol alone; libraries find `replacement` there instead."""
    stream = os.fdopen(os.dup(fd), mode)
    os.dup2(replacement, fd)
    return cast(BinaryIO, stream)


def _listen(questions: BinaryIO, asked: queue.SimpleQueue[bytes]) -> None:
    """Hand questions on; at end of file the lab is gone, and so is this process, even amid a native call."""
    for line in questions:
        asked.put(line)
    os._exit(0)


def _load(name: str, file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _answer(
    engine: ModuleType, sessions: dict[int, Any], values: ModuleType, question: dict[str, Any]
) -> dict[str, Any]:
    number = question.get("session", 0)
    try:
        match question["do"]:
            case "versions":
                return {"versions": engine.versions()}
            case "open":
                sessions[number] = engine.Session(question["catalog"], question["settings"])
                return {}
            case "close":
                if number in sessions:  # else its opening failed
                    sessions.pop(number).close()
                return {}
        columns, rows = sessions[number].execute(values.decode(question["statement"]))
    except Misuse as mistake:
        return {"misuse": str(mistake)}
    except BaseException as failure:  # whatever an engine raises is its answer, SystemExit too
        return {"failure": _chain(failure)}
    try:
        return {"columns": columns, "rows": [[values.encode(value) for value in row] for row in rows]}
    except TypeError as unknown:
        return {"misuse": f"{unknown}; cast it to another type in the statement"}


# DuckDB tells the native frames of an internal error; where a machine keeps their libraries is nobody's business.
_FRAME = re.compile(r"(^|\s)/\S*/([^/\s]+\([^\s)]*\) \[0x)")


def _chain(failure: BaseException | None) -> list[tuple[str, str]]:
    """Class name and message of an exception and its causes, those that Python's traceback would show."""
    causes: list[tuple[str, str]] = []
    seen: set[int] = set()
    while failure is not None and id(failure) not in seen:
        seen.add(id(failure))
        cls = type(failure)
        name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
        causes.append((name, _FRAME.sub(r"\1\2", str(failure))))
        failure = failure.__cause__ or (None if failure.__suppress_context__ else failure.__context__)
    return causes


if __name__ == "__main__":
    main(*sys.argv[1:])
