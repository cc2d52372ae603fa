"""What plain Python says about a program and a test: both in one namespace, in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Self

_SERVER = r"""
import json, os, sys

def verdict(code, test):
    namespace = {"__name__": "test"}
    try:
        exec(compile(code, "<code>", "exec"), namespace)
    except BaseException as error:
        return "load: " + repr(error)
    try:
        exec(compile(test, "<test>", "exec"), namespace)
    except AssertionError as error:
        return "fail"
    except BaseException as error:
        return "error"
    return "pass"

for line in sys.stdin:
    code, test = json.loads(line)
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.write(send, verdict(code, test).encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as stream:
        answer = stream.read().decode()
    os.waitpid(pid, 0)
    print(json.dumps(answer), flush=True)
"""


class PlainPython:
    """Runs each pair of texts in a fork of a fresh interpreter."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def verdict(self, code: str, test: str) -> str:
        """'pass', 'fail' (AssertionError), 'error' (another exception) or 'load: ...'."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([code, test]) + "\n")
        self._process.stdin.flush()
        answer: str = json.loads(self._process.stdout.readline())
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()
