"""The testers of verdict_noise.py: each writes one suite against a program, and knows the golden tests."""

from __future__ import annotations

import ast
import dataclasses
import re
import textwrap
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from codea1_env.agents.scripted import BoundaryTester
from codea1_env.problem_sets.fuzz import Call, in_order, vary_calls
from codea1_env.problems import Problem
from codea1_env.reading.calls import literal_calls
from codea1_env.sandbox import Sandbox
from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read
from codea1_env.spaces import observe

TESTERS = ("boundary", "fuzz", "hostile", "killer")
GIVEN = 40
"""Golden calls that testers start from, at most; with texts of up to so many characters:"""
GIVEN_CHARS = 300
KILLER_TESTS = 8
KILLER_CALLS = 24
ODD = (
    "None", "True", "False", "0", "-1", "7", "10000000000000000000000", "2.5", "-0.0", "1e999", "-1e999",
    "1e-320", "float('nan')", "1j", "''", "'a'", "' '", "'A b'", "'\\n'", "'\\u0130\\u00df'", "'\\u0663'", "'0'",
    "b'a'", "[]", "[None]", "[True]", "[2.5]", "['a']", "['a', 1]", "[[1]]", "[[[[[]]]]]", "[0.1, 0.2, 0.3]",
    "[1, True, 1.0]", "()", "(1,)", "('a', None)", "{}", "{1: 2}", "{'a': None}", "{1}", "{'b', 'a'}",
    repr("ab" * 100), repr(list(range(200))),
)  # fmt: skip
KILLER = """\
def twin():
{program}
    return {name}

CALLS = [{calls}]

def seen(function, arguments):
    try:
        value = function(*arguments)
    except Exception as error:
        return type(error).__name__, str(error).replace("twin.<locals>.", "")
    return type(value).__name__, repr(value)

"""
KILLER_TEST = """\
def test_{number}():
    here = [seen({name}, arguments) for arguments in CALLS]
    assert any(kind in ("int", "float", "str", "bool", "list", "tuple", "dict") for kind, _ in here)
    assert here != [seen(twin(), arguments) for arguments in CALLS]

"""


def answers(
    problem: Problem, programs: Sequence[str], count: int, seed: int, sandbox: Sandbox
) -> list[list[str]]:
    """What each of `TESTERS` answers to each program, with `count` tests.

    Args:
        problem: Its golden tests say what arguments are usual.
        programs: The programs under attack. Only the killer looks at them.
        count: Tests of a suite; fewer where so many cannot be made.
        seed: Seed of the choices; they depend on the problem, too.
        sandbox: Where golden tests are read.
    """
    name = problem.entry_point
    rng = np.random.default_rng([seed, zlib.crc32(problem.task_id.encode())])
    calls = golden_calls(problem, sandbox)
    shown = dataclasses.replace(problem, tests=tuple(guess(name, call) for call in calls))
    boundary = BoundaryTester([shown], sandbox, count, seed).act([observe(shown)])[0]
    fuzz = "\n".join(guess(name, call) for call in vary_calls(calls, count, rng))
    odd = hostile_arguments(calls, count, rng)
    hostile = "\n".join(f"assert {name}({', '.join(texts)}) == 0" for texts in odd)
    rows = ", ".join(f"[{', '.join(texts)}]" for texts in odd[:KILLER_CALLS])
    tests = "".join(KILLER_TEST.format(number=n, name=name) for n in range(KILLER_TESTS))
    return [
        [
            boundary,
            fuzz,
            hostile,
            KILLER.format(program=textwrap.indent(code, "    "), name=name, calls=rows) + tests,
        ]
        for code in programs
    ]


def guess(name: str, call: Call) -> str:
    arguments, keywords = call
    named = [f"{keyword}={in_order(value)}" for keyword, value in keywords.items()]
    return f"assert {name}({', '.join([*map(in_order, arguments), *named])}) == 0"


def golden_calls(problem: Problem, sandbox: Sandbox) -> list[Call]:
    """Call of the golden tests; of EvalPlus's test programs, the first ones of their list of inputs."""
    calls: list[Call] = sandbox.analyse(literal_calls, list(problem.tests), problem.entry_point)
    inputs = re.search(r"^ *inputs = .*$", problem.test_program or "", re.MULTILINE)
    if inputs:
        code = f"from math import inf, nan\n{inputs[0].strip()}\ndef first():\n    return [i for i in inputs if len(repr(i)) < {GIVEN_CHARS}][:{GIVEN}]\n"
        calls = [
            (tuple(arguments), {}) for arguments in sandbox.call(code, "first", [((), {})])[0].value
        ]
    return [call for call in calls if readable(in_order(call))][:GIVEN]


def readable(source: str) -> bool:
    try:
        read(ast.parse(source, mode="eval").body)
    except NotLiteralError:  # inf and nan are names
        return False
    return True


def hostile_arguments(
    calls: Sequence[Call], count: int, rng: np.random.Generator
) -> list[list[str]]:
    """Up to `count` distinct lists of arguments, each made from a golden call by something odd."""
    found: dict[tuple[str, ...], None] = {}
    for _ in range(20 * count if calls else 0):
        given, _ = calls[int(rng.integers(len(calls)))]
        texts = [in_order(argument) for argument in given]
        place = int(rng.integers(len(texts))) if texts else 0
        action = int(rng.integers(8))
        if action == 0:  # one argument more, or less
            texts = texts[:place] if rng.integers(2) else [*texts, ODD[int(rng.integers(len(ODD)))]]
        elif action <= 2 and texts:
            texts[place] = disguised(given[place], rng)
        elif action <= 5 and texts:
            texts[place] = ODD[int(rng.integers(len(ODD)))]
        else:
            texts = [ODD[int(rng.integers(len(ODD)))] for _ in texts]
        found[tuple(texts)] = None
        if len(found) == count:
            break
    return [list(texts) for texts in found]


def disguised(value: Any, rng: np.random.Generator) -> str:
    """The text of nearly the same value, of another type."""
    if isinstance(value, (int, float)) and abs(value) < 1e15:
        forms = [float(value), bool(value), str(value), [value], int(value) + 0.5]
    elif isinstance(value, str):
        forms = [list(value), value.encode(), [value], tuple(value)]
    elif isinstance(value, (list, tuple)):
        forms = [list(value), tuple(value), [value], dict(enumerate(value)), [*value, None]]
    elif isinstance(value, dict):
        forms = [list(value.items()), list(value), {**value, None: 0}, {**value, "": 0.5}]
    else:
        forms = [[value], None]
    others = [in_order(form) for form in forms if in_order(form) != in_order(value)]
    return others[int(rng.integers(len(others)))]
