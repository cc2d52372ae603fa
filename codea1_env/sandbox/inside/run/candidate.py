"""The process that runs a candidate's program. It never holds a test, an expected value or a reference.

Protocol, on the job and reply pipes: one job frame in, "ready" and one load frame out; then, in value mode, one call
frame in and one reply frame out, any number of times; in program mode a test's requests are served on two
further pipes first, until the test has ended. All frames are plain data in the codec's form.
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
from ..bridge.gate import Gate
from ..bridge.handles import hide_type
from ..bridge.peer import Peer
from ..codec import frames
from ..confine.privileges import limit_job
from ..errors import describe_error
from . import test_module
from .running import MODULE_NAME, Caller, execute, loaded, loaded_numpy

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


def unbuffer() -> None:
    """Has everything that is printed written at once: nobody waits for a process that has answered."""
    _set_streams(stdout=_unbuffered(1), stderr=_unbuffered(2))


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
    """Run a program as the main module, which reads standard input and prints: what it prints is its answer.

    Returns:
        ("ok",) if it ended with status 0; otherwise a kind and a message.
    """
    output = _connect(data)
    for name in ("exit", "quit"):  # which the module `site` makes, and workers do without it
        vars(builtins)[name] = _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)")
    module = types.ModuleType("__main__")
    module.__file__ = "/program.py"  # there is no such file
    reply = execute(code, module, may_exit=True)
    try:
        _finish(output)
    # A stream of its own that cannot be flushed, a thread that it cannot wait for.
    except BaseException as error:
        return describe_error(error) if reply == ("ok",) else reply
    return reply


def exports(
    namespace: dict[str, Any], names: list[str], tested: str | None, peer: Peer
) -> list[tuple[str, bytes]]:
    """Those of the wanted names that the program defines, each with an encoded reference or data; b"" if it cannot cross."""
    found = []
    if tested in namespace:
        peer.gate.test(namespace[tested])
    for name in names:
        if name in namespace and (name == tested or peer.gate.may_export(namespace[name])):
            try:
                found.append((name, peer.export(namespace[name], name)))
            except codec.EncodeError:
                found.append((name, b""))
    return found


def start(seal: Callable[[], None], jobs: frames.FrameReader, reply_pipe: int) -> dict[str, Any]:
    """Read the job, applies its limits, completes the confinement, and say that it has come so far."""
    job: dict[str, Any] = codec.decode(jobs.frame())
    limit_job(job["memory"], job["cpu_seconds"])
    seal()
    frames.write_frame(reply_pipe, frames.READY)
    if job.get("capture"):
        unbuffer()
    return job


def _sender(reply_pipe: int, most: int) -> Callable[[tuple[Any, ...]], None]:
    """Return what sends one message of a test module; of what was printed, not more than so much."""

    def send(message: tuple[Any, ...]) -> None:
        cut = [each[:most] if type(each) is str else each for each in message]
        frames.write_frame(reply_pipe, codec.encode(tuple(cut)))

    return send


def warm_up(numpy: codec.Numpy | None) -> None:
    """Touches what every run uses, so that the pages are this process's own before the job comes."""
    namespace: dict[str, Any] = {}
    exec(compile("def warm(x):\n    return [x]", "<warm-up>", "exec"), namespace)
    call = codec.encode(("warm", [1], {"x": "a"}), numpy=numpy)
    codec.decode(codec.encode(("ok", namespace["warm"](codec.decode(call)))))


def reply_to(request: bytes, caller: Caller) -> bytes:
    """Serve one call frame."""
    return caller.answer(*codec.decode(request, numpy=caller.numpy))


def main(seal: Callable[[], None], job_pipe: int, reply_pipe: int, *peer_pipes: int) -> None:
    """Run one program until the supervisor, or the test, closes its pipe."""
    numpy = loaded_numpy()
    warm_up(numpy)
    jobs = frames.FrameReader(job_pipe)
    job = start(seal, jobs, reply_pipe)
    if job.get("stdin") is not None:
        frames.write_frame(reply_pipe, codec.encode(run_script(job["code"], job["stdin"])))
        _close(reply_pipe)
        _exit(0)
    if "test" in job:
        test_module.run(job, _sender(reply_pipe, job["output"]))
        _close(reply_pipe)
        _exit(0)
    tested = job["entry_point"]
    reply, namespace = loaded(job.pop("code"), tested)
    gate = Gate(MODULE_NAME)
    caller = Caller(
        namespace,
        job["result"],
        numpy,
        lambda name, value: name == tested or (gate.may_export(value) and gate.may_call(value)),
    )
    if not job["serves_a_test"]:
        frames.write_frame(reply_pipe, codec.encode(reply))
        try:
            while (request := jobs.frame()) != frames.END:
                frames.write_frame(reply_pipe, reply_to(request, caller))
        finally:
            _close(reply_pipe)  # long before the process is gone, whose end nobody waits for
        _exit(0)
    hide_type()
    peer = Peer(*peer_pipes, limit=job["result"], numpy=numpy, home=MODULE_NAME)
    exported = exports(namespace, job["names"], tested, peer) if reply == ("ok",) else []
    frames.write_frame(reply_pipe, codec.encode((*reply, exported)))
    with contextlib.suppress(frames.ChannelClosedError):
        peer.serve(lambda: frames.write_frame(reply_pipe, b"called"))
    # The test has ended; the supervisor may have a last call. Ending by itself would look like a program
    # that ran away from a call.
    while True:
        frames.write_frame(reply_pipe, reply_to(jobs.frame(), caller))
