"""How well players do on what training never showed them, while they train.

Golden tests and mutants of every problem are split. Players may train with one part; the other part is only
for measuring: the coder by golden tests that no tester could attack it with, the tester by faults that no
coder could show it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from codea1_env.evaluation.loops import lines_before_loops_end
from codea1_env.mutation import generate_mutants
from codea1_env.problems import Problem
from codea1_env.referee import Referee, Round, TestVerdict
from codea1_env.responses import parse_program, parse_suites
from codea1_env.rollout import Agent
from codea1_env.sandbox import Job, Outcome, Sandbox
from codea1_env.spaces import observe


@dataclass(frozen=True)
class HeldOut:
    """A problem whose golden tests and mutants are split in two."""

    problem: Problem
    train_tests: tuple[str, ...]
    train_mutants: tuple[str, ...]
    tests: tuple[str, ...]
    """Golden tests for measuring coders; about a third."""
    mutants: tuple[str, ...]
    """Mutants of the reference for measuring testers; about a half."""


def hold_out(problems: Iterable[Problem], sandbox: Sandbox, seed: int = 0) -> list[HeldOut]:
    """Split golden tests and mutants of every problem. A problem's split depends only on it and the seed."""
    return [_hold_out(problem, sandbox, seed) for problem in problems]


def _hold_out(problem: Problem, sandbox: Sandbox, seed: int) -> HeldOut:
    rng = np.random.default_rng([seed, zlib.crc32(problem.task_id.encode())])
    tests = [problem.tests[i] for i in rng.permutation(len(problem.tests))]
    # Mutants that never end are slow to judge, and every test kills them: they would only blur the measure.
    risky = set(sandbox.analyse(lines_before_loops_end, problem.reference))
    found = [
        mutant.code
        for mutant in generate_mutants(problem.reference, sandbox)
        if mutant.line not in risky
    ]
    mutants = [found[i] for i in rng.permutation(len(found))]
    return HeldOut(
        problem,
        train_tests=tuple(tests[len(tests) // 3 :]),
        train_mutants=tuple(mutants[len(mutants) // 2 :]),
        tests=tuple(tests[: len(tests) // 3]),
        mutants=tuple(mutants[: len(mutants) // 2]),
    )


def pass_rate(
    coder: Agent, held_out: Sequence[HeldOut], sandbox: Sandbox, samples: int = 4
) -> float | None:
    """Share of held-back golden tests that the coder's programs pass: the mean over problems.

    Args:
        coder: Writes `samples` programs for each problem.
        held_out: Problems; those without held-back tests are left out.
        sandbox: Runs the programs.
        samples: Programs per problem.

    Returns:
        The share, from 0 to 1, or None if no problem has held-back tests.
    """
    measured = [item for item in held_out if item.tests for _ in range(samples)]
    answers = coder.act([observe(item.problem) for item in measured])
    jobs = [
        Job(
            parse_program(answer, item.problem.entry_point).code,
            item.tests,
            entry_point=item.problem.entry_point,
        )
        for item, answer in zip(measured, answers, strict=True)
    ]
    distinct = list({(job.code, job.tests): job for job in jobs}.values())
    results = dict(
        zip([(j.code, j.tests) for j in distinct], sandbox.run_many(distinct), strict=True)
    )
    shares = [
        sum(result.passed for result in results[job.code, job.tests]) / len(job.tests)
        for job in jobs
    ]
    return float(np.mean(shares)) if shares else None


def kill_rate(
    tester: Agent, held_out: Sequence[HeldOut], referee: Referee, samples: int = 4
) -> float | None:
    """Share of held-back mutants that the tester breaks with a valid test: the mean over mutants.

    The tester sees a mutant and writes one suite against it. Only tests that are right as written count;
    one that the referee had to correct does not.

    Args:
        tester: Writes one suite for each mutant.
        held_out: Problems; those without mutants are left out.
        referee: Judges the suites.
        samples: Mutants of each problem, the first ones held back.

    Returns:
        The share, from 0 to 1, or None if no problem has held-back mutants.
    """
    shown = [(item.problem, mutant) for item in held_out for mutant in item.mutants[:samples]]
    answers = tester.act([observe(problem, code=mutant, turn=1) for problem, mutant in shown])
    texts = [(text, problem.entry_point) for text, (problem, _) in zip(answers, shown, strict=True)]
    suites = parse_suites(texts, referee.sandbox)
    verdicts = referee.judge(
        [
            Round(problem, mutant, [suite])
            for (problem, mutant), suite in zip(shown, suites, strict=True)
        ]
    )
    killed = [
        any(_kills(test) for suite in verdict.suites for test in suite.tests)
        for verdict in verdicts
    ]
    return float(np.mean(killed)) if killed else None


def _kills(test: TestVerdict) -> bool:
    return test.status == "kept" and test.outcome not in (None, Outcome.PASS)
