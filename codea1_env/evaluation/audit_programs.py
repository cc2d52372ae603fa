"""The programs of an audit: what is wrong and easily written, and the reference in other garments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from codea1_env.evaluation.program_verdicts import unusable_text
from codea1_env.mutation import generate_mutants
from codea1_env.problem_sets.golden import read_statements
from codea1_env.problems import Problem
from codea1_env.reading.examples import split_examples
from codea1_env.sandbox import UNKNOWN, AnalysisError, Sandbox
from codea1_env.sandbox.inside.analysis.literals import write

_ROUNDED = 1e-9
"""Relative: far below every tolerance that a data set states, far above what rounding does."""


def wrong_programs(
    problem: Problem, sandbox: Sandbox, mutants: int, answers: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield kind and text of programs, each once."""
    constants = [text for text, _ in Counter(_values(problem)).most_common(3)]
    yield "stub", program_that(problem, "pass")
    for text in constants:
        yield "constant", program_that(problem, f"return {text}")
    if table := _examples(problem, sandbox):
        for text in ("None", *constants[:1]):
            body = f"return next((v for a, k, v in {table} if (a, k) == (args, kwargs)), {text})"
            yield "examples", program_that(problem, body)
    if problem.reference.strip():
        try:
            found = generate_mutants(problem.reference, sandbox, mutants)
        except AnalysisError:
            found = []  # it runs; that it cannot be taken apart is no finding
        yield from (("mutant", mutant.code) for mutant in found)
    for code in dict.fromkeys(answers):
        if unusable_text(code) is None:
            yield "answer", code


def _values(problem: Problem) -> Iterator[str]:
    """Yield what tests expect, as text; of programs that print, what they print."""
    printed = (repr(test.stdout) for test in problem.stdin_tests)
    known = (write(case.expected) for case in problem.cases if case.expected is not UNKNOWN)
    yield from (text for text in (*known, *printed) if text is not None)


def _examples(problem: Problem, sandbox: Sandbox) -> str:
    """Return the examples of the prompt as the text of a list; "" if there are none."""
    name = problem.entry_point
    found = read_statements(split_examples(problem.prompt, name)[1], name, sandbox.analyse)
    triples = [(each.args, dict(each.kwargs), each.expected) for each in found.cases]
    return write(triples) or "" if triples else ""


def program_that(problem: Problem, body: str) -> str:
    """Return a program that does nothing but this."""
    if problem.stdin_tests:
        return "" if body == "pass" else f"print({body.removeprefix('return ')}, end='')"
    *owner, name = problem.entry_point.split(".")
    first = "self, " if owner else ""
    text = f"def {name}({first}*args, **kwargs):\n    {body}\n"
    return f"class {owner[0]}:\n    " + text.replace("\n", "\n    ") if owner else text


def right_programs(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield kind and text of programs that do what the reference does, if it is a function."""
    if problem.stdin_tests or "." in problem.entry_point:
        return
    program = (problem.reference, _WRAPPED.replace("NAME", problem.entry_point))
    yield "run twice", "\n\n".join(program).replace("ROUNDED", "0")
    if any(_has_float(case.expected) for case in problem.cases):
        yield "rounded otherwise", "\n\n".join(program).replace("ROUNDED", repr(_ROUNDED))


_WRAPPED = """
import copy as _copy
_reference, _inside = NAME, False


def _moved(value):
    if type(value) is float and value:
        return value * (1 + ROUNDED)
    if type(value) in (list, tuple):
        return type(value)(map(_moved, value))
    return {key: _moved(each) for key, each in value.items()} if type(value) is dict else value


def NAME(*args, **kwargs):
    global _inside
    if _inside:  # it calls itself
        return _reference(*args, **kwargs)
    _inside = True
    try:
        _reference(*_copy.deepcopy(args), **_copy.deepcopy(kwargs))
        value = _reference(*args, **kwargs)
        return _moved(value) if ROUNDED else value
    finally:
        _inside = False
"""


def _has_float(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, (dict, list, tuple)) and any(map(_has_float, inner))
    return isinstance(value, float) or nested
