r"""Rules of comparison by name: when an output is right; see `Problem.compare`.

| rule | right is |
|---|---|
| `equal` | Python's `==` on plain data of equal structure; where a float is expected, within tolerances |
| `exact` | Python's `==`; a tuple counts as a list, as in LiveCodeBench |
| `set` | the same items in any order, however often |
| `not-none` | something is returned where True is expected, and None where False is |
| `lines` | of printed text: the same lines; blanks behind a line and empty lines at the end do not count |
| `loose-lines` | the same, but neither do blanks before a line, and 2.50 is 2.5, as in LiveCodeBench |

`atol` is the absolute tolerance of floats, or of printed numbers. 0 stands for 1e-6 (`equal`, as EvalPlus), and for none
where printed texts are compared. The relative tolerance of `equal` is 1e-7, as in EvalPlus. What no rule says, a checker does
(`Problem.checker`): text of the problem's author, which runs in a contained process of its own, on plain data.

Values are compared by `codea1_env.sandbox.compare`, outside of the program's process. In the game what is expected is the
reference's value: under `not-none` both are None, or neither is. There reading and comparing a reply costs milliseconds
at most, and what small replies amount to is remembered.

    >>> equal([0.1 + 0.2], [0.3]), difference("1 \n2.5\n\n", "1\n2.5")
    (True, '')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, get_args

from codea1_env.sandbox import (
    RETURNED,
    CallResult,
    Comparison,
    InfraError,
    Limit,
    Limits,
    Outcome,
    Returned,
    Rule,
    Sandbox,
    TestResult,
    difference,
    equal,
    same,
)
from codea1_env.sandbox import compare as rules
from codea1_env.sandbox.inside import codec
from codea1_env.support.texts import LRUCache

__all__ = ["COMPARISONS", "Checker", "Compare", "Returned", "difference", "equal", "same"]

Compare = Rule
"""Name of a rule."""
COMPARISONS: tuple[str, ...] = get_args(Rule)
"""All names."""
_CHECKER_LIMITS = Limits(2.0, 10.0, run_cpu_time=2.0, run_wall_time=10.0)
_PATIENT = _CHECKER_LIMITS.times(2.0)  # an expected output that takes longer hangs
_LOOK = replace(_PATIENT, run_cpu_time=8.0, run_wall_time=40.0)  # at all golden cases
_TIMES = 4.0  # what the expected outputs take
_LEAST = 0.5  # seconds, in which a checker can be loaded
_NAME = "check"

# What equals a value whose literal has 20,000 characters is not larger; and keys of one hash are compared one by one.
_BUDGET = codec.CHEAP._replace(size=96 << 10, items=10_000, keys=4_000, equal_hashes=8)
_read = rules.reading(_BUDGET)
MAX_REPLY = _BUDGET.size
"""Bytes of a reply that can be read in the game."""
_SMALL = 512  # bytes of two replies whose comparison is worth remembering
_IS_SOMETHING = {known: RETURNED + codec.encode(known) for known in (True, False)}
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]+(?=>)")
# Behind a checker: the arguments come as bytes, which only its own process reads.
_CALLED = "_codea1_checked"
_OF_CALLS = f"""

def {_CALLED}(call, *values):
    import marshal
    return {_NAME}(tuple(marshal.loads(call)[0]), *values)
"""
_LOOKED = "_codea1_looked"
_OF_LOOK = f"""

def {_LOOKED}(*question):
    try:
        return {_NAME}(*question) is True
    except Exception:
        return False
"""
_Question = tuple[Any, Any, Any]
_checked = LRUCache[tuple[str, _Question], TestResult]()
_checked_together = LRUCache[tuple[str, tuple[_Question, ...]], tuple[TestResult, ...]]()
_LATE = (Limit.CPU_TIME, Limit.WALL_TIME, Limit.RUN)


def read_reply(frame: bytes) -> Returned | TestResult:
    """Return a program's answer to a call of the game: plain data, or how the call ended."""
    found = _read(frame)
    return found if isinstance(found, Returned) else repeatable(found)


def judge_reply(frame: bytes, expected: bytes, comparison: Comparison) -> TestResult:
    """Judge what a program answered to a call of the game."""
    if frame == expected and comparison.rule != "not-none":
        return _PASSED
    small = len(frame) + len(expected) <= _SMALL
    return (_small_judgement if small else _judgement)(frame, expected, comparison)


