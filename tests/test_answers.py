"""What is read from answers as models of several families write them: data/answers.jsonl.

The answers were written before the reader of tests as data (design, section 4), by somebody who did not see it.
Each line of the file holds:

| field | what |
|---|---|
| `id`, `family`, `role` | name; in whose manner it is written; "coder" or "tester" |
| `problem` | `prompt` and `entry_point` |
| `text` | the answer |
| `code_runs` | coders: calls and the values that the program must return; null if the answer holds no program |
| `tests` | testers: `args`, `kwargs`, `expected` as literals of Python, `tolerance` (the wider of absolute and relative) or null for the default |
| `dropped_invalid` | testers: how many dropped things count as invalid |
| `note` | why |
| `lenient`, `also` | the design does not decide it: other readings that are as good, in the form of the fields above (for coders a list of `code_runs`, where [] asks for nothing) |
"""

from __future__ import annotations

import ast
import json
import marshal
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codea1_env.problems import Problem
from codea1_env.responses import Suite, parse_suites, read_programs
from codea1_env.sandbox import Outcome, Sandbox
from codea1_env.sandbox.inside import codec

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "answers.jsonl").read_text().splitlines()
]
CODERS = [row for row in ROWS if row["role"] == "coder"]
TESTERS = [row for row in ROWS if row["role"] == "tester"]


def cases(rows: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(row, id=row["id"]) for row in rows]


class Read(NamedTuple):
    """A test as it was read."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    expected: Any
    tolerance: float | None
    """None: the default of the game."""


class Reading(NamedTuple):
    """What was read from a tester's answer."""

    tests: list[Read]
    """In order. Repetitions do not matter here."""
    invalid: int
    """Dropped things that count as invalid tests."""


@pytest.fixture(scope="module")
def suites(sandbox: Sandbox) -> dict[str, Suite]:
    """What is read from the testers' answers, all at once."""
    found = parse_suites([(row["text"], problem_of(row)) for row in TESTERS], sandbox)
    return dict(zip((row["id"] for row in TESTERS), found, strict=True))


@pytest.fixture(scope="module")
def codes(sandbox: Sandbox) -> dict[str, str]:
    """The programs in the coders' answers."""
    texts = [row["text"] for row in CODERS]
    found = read_programs([problem_of(row) for row in CODERS], texts, sandbox)
    return {row["id"]: program.code for row, program in zip(CODERS, found, strict=True)}


def reading_of(suite: Suite) -> Reading:
    # Whether the types of arguments are those of the signature is not asked here.
    taken = [test for test in suite.tests if "does not take" not in test.reason]
    refused = len(suite.tests) - len(taken)
    reading = Reading([], refused + sum(item.invalid for item in suite.dropped))
    for test in taken:
        args, kwargs = marshal.loads(test.call)
        value = codec.decode(test.predicted)
        stated = [each for each in (test.absolute, test.relative) if each is not None]
        reading.tests.append(Read(tuple(args), kwargs, value, max(stated, default=None)))
    return reading


def problem_of(row: dict[str, Any]) -> Problem:
    given = row["problem"]
    body = f"{given['prompt']}    raise NotImplementedError\n"
    return Problem(row["id"], given["prompt"], given["entry_point"], body)


# Coders


def wrong_runs(
    code: str, runs: list[list[str]] | None, problem: Problem, sandbox: Sandbox
) -> list[str]:
    """The calls that a program does not answer as it must; without runs, it must not define the function."""
    if runs is None:
        (found,) = sandbox.run_tests(code, [f"assert callable({problem.entry_point})"])
        return ["it defines the function"] if found.outcome is Outcome.PASS else []
    tests = [
        f"given = {call}\nassert (given, type(given)) == ({value}, type({value}))"
        for call, value in runs
    ]
    results = sandbox.run_tests(code, tests, entry_point=problem.entry_point)
    return [
        f"{call}: {result.outcome.value} {result.message}"
        for (call, _), result in zip(runs, results, strict=True)
        if result.outcome is not Outcome.PASS
    ]


@pytest.mark.parametrize("row", cases(CODERS))
def test_programs(row: dict[str, Any], codes: dict[str, str], sandbox: Sandbox) -> None:
    problem, code = problem_of(row), codes[row["id"]]
    wrong = [
        wrong_runs(code, runs, problem, sandbox)
        for runs in (row["code_runs"], *row.get("also", []))
    ]
    assert [] in wrong, (row["note"], wrong[0], code)


# Testers


def expected_reading(given: dict[str, Any]) -> Reading:
    tests = [
        Read(
            tuple(ast.literal_eval(text) for text in test["args"]),
            {name: ast.literal_eval(text) for name, text in test["kwargs"].items()},
            ast.literal_eval(test["expected"]),
            test["tolerance"],
        )
        for test in given["tests"]
    ]
    return Reading(tests, given["dropped_invalid"])


def plain(reading: Reading, problem: Problem) -> tuple[list[str], int]:
    """A reading in a form that can be compared: arguments bound by name, exact types, no repetitions.

    An argument that is the default says nothing: `f(2, 1)` and `f(2)` may be one call.
    """
    function = ast.parse(problem.reference).body[-1]
    assert isinstance(function, ast.FunctionDef)
    names = [each.arg for each in function.args.args]
    given = function.args.defaults
    defaults = {
        (name, exact(ast.literal_eval(default)))
        for name, default in zip(names[len(names) - len(given) :], given, strict=True)
    }
    tests = {}
    for test in reading.tests:
        positional = {(names[i] if i < len(names) else i): a for i, a in enumerate(test.args)}
        tolerance = None if test.tolerance is None else f"{test.tolerance:.3g}"
        named = {(str(name), exact(a)) for name, a in {**positional, **test.kwargs}.items()}
        bound = sorted(named - defaults)
        tests[f"{bound} -> {exact(test.expected)} +- {tolerance}"] = None
    return list(tests), reading.invalid


def exact(value: Any) -> str:
    """A text that is the same for equal values of the same types only."""
    kind = type(value).__name__
    if isinstance(value, (set, frozenset)):
        return f"{kind}({sorted(map(exact, value))})"
    if isinstance(value, dict):
        return f"{kind}({sorted((exact(k), exact(v)) for k, v in value.items())})"
    if isinstance(value, (list, tuple)):
        return f"{kind}({list(map(exact, value))})"
    return f"{kind}({value!r})"


@pytest.mark.parametrize("row", cases(TESTERS))
def test_tests(row: dict[str, Any], suites: dict[str, Suite]) -> None:
    problem = problem_of(row)
    read = plain(reading_of(suites[row["id"]]), problem)
    good = [plain(expected_reading(given), problem) for given in (row, *row.get("also", []))]
    assert read in good, (row["note"], read, good[0])


def test_the_answers_are_many_and_named():
    assert max(Counter(row["id"] for row in ROWS).values()) == 1
    assert min(len(CODERS), len(TESTERS)) >= 80
    assert len({row["family"] for row in ROWS}) >= 8
