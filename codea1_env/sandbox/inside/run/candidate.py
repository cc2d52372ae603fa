"""The process that runs a program as a whole: as a script, or together with its tests.

One job frame in, "ready" out, then what the job asks for: of a script how it ended; of tests see `test_module.py`.
Frames are plain data in the codec's form.
"""

from __future__ import annotations

import _sitebuiltins
import atexit
import builtins
import contextlib
import fcntl
import gc
import io
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import IO, Any, cast

from .. import codec
from ..codec import frames
from ..confine.privileges import check, libc, limit_job
from ..errors import describe_error
from . import test_module
from .running import compiled, execute

# Kept here, since the program may replace the functions of the module `os`.
_close, _exit, _plain_open, _objects = os.close, os._exit, io.open, gc.get_objects
# Of the kernel's own headers: some builds of Python have no names for these.
_CLOSE_ON_EXEC, _ALLOW_SEALING, _ADD_SEALS, _AS_IT_IS = 1, 2, 1033, 15
_STREAMS = {
    "/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2, "/dev/fd/0": 0, "/proc/self/fd/0": 0,
}  # fmt: skip
_USED = (types.FunctionType, types.ModuleType, type, int, float, str, list, tuple, dict)


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


def _give_input(data: bytes) -> None:
    """Make standard input a file that only this process has, as `program < file` does: fast readers ask for its size."""
    file = check(libc.memfd_create(b"input", _CLOSE_ON_EXEC | _ALLOW_SEALING), "memfd_create")
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    fcntl.fcntl(file, _ADD_SEALS, _AS_IT_IS)
    os.dup2(file, 0)
    os.close(file)


def _open(file: Any, *given: Any, **named: Any) -> Any:
    """As `open`, and where no /proc is: a stream by the name that it has on other machines."""
    name = os.fspath(file) if isinstance(file, (str, os.PathLike)) else None
    if name in _STREAMS:
        file = os.dup(_STREAMS[name])
        if not _STREAMS[name]:  # who opens a file anew reads it from its beginning
            with contextlib.suppress(OSError):  # a pipe
                os.lseek(file, 0, os.SEEK_SET)
    return _plain_open(file, *given, **named)


def _connect() -> IO[Any]:
    output = _stream(1, "w")
    _set_streams(stdin=_stream(0, "r"), stdout=output, stderr=_unbuffered(2))
    vars(builtins)["open"] = vars(io)["open"] = _open
    return output


def _finish(output: IO[Any], names: dict[str, Any]) -> None:
    """Do what the interpreter does at the end of a program: waits for threads, runs exit functions, flushes, drops its values."""
    # Ends pools that the program left open, and waits for threads, also for those that threads start.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    current = getattr(sys, "stdout", None)
    try:
        if current is not None and not getattr(current, "closed", False):
            current.flush()
    finally:
        sys.stdout = output
        del current
        # A file of its own is flushed when nobody has it any more: `out = open(1, "w")`. What its `__del__` uses goes last.
        for kept in (_USED, ()):
            for name in list(names):
                if not issubclass(type(names.get(name)), kept):
                    names[name] = None
        # What something else holds, texts before the bytes that they become. Nobody asks whether these could be flushed.
        for kind in (io.TextIOWrapper, io.BufferedWriter):
            for each in _objects():
                if issubclass(type(each), kind):
                    with contextlib.suppress(Exception):
                        each.flush()


def run_script(code: str) -> tuple[str, ...]:
    """Run a program as the main module, which reads standard input and prints: what it prints is its answer."""
    output = _connect()
    module = types.ModuleType("__main__")
    module.__file__ = "/program.py"  # there is no such file
    reply = execute(code, module, may_exit=True)
    try:
        _finish(output, module.__dict__)
    # A stream of its own that cannot be flushed, a thread that it cannot wait for.
    except BaseException as error:
        return describe_error(error) if reply == ("ok",) else reply
    return reply


def main(seal: Callable[[], None], job_pipe: int, reply_pipe: int) -> None:
    """Run one job."""
    job: dict[str, Any] = codec.decode(frames.FrameReader(job_pipe).frame())
    _close(job_pipe)
    is_script, data = "stdin" in job, job.pop("stdin", None)
    if data is not None:
        _give_input(data)
    limit_job(job["memory"], job["cpu_seconds"])
    seal()
    frames.write_frame(reply_pipe, frames.READY)
    for name in ("exit", "quit"):  # which the module `site` makes, and workers do without it
        vars(builtins)[name] = _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)")
    if is_script:
        reply = run_script(job["code"]) if data is not None else compiled(job["code"])[1]
        frames.write_frame(reply_pipe, codec.encode(reply))
    else:
        _set_streams(stdout=_unbuffered(1), stderr=_unbuffered(2))

        def send(message: tuple[Any, ...]) -> None:
            cut = [part[: job["output"]] if type(part) is str else part for part in message]
            frames.write_frame(reply_pipe, codec.encode(tuple(cut)))

        test_module.run(job, send)
    _close(reply_pipe)  # long before the process is gone, whose end nobody waits for
    _exit(0)
