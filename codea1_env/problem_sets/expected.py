"""What right programs return: the values of a problem's cases, as bytes that are compared.

Where a case has no value, the reference is asked for it, once; what it answers is kept as the bytes that came.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from codea1_env.compare import read_value
from codea1_env.problem_sets.problem import Problem, statement
from codea1_env.reading.definitions import put_before
from codea1_env.sandbox import (
    DIGEST,
    RETURNED,
    UNKNOWN,
    Answers,
    EncodedCases,
    Limits,
    Outcome,
    Sandbox,
    meaning_of,
)
from codea1_env.sandbox import TestResult as CaseResult
from codea1_env.sandbox.inside import codec
from codea1_env.support.texts import LRUCache

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
    """The reference gives no value for a case of unknown value; `load` is set if it does not run at all, `unjudged` if the sandbox failed."""

    def __init__(
        self, message: str, load: CaseResult | None = None, *, unjudged: bool = False
    ) -> None:
        super().__init__(message)
        self.load = load
        self.unjudged = unjudged


def encoded(problem: Problem, sandbox: Sandbox) -> EncodedCases:
    """Encode the cases of a problem; the reference is asked for unknown values.

    Raises a `NoValueError` where it gives none, and a TypeError where a case is no plain data.
    """
    known, unknown = problem.encoded, unknown_cases(problem)
    if not unknown:
        return known
    frames = dict(zip(unknown, ask_reference(problem, sandbox).frames, strict=True))
    expected = (frames.get(number, frame) for number, frame in enumerate(known.expected))
    return EncodedCases(known.calls, tuple(expected))


def unknown_cases(problem: Problem) -> list[int]:
    """Return the places of the cases whose value the reference says."""
    return [number for number, case in enumerate(problem.cases) if case.expected is UNKNOWN]


def expected_values(problem: Problem, known: EncodedCases) -> list[Any]:
    """Return the values of all cases, as plain data."""
    return [
        read_value(frame) if case.expected is UNKNOWN else case.expected
        for case, frame in zip(problem.cases, known.expected, strict=True)
    ]


def golden_statements(problem: Problem, sandbox: Sandbox) -> list[str]:
    """Return the golden tests as text, those of unknown value with what the reference returns if that can be written.

    Raises a NoValueError if the reference gives no value.
    """
    texts = []
    for case, frame in zip(problem.cases, encoded(problem, sandbox).expected, strict=True):
        if case.expected is UNKNOWN and frame.startswith(RETURNED):  # others are digests
            with suppress(codec.DecodeError):
                case = replace(case, expected=read_value(frame))
        texts.append(statement(problem.entry_point, case))
    return [text for text in texts if text is not None]


_kept = LRUCache[str, Asked](limit=_KEPT)
_asking: dict[str, threading.Lock] = {}
"""Questions that are on their way: nobody asks them twice."""
_lock = threading.Lock()


def ask_reference(problem: Problem, sandbox: Sandbox) -> Asked:
    """Ask the reference of a problem, once, for the values of the cases that have none."""
    numbers = unknown_cases(problem)
    calls = [problem.encoded.calls[number] for number in numbers]
    code = put_before(problem.preamble, problem.reference)
    text = repr((code, problem.entry_point, calls))
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    with _lock:
        turn = _asking.setdefault(key, threading.Lock())
    try:
        with turn:
            answers = _kept.get(key)
            if answers is None:
                parts = (  # none behind one that fails
                    sandbox.run_calls(
                        code, problem.entry_point, calls[start : start + _TOGETHER], limits=_PATIENT
                    )
                    for start in range(0, len(calls), _TOGETHER)
                )
                answers = _read(parts, numbers)
                _kept.put(key, answers, sum(map(len, answers.frames)))
    finally:
        with _lock:
            _asking.pop(key, None)
    return answers


def _read(parts: Iterable[Answers], asked: Sequence[int]) -> Asked:
    frames: list[bytes] = []
    seconds = 0.0
    for part in parts:
        seconds += part.cpu_time
        if not part.load.passed:
            said = f"{part.load.outcome.value}, {part.load.message}"
            unjudged = part.load.outcome is Outcome.UNJUDGED
            raise NoValueError(f"the reference does not run: {said}", part.load, unjudged=unjudged)
        for reply in part.replies:
            number = asked[len(frames)] + 1
            if isinstance(reply, bytes) and reply.startswith(RETURNED):
                frames.append(reply)
                continue
            why = reply if isinstance(reply, CaseResult) else meaning_of(codec.decode(reply))
            assert isinstance(why, CaseResult)
            if isinstance(reply, bytes) and DIGEST.encode() in reply:  # too large to be sent
                frames.append(reply)
                continue
            raise NoValueError(
                f"the reference gives no value for case {number}: {why.outcome.value}, {why.message}",
                unjudged=why.outcome is Outcome.UNJUDGED,
            )
    if len(frames) < len(asked):
        raise NoValueError(f"the reference gives no value for case {asked[len(frames)] + 1}")
    return Asked(frames, seconds)
