"""Suites of tests to be judged: one JSON object a line.

    {"task_id": "ULT/10", "tests": ["assert f(1) == 2", "def test_zero(): ..."]}
    {"task_id": "ULT/10", "answer": "Here are some tests: ..."}

Each of the `tests` is one test, whatever it consists of. An answer is a model's text, out of which the tests are
taken (`pieces_of`). The files of UnLeakedTestBench can be read as they are: `test_list` is another name for `tests`,
and a task may be called by the last part of its name. Other fields are kept and ignored.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from codea1_env.evaluation import samples
from codea1_env.evaluation.suites.pieces import Piece, pieces_of
from codea1_env.problems import Problem
from codea1_env.reading.golden import GoldenCase
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import MAX_ACTION_CHARS, Test, text_problem
from codea1_env.sandbox import Sandbox, encoded_arguments
from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.results import Judged
from codea1_env.support.texts import in_batches

_FIELDS = ("tests", "test_list", "answer")


@dataclass(frozen=True)
class SuiteSample:
    """One suite for one problem."""

    task_id: str
    index: int
    row: Mapping[str, Any]


class SuiteTest(NamedTuple):
    """One test as it runs: a call and the value that it predicts, several of these, or any other Python text."""

    text: str
    same_as: str
    """The same for tests that say the same in other words."""
    cases: tuple[StatedCase, ...] = ()
    """What it says, where all of it is data; programs are compared with that outside. Otherwise the text runs."""
    fault: InvalidReason | None = None
    reason: str = ""

    @property
    def judged(self) -> Judged:
        """Where programs are judged by it."""
        return "outside" if self.cases or self.fault else "inside"


class StatedCase(NamedTuple):
    """A call, and what a test says that it returns."""

    call: Test
    value: Any
    absolute: float
    """Absolute tolerance of numbers; 0 for that of all comparisons."""

    @classmethod
    def of(cls, entry_point: str, case: GoldenCase) -> StatedCase:
        """Return what was read."""
        args, kwargs, value, absolute, relative, _ = case
        given = ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())])
        owner, _, name = entry_point.rpartition(".")
        text = f"{owner}().{name}({given})" if owner else f"{name}({given})"
        call = Test(encoded_arguments(args, kwargs), codec.encode(value), text, text, repr(value))
        size = abs(value) if isinstance(value, (int, float)) else 0.0
        return cls(call, value, max(absolute or 0.0, (relative or 0.0) * size))


@dataclass(frozen=True)
class ReadSuite:
    """The tests of a suite."""

    tests: tuple[SuiteTest, ...]
    late: int
    dropped: tuple[str, ...] = ()
    """Why parts of an answer that were meant as tests are none."""
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
    return sample.task_id, repr(_content(sample.row))


def read_suite(sample: SuiteSample, entry_point: str, limit: int, sandbox: Sandbox) -> ReadSuite:
    """Return the tests of a suite, of which the first `limit` count."""
    content = _content(sample.row)
    if isinstance(content, str):
        [(pieces, late, dropped)] = _read([(content, entry_point, limit)], sandbox)
        tests = tuple(_test(each, entry_point) for each in pieces)
        empty = text_problem(content) or (*dropped, "the answer holds no test")[0]
        return ReadSuite(tests, late, tuple(dropped), "" if tests else empty)
    read = _read([(text, entry_point, 0) for text in content[:limit]], sandbox)
    tests = tuple(_test(piece, entry_point) for [piece], *_ in read)
    return ReadSuite(tests, max(0, len(content) - limit))


def suite_digest(problem: Problem) -> str:
    """Return a short text that changes whenever what tests of this problem are judged by changes."""
    parts = (problem.prompt, problem.entry_point, problem.reference)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _read(
    asked: Sequence[tuple[str, str, int]], sandbox: Sandbox
) -> list[tuple[list[Piece], int, list[str]]]:
    def nothing(each: tuple[str, str, int], reason: str) -> Any:
        return ([], 0, [reason]) if each[2] else ([(each[0], each[0], [], reason)], 0, [])

    read = iter(
        in_batches(
            [each for each in asked if len(each[0]) <= MAX_ACTION_CHARS],
            lambda each: len(each[0]),
            lambda batch: sandbox.analyse(pieces_of, batch),
            lambda each, error: nothing(each, f"cannot be parsed: {error}"),
        )
    )
    return [
        next(read)
        if len(each[0]) <= MAX_ACTION_CHARS
        else nothing(each, str(text_problem(each[0])))
        for each in asked
    ]


def _test(piece: Piece, entry_point: str) -> SuiteTest:
    text, same_as, cases, broken = piece
    fault, reason = (InvalidReason.UNPARSABLE, broken) if broken else (None, "")
    name = entry_point.rpartition(".")[2]
    if not (cases or broken) and not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
        fault, reason = InvalidReason.NEVER_CALLS, f"never calls {entry_point}"
    stated = tuple(StatedCase.of(entry_point, each) for each in cases)
    return SuiteTest(text, same_as, stated, fault, reason)


def _content(row: Mapping[str, Any]) -> str | Sequence[str]:
    return row[next(name for name in _FIELDS if name in row)]  # type: ignore[no-any-return]  # checked when it was read


def _names(problems: Sequence[Problem]) -> dict[str, Problem]:
    """Return what a file may call problems: their names, those of evalplus, or the last part where that is clear."""
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
