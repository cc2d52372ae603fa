"""Suites of tests to be judged: one JSON object a line.

    {"task_id": "ULT/10", "tests": ["assert f(1) == 2", "def test_zero(): ..."]}
    {"task_id": "ULT/10", "answer": "Here are some tests: ..."}

Each of the `tests` is one test, however many calls it makes. An answer is a model's text; each call that it predicts is
a test, as in the game. The files of UnLeakedTestBench can be read as they are: `test_list` is another name for `tests`,
and a task may be called by the last part of its name. Other fields are kept and ignored.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env.evaluation import samples
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import Suite, parse_suites
from codea1_env.sandbox import Sandbox

MAX_CALLS = 16
"""Calls of one test that count. More would only cost time: programs that hang do so at each."""
_FIELDS = ("tests", "test_list", "answer")
_NO_TEST = "the answer holds no test"


@dataclass(frozen=True)
class SuiteSample:
    """One suite for one problem."""

    task_id: str
    index: int
    row: Mapping[str, Any]


@dataclass(frozen=True)
class ReadSuite:
    """The tests of a suite, each as the suite that the referee judges alone."""

    texts: tuple[str, ...]
    tests: tuple[Suite, ...]
    late: int
    empty: str = ""
    """Why an answer has no test; empty if it has some."""


def read_suites(path: Path, problems: Sequence[Problem]) -> samples.SampleFile[SuiteSample]:
    """Read suites made elsewhere, a .jsonl or .jsonl.gz file; a SamplesError names a line that is no suite."""
    return samples.read_file(
        path,
        problems,
        _names(problems),
        _checked,
        lambda problem, index, row: SuiteSample(problem.task_id, index, row),
    )


def suite_key(sample: SuiteSample) -> tuple[str, str]:
    """Equal for suites that are the same word for word."""
    return sample.task_id, repr(content_of(sample.row))


def read_suite(sample: SuiteSample, problem: Problem, limit: int, sandbox: Sandbox) -> ReadSuite:
    """Read the tests of a suite, of which the first `limit` count. The types of the signature do not bind them."""
    content = content_of(sample.row)
    if not isinstance(content, str):
        suites = parse_suites([(text, problem) for text in content[:limit]], sandbox)
        late = max(0, len(content) - limit)
        return ReadSuite(tuple(content[:limit]), tuple(map(_bounded, suites)), late)
    [answer] = parse_suites([(content, problem)], sandbox)
    tests = list(map(_bounded, _one_by_one(answer)))
    why = next((each.reason for each in answer.dropped if each.fault is None), _NO_TEST)
    texts = [each.tests[0].text if each.tests else each.dropped[0].text for each in tests]
    late = max(0, len(tests) - limit)
    return ReadSuite(tuple(texts[:limit]), tuple(tests[:limit]), late, "" if tests else why)


def suite_digest(problem: Problem) -> str:
    """Digest of all that tests of a problem are judged by."""
    parts = (
        problem.prompt, problem.entry_point, problem.reference, problem.preamble, problem.contract, problem.compare,
        problem.atol, problem.checker,
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


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


def content_of(row: Mapping[str, Any]) -> str | Sequence[str]:
    """Tests of a row: an answer, or a list of texts."""
    return row[next(name for name in _FIELDS if name in row)]  # type: ignore[no-any-return]  # checked when it was read


def _names(problems: Sequence[Problem]) -> dict[str, Problem]:
    """Problems by the names that a file may use: their ids, those of evalplus, and the last part if one problem has it."""
    last = Counter(problem.task_id.rpartition("/")[2] for problem in problems)
    short = {problem.task_id.rpartition("/")[2]: problem for problem in problems}
    clear = {name: problem for name, problem in short.items() if last[name] == 1}
    theirs = {samples.evalplus_id(problem): problem for problem in problems}
    return clear | theirs | {problem.task_id: problem for problem in problems}


def _checked(fields: Any, where: str) -> str:
    task_id = samples.check_task(fields, where, (str, int))
    name = next((name for name in _FIELDS if name in fields), None)
    value = fields.get(name)
    if name is None:
        fault = (
            "a field 'tests' (a list of texts) or 'answer' (what a model wrote), actually: "
            f"{', '.join(map(str, fields))}. Correct or remove the line."
        )
    elif name == "answer" and not isinstance(value, str):
        fault = f"'answer' to be text, actually: {type(value).__name__}. Write a list of tests as 'tests'."
    elif name != "answer" and not (
        isinstance(value, list) and all(isinstance(text, str) for text in value)
    ):
        fault = (
            f"{name!r} to be a list of texts, actually: {value!r:.80}. Correct or remove the line."
        )
    else:
        return task_id
    raise samples.SamplesError(f"{where}: Expect {fault}")
