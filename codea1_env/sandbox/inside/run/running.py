"""Runs a program and calls its functions; `main` is the whole process of a program that is only called with plain data.

Protocol: one job in, as the supervisor's own marshalled data; out "ready", one load frame, one reply frame for each call,
all in the codec's form. What the program prints is dropped. The process touches as little memory as it can: each page that
it is the first to write to is copied for it, which takes longer than a call.
"""

from __future__ import annotations

import gc
import marshal
import os
import resource
import sys
import types
from collections.abc import Callable
from typing import Any

from ..codec import frames
from ..codec.decoding import decode
from ..codec.encoding import encode
from ..codec.formats import EncodeError, Numpy, SizeError
from ..confine.privileges import limit_job
from ..errors import MAX_MESSAGE, describe_error, message_of

try:  # as in `random`: hashlib's library would make every fork dearer
    from _sha256 import sha256  # type: ignore[import-not-found]
except ImportError:  # since Python 3.12 it has another name
    from hashlib import sha256

# Kept here, since the program may replace the functions of these modules.
_close, _exit, _loads = os.close, os._exit, marshal.loads
_collect, _usage, _SELF = gc.collect, resource.getrusage, resource.RUSAGE_SELF
_MUCH = 64 << 10
"""KiB that a process has grown by, from which on the memory of each call is given back before the next one."""
_REHEARSALS = 20
_PROGRAM = """
def f(a, b=2):
    items = [a, b]
    for each in items:
        if each > 5 and str(each):
            items.append(each)
    return [*items, {"a": (True, None)}]
"""

MODULE_NAME = "program"
RETURNED = encode(("ok",)).replace(b"\1", b"\2", 1)
"""What stands before a value in a reply: both are a pair."""
ITERATED = "*"
"""Stands before the name of a call in `list(..)`, which is made here: an iterator is no data."""
_MARSHALLED = b"("  # of a tuple, as `marshal` writes it; the codec's tuples begin otherwise
_numpy: Numpy | None = None


def compiled(code: str) -> tuple[types.CodeType | None, tuple[str, ...]]:
    """Compile a program; the reply says why it cannot be."""
    try:
        found = compile(code.removeprefix("\ufeff"), f"<{MODULE_NAME}>", "exec", dont_inherit=True)
    except MemoryError as error:
        return None, describe_error(error)
    except BaseException as error:  # SyntaxError, ValueError for null bytes, RecursionError, ...
        name = type(error).__name__
        return None, ("syntax", f"{name}: {message_of(error)}"[:MAX_MESSAGE], name)
    return found, ("ok",)


def execute(code: str, module: types.ModuleType, may_exit: bool = False) -> tuple[str, ...]:
    """Execute a program as a module."""
    sys.modules[module.__name__] = module
    found, reply = compiled(code)
    if found is None:
        return reply
    try:
        exec(found, module.__dict__)
    except BaseException as error:  # SystemExit and KeyboardInterrupt included
        return ("ok",) if may_exit and _ends_well(error) else describe_error(error)
    return ("ok",)


def _ends_well(error: BaseException) -> bool:
    """Whether a process that ends with an exception ends with the status 0."""
    # By its type, as the interpreter has it: `isinstance` would believe a class that calls itself another.
    if not issubclass(type(error), SystemExit):
        return False
    try:
        code = error.code  # type: ignore[attr-defined]
        # Of other values the interpreter prints the text and ends with 1; of a number it takes the last byte.
        return code is None or (
            issubclass(type(code), int)
            and -(1 << 63) <= int.__index__(code) < 1 << 63
            and not int.__and__(code, 255)
        )
    except BaseException:  # a property of the program's own
        return False


