"""The process that runs a program whose function is called with plain data, as the game does it.

Protocol: one job in; one load frame out, then one reply frame for each call, then the end. What the program prints is
dropped: it is no part of any answer. The job comes as the supervisor's own marshalled data: here, where nothing foreign
has run yet, that is the quickest way. What goes out is in the codec's form.

The process touches as little as it can: each page of memory that it is the first to write to is copied for it, which
takes longer than a call.
"""

from __future__ import annotations

import marshal
import os

from . import frames
from .encoding import encode
from .privileges import limit_job
from .running import Caller, loaded, loaded_numpy

# Kept here, since the program may replace the functions of these modules.
_close, _exit, _loads = os.close, os._exit, marshal.loads


def main(job_pipe: int, reply_pipe: int) -> None:
    """Runs one program."""
    numpy = loaded_numpy()
    # So that the pages of what every run does are this process's own before the job comes.
    exec(compile("def warm(x):\n    return [x]", "<warm-up>", "exec"), {})
    encode((0.5, [1], "a"), numpy=numpy)
    code, name, calls, memory, cpu_seconds, result = _loads(frames.Reader(job_pipe).frame())
    _close(job_pipe)
    limit_job(memory, cpu_seconds)
    reply, namespace = loaded(code, name)
    frames.write_frame(reply_pipe, encode(reply))
    if reply == ("ok",):
        caller = Caller(namespace, result, numpy)
        for call in calls:
            frames.write_frame(reply_pipe, caller.answer(name, *_loads(call)))
    _close(reply_pipe)  # long before the process is gone, whose end nobody waits for
    _exit(0)
