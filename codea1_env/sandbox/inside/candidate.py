"""The process that runs a candidate's program. It never holds a test, an expected value or a reference.

Protocol, on the job and reply pipes: one job frame in, one load frame out; then, in value mode, one call
frame in and one reply frame out, any number of times; in proxy mode a test's requests are served on two
further pipes first, until the test has ended. All frames are plain data in the codec's form.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from typing import Any

from . import codec, frames, script
from .errors import MAX_MESSAGE, class_names, describe_error, message_of
from .privileges import limit_job
from .remote import Peer

# Kept here, since the program may replace the functions of the module `os`.
_close, _exit = os.close, os._exit

MODULE_NAME = "program"


def load(code: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Executes a program as a module.

    Returns:
        The reply, whose first item is "ok" when the program ran to its end, and its namespace.
    """
    module = types.ModuleType(MODULE_NAME)
    sys.modules[MODULE_NAME] = module
    namespace = module.__dict__
    try:
        compiled = compile(code, f"<{MODULE_NAME}>", "exec", dont_inherit=True)
    except MemoryError as error:
        return ("memory", message_of(error)), namespace
    except BaseException as error:  # SyntaxError, ValueError for null bytes, RecursionError, ...
        return ("syntax", f"{type(error).__name__}: {message_of(error)}"[:MAX_MESSAGE]), namespace
    try:
        exec(compiled, namespace)
    except BaseException as error:  # SystemExit and KeyboardInterrupt included
        return describe_error(error), namespace
    return ("ok",), namespace


class Caller:
    """Calls functions of the program and encodes what they return."""

    def __init__(self, namespace: dict[str, Any], limit: int, numpy: codec.Numpy | None) -> None:
        self.namespace = namespace
        self.limit = limit
        self.numpy = numpy

    def reply(self, request: bytes) -> bytes:
        """Serves one call frame."""
        name, arguments, keywords = codec.decode(request, numpy=self.numpy)
        if name not in self.namespace:
            return codec.encode(("raised", f"NameError: name {name!r} is not defined"))
        try:
            value = self.namespace[name](*arguments, **keywords)
        except BaseException as error:  # SystemExit and KeyboardInterrupt included
            return codec.encode(describe_error(error))
        try:
            return codec.encode(("ok", value), numpy=self.numpy, limit=self.limit)
        except codec.SizeError as error:
            return codec.encode(("too large", str(error)))
        except codec.EncodeError as error:
            return codec.encode(("unencodable", str(error)))
        except MemoryError as error:
            return codec.encode(describe_error(error))


def loaded_numpy() -> codec.Numpy | None:
    """The worker's numpy, if it has one. Called before foreign code runs."""
    module = sys.modules.get("numpy")
    return codec.Numpy(module) if module is not None else None


def exports(
    namespace: dict[str, Any], names: list[str], peer: Peer
) -> list[tuple[str, str, bytes]]:
    """Those of the wanted names that the program defines, each with its kind and an encoded reference."""
    found = []
    for name in names:
        if name not in namespace:
            continue
        value = namespace[name]
        if isinstance(value, type) and issubclass(value, BaseException):
            found.append((name, "exception", codec.encode(class_names(value))))
        else:
            try:
                found.append((name, "object", peer.encode(value)))
            except codec.EncodeError:  # the test then sees that the name is missing
                continue
    return found


def start(jobs: frames.Reader) -> dict[str, Any]:
    """Reads the job and applies its limits."""
    job: dict[str, Any] = codec.decode(jobs.frame())
    limit_job(job["memory"], job["cpu_seconds"])
    return job


def warm_up(numpy: codec.Numpy | None) -> None:
    """Touches what every run uses, so that the pages are this process's own before the job comes."""
    namespace: dict[str, Any] = {}
    exec(compile("def warm(x):\n    return [x]", "<warm-up>", "exec"), namespace)
    call = codec.encode(("warm", [1], {"x": "a"}), numpy=numpy)
    codec.decode(codec.encode(("ok", namespace["warm"](codec.decode(call)))))


def main(job_pipe: int, reply_pipe: int, *peer_pipes: int) -> None:
    """Runs one program until the supervisor, or the test, closes its pipe."""
    numpy = loaded_numpy()
    warm_up(numpy)
    jobs = frames.Reader(job_pipe)
    job = start(jobs)
    if job["stdin"] is not None:
        frames.write_frame(reply_pipe, codec.encode(script.run(job["code"], job["stdin"])))
        _close(reply_pipe)
        _exit(0)
    reply, namespace = load(job["code"])
    entry_point = job["entry_point"]
    if reply == ("ok",) and entry_point is not None and entry_point not in namespace:
        reply = ("raised", f"NameError: the program does not define {entry_point!r}")
    caller = Caller(namespace, job["result"], numpy)
    if not job["proxy"]:
        frames.write_frame(reply_pipe, codec.encode(reply))
        try:
            while True:
                frames.write_frame(reply_pipe, caller.reply(jobs.frame()))
        finally:
            _close(reply_pipe)  # long before the process is gone, whose end nobody waits for
    peer = Peer(*peer_pipes, limit=job["result"], numpy=numpy, home=MODULE_NAME)
    exported = exports(namespace, job["names"], peer) if reply == ("ok",) else []
    frames.write_frame(reply_pipe, codec.encode((*reply, exported)))
    with contextlib.suppress(frames.ChannelClosedError):
        peer.serve(on_first_call=lambda: frames.write_frame(reply_pipe, b"called"))
    # The test has ended; the supervisor may have a last call. Ending by itself would look like a program
    # that ran away from a call.
    while True:
        frames.write_frame(reply_pipe, caller.reply(jobs.frame()))
