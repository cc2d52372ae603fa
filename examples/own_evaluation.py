"""An evaluation of your own: how often programs are right, and how many lines the right ones have.

    codea1 eval run examples/own_evaluation.py:RightLines --agent mutant --num-samples 4 --max-problems 8

Result folder, resuming, intervals and `codea1 eval compare` come with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codea1_env.evaluation import ProgramEvaluation
from codea1_env.evaluation.samples import ProgramSample
from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problems import Problem


@dataclass(kw_only=True, eq=False)
class RightLines(ProgramEvaluation[Mapping[str, float | None]]):
    """Count the lines of right programs."""

    figure = "right"

    with_comments: bool = False
    """Count lines that hold nothing but a comment, too."""

    def judge(self, problem: Problem, sample: ProgramSample) -> Mapping[str, float | None]:
        """Run a program on the tests of its problem; its lines count if it is right."""
        result = submit_to_tests(problem, sample.code, self.sandbox.limits, self.sandbox).result()
        right = result.load.passed and all(test.passed for test in result.tests)
        lines = [line.strip() for line in sample.code.splitlines()]
        counted = [line for line in lines if line and (self.with_comments or line[0] != "#")]
        return {"right": right, "lines": len(counted) if right else None}
