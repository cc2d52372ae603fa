"""Calls of a program with plain data: its process gets names and arguments, all in one message, and bytes come back.

They are not read here: who knows the expected bytes compares them, and decodes only what differs.
"""

from __future__ import annotations

import enum
import marshal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from .compare import Comparison, judge_reply, read_returned
from .inside import codec
from .inside.run.running import RETURNED
from .jobs import Limits
from .outcomes import too_long
from .processes import NOTHING, Calls, Judge, kind_of, less
from .results import RUN_LIMIT, CallResult, JobResult, Limit, Outcome, TestResult
from .workers import Slots

Arguments = Sequence[tuple[Sequence[Any], dict[str, Any]]]
"""Positional and keyword arguments of each call."""
_LATE = TestResult(Outcome.TIMEOUT, RUN_LIMIT, limit=Limit.RUN)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a program answered to calls."""

    load: TestResult
    """How loading the program ended."""
    replies: Sequence[bytes | TestResult]
    """For each call the frame that its process sent, or the verdict on it, or why there is none."""
    cpu_time: float = 0.0
    """Seconds of CPU time."""
    times: Sequence[float] = ()
    """The same of each call; of several that came together the first has it all."""
    load_time: float = 0.0
    """The same of loading."""
    in_shares: bool = False
    """Of a run: whether each call was answered in the share of the time that it has for itself."""


def encoded_arguments(args: Sequence[object], kwargs: dict[str, object]) -> bytes:
    """Encode the arguments of a call: plain data that has a literal; places share no list."""
    return marshal.dumps((list(args), kwargs), 2)


def encoded_data(args: Sequence[object], kwargs: dict[str, object], numpy: Any = None) -> bytes:
    """Encode the arguments of a call: any plain data and, where numpy is given, its numbers and arrays."""
    if _is_plain(args) and _is_plain(kwargs):
        try:
            return encoded_arguments(args, kwargs)
        except ValueError:  # nested too deep
            pass
    data = codec.encode((list(args), kwargs), numpy=numpy)
    try:
        # From what is read back: of derived types, and of buffers, `marshal` makes something else.
        quicker = encoded_arguments(*codec.decode(data))
        same = codec.encode(marshal.loads(quicker)) == data
    except ValueError:  # a range, a Decimal, ...
        return data
    return quicker if same else data


def encoded_calls(arguments: Arguments) -> list[bytes]:
    """Encode the arguments of calls; numbers and arrays of numpy become Python's.

    Raises:
        TypeError: An argument is not plain data.
    """
    numpy = codec.Numpy(module) if (module := sys.modules.get("numpy")) is not None else None
    try:
        return [encoded_data(args, kwargs, numpy) for args, kwargs in arguments]
    except codec.EncodeError as error:
        raise TypeError(f"Expect the arguments to be plain data, actually: {error}") from None


_ATOMS = frozenset({int, float, str, bool, bytes, complex, type(None)})


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether `marshal` writes a value as it is: data of exact types that has a literal."""
    kind = type(value)
    if kind in _ATOMS:
        return True
    if kind is dict:
        return _is_plain(tuple(value), depth) and _is_plain(tuple(value.values()), depth)
    if kind not in (list, tuple, set, frozenset) or depth > codec.MAX_DEPTH:
        return False
    return _ATOMS.issuperset(map(type, value)) or all(_is_plain(each, depth + 1) for each in value)


def answer_calls(
    slots: Slots,
    code: str,
    calls: Calls,
    limits: Limits,
    *,
    judge: Judge | None = None,
    stop: bool = False,
) -> Answers:
    """Load a program and make calls, in order, each within the limits of one call.

    A call that ends the process keeps the replies before it; those after it are made in a new process. A program that
    is called by no name reads the argument of each call as its standard input, in a process of its own.

    Args:
        slots: Where the processes come from.
        code: Program text.
        calls: What is called.
        limits: Per call and for all calls.
        judge: Judges replies as they come. It depends on nothing but its arguments: the run may be repeated.
        stop: Whether the first verdict that is not PASS is the last.
    """
    count = len(calls.arguments)
    why = too_long(code)
    if why is not None:
        return Answers(why, [] if stop else [why] * count, times=[0.0] * count)
    left = limits
    replies: list[bytes | TestResult] = []
    times: list[float] = []
    load: TestResult | None = None
    used, load_time = 0.0, 0.0
    while load is None or len(replies) < count:
        started, done = time.monotonic(), len(replies)
        held = sum([len(reply) for reply in replies if isinstance(reply, bytes)])
        part = kind_of(calls)(calls.after(done), left, judge, done, held, stop=stop)
        loaded = part.run(slots, code)
        load, load_time = (loaded, part.load_time) if load is None else (load, load_time)
        replies += part.replies
        times += part.times
        used += part.cpu_time
        rest = count - len(replies)
        if not loaded.passed:
            replies += [] if stop else [loaded] * rest
            break
        last = replies[-1] if replies else None
        if stop and isinstance(last, TestResult) and not last.passed:
            break
        if rest:
            left = less(left, part.cpu_time, time.monotonic() - started)
            if min(left.run_cpu_time, left.run_wall_time) <= NOTHING:
                replies += [_LATE] * (1 if stop else rest)
    times += [0.0] * (len(replies) - len(times))
    return Answers(load, replies, used, times, load_time)


