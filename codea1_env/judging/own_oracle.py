"""Self-play without ground truth: the coder's own program says what is right."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from codea1_env.problems import Problem
from codea1_env.referee import Referee
from codea1_env.responses import Program

_NOTHING_RUNS = "def {}(*args, **kwargs):\n    raise NotImplementedError\n"


def by_own_program(
    problems: Sequence[Problem], programs: Sequence[Program], referee: Referee
) -> list[Problem]:
    """The problems with the coder's first program that runs as their reference.

    Where none runs, the reference raises at every call, so that no test is valid.

    Args:
        problems: The problem of each program.
        programs: All programs of a step.
        referee: Finds out which programs run.

    Returns:
        One problem for each program; the programs of a problem share one.
    """
    swapped = [
        dataclasses.replace(problem, reference=program.code)  # which has what the problem gives
        for problem, program in zip(problems, programs, strict=True)
        if program.problem is None and program.code.strip()
    ]
    chosen: dict[str, Problem] = {}
    for problem, runs in zip(swapped, referee.references_run(swapped), strict=True):
        if runs:
            chosen.setdefault(problem.task_id, problem)
    for problem in problems:
        nothing = _NOTHING_RUNS.format(problem.entry_point)
        chosen.setdefault(problem.task_id, dataclasses.replace(problem, reference=nothing))
    return [chosen[problem.task_id] for problem in problems]
