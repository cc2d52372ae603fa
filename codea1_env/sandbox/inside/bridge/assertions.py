"""Which exceptions of a test are verdicts, that nothing of the program may suppress."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from ..errors import RemoteUnencodable

if TYPE_CHECKING:
    from .peer import Peer

_FILE_NAME = "<test>"
_OUTCOMES = "_pytest.outcomes"


def must_stay(peer: Peer, details: tuple[Any, ...]) -> bool:
    """Whether an exception is a verdict, which no context manager of the program may suppress."""
    return not peer.trusting and details[1] is not None and is_verdict(details[1])


def shown(peer: Peer, details: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a context manager learns of the exception that ends its block: nothing of what a test expected."""
    if must_stay(peer, details):
        return (AssertionError, AssertionError(), None)
    return (*details[:2], None)


def is_verdict(error: BaseException) -> bool:
    """Whether an exception says that something of a test does not hold.

    It is an assertion, a group with one, pytest's `Failed`; or whatever was raised while a test evaluated what it asserts: a
    program must not gain by raising instead of answering wrongly.
    """
    if (
        isinstance(error, (AssertionError, RemoteUnencodable))
        or type(error).__module__ == _OUTCOMES
    ):
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


def _asserts(code: types.CodeType, line: int) -> bool:
    """Whether a line belongs to an `assert` or to a call of something that is called so."""
    return any(first <= line <= last for first, last in _assertions_of(code))


@functools.lru_cache(maxsize=256)
def _assertions_of(code: types.CodeType) -> tuple[tuple[int, int], ...]:
    import dis  # only here: it is rarely wanted, and takes long

    found = []
    for instruction in dis.get_instructions(code):
        named = isinstance(instruction.argval, str) and instruction.argval.startswith("assert")
        place = instruction.positions
        if place is not None and (instruction.opname == "LOAD_ASSERTION_ERROR" or named):
            first, last = place.lineno, place.end_lineno
            if first is not None and last is not None:
                found.append((first, last))
    return tuple(found)
