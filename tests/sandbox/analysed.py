"""Functions that the tests of the analysis process send there. Standard library only."""

from __future__ import annotations

import ast
import builtins
import ctypes
import os
import signal
import sys
import time
from typing import Any


def echo(value: Any) -> Any:
    return value


def count_names(text: str) -> int:
    return sum(isinstance(node, ast.Name) for node in ast.walk(ast.parse(text)))


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


def environment() -> dict[str, str]:
    return dict(os.environ)


def open_descriptors() -> list[str]:
    return os.listdir("/proc/self/fd")


def print_much() -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.write("x" * 1_000_000)
        stream.flush()
    return 1


def nap(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