def loaded(code: str, entry_point: str | None) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Execute a program; the reply says so where it does not define the entry point, and its names."""
    module = types.ModuleType(MODULE_NAME)
    reply = execute(code, module)
    if reply == ("ok",) and entry_point is not None:
        try:
            defined = _defines(module.__dict__, entry_point)
        except BaseException as error:  # of a metaclass, or of a name that is no text
            return describe_error(error), module.__dict__
        if not defined:
            name = entry_point.lstrip(ITERATED)
            missing = f"NameError: the program does not define {name!r}"
            reply = ("raised", missing, "NameError")
    return reply, module.__dict__


def _defines(namespace: dict[str, Any], entry_point: str) -> bool:
    """Whether a program has a name, or a class with a method of that name."""
    owner, method, _ = target_of(entry_point)
    if owner not in namespace:
        return False
    found = namespace[owner]
    return not method or any(method in vars(each) for each in getattr(found, "__mro__", ()))


def target_of(name: str) -> tuple[str, str, bool]:
    """Return the function or the class and method of a name, and whether a list is made of what it returns."""
    owner, _, method = name.lstrip(ITERATED).partition(".")
    return owner, method, name[:1] == ITERATED


def _answered(
    namespace: dict[str, Any], target: tuple[str, str, bool], limit: int, call: tuple[Any, Any]
) -> bytes:
    """Make one call of a program's function, and return what it returned, encoded."""
    owner, method, iterates = target
    if owner not in namespace:
        name = f"{owner}.{method}" if method else owner
        return encode(("raised", f"NameError: name {name!r} is not defined", "NameError"))
    try:
        called = getattr(namespace[owner](), method) if method else namespace[owner]
        value = called(*call[0], **call[1])
        if iterates:
            value = list(value)
    except BaseException as error:  # SystemExit and KeyboardInterrupt included
        return encode(describe_error(error))
    try:
        return RETURNED + encode(value, numpy=_numpy, limit=limit)
    except SizeError as error:
        return encode(("too large", f"{error}{_digest(value)}"))
    except EncodeError as error:
        return encode(("unencodable", str(error)))
    except MemoryError as error:
        return encode(describe_error(error))


def _digest(value: Any) -> str:
    """Return a digest of a value that is too large to be sent. `marshal` knows exact types only and runs nothing of theirs."""
    whole = sha256()
    try:
        if type(value) is list or type(value) is tuple:
            whole.update(f"{type(value).__name__} {len(value)}".encode())
            for start in range(0, len(value), _TOGETHER):
                whole.update(marshal.dumps(value[start : start + _TOGETHER], 2))
        else:
            whole.update(marshal.dumps(value, 2))
    except (ValueError, MemoryError, RecursionError):  # something else than plain data
        return ""
    return f"; {DIGEST} {whole.hexdigest()}"


DIGEST = "its digest is"
"""In the answer to a call whose value is too large to be sent, before what stands for it."""
_TOGETHER = 1000  # items: a copy of all would take as much memory again


def know_numpy() -> None:
    """Have this process's numpy known, if it has one. In a worker called before foreign code runs."""
    global _numpy
    module = sys.modules.get("numpy")
    _numpy = Numpy(module) if module is not None else None


def main(seal: Callable[[], None], job_pipe: int, reply_pipe: int) -> None:
    """Run one program."""
    code, entry_point, names, calls, memory, cpu_seconds, result = _loads(
        frames.FrameReader(job_pipe).frame()
    )
    _close(job_pipe)
    limit_job(memory, cpu_seconds)
    seal()
    frames.write_frame(reply_pipe, frames.READY)
    _answer(reply_pipe, code, entry_point, names, calls, result)
    _close(reply_pipe)  # long before the process is gone, whose end nobody waits for
    _exit(0)


def _answer(
    reply_pipe: int,
    code: str,
    entry_point: str | None,
    names: str | tuple[str, ...],
    calls: list[bytes],
    result: int,
) -> None:
    reply, namespace = loaded(code, entry_point)
    frames.write_frame(reply_pipe, encode(reply))
    if reply == ("ok",):
        one = target_of(names) if type(names) is str else None
        much = _usage(_SELF).ru_maxrss + _MUCH
        for number, call in enumerate(calls):
            # The supervisor's own: marshalled, or in the codec's form what has no marshalled one.
            values = _loads(call) if call[:1] == _MARSHALLED else decode(call)
            reply_of = _answered(namespace, one or target_of(names[number]), result, values)
            del values
            if (
                _usage(_SELF).ru_maxrss > much
            ):  # what is kept in circles would be charged to later calls
                _collect()
            frames.write_frame(reply_pipe, reply_of)


def rehearse() -> None:
    """Do in the worker what its children will do, so that they find the interpreter's caches filled."""
    call = marshal.dumps(([1, 2.5], {}), 2)
    theirs, ours = os.pipe()
    for _ in range(_REHEARSALS):
        frames.write_frame(ours, marshal.dumps((_PROGRAM, "f", "f", [call] * 4, 0, 0, 1000), 2))
        code, entry_point, names, calls, _, _, result = _loads(frames.FrameReader(theirs).frame())
        _answer(ours, code, entry_point, names, calls, result)
        os.read(theirs, 1 << 16)
    os.close(theirs)
    os.close(ours)
    del sys.modules[MODULE_NAME]