# Calls whose values somebody wants


def returned_values(
    slots: Slots,
    code: str,
    calls: Calls,
    limits: Limits,
    stop: Callable[[Any], bool] | None,
) -> list[CallResult]:
    """Make calls and read what they returned; with `stop` up to the first that returns none, or one that it accepts."""
    meter = codec.Meter(codec.VALUES)
    results: list[CallResult] = []

    def read(reply: bytes | TestResult, cpu_time: float = 0.0) -> CallResult:
        found = read_returned(reply, meter) if isinstance(reply, bytes) else reply
        if isinstance(found, TestResult):
            return CallResult(found.outcome, cpu_time=cpu_time, **found.cause)
        return CallResult(Outcome.PASS, cpu_time=cpu_time, value=found.value)

    def judge(number: int, frame: bytes) -> TestResult:
        results.append(last := read(frame))
        ends = last.outcome is not Outcome.PASS or (stop is not None and stop(last.value))
        return TestResult(Outcome.FAIL if ends else Outcome.PASS)

    one = judge if stop is not None else None
    answers = answer_calls(slots, code, calls, limits, judge=one, stop=one is not None)
    known = len(results)
    results = [
        replace(each, cpu_time=cpu_time)
        for each, cpu_time in zip(results, answers.times, strict=False)
    ]
    results += map(read, answers.replies[known:], answers.times[known:])
    return results or [read(answers.load)] * bool(calls.arguments)


# Cases: calls and the values that are expected. Nothing of those is ever in a process that has run the program.


class Unknown(enum.Enum):
    """Stands for a value that nobody has written down."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown.UNKNOWN
"""Expected value of a case whose value the reference is asked for."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test: the arguments of a call, and the value that it returns. All of it is plain data.

    Example:
        >>> Case((1, 2), {}, 3).expected
        3
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    expected: Any = UNKNOWN

    def __post_init__(self) -> None:
        object.__setattr__(self, "args", tuple(self.args))

    def __hash__(self) -> int:
        # Arguments may hold lists, which have no hash; equal cases have equal shapes.
        return hash((len(self.args), *sorted(self.kwargs)))


class EncodedCases(NamedTuple):
    """Cases as they are sent and compared; made once for many programs."""

    calls: tuple[bytes, ...]
    """See `encoded_arguments`."""
    expected: tuple[bytes, ...]
    """For each call the frame that a right program answers."""


def encoded_cases(cases: Sequence[Case]) -> EncodedCases:
    """Encode cases.

    Raises:
        TypeError: An argument or an expected value is not plain data, or the value is unknown.
    """
    calls, expected = [], []
    for number, case in enumerate(cases, 1):
        try:
            calls.append(encoded_data(case.args, dict(case.kwargs)))
            expected.append(expected_frame(case.expected))
        except codec.EncodeError as error:
            raise TypeError(f"Expect case {number} to be plain data, actually: {error}") from None
    return EncodedCases(tuple(calls), tuple(expected))


def expected_frame(value: Any) -> bytes:
    """The frame that a program's process sends when a call returns this value."""
    return RETURNED + codec.encode(value)


def judge_cases(
    slots: Slots,
    code: str,
    name: str,
    cases: EncodedCases,
    comparison: Comparison,
    limits: Limits,
    *,
    stop: bool,
) -> JobResult:
    """Judge the cases of a program."""
    judge: Judge = partial(_judged, cases, comparison)
    calls = Calls(name, cases.calls, name)
    found = answer_calls(slots, code, calls, limits, judge=judge, stop=stop)
    tests = tuple(each for each in found.replies if isinstance(each, TestResult))
    return JobResult(found.load, tests, cpu_time=found.cpu_time)


def _judged(cases: EncodedCases, comparison: Comparison, number: int, frame: bytes) -> TestResult:
    return judge_reply(frame, cases.expected[number], comparison)