def _judgement(frame: bytes, expected: bytes, comparison: Comparison) -> TestResult:
    if comparison.rule == "not-none":
        expected = _IS_SOMETHING[expected != RETURNED + codec.encode(None)]
    return repeatable(rules.judge_reply(frame, expected, comparison, _read))


_PASSED = TestResult(Outcome.PASS)
_small_judgement = lru_cache(maxsize=1 << 14)(_judgement)


def without_addresses(message: str) -> str:
    """Return a message without addresses, so that it is the same in every run.

    Example:
        >>> without_addresses("<function f at 0x7f03cbd90b80> is not plain data")
        '<function f at 0x...> is not plain data'
    """
    return _ADDRESS.sub("0x...", message) if "0x" in message else message


def repeatable(result: TestResult) -> TestResult:
    """Return a result with a message that is the same in every run."""
    message = without_addresses(result.message)
    return result if message is result.message else replace(result, message=message)


def check_replies(
    checker: str, questions: Sequence[_Question], sandbox: Sandbox, *, together: bool = False
) -> list[TestResult]:
    """Ask a checker about replies to calls of the game, in one process, and remember its answers.

    Args:
        checker: Its text.
        questions: Of each the call, the reply, and the reference's reply.
        sandbox: Where it runs.
        together: Whether they are of one program, so that they have one limit of time.

    Returns:
        PASS or FAIL for each; how the call ended, where it returned nothing that can be read.
    """
    asked: dict[_Question, Any] = {}
    results: dict[_Question, TestResult] = {}
    whole = tuple(sorted({*questions}))
    if together:  # what is known of some of them would leave more time to the others
        said_before = _checked_together.get((checker, whole))
        if said_before is not None:
            by_question = dict(zip(whole, said_before, strict=True))
            return [by_question[each] for each in questions]
    for question in dict.fromkeys(questions):
        call, frame, expected = question
        known, found, right = (
            None if together else _checked.get((checker, question)),
            read_reply(frame),
            read_reply(expected),
        )
        if known is not None:
            results[question] = known
        elif isinstance(found, Returned) and isinstance(right, Returned):
            asked[question] = (call, found.value, right.value)
        else:
            results[question] = found if isinstance(found, TestResult) else right  # type: ignore[assignment]
    if asked:
        text, of_all = checker + _OF_CALLS, [*asked.values()]
        if together:
            with_right = [(call, value, value) for call, _, value in of_all]
            said = Checker(text, sandbox, with_right, _CALLED).ask(of_all)
        else:
            room = _CHECKER_LIMITS.with_room_for(len(of_all))
            said = _ask(text, _CALLED, sandbox, of_all, room)
        for question, result in zip(asked, said, strict=True):
            results[question] = result
            # A late answer may be the fault of other questions.
            if not (together or result.outcome is Outcome.UNJUDGED or is_late(result)):
                _checked.put((checker, question), result, sum(map(len, question)))
    if together and not any(
        each.outcome is Outcome.UNJUDGED or is_late(each) for each in results.values()
    ):
        size = sum(len(text) for question in whole for text in question)
        _checked_together.put((checker, whole), tuple(results[each] for each in whole), size)
    return [results[question] for question in questions]


class Checker:
    """A checker, which is asked about the outputs of one program in a contained process of its own.

    All questions together have one limit of time: four times what the expected outputs take, and at least that of
    `_CHECKER_LIMITS`. So it is no matter what a program makes the checker look at.

    Args:
        text: Defines `check(args, output, expected)` or, where programs print, `check(stdin, output_text, expected_text)`.
            It returns True or False.
        sandbox: Where it runs.
        right: All questions, with the expected outputs.
        name: Its function.
    """

    def __init__(
        self, text: str, sandbox: Sandbox, right: Sequence[_Question], name: str = _NAME
    ) -> None:
        self._ask = partial(_ask, text, name, sandbox)
        self._right: Sequence[_Question] | None = right
        self._left = _CHECKER_LIMITS.call_cpu_time

    def ask(self, questions: Sequence[_Question], *, stop: bool = False) -> list[TestResult]:
        """Ask about outputs; with `stop`, no more after the first that is not right.

        Returns:
            PASS or FAIL for each; UNJUDGED where only this job could not be run. A checker that raises, reaches a limit or
            returns something else has not found the output right: `CheckerFault`.

        Raises:
            InfraError: The sandbox failed three times.
        """
        last = _is_not_right if stop else None
        said = self._ask(questions, self._limits(), last)
        if self._right and any(map(is_late, said)):
            right, self._right = self._right, None
            took = self._ask(right, _PATIENT.with_room_for(len(right)), _is_no_last)
            more = _TIMES * sum(each.cpu_time for each in took) - _CHECKER_LIMITS.call_cpu_time
            if more > 0 and not any(map(is_late, took)):
                self._left += more
                said = self._ask(questions, self._limits(), last)
        self._left -= sum(each.cpu_time for each in said)
        return said

    def _limits(self) -> Limits:
        return _CHECKER_LIMITS.times(max(self._left, _LEAST) / _CHECKER_LIMITS.call_cpu_time)


