"""Line and branch coverage of a reference solution by tests, as coverage.py (extra `evaluation`) measures it.

Reference and tests run in one process of the sandbox (`Sandbox.run_test_module`): what a hostile test says of it can be
forged. Comments that tell coverage.py to leave a line out have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.evaluation.suites.samples import SuiteTest
from codea1_env.oracle import gather
from codea1_env.problems import Problem
from codea1_env.sandbox import CoverageData, Reach, Sandbox

_SLOWER = 20.0
"""A traced program may take so many times as long as the sandbox allows others."""
_HEAD = "from math import inf, nan\nfrom solution import {}\n"
_CALL = "    try:\n        {}\n    except Exception:\n        pass\n"


@dataclass(frozen=True)
class Coverage:
    """How much of a program was executed.

    Attributes:
        lines: Statements of the program, as coverage.py counts them.
        lines_hit: Those that were executed.
        branches: Arcs from lines with more than one possible successor.
        branches_hit: Those that were taken.

    Example:
        >>> Coverage(lines=4, lines_hit=3, branches=0, branches_hit=0).line_share
        0.75
    """

    lines: int
    lines_hit: int
    branches: int
    branches_hit: int

    @property
    def line_share(self) -> float | None:
        """Share of the statements that were executed; None if there are none."""
        return self.lines_hit / self.lines if self.lines else None

    @property
    def branch_share(self) -> float | None:
        """Share of the branches that were taken; None if there are none."""
        return self.branches_hit / self.branches if self.branches else None


def measure_coverage(
    problem: Problem, tests: Sequence[SuiteTest], sandbox: Sandbox
) -> list[Coverage]:
    r"""Measure how much of the reference no test, the first one, the first two, ... execute together.

    Tests count whether they hold or not, as far as they run. Limits of time are twenty times the sandbox's, since a
    traced program is slower.
    """
    named = problem.entry_point.partition(".")[0]
    head = _HEAD.format(named)
    limits = sandbox.limits.times(_SLOWER)
    calls = [_function(number, test) for number, test in enumerate(tests)]
    files = ["\n".join([head, *calls, "def test_nothing():\n    pass\n"])]
    files += [f"{head}\n{test.text}\n" for test in tests if not test.cases]
    jobs = [
        sandbox.submit_test_module(problem.reference, file, limits=limits, coverage=True)
        for file in files
    ]
    data, *inside = [each.coverage or CoverageData() for each in gather(jobs)]
    reached, others = data.imported, iter(inside)
    found = [_coverage(data.program, reached)]
    for test, new in zip(tests, data.tests, strict=False):
        reached |= new
        if not test.cases:
            alone = next(others)
            reached |= alone.after(len(alone.tests))
        found.append(_coverage(data.program, reached))
    return found + found[-1:] * (1 + len(tests) - len(found))


def _function(number: int, test: SuiteTest) -> str:
    """Return a function that makes the calls of a test; those of a text that is no data are in a file of their own."""
    calls = [_CALL.format(case.call.call_text) for case in test.cases]
    return f"def test_{number}():\n" + ("".join(calls) or "    pass\n")


def _coverage(program: Reach, reached: Reach) -> Coverage:
    return Coverage(
        len(program.statements),
        len(program.statements & reached.statements),
        len(program.branches),
        len(program.branches & reached.branches),
    )
