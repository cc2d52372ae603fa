"""Functions that the tests of the analysis process send there. Standard library only."""

from __future__ import annotations

import ast
import builtins
import ctypes
import os
import signal
import time
from typing import Any


def echo(value: Any) -> Any:
    return value


def parse(text: str) -> int:
    return len(ast.parse(text).body)


def unplain() -> object:
    return object()


def raise_it(kind: str, message: str) -> None:
    raise getattr(builtins, kind)(message)


def crash() -> None:
    ctypes.string_at(0)


def leave(status: int) -> None:
    os._exit(status)


def spin() -> None:
    while True:
        pass


def allocate(size: int) -> int:
    return len(bytearray(size))


def surroundings() -> tuple[dict[str, str], list[str]]:
    return dict(os.environ), os.listdir("/proc/self/fd")


def nap(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


def kill_itself(memory: int = 0) -> None:
    held = b"x" * memory
    assert len(held) == memory
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)
