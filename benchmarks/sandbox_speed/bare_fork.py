"""What the sandbox is compared with: a slim parent that forks a child for each program. No isolation.

Runs stand-alone as `python -s -S bare_fork.py`; `baselines.BareFork` starts it. A message on stdin or stdout is
its length in eight bytes and then marshalled plain data. First comes (folders, modules): what to add to
sys.path, and what to import once, so that no child pays for it. Then, for each program:

    (code, function, calls, seconds)   make the calls, answer with (kind, text) for each
    (code, "", test program, seconds)  run the test program after the program, in the same namespace

The answer is (seconds from before the fork to after the wait, answers), the answers None if the child died.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import signal
import struct
import sys
import time
from typing import IO, Any

_LENGTH = struct.Struct("<Q")


def read_message(stream: IO[bytes]) -> Any:
    """Return the next message; None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    return marshal.loads(stream.read(*_LENGTH.unpack(head))) if head else None


def write_message(stream: IO[bytes], message: Any) -> None:
    """Send plain data."""
    data = marshal.dumps(message)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def outcomes(code: str, function: str, work: Any) -> list[tuple[str, str]]:
    """Return what the child does: runs the program, then makes the calls or runs the test program."""
    namespace: dict[str, Any] = {"__name__": "program"}
    try:
        exec(compile(code, "<program>", "exec", dont_inherit=True), namespace)
        if not function:
            exec(compile(work, "<test>", "exec", dont_inherit=True), namespace)
            return [("ok", "")]
    except Exception as error:
        return [("raised", type(error).__name__)]
    found = []
    for arguments, keywords in work:
        try:
            found.append(("ok", repr(namespace[function](*arguments, **keywords))))
        except Exception as error:
            found.append(("raised", type(error).__name__))
    return found


def fork_and_run(code: str, function: str, work: Any, seconds: float) -> Any:
    """Fork a child, reads what it found until it closes its pipe, and wait for it."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)  # its signal ends the process
            rest = marshal.dumps(outcomes(code, function, work))
            while rest:
                rest = rest[os.write(send, rest) :]
        finally:
            os._exit(0)
    os.close(send)
    data = bytearray()
    while part := os.read(receive, 1 << 16):
        data += part
    os.close(receive)
    os.waitpid(pid, 0)
    return marshal.loads(data) if data else None


def main() -> None:
    """Serve programs until stdin ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # what programs print is not for the measuring process
        os.dup2(nowhere, number)
    folders, modules = read_message(requests)
    sys.path += folders
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError:
            continue  # a program that needs it says so itself
    gc.collect()
    gc.freeze()
    write_message(answers, "ready")
    while (request := read_message(requests)) is not None:
        start = time.perf_counter()
        found = fork_and_run(*request)
        write_message(answers, (time.perf_counter() - start, found))


if __name__ == "__main__":
    main()
