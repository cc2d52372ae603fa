"""Says before a run which references fail tests of their own: what is measured and learned on them is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.problems import Problem
from codea1_env.responses import whole_program
from codea1_env.sandbox import Job, Limits, Sandbox

_NAMED = 10


def failing_references(
    problems: Sequence[Problem], sandbox: Sandbox, limits: Limits
) -> list[Problem]:
    """The problems whose reference does not pass all golden tests that can be played, under the limits of the run."""
    jobs = [
        Job(whole_program(each, each.reference), each.tests, each.entry_point, limits)
        for each in problems
    ]
    results = sandbox.run_many(jobs)
    return [
        problem
        for problem, tests in zip(problems, results, strict=True)
        if not all(test.passed for test in tests)
    ]


def warning_of(failing: Sequence[Problem]) -> str:
    r"""Tell a person which problems these are.

    Example:
        >>> warning_of([Problem("one", "def one():", "one", "def one():\n    return 2", ("assert one() == 1",))])
        'The reference fails tests of its own in 1 problem: one. `codea1 problems validate` shows which.'
    """
    names = ", ".join(each.task_id for each in failing[:_NAMED])
    more = f" and {len(failing) - _NAMED} more" if failing[_NAMED:] else ""
    return (
        f"The reference fails tests of its own in {len(failing)} problem{'s' if failing[1:] else ''}: {names}{more}. "
        "`codea1 problems validate` shows which."
    )
