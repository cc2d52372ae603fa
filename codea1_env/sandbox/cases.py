"""A test as data: a call with plain arguments, and the value that is expected.

Nothing of the expected value is ever in a process that has run the program.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from .calls import Calls, Judge, answer_calls, encoded_data
from .compare import Comparison, judge_reply
from .inside import codec
from .inside.run.running import RETURNED
from .jobs import Limits
from .results import JobResult, TestResult
from .workers import Slots


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
    """Return cases as bytes.

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
    """Return what the process of a program sends when a call returns this value."""
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
