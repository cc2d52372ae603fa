"""Which exceptions of a test are verdicts, or end it before one, that nothing of the program may suppress."""

from __future__ import annotations

import dis
import functools
import re
import sys
import types
from typing import TYPE_CHECKING, Any

from ..errors import RemoteUnencodable

if TYPE_CHECKING:
    from .peer import Peer

_FILE_NAME = "<test>"
_OUTCOMES = "_pytest.outcomes"
_ACTING = (
    "CALL", "FOR_ITER", "JUMP_BACK", "LOAD_ASSERTION", "POP_JUMP_BACK", "RAISE", "SEND", "YIELD",
)  # fmt: skip
_OTHERS = ("fail", "raises")
_METHODS = (types.MethodType, staticmethod, classmethod)
_LOADING = frozenset({"LOAD_ATTR", "LOAD_GLOBAL", "LOAD_METHOD", "LOAD_NAME"})
_ASSERTING = re.compile(r"assert(_|[A-Z])|fail(If|Unless)")


def must_stay(peer: Peer, details: tuple[Any, ...]) -> bool:
    """Whether an exception is a verdict, which no context manager of the program may suppress."""
    return not peer.trusting and details[1] is not None and is_verdict(details[1])


def shown(peer: Peer, details: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what a context manager learns of the exception that ends its block: nothing of what a test expected."""
    if must_stay(peer, details):
        return (AssertionError, AssertionError(), None)
    return (*details[:2], None)


def is_verdict(error: BaseException) -> bool:
    """Whether an exception says that something of a test does not hold.

    It is an assertion, a group with one, pytest's `Failed`; or whatever was raised while a test evaluated what it asserts: a
    program must not gain by raising instead of answering wrongly.
    """
    if isinstance(error, (AssertionError, RemoteUnencodable)) or is_of_pytest(error):
        return True
    if isinstance(error, BaseExceptionGroup) and any(map(is_verdict, error.exceptions)):
        return True
    trace = error.__traceback__
    while isinstance(trace, types.TracebackType):
        code = trace.tb_frame.f_code
        if code.co_filename == _FILE_NAME and _asserts(code, trace.tb_lineno):
            return True
        trace = trace.tb_next
    return False


def is_of_pytest(error: BaseException) -> bool:
    """Whether an exception is one by which pytest ends a test. Their own module they do not say."""
    return any(base.__module__ == _OUTCOMES for base in type(error).__mro__)


def is_handling_verdict() -> bool:
    """Whether a verdict is on its way through this thread: an exception raised meanwhile would take its place."""
    error = sys.exception()
    return error is not None and is_verdict(error)


def is_cut_short(error: BaseException) -> bool:
    """Whether an exception left a function of the test before an assertion of it."""
    trace = error.__traceback__
    while isinstance(trace, types.TracebackType):
        frame = trace.tb_frame
        if frame.f_code.co_filename == _FILE_NAME and _asserts_after(frame, trace.tb_lasti):
            return True
        trace = trace.tb_next
    return False


def check_block(peer: Peer, error: Any) -> None:
    """End a test in whose `with` block a context manager of the program has suppressed what cut it short.

    What would have come then may have been an assertion, under whatever name: the block must have been at its end.

    Raises:
        RemoteUnencodable: It was not.
    """
    if peer.trusting or not isinstance(error, BaseException):
        return
    trace, block = error.__traceback__, True
    while isinstance(trace, types.TracebackType):
        frame = trace.tb_frame
        if frame.f_code.co_filename == _FILE_NAME:
            start = trace.tb_lasti
            first, end = _block(frame.f_code, frame.f_lasti) if block else (start, None)
            if _goes_on(frame.f_code, start, end) or _expects_exceptions(
                frame.f_code, first, start
            ):
                peer.fail(
                    "an exception before the end of a block, which a context manager of the program suppresses"
                )
            block = False
        trace = trace.tb_next


@functools.lru_cache(maxsize=256)
def _instructions(code: types.CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


def _block(code: types.CodeType, leaving: int) -> tuple[int, int]:
    """From where to where the block stands whose exceptions are handled where an instruction is."""
    entries: Any = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    handler = max((each.target for each in entries if each.target <= leaving), default=-1)
    parts = [each for each in entries if each.target == handler]
    first = min((each.start for each in parts), default=0)
    end = max((each.end for each in parts), default=len(code.co_code))
    # The jump back to the next round cannot raise: since Python 3.12 it stands behind what is protected.
    back = any(each.offset == end and "JUMP_BACK" in each.opname for each in _instructions(code))
    return first, end + 1 if back else end


def _goes_on(code: types.CodeType, start: int, end: int | None) -> bool:
    """Whether something is done between an instruction and the end: another call, `raise`, assertion or round."""
    return any(
        each.opname.startswith(_ACTING)
        for each in _instructions(code)
        if start < each.offset and (end is None or each.offset < end)
    )


def _expects_exceptions(code: types.CodeType, first: int, start: int) -> bool:
    """Whether an exception came from where a test expects another one."""
    return any(
        each.opname in _LOADING
        and each.argval.startswith(("assertRaises", "assertWarns", "raises"))
        for each in _instructions(code)
        if first <= each.offset <= start
    )


def _asserts_after(frame: types.FrameType, start: int) -> bool:
    """Whether instructions that have not run assert something, or call a function of the test that does."""
    found = _instructions(frame.f_code)
    later = [each for each in found if start < each.offset]
    # Of a loop that goes on.
    first = min([start + 1, *(each.argval for each in later if "JUMP_BACK" in each.opname)])
    # What is called then was loaded before its arguments.
    calls = {_begin(each) for each in later if each.opname.startswith(("CALL", "PRECALL"))}
    missed = [
        each
        for each in found
        if each.offset != start and (first <= each.offset or _begin(each) in calls)
    ]
    return any(
        _is_assertion(each)
        or (type(each.argval) is types.CodeType and contains_assertion(each.argval))
        or (
            each.opname.startswith("LOAD_")
            and _is_name(each.argval)
            and _asserts_somewhere(frame, each.argval)
        )
        for each in missed
    )


def _begin(instruction: dis.Instruction) -> tuple[int | None, int | None]:
    place = instruction.positions
    return (None, None) if place is None else (place.lineno, place.col_offset)


def _is_name(value: object) -> bool:
    return type(value) is str and value.isidentifier()


def _is_assertion(instruction: dis.Instruction) -> bool:
    """Whether an instruction belongs to an `assert`, or loads what is called to assert something."""
    name, value = instruction.opname, instruction.argval
    if name == "LOAD_ASSERTION_ERROR":
        return True
    if name not in _LOADING or type(value) is not str:
        return False
    return value in ("AssertionError", "fail", "raises") or _ASSERTING.match(value) is not None


def _asserts_somewhere(frame: types.FrameType, name: str, depth: int = 3) -> bool:
    """Whether a function or method of the test with this name contains an assertion, or calls one that does."""
    namespace = frame.f_globals
    owners = [value for value in namespace.values() if isinstance(value, type)]
    found = [frame.f_locals.get(name), namespace.get(name)]
    found += [vars(owner).get(name) for owner in owners]
    codes = []
    for value in found:
        value = getattr(value, "__func__", value) if type(value) in _METHODS else value
        if type(value) is types.FunctionType:
            codes.append(value.__code__)
    return any(_code_asserts(frame, code, depth) for code in codes)


def contains_assertion(code: types.CodeType) -> bool:
    """Whether the code of a test's function, or of one that it defines, asserts something."""
    inner = [each for each in code.co_consts if type(each) is types.CodeType]
    return any(map(_is_assertion, _instructions(code))) or any(map(contains_assertion, inner))


def _code_asserts(frame: types.FrameType, code: types.CodeType, depth: int) -> bool:
    if code.co_filename != _FILE_NAME:
        return False
    if contains_assertion(code):
        return True
    called = {each.argval for each in _instructions(code) if each.opname in _LOADING}
    return depth > 0 and any(
        _asserts_somewhere(frame, name, depth - 1) for name in called if _is_name(name)
    )


def _asserts(code: types.CodeType, line: int) -> bool:
    """Whether a line belongs to an `assert` or to a call of something that is called so."""
    return any(first <= line <= last for first, last in _assertions_of(code))


@functools.lru_cache(maxsize=256)
def _assertions_of(code: types.CodeType) -> tuple[tuple[int, int], ...]:
    found = []
    for instruction in _instructions(code):
        place = instruction.positions
        if place is not None and _is_assertion(instruction) and instruction.argval not in _OTHERS:
            first, last = place.lineno, place.end_lineno
            if first is not None and last is not None:
                found.append((first, last))
    return tuple(found)