def _ask(
    checker: str,
    name: str,
    sandbox: Sandbox,
    questions: Sequence[_Question],
    limits: Limits,
    last: Callable[[Any], bool] | None = None,
) -> list[TestResult]:
    """Ask questions; with `last` up to the first that has no answer, or one that it accepts."""
    try:
        answers = sandbox.call(
            checker, name, [(each, {}) for each in questions], limits=limits, stop=last
        )
    except TypeError as error:  # a value that a program could send, but not as a part of a question
        if len(questions) == 1:
            return [TestResult(Outcome.FAIL, f"the checker cannot be asked: {error}")]
        said: list[TestResult] = []
        for each in questions:
            said += _ask(checker, name, sandbox, [each], limits, last)
            if last is not None and (isinstance(said[-1], CheckerFault) or last(said[-1].passed)):
                break
        return said
    return [replace(_verdict(answer), cpu_time=answer.cpu_time) for answer in answers]


class Look(NamedTuple):
    """What a checker does on golden cases."""

    hangs: int | None
    """Place of the case on which it hangs; None for none."""
    accepts: int
    """Expected outputs that it finds right."""


def look_at(checker: str, cases: Sequence[tuple[Any, Any]], sandbox: Sandbox) -> Look:
    """Look at what a checker does on golden cases: no player has a part in it.

    It is asked about the expected output of each case, and about that of the next case, which is wrong for most.

    Args:
        checker: Its text.
        cases: Of each the arguments and the expected output.
        sandbox: Where it runs.
    """
    next_ones = [*cases[1:], *cases[:1]]
    wrong = [
        (args, other, right) for (args, right), (_, other) in zip(cases, next_ones, strict=True)
    ]
    asked = [*((args, right, right) for args, right in cases), *wrong]
    said = _ask(checker + _OF_LOOK, _LOOKED, sandbox, asked, _LOOK, _is_no_last)
    hangs = bool(said) and is_late(said[-1]) and said[-1].limit is not Limit.RUN
    unsure = sum(each.outcome is Outcome.UNJUDGED or is_late(each) for each in said[: len(cases)])
    accepts = unsure + sum(each.passed for each in said[: len(cases)])
    return Look((len(said) - 1) % len(cases) if hangs else None, accepts)


class CheckerFault(TestResult):
    """A case that fails because its checker did not answer."""


def _is_not_right(value: Any) -> bool:
    return value is not True


def _is_no_last(value: Any) -> bool:
    return False


def is_late(result: TestResult) -> bool:
    return isinstance(result, CheckerFault) and result.limit in _LATE


def _verdict(answer: CallResult) -> TestResult:
    if answer.outcome is Outcome.INFRA_ERROR:
        raise InfraError(answer.message)
    if answer.outcome is Outcome.UNJUDGED:
        return TestResult(Outcome.UNJUDGED, answer.message)
    if answer.outcome is not Outcome.PASS:
        why = f"the checker gave no answer: {answer.outcome.value}, {answer.message}"
        return CheckerFault(Outcome.FAIL, why, limit=answer.limit)
    if type(answer.value) is not bool:
        kind = type(answer.value).__name__
        return CheckerFault(Outcome.FAIL, f"the checker returned {kind}, not True or False")
    if answer.value:
        return TestResult(Outcome.PASS)
    return TestResult(Outcome.FAIL, "the problem's checker says that the output is wrong")


def read_value(frame: bytes) -> Any:
    """Return the value of a trusted program's reply to a call."""
    return codec.decode(frame[len(RETURNED) :])
