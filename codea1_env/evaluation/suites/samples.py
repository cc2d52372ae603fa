"""Suites of tests to be judged: one JSON object a line.

    {"task_id": "ULT/10", "tests": ["assert f(1) == 2", "def test_zero(): ..."]}
    {"task_id": "ULT/10", "answer": "Here are some tests: ..."}

Each of the `tests` is one test, whatever it consists of. An answer is a model's text, out of which the tests are
taken (`codea1_env.evaluation.test_programs`). The files of UnLeakedTestBench can be read as they are: `test_list`
is another name for `tests`, and a task may be called by the last part of its name. Other fields are kept and
ignored.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from codea1_env.evaluation.samples import (
    SampleFile,
    SamplesError,
    check_task,
    evalplus_id,
    read_file,
)
from codea1_env.evaluation.test_programs.splitting import TestProgramSuite, read_test_programs
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import Sandbox

_FIELDS = ("tests", "test_list", "answer")


@dataclass(frozen=True)
class SuiteSample:
    """One suite for one problem."""

    task_id: str
    """As the problem set has it."""
    index: int
    """Number among the suites of its problem, from 0."""
    row: Mapping[str, Any]
    """What stands in the file."""


class ReadTest(NamedTuple):
    """A test as it is run, or why it cannot be run."""

    text: str
    fault: InvalidReason | None = None
    reason: str = ""


@dataclass(frozen=True)
class ReadSuite:
    """The tests of a suite."""

    tests: tuple[ReadTest, ...]
    """The first ones, as many as count."""
    late: int
    """How many there are after those."""
    dropped: tuple[str, ...] = ()
    """Why parts of an answer that were meant as tests are none."""
    empty: str = ""
    """Why an answer has no test; empty if it has some."""


def read_suites(path: Path, problems: Sequence[Problem]) -> SampleFile[SuiteSample]:
    """Read suites made elsewhere.

    Args:
        path: A .jsonl or .jsonl.gz file.
        problems: What they are meant for.

    Raises:
        SamplesError: The file cannot be read, or a line is no suite.
    """
    return read_file(
        path,
        problems,
        _names(problems),
        _checked,
        lambda problem, index, row: SuiteSample(problem.task_id, index, row),
    )


def suite_key(sample: SuiteSample) -> tuple[str, str]:
    """Equal for suites that are the same word for word."""
    return sample.task_id, repr(_content(sample.row))


def read_suite(sample: SuiteSample, entry_point: str, limit: int, sandbox: Sandbox) -> ReadSuite:
    """Return the tests of a suite.

    Args:
        sample: The suite.
        entry_point: The function under test.
        limit: How many of them count.
        sandbox: Where the text is parsed.
    """
    content = _content(sample.row)
    if isinstance(content, str):
        [suite] = read_test_programs([(content, entry_point)], sandbox)
        dropped = tuple(item.reason for item in suite.rest if item.invalid)
        tests = tuple(map(ReadTest, suite.tests[:limit]))
        empty = "" if tests else next((item.reason for item in suite.rest), "")
        return ReadSuite(tests, len(suite.tests) - len(tests), dropped, empty)
    suites = read_test_programs([(text, entry_point) for text in content[:limit]], sandbox)
    read = tuple(
        _one_test(text, suite, entry_point)
        for text, suite in zip(content[:limit], suites, strict=True)
    )
    return ReadSuite(read, max(0, len(content) - limit))


def suite_digest(problem: Problem) -> str:
    """Return a short text that changes whenever what tests of this problem are judged by changes."""
    parts = (problem.prompt, problem.entry_point, problem.reference)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _one_test(text: str, suite: TestProgramSuite, entry_point: str) -> ReadTest:
    """All that a text checks, as one test."""
    broken = [item.reason for item in suite.rest if item.invalid]
    if broken:
        return ReadTest(text, InvalidReason.UNPARSABLE, broken[0])
    if not suite.tests:
        reasons = [item.reason for item in suite.rest]
        return ReadTest(
            text, InvalidReason.NEVER_CALLS, reasons[0] if reasons else f"never calls {entry_point}"
        )
    return ReadTest("\n".join(suite.tests))


def _content(row: Mapping[str, Any]) -> str | Sequence[str]:
    return row[next(name for name in _FIELDS if name in row)]  # type: ignore[no-any-return]  # checked when it was read


def _names(problems: Sequence[Problem]) -> dict[str, Problem]:
    """Return what a file may call problems: their names, those of evalplus, or the last part where that is clear."""
    last = Counter(problem.task_id.rpartition("/")[2] for problem in problems)
    short = {problem.task_id.rpartition("/")[2]: problem for problem in problems}
    clear = {name: problem for name, problem in short.items() if last[name] == 1}
    theirs = {evalplus_id(problem): problem for problem in problems}
    return clear | theirs | {problem.task_id: problem for problem in problems}


def _checked(fields: Any, where: str) -> str:
    """Return the task of a row that is a suite."""
    task_id = check_task(fields, where, (str, int))
    name = next((name for name in _FIELDS if name in fields), None)
    if name is None:
        raise SamplesError(
            f"{where}: Expect a field 'tests' (a list of texts) or 'answer' (what a model wrote), "
            f"actually: {', '.join(map(str, fields))}. Correct or remove the line."
        )
    value = fields[name]
    if name == "answer" and not isinstance(value, str):
        raise SamplesError(
            f"{where}: Expect 'answer' to be text, actually: {type(value).__name__}. Write a list of tests as "
            "'tests'."
        )
    if name != "answer" and not (
        isinstance(value, list) and all(isinstance(text, str) for text in value)
    ):
        raise SamplesError(
            f"{where}: Expect {name!r} to be a list of texts, actually: {value!r:.80}. Correct or remove the line."
        )
    return task_id
