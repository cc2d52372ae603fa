"""What is run: programs with calls and a test program, and whole questions, made from a set of problems."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from varied_calls import Call, vary_calls

from codea1_env.mutation import generate_mutants
from codea1_env.mutation.operators import lines_before_loops_end
from codea1_env.problems import Problem
from codea1_env.sandbox import Job, Limits, Outcome, Sandbox
from codea1_env.sandbox.inside.analysis.literals import write

CALLS = 5
PROGRAMS = SUITES = ASSERTS = 8
_QUICK = Limits(call_cpu_time=0.25, run_cpu_time=5.0, calls_per_test=1)
_WRONG_EVERY = 4
_RUNS = {Outcome.PASS, Outcome.FAIL, Outcome.ERROR}


@dataclass(frozen=True)
class SpeedSubject:
    """A reference program, calls of it, and a test program that it passes."""

    task_id: str
    code: str
    entry_point: str
    calls: tuple[Call, ...]
    check: str


def check_program(problem: Problem) -> str:
    """Return a test program that is made from the golden tests of a problem."""
    body = textwrap.indent("\n".join(problem.tests), "    ")
    return f"def check({problem.entry_point}):\n{body}\n\n\ncheck({problem.entry_point})\n"


def subjects(problems: Sequence[Problem]) -> list[SpeedSubject]:
    """Those problems for which calls with literal arguments are known, with five calls each."""
    found = []
    for problem in problems:
        calls = _calls(problem)
        if len(calls) == CALLS:
            name, check = problem.entry_point, check_program(problem)
            found.append(
                SpeedSubject(problem.task_id, problem.reference, name, tuple(calls), check)
            )
    return found


def _calls(problem: Problem, count: int = CALLS) -> list[Call]:
    calls: dict[str, Call] = {}
    for case in problem.cases:
        call = case.args, dict(case.kwargs)
        calls.setdefault(repr(call), call)
        if len(calls) == count:
            break
    return list(calls.values())


@dataclass(frozen=True)
class Question:
    """A problem, programs for it, and suites of asserts against each program."""

    problem: Problem
    programs: tuple[str, ...]
    suites: tuple[tuple[tuple[str, ...], ...], ...]
    """For each program its suites, each a tuple of asserts."""

    def tests(self, program: int) -> list[str]:
        """The asserts of all suites against one program."""
        return [test for suite in self.suites[program] for test in suite]


def questions(
    problems: Sequence[Problem], sandbox: Sandbox, rng: np.random.Generator, count: int
) -> list[Question]:
    """Make up to `count` questions: 8 programs, 8 suites against each, 8 asserts in each suite.

    Programs are the reference and mutants of it that end. Calls are golden ones and variations of them; one
    assert in four predicts the value of another call, as testers do. Problems that give too few different
    calls are passed over.
    """
    made = (_question(problem, sandbox, rng) for problem in problems)
    return list(itertools.islice((each for each in made if each is not None), count))


def _question(problem: Problem, sandbox: Sandbox, rng: np.random.Generator) -> Question | None:
    size = PROGRAMS * SUITES * ASSERTS
    golden = _calls(problem, count=20)
    calls = golden + vary_calls(golden, max(0, size - len(golden)), rng)
    tests = _asserts(problem, calls[:size], sandbox, rng)
    if len(tests) < SUITES * ASSERTS:
        return None
    suites = tuple(_suites(tests, rng, own=len(tests) == size, number=i) for i in range(PROGRAMS))
    risky = set(sandbox.analyse(lines_before_loops_end, problem.reference))
    mutants = [m.code for m in generate_mutants(problem.reference, sandbox) if m.line not in risky]
    chosen = [mutants[i] for i in rng.permutation(len(mutants))[: 2 * PROGRAMS]]
    jobs = [Job(code, tests, problem.entry_point, _QUICK) for code in chosen]
    programs = [problem.reference]
    for job, results in zip(jobs, sandbox.run_many(jobs), strict=True):
        if {result.outcome for result in results} <= _RUNS:
            programs.append(job.code)
    for number in range(PROGRAMS - len(programs)):  # too few that end: others again, as other texts
        programs.append(f"{programs[number]}\n# again\n")
    return Question(problem, tuple(programs[:PROGRAMS]), suites)


def _asserts(
    problem: Problem, calls: Sequence[Call], sandbox: Sandbox, rng: np.random.Generator
) -> list[str]:
    """One assert for each call that the reference answers with plain data."""
    name = problem.entry_point
    results = sandbox.call(problem.reference, name, calls, limits=_QUICK)
    answered: dict[str, str] = {}
    for (arguments, keywords), result in zip(calls, results, strict=True):
        parts = [write(value) for value in arguments]
        parts += [f"{key}={write(value)}" for key, value in keywords.items()]
        value = write(result.value) if result.outcome is Outcome.PASS else None
        if value is not None and None not in parts:
            answered[f"{name}({', '.join(map(str, parts))})"] = value
    values = list(answered.values())
    tests = []
    for number, (call, value) in enumerate(answered.items()):
        if number % _WRONG_EVERY == _WRONG_EVERY - 1:
            value = values[int(rng.integers(len(values)))]
        tests.append(f"assert {call} == {value}")
    return tests


def _suites(
    tests: Sequence[str], rng: np.random.Generator, *, own: bool, number: int
) -> tuple[tuple[str, ...], ...]:
    """Return the suites against one program: tests of its own if there are enough, else drawn from all."""
    size = SUITES * ASSERTS
    order = range(number * size, (number + 1) * size) if own else rng.permutation(len(tests))
    picked = [tests[i] for i in order][:size]
    return tuple(tuple(picked[i : i + ASSERTS]) for i in range(0, size, ASSERTS))
