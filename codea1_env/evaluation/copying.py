"""How much of what testers write stands in the problem's text already."""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.problems import Problem
from codea1_env.reading.examples import split_examples
from codea1_env.responses import parse_suites
from codea1_env.rollout import RolloutEpisode
from codea1_env.sandbox import Sandbox


def shown_calls(problems: Sequence[Problem], sandbox: Sandbox) -> list[frozenset[str]]:
    """Find the calls that the texts of problems show in their examples.

    Args:
        problems: The problems.
        sandbox: Where the examples are read.

    Returns:
        For each problem its calls, in the one form that `Test.same_as` has.
    """
    shown = [
        "\n".join(split_examples(problem.prompt, problem.entry_point)[1]) for problem in problems
    ]
    suites = parse_suites(list(zip(shown, problems, strict=True)), sandbox)
    return [frozenset(test.same_as for test in suite.tests) for suite in suites]


def copied_share(episodes: Sequence[RolloutEpisode], sandbox: Sandbox) -> float | None:
    """Share of the testers' tests that make a call which the problem's text shows; None if there are no tests.

    Args:
        episodes: What was played.
        sandbox: Where the examples are read.
    """
    problems = list({episode.problem.task_id: episode.problem for episode in episodes}.values())
    calls = shown_calls(problems, sandbox)
    shown = {problem.task_id: each for problem, each in zip(problems, calls, strict=True)}
    copied = [
        test.same_as in shown[episode.problem.task_id]
        for episode in episodes
        for suite in episode.suites
        for test in suite.tests
    ]
    return sum(copied) / len(copied) if copied else None
