"""Wrong programs that cost nothing to write. Tests that pass one of them check next to nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from codea1_env.mutation import generate_mutants
from codea1_env.problem_sets.golden import read_statements
from codea1_env.problem_sets.judging import limits_beside, passes, seconds_of, submit_to_tests
from codea1_env.problem_sets.problem import Problem
from codea1_env.reading.examples import RUN, split_examples
from codea1_env.sandbox import UNKNOWN, AnalysisError, JobResult, Sandbox
from codea1_env.sandbox.inside.analysis.literals import write

KINDS = ("stub", "constant", "examples", "mutant")
_CONSTANTS = 3
"""The values that most tests expect."""
_MUTANTS = 8
"""Spread over the reference: enough to find tests that say next to nothing."""
_SECONDS = 2.0
"""CPU time of the reference above which its mutants would take too long."""


class Met(NamedTuple):
    """A wrong program that has met the tests."""

    kind: str
    """One of `KINDS`."""
    about: str
    """What it does, behind "a program that"."""
    passed: bool


def meet_tests(problem: Problem, reference: JobResult, sandbox: Sandbox) -> list[Met]:
    """Run the tests of a problem on wrong programs, the plainest first; `reference` is how its reference passed them."""
    limits = limits_beside(reference)
    slow = problem.test_module or seconds_of(reference) > _SECONDS
    runs = [
        (kind, about, submit_to_tests(problem, code, limits, sandbox, stop=True))
        for kind, about, code in _wrong_programs(problem, sandbox, 0 if slow else _MUTANTS)
    ]
    return [Met(kind, about, passes(run.result())) for kind, about, run in runs]


def _wrong_programs(
    problem: Problem, sandbox: Sandbox, mutants: int
) -> Iterator[tuple[str, str, str]]:
    """Yield kind, what it does, and program."""
    constants = [text for text, _ in Counter(_expected(problem)).most_common(_CONSTANTS)]
    yield "stub", "does nothing", program_that(problem, "pass")
    for text in constants:
        yield "constant", f"always returns {text:.80}", program_that(problem, f"return {text}")
    if table := _examples(problem, sandbox):
        body = f"return next((v for a, k, v in {table} if (a, k) == (args, kwargs)), None)"
        yield "examples", "knows only the prompt's examples", program_that(problem, body)
    if not mutants:
        return
    with suppress(AnalysisError):  # the reference runs; that it cannot be taken apart is no finding
        for each in generate_mutants(problem.reference, sandbox, limit=mutants):
            about = f"has the fault {' '.join(each.description.split()):.80} in line {each.line}"
            yield "mutant", about, each.code


def program_that(problem: Problem, body: str) -> str:
    """Write a program whose only statement is `body`; where programs print, it prints what `body` returns."""
    if problem.kind == "program":
        value = body.removeprefix("return ")
        return "" if body == "pass" else f"{_READS}\nprint({value}, end='')"
    *owner, name = problem.entry_point.split(".")
    first = "self, " if owner else ""
    text = f"def {name}({first}*args, **kwargs):\n    {body}\n"
    return f"class {owner[0]}:\n    " + text.replace("\n", "\n    ") if owner else text


_READS = "args, kwargs = (open(0).read().rstrip() + '\\n',), {}"


def _expected(problem: Problem) -> Iterator[str]:
    known: Iterator[Any] = (x.expected for x in problem.cases if x.expected is not UNKNOWN)
    yield from (text for text in map(write, known) if text is not None)


def _examples(problem: Problem, sandbox: Sandbox) -> str:
    """Write the examples of the prompt as a list of arguments, keywords and value; "" for none."""
    name = problem.entry_point
    found = read_statements(split_examples(problem.prompt, name)[1], name or RUN, sandbox.analyse)
    triples = [(each.args, dict(each.kwargs), each.expected) for each in found.cases]
    return write(triples) or "" if triples else ""
