"""An evaluation of your own: how often programs are right, and how many lines the right ones have.

    codea1 eval run examples/own_evaluation.py:right_lines --agent mutant --num-samples 4 --max-problems 8

Result folder, resuming, intervals and `codea1 eval compare` come with it.
"""

from __future__ import annotations

from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox


def right_lines(problem: Problem, program: str, sandbox: Sandbox) -> dict[str, float | None]:
    """Count the lines of right programs."""
    result = submit_to_tests(problem, program, sandbox.limits, sandbox).result()
    right = result.load.passed and all(test.passed for test in result.tests)
    lines = [line for line in program.splitlines() if line.strip()]
    return {"right": right, "lines": len(lines) if right else None}
