"""The process that runs a program whose function is called with plain data, as the game does it.

Protocol: one job in; out "ready", one load frame, then one reply frame for each call, then the end. What the program prints is
dropped: it is no part of any answer. The job comes as the supervisor's own marshalled data: here, where nothing foreign
has run yet, that is the quickest way. What goes out is in the codec's form.

The process touches as little as it can: each page of memory that it is the first to write to is copied for it, which
takes longer than a call.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable

from ..codec import frames
from ..codec.encoding import encode
from ..confine.privileges import limit_job
from .running import MODULE_NAME, Caller, loaded, loaded_numpy

# Kept here, since the program may replace the functions of these modules.
_close, _exit, _loads = os.close, os._exit, marshal.loads
_REHEARSALS = 20
_PROGRAM = """
def f(a, b=2):
    items = [a, b]
    for each in items:
        if each > 5 and str(each):
            items.append(each)
    return [*items, {"a": (True, None)}]
"""


def main(seal: Callable[[], None], job_pipe: int, reply_pipe: int) -> None:
    """Run one program.

    Args:
        seal: Completes the confinement of this process.
        job_pipe: Where the job comes from.
        reply_pipe: Where the replies go.
    """
    code, name, calls, memory, cpu_seconds, result = _loads(frames.FrameReader(job_pipe).frame())
    _close(job_pipe)
    limit_job(memory, cpu_seconds)
    seal()
    frames.write_frame(reply_pipe, frames.READY)
    _answer(reply_pipe, code, name, calls, result)
    _close(reply_pipe)  # long before the process is gone, whose end nobody waits for
    _exit(0)


def _answer(reply_pipe: int, code: str, name: str, calls: list[bytes], result: int) -> None:
    numpy = loaded_numpy()
    reply, namespace = loaded(code, name)
    frames.write_frame(reply_pipe, encode(reply))
    if reply == ("ok",):
        caller = Caller(namespace, result, numpy)
        for call in calls:
            frames.write_frame(reply_pipe, caller.answer(name, *_loads(call)))


def rehearse() -> None:
    """Do in the worker what its children will do, so that they find the interpreter's caches filled."""
    call = marshal.dumps(([1, 2.5], {}), 2)
    theirs, ours = os.pipe()
    for _ in range(_REHEARSALS):
        frames.write_frame(ours, marshal.dumps((_PROGRAM, "f", [call] * 4, 0, 0, 1000), 2))
        code, name, calls, _, _, result = _loads(frames.FrameReader(theirs).frame())
        _answer(ours, code, name, calls, result)
        os.read(theirs, 1 << 16)
    os.close(theirs)
    os.close(ours)
    del sys.modules[MODULE_NAME]
