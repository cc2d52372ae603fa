"""The process that runs a candidate's program. It never holds a test, an expected value or a reference.

Protocol, on the job and reply pipes: one job frame in, "ready" and one load frame out; then, in value mode, one call
frame in and one reply frame out, any number of times; in program mode a test's requests are served on two
further pipes first, until the test has ended. All frames are plain data in the codec's form.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from .. import codec
from ..bridge.gate import Gate
from ..bridge.handles import hide_type
from ..bridge.peer import Peer
from ..codec import frames
from ..confine.privileges import limit_job
from . import script
from .running import MODULE_NAME, Caller, loaded, loaded_numpy

# Kept here, since the program may replace the functions of the module `os`.
_close, _exit = os.close, os._exit


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
        script.unbuffer()
    return job


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
    if job["stdin"] is not None:
        frames.write_frame(reply_pipe, codec.encode(script.run(job["code"], job["stdin"])))
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
