"""The process that runs a test which is more than one comparison of plain data.

The names that the test uses from the program are data, or handles of what is in the program's process; the program itself runs in another process.
The test's process sends "ready", and then exactly one frame, its verdict. Whether the program's process was still alive
and what either process has used is the supervisor's to say.
"""

from __future__ import annotations

import builtins
import os
import sys
import types
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import codec
from ..analysis import plan_program
from ..bridge import handles
from ..bridge.assertions import is_of_pytest
from ..bridge.bases import CLASS
from ..bridge.peer import Peer
from ..bridge.raising import name_class
from ..codec import frames
from ..errors import MAX_MESSAGE, RemoteUnencodable, message_of, missing_module, name_in_text
from . import found_tests
from .calling_tests import CannotRunError
from .candidate import start, warm_up
from .running import loaded_numpy
from .settle import settle

_exit = os._exit

HOME = "test"
"""The name of the module that a test runs as."""


def _is_class(name: str, value: handles.Handle) -> bool:
    name = name.lstrip("_")
    return name[:1].isupper() and "_" not in name and bool(value._codea1_own & CLASS)


def namespace_for(
    modules: list[str], exports: list[tuple[str, bytes]], peer: Peer
) -> dict[str, Any]:
    """Return the names that a test starts with.

    Common modules are there without an import, whatever the program has imported: a test that relies on
    the `import math` of one program must not fail another, and no program may put its own object there.
    """
    namespace: dict[str, Any] = {
        "__name__": HOME,
        "__file__": "test.py",  # test files look for the folder that they are in
        "__builtins__": builtins,
    }
    for name in modules:
        home, _, part = name.partition(".")
        module = sys.modules.get("numpy" if home == "np" else home)
        if module is not None:
            namespace[part or home] = vars(module)[part] if part else module
    if plan_program.TYPES in modules:
        namespace["type"] = handles.type_of
    peer.may_keep = True  # the program's own variables
    numbers: Counter[int] = Counter()
    for name, reference in exports:
        if not reference:
            peer.fail(f"the program's {name} cannot cross: it is no plain data, or too large")
        namespace[name] = value = peer.decode(reference)
        name_class(value, name)
        if type(value) is handles.Handle:
            numbers[value._codea1_number] += 1
    for name, value in namespace.items():
        # What has a second name may be a function by that: `search = Node`.
        if (
            type(value) is handles.Handle
            and numbers[value._codea1_number] == 1
            and _is_class(name, value)
        ):
            handles.mark(value, handles.IS_CLASS)
    peer.may_keep = False
    return namespace


class _Verdict(NamedTuple):
    """How a test ended; it crosses as a tuple.

    Attributes:
        kind: How.
        message: Why.
        line: The line where.
        frames: The lines of its frames.
        error: The name of the exception.
        module: The module that it missed.
    """

    kind: str
    message: str = ""
    line: int | None = None
    frames: str = ""
    error: str = ""
    module: str = ""


_MAX_FRAMES = 20


def judge(test: str, compiled: bytes, namespace: dict[str, Any], peer: Peer) -> _Verdict:
    """Run a test, from its text or from what that compiles to, and say how it ended.

    Whether the program was called is known here without asking the program.
    """
    try:
        if compiled:
            code = plan_program.unpacked(compiled)
        else:
            code = compile(test, plan_program.FILE_NAME, "exec", dont_inherit=True)
    except MemoryError as error:
        return _Verdict("memory", message_of(error))
    except BaseException as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        name = type(error).__name__
        text = f"{name}: {message_of(error)}"[:MAX_MESSAGE]
        return _Verdict("syntax_error", text, line, error=name_in_text(name))
    verdict = _Verdict("pass")
    try:
        found_tests.run_all(code, namespace)
    except BaseException as error:
        line, of_test = _place_of(error.__traceback__)
        verdict = _meaning_of(error)._replace(line=line, frames=of_test)
    if peer.failure is not None:  # whatever came of it
        return _Verdict("unencodable", peer.failure, verdict.line, verdict.frames)
    if verdict.kind == "pass" and peer.assertions:
        kept = "an assertion in a function that the program called is false, and the program has kept it"
        return _Verdict("unencodable", kept)
    return verdict if verdict.kind != "pass" or peer.asked else _Verdict("uncalled")


def _place_of(trace: types.TracebackType | None) -> tuple[int | None, str]:
    """Return the innermost line of the test's text, and the lines of its frames."""
    lines = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == plan_program.FILE_NAME:
            lines.append((trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    shown = [f"line {line}, in {name[:100]}" for line, name in lines[-_MAX_FRAMES:]]
    return (lines[-1][0] if lines else None, "\n".join(shown))


def _meaning_of(error: BaseException) -> _Verdict:
    """Return the kind of an ending, its text, the name of the exception, and the module that it missed."""
    try:
        raise error
    except CannotRunError as error:
        return _Verdict("error", str(error)[:MAX_MESSAGE])
    except RemoteUnencodable as error:
        return _Verdict("unencodable", str(error))
    except AssertionError as error:
        return _Verdict("fail", message_of(error) or "the assertion is false")
    except SystemExit as error:
        return _Verdict("exited", f"SystemExit({message_of(error)})", error="SystemExit")
    except MemoryError as error:
        return _Verdict("memory", message_of(error))
    except BaseException as error:
        if type(error).__name__ == "Failed" and is_of_pytest(error):
            return _Verdict("fail", message_of(error)[:MAX_MESSAGE])  # of pytest.fail and .raises
        try:
            name = str(type(error).__name__)
        except BaseException:  # it is the program that knows it
            name = "an exception of the program"
        text, module = f"{name}: {message_of(error)}"[:MAX_MESSAGE], missing_module(error)
        return _Verdict("error", text, error=name_in_text(name), module=module)


def main(
    seal: Callable[[], None], job_pipe: int, reply_pipe: int, send_pipe: int, receive_pipe: int
) -> None:
    """Run one test."""
    numpy = loaded_numpy()
    warm_up(numpy)
    settle()
    handles.hide_type()
    job = start(seal, frames.FrameReader(job_pipe), reply_pipe)
    peer = Peer(receive_pipe, send_pipe, limit=job["result"], numpy=numpy, home=HOME)
    try:
        namespace = namespace_for(job["modules"], job["exports"], peer)
    except RemoteUnencodable as error:
        verdict = _Verdict("unencodable", str(error)[:MAX_MESSAGE])
    except BaseException as error:  # whatever the program sends
        why = f"the program's names cannot be used: {message_of(error)}"
        verdict = _Verdict("error", why[:MAX_MESSAGE])
    else:
        verdict = judge(job["test"], job["compiled"], namespace, peer)
    frames.write_frame(reply_pipe, codec.encode(verdict))
    _exit(0)
