"""What counts as a test of a suite: each text of a list, or each call that an answer predicts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codea1_env.evaluation.samples import SuiteSample
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import Suite, parse_suites
from codea1_env.sandbox import Sandbox

MAX_CALLS = 16
"""Calls of one test that count. More would only cost time: programs that hang do so at each."""
_NO_TEST = "the answer holds no test"


@dataclass(frozen=True)
class ReadSuite:
    """The tests of a suite, each as the suite that the referee judges alone."""

    texts: tuple[str, ...]
    tests: tuple[Suite, ...]
    late: int
    empty: str = ""
    """Why an answer has no test; empty if it has some."""


def read_suite(sample: SuiteSample, problem: Problem, limit: int, sandbox: Sandbox) -> ReadSuite:
    """Read the tests of a suite, of which the first `limit` count. The types of the signature do not bind them."""
    content = sample.content
    empty = ""
    if isinstance(content, str):
        [answer] = parse_suites([(content, problem)], sandbox)
        suites = _one_by_one(answer)
        texts = [each.tests[0].text if each.tests else each.dropped[0].text for each in suites]
        if not suites:
            empty = next((each.reason for each in answer.dropped if each.fault is None), _NO_TEST)
    else:
        texts = list(content)
        suites = parse_suites([(text, problem) for text in texts[:limit]], sandbox)
    tests = tuple(map(_bounded, suites[:limit]))
    return ReadSuite(tuple(texts[:limit]), tests, max(0, len(texts) - limit), empty)


def _bounded(suite: Suite) -> Suite:
    """Leave the first calls of a test, which the types of the signature do not bind."""
    free = [
        test._replace(fault=None, reason="")
        if test.fault is InvalidReason.OUTSIDE_SIGNATURE
        else test
        for test in suite.tests
    ]
    return replace(suite, tests=tuple(free[:MAX_CALLS]))


def _one_by_one(answer: Suite) -> list[Suite]:
    """Divide an answer into its tests, and what was meant as one, in the order written."""
    read = [(number, 1, Suite((test,))) for number, test in enumerate(answer.tests)]
    lost = [(each.before, 0, Suite((), (each,))) for each in answer.dropped if each.invalid]
    return [suite for *_, suite in sorted([*read, *lost], key=lambda item: item[:2])]
