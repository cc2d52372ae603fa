"""The process that runs a test which is more than one comparison of plain data.

The names that the test uses from the program are proxies; the program itself runs in another process.
The test's process sends exactly one frame, its verdict. Whether the program's process was still alive
and what either process has used is the supervisor's to say.
"""

from __future__ import annotations

import builtins
import os
import random
import sys
import time
import uuid
from typing import Any

from . import codec, frames
from .candidate import loaded_numpy, start
from .errors import MAX_MESSAGE, RemoteUnencodable, message_of
from .remote import Peer

_exit = os._exit

HOME = "test"
"""The name of the module that a test runs as."""


def settle() -> None:
    """Takes away what could tell one run from another: clocks, addresses, process numbers, entropy.

    A test that behaves differently on the reference and on a candidate must do so because of what the
    program returns. This is not a barrier against a test that reads such things by other ways; it is
    what makes an honest random test give the same verdict every time.
    """
    generator = random.Random(0)
    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        numpy.random.seed(0)
    real_id = id
    numbers: dict[int, int] = {}
    ticks = iter(range(1_000_000_000_000, 1 << 62, 1_000_000))

    def urandom(size: int) -> bytes:
        return generator.randbytes(size)

    def numbered(value: object, /) -> int:
        return numbers.setdefault(real_id(value), len(numbers) + 1)

    os.urandom = urandom
    random._urandom = urandom  # type: ignore[attr-defined]
    uuid.uuid4 = lambda: uuid.UUID(bytes=urandom(16), version=4)
    uuid.uuid1 = lambda node=None, clock_seq=None: uuid.uuid4()
    builtins.id = numbered
    os.getpid = os.getppid = lambda: 2
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        setattr(time, name, lambda: next(ticks) / 1e9)
        setattr(time, f"{name}_ns", lambda: next(ticks))


def namespace_for(
    modules: list[str], exports: list[tuple[str, str, bytes]], peer: Peer
) -> dict[str, Any]:
    """The names that a test starts with.

    Common modules are there without an import, whatever the program has imported: a test that relies on
    the `import math` of one program must not fail another, and no program may put its own object there.
    """
    namespace: dict[str, Any] = {"__name__": HOME, "__builtins__": builtins}
    for name in modules:
        module = sys.modules.get("numpy" if name == "np" else name)
        if module is not None:
            namespace[name] = module
    for name, kind, reference in exports:
        if kind == "exception":
            namespace[name] = peer.factory.declare_exception(codec.decode(reference))
        else:
            namespace[name] = peer.decode(reference)
    return namespace


def judge(test: str, namespace: dict[str, Any], peer: Peer) -> tuple[str, str]:
    """Runs a test and says how it ended."""
    try:
        compiled = compile(test, "<test>", "exec", dont_inherit=True)
    except MemoryError as error:
        return ("memory", message_of(error))
    except BaseException as error:
        return ("syntax_error", f"{type(error).__name__}: {message_of(error)}"[:MAX_MESSAGE])
    try:
        exec(compiled, namespace)
    except RemoteUnencodable as error:
        return ("unencodable", str(error))
    except AssertionError as error:
        return ("fail", message_of(error) or "the assertion is false")
    except SystemExit as error:
        return ("exited", f"SystemExit({message_of(error)})")
    except MemoryError as error:
        return ("memory", message_of(error))
    except BaseException as error:
        return ("error", f"{type(error).__name__}: {message_of(error)}"[:MAX_MESSAGE])
    if peer.failure is not None:
        return ("unencodable", peer.failure)
    return ("pass", "")


def main(job_pipe: int, reply_pipe: int, send_pipe: int, receive_pipe: int) -> None:
    """Runs one test."""
    job = start(job_pipe)
    peer = Peer(receive_pipe, send_pipe, limit=job["result"], numpy=loaded_numpy(), home=HOME)
    try:
        namespace = namespace_for(job["modules"], job["exports"], peer)
    except (codec.DecodeError, RemoteUnencodable, ArithmeticError, LookupError, TypeError) as error:
        verdict = ("error", f"the program's names cannot be used: {message_of(error)}")
    else:
        settle()
        verdict = judge(job["test"], namespace, peer)
    frames.write_frame(reply_pipe, codec.encode(verdict))
    _exit(0)
