"""What right programs return: the values of a problem's cases, as bytes that are compared.

Where a case has no value, the reference is asked for it, once; what it answers is kept as the bytes that came.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

from codea1_env.compare import read_value
from codea1_env.problem_sets.futures import all_of, done, then
from codea1_env.problem_sets.problem import Problem
from codea1_env.sandbox import (
    DIGEST,
    RETURNED,
    UNKNOWN,
    Answers,
    EncodedCases,
    Limits,
    Sandbox,
    meaning_of,
)
from codea1_env.sandbox import TestResult as CaseResult
from codea1_env.sandbox.inside import codec

_PATIENT = Limits(call_cpu_time=60, call_wall_time=180, run_cpu_time=60, run_wall_time=180)
_TOGETHER = 8
"""Calls of one request: what they return is held together, and one value may have megabytes."""
_KEPT = 256 << 20
"""Bytes of answers that are kept."""


class Asked(NamedTuple):
    """What a reference has answered."""

    frames: Sequence[bytes]
    """For each case of unknown value what its process sent."""
    seconds: float
    """CPU time that it took."""


class NoValueError(ValueError):
    """The reference gives no value for a case of unknown value."""


def encoded(problem: Problem, sandbox: Sandbox) -> Future[EncodedCases]:
    """Return the cases of a problem as they are sent and compared; the reference is asked for unknown values.

    Args:
        problem: It has cases.
        sandbox: Where its reference runs.

    Returns:
        The cases. It raises `NoValueError` if the reference fails on a case of unknown value.

    Raises:
        TypeError: A case is not plain data.
    """
    known, unknown = problem.encoded, unknown_cases(problem)
    if not unknown:
        return done(known)

    def complete(answers: Asked) -> Future[EncodedCases]:
        frames = dict(zip(unknown, answers.frames, strict=True))
        expected = (frames.get(number, frame) for number, frame in enumerate(known.expected))
        return done(EncodedCases(known.calls, tuple(expected)))

    return then(ask_reference(problem, sandbox), complete)


def unknown_cases(problem: Problem) -> list[int]:
    """Return the places of the cases whose value the reference says."""
    return [number for number, case in enumerate(problem.cases) if case.expected is UNKNOWN]


def ask_reference(problem: Problem, sandbox: Sandbox) -> Future[Asked]:
    """Return what the reference of a problem answers where the value of a case is unknown. It is asked once."""
    return _remembered.answers(problem, unknown_cases(problem), sandbox)


def expected_values(problem: Problem, known: EncodedCases) -> list[Any]:
    """Return the values of all cases, as plain data."""
    return [
        read_value(frame) if case.expected is UNKNOWN else case.expected
        for case, frame in zip(problem.cases, known.expected, strict=True)
    ]


@dataclass
class _KeptAnswers:
    answers: Future[Asked]
    size: int = 0


class _Remembered:
    """The answers of references that were asked last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _KeptAnswers] = OrderedDict()

    def answers(self, problem: Problem, asked: Sequence[int], sandbox: Sandbox) -> Future[Asked]:
        calls = [problem.encoded.calls[number] for number in asked]
        code = (
            f"{problem.preamble}\n\n{problem.reference}" if problem.preamble else problem.reference
        )
        text = repr((code, problem.entry_point, calls))
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key].answers
            answers: Future[Asked] = then(
                all_of(
                    [
                        sandbox.submit_encoded(
                            code,
                            problem.entry_point,
                            calls[start : start + _TOGETHER],
                            limits=_PATIENT,
                        )
                        for start in range(0, len(calls), _TOGETHER)
                    ]
                ),
                lambda parts: done(
                    Asked(_frames(parts, asked), sum(each.cpu_time for each in parts))
                ),
            )
            self._kept[key] = _KeptAnswers(answers)
        answers.add_done_callback(lambda found: self._settle(key, found))
        return answers

    def _settle(self, key: str, found: Future[Asked]) -> None:
        with self._lock:
            if key not in self._kept:
                return
            if found.exception() is not None:  # such as a sandbox that was closed
                del self._kept[key]
                return
            self._kept[key].size = sum(map(len, found.result().frames))
            while sum(each.size for each in self._kept.values()) > _KEPT and len(self._kept) > 1:
                self._kept.popitem(last=False)


_remembered = _Remembered()


def _frames(parts: Sequence[Answers], asked: Sequence[int]) -> Sequence[bytes]:
    frames: list[bytes] = []
    for part in parts:
        for reply in part.replies:
            number = asked[len(frames)] + 1
            if isinstance(reply, bytes) and reply.startswith(RETURNED):
                frames.append(reply)
                continue
            said = reply if isinstance(reply, CaseResult) else meaning_of(codec.decode(reply))
            assert isinstance(said, CaseResult)
            if isinstance(reply, bytes) and DIGEST.encode() in reply:  # too large to be sent
                frames.append(reply)
                continue
            raise NoValueError(
                f"the reference gives no value for case {number}: {said.outcome.value}, {said.message}"
            )
        if not part.load.passed:
            raise NoValueError(
                f"the reference does not run: {part.load.outcome.value}, {part.load.message}"
            )
    if len(frames) < len(asked):
        raise NoValueError(f"the reference gives no value for case {asked[len(frames)] + 1}")
    return frames
