"""What testers answered: read, and judged, problem by problem."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from codea1_env.judging.verdicts import Round, Verdict
from codea1_env.oracle import gather
from codea1_env.problems import Problem
from codea1_env.responses import Program, Suite, parse_suites
from codea1_env.sandbox import Sandbox

_AT_ONCE = 3

Judged = tuple[list[Suite], Verdict]
"""The suites that attacked a program, and the verdict on it."""


class AttackAnswers(NamedTuple):
    """What testers answered to the programs of one problem."""

    problem: Problem
    programs: Sequence[Program]
    attacks: Sequence[str]
    """An equal share for each program."""
    history: Sequence[str]
    """Tests to replay."""


def by_problem(
    problems: Sequence[Problem],
    programs: Sequence[Program],
    attacks: Sequence[str],
    history: Mapping[str, Sequence[str]],
) -> list[AttackAnswers]:
    """Divide answers by their problem. Those to one problem stand together."""
    share = len(attacks) // max(1, len(programs))
    starts = [i for i, problem in enumerate(problems) if not i or problem != problems[i - 1]]
    return [
        AttackAnswers(
            problems[start],
            programs[start:end],
            attacks[start * share : end * share],
            history.get(problems[start].task_id, ()),
        )
        for start, end in itertools.pairwise([*starts, len(problems)])
    ]


def judge_answers(
    parts: Sequence[AttackAnswers],
    sandbox: Sandbox,
    judge: Callable[[Sequence[Round]], Sequence[Verdict]],
) -> list[Judged]:
    """Read and judge answers, some parts at once: while one program runs, another answer is read.

    Args:
        parts: The answers.
        sandbox: Where they are read.
        judge: See `Referee.judge`.
    """

    def judged(part: AttackAnswers) -> list[Judged]:
        parsed = parse_suites([(text, part.problem) for text in part.attacks], sandbox)
        share = len(parsed) // max(1, len(part.programs))
        suites = [parsed[i * share : (i + 1) * share] for i in range(len(part.programs))]
        rounds = [
            Round(part.problem, program, against, part.history)
            for program, against in zip(part.programs, suites, strict=True)
        ]
        return list(zip(suites, judge(rounds), strict=True))

    if len(parts) == 1:
        return judged(parts[0])
    with ThreadPoolExecutor(_AT_ONCE, "judge-part") as threads:
        found = gather([threads.submit(judged, part) for part in parts])
        return [item for items in found for item in items]
