"""Is what a test predicts the reference's value? By the problem's rule, by what the test states, or by the problem's checker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codea1_env.compare import Returned, check_replies, read_reply, same
from codea1_env.oracle import Subject, Truth
from codea1_env.responses import Test
from codea1_env.sandbox import RETURNED, Comparison, Outcome, Sandbox, TestResult

_RIGHT, _WRONG = TestResult(Outcome.PASS), TestResult(Outcome.FAIL)


def judge_prediction(
    test: Test,
    subject: Subject,
    reply: bytes,
    right: Returned,
    tolerance: float,
    sandbox: Sandbox,
) -> TestResult:
    """Judge a prediction."""
    frame = RETURNED + test.predicted
    predicted = read_reply(frame)  # within a budget
    if not isinstance(predicted, Returned):
        return _WRONG
    if same(predicted.value, right.value, subject.comparison(tolerance)):
        return _RIGHT
    if test.absolute or test.relative:
        stated = Comparison(atol=test.absolute or 0.0, rtol=test.relative or 0.0)
        # What a test states holds between numbers of which either is a float, as Python has it.
        if same(predicted.value, right.value, stated) or same(right.value, predicted.value, stated):
            return _RIGHT
    if not subject.checker:
        return _WRONG
    return check_replies(subject.checker, [(test.call, frame, reply)], sandbox)[0]


def check_predictions(
    subject: Subject, tests: Sequence[Test], truths: Mapping[str, Truth], sandbox: Sandbox
) -> None:
    """Ask the checker of a problem about many predictions at once; it remembers what it has said."""
    questions = [
        (test.call, RETURNED + test.predicted, truth.reply)
        for test in tests
        if (truth := truths.get(test.call_text)) and truth.value not in (b"", test.predicted)
    ]
    check_replies(subject.checker, questions, sandbox)
