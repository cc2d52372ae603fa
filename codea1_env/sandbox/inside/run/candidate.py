"""The process that runs a program as a whole: as a script, or together with its tests.

One job frame in, "ready" out, then what the job asks for: of a script how it ended; of tests see `test_module.py`.
Frames are plain data in the codec's form.
"""

from __future__ import annotations

import _sitebuiltins
import atexit
import builtins
import contextlib
import io
import os
import select
import sys
import threading
import types
from collections.abc import Callable
from typing import IO, Any, cast

from .. import codec
from ..codec import frames
from ..confine.privileges import limit_job
from ..errors import describe_error
from . import test_module
from .running import compiled, execute

# Kept here, since the program may replace the functions of the module `os`.
_close, _exit = os.close, os._exit


def _stream(descriptor: int, mode: str) -> IO[Any]:
    # Lines end as in the interpreter's own streams: nothing is translated.
    return open(
        descriptor, mode, encoding="utf-8", errors="surrogateescape", newline="\n", closefd=False
    )


def _unbuffered(descriptor: int) -> IO[Any]:
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        cast(IO[bytes], raw),
        encoding="utf-8",
        errors="backslashreplace",
        newline="\n",
        write_through=True,
    )


def _set_streams(**streams: IO[Any]) -> None:
    for name, stream in streams.items():
        vars(sys)[name] = vars(sys)[f"__{name}__"] = stream


def _feed(sink: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(sink, view) :]
        os.close(sink)
    except OSError:  # the program has closed its input
        return


def _connect(data: bytes) -> IO[Any]:
    """Give standard input the data; by descriptor, since programs also say `open(0)` and `os.read(0, ...)`."""
    source, sink = os.pipe()
    if len(data) <= select.PIPE_BUF:  # fits, so that nobody need wait for the reader
        os.write(sink, data)
        os.close(sink)
    else:
        threading.Thread(target=_feed, args=(sink, data), daemon=True).start()
    os.dup2(source, 0)
    os.close(source)
    output = _stream(1, "w")
    _set_streams(stdin=_stream(0, "r"), stdout=output, stderr=_unbuffered(2))
    return output


def _finish(output: IO[Any]) -> None:
    """Do what the interpreter does at the end of a program: waits for threads, runs exit functions, flushes."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    current = getattr(sys, "stdout", None)
    try:
        if current is not None and not getattr(current, "closed", False):
            current.flush()
    finally:
        # Where the program has another stream in its place, nobody asks whether it could be flushed.
        with contextlib.suppress(Exception):
            output.flush()


def run_script(code: str, data: bytes) -> tuple[str, ...]:
    """Run a program as the main module, which reads standard input and prints: what it prints is its answer."""
    output = _connect(data)
    module = types.ModuleType("__main__")
    module.__file__ = "/program.py"  # there is no such file
    reply = execute(code, module, may_exit=True)
    try:
        _finish(output)
    # A stream of its own that cannot be flushed, a thread that it cannot wait for.
    except BaseException as error:
        return describe_error(error) if reply == ("ok",) else reply
    return reply


def main(seal: Callable[[], None], job_pipe: int, reply_pipe: int) -> None:
    """Run one job."""
    job: dict[str, Any] = codec.decode(frames.FrameReader(job_pipe).frame())
    _close(job_pipe)
    limit_job(job["memory"], job["cpu_seconds"])
    seal()
    frames.write_frame(reply_pipe, frames.READY)
    for name in ("exit", "quit"):  # which the module `site` makes, and workers do without it
        vars(builtins)[name] = _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)")
    if "stdin" in job:
        code, data = job["code"], job["stdin"]
        reply = run_script(code, data) if data is not None else compiled(code)[1]
        frames.write_frame(reply_pipe, codec.encode(reply))
    else:
        _set_streams(stdout=_unbuffered(1), stderr=_unbuffered(2))

        def send(message: tuple[Any, ...]) -> None:
            cut = [part[: job["output"]] if type(part) is str else part for part in message]
            frames.write_frame(reply_pipe, codec.encode(tuple(cut)))

        test_module.run(job, send)
    _close(reply_pipe)  # long before the process is gone, whose end nobody waits for
    _exit(0)
