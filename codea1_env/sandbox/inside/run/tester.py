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
from typing import Any

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
    """The names that a test starts with.

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


Verdict = tuple[str, str, int | None, str, str, str]
"""How a test ended, why, the line where, the lines of its frames; the name of the exception, the module that it missed."""

_MAX_FRAMES = 20


def judge(test: str, compiled: bytes, namespace: dict[str, Any], peer: Peer) -> Verdict:
    """Run a test, from its text or from what that compiles to, and say how it ended.

    Whether the program was called is known here without asking the program.
    """
    try:
        if compiled:
            code = plan_program.unpacked(compiled)
        else:
            code = compile(test, plan_program.FILE_NAME, "exec", dont_inherit=True)
    except MemoryError as error:
        return ("memory", message_of(error), None, "", "", "")
    except BaseException as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        return (
            "syntax_error",
            f"{type(error).__name__}: {message_of(error)}"[:MAX_MESSAGE],
            line,
            "",
            name_in_text(type(error).__name__),
            "",
        )
    try:
        found_tests.run_all(code, namespace)
    except BaseException as error:
        kind, message, name = _meaning_of(error)
        module = missing_module(error)
        line, frames_of_test = _place_of(error.__traceback__)
    else:
        kind, message, line, frames_of_test, name, module = "pass", "", None, "", "", ""
    if peer.failure is not None:  # whatever came of it
        kind, message, name, module = "unencodable", peer.failure, "", ""
    if kind == "pass" and peer.assertions:
        kind = "unencodable"
        message = "an assertion in a function that the program called is false, and the program has kept it"
    if kind == "pass" and not peer.asked:
        kind = "uncalled"
    return (kind, message, line, frames_of_test, name, module)


def _place_of(trace: types.TracebackType | None) -> tuple[int | None, str]:
    """The innermost line of the test's text, and the lines of its frames."""
    lines = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == plan_program.FILE_NAME:
            lines.append((trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    shown = [f"line {line}, in {name[:100]}" for line, name in lines[-_MAX_FRAMES:]]
    return (lines[-1][0] if lines else None, "\n".join(shown))


def _meaning_of(error: BaseException) -> tuple[str, str, str]:
    """The kind of an ending, its text, and the name of the exception."""
    try:
        raise error
    except CannotRunError as error:
        return ("error", str(error)[:MAX_MESSAGE], "")
    except RemoteUnencodable as error:
        return ("unencodable", str(error), "")
    except AssertionError as error:
        return ("fail", message_of(error) or "the assertion is false", "")
    except SystemExit as error:
        return ("exited", f"SystemExit({message_of(error)})", "SystemExit")
    except MemoryError as error:
        return ("memory", message_of(error), "")
    except BaseException as error:
        if type(error).__name__ == "Failed" and is_of_pytest(error):
            return ("fail", message_of(error)[:MAX_MESSAGE], "")  # of pytest.fail and pytest.raises
        name = _name_of(error)
        return ("error", f"{name}: {message_of(error)}"[:MAX_MESSAGE], name_in_text(name))


def _name_of(error: BaseException) -> str:
    try:
        return str(type(error).__name__)
    except BaseException:  # it is the program that knows it
        return "an exception of the program"


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
        verdict: Verdict = ("unencodable", str(error)[:MAX_MESSAGE], None, "", "", "")
    except BaseException as error:  # whatever the program sends
        why = f"the program's names cannot be used: {message_of(error)}"
        verdict = ("error", why[:MAX_MESSAGE], None, "", "", "")
    else:
        verdict = judge(job["test"], job["compiled"], namespace, peer)
    frames.write_frame(reply_pipe, codec.encode(verdict))
    _exit(0)
