"""The episodes of a finished run judged again, as after a change of rules."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env.judging.verdicts import AttackAnswers
from codea1_env.problems import Problem
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.report.episode_log import is_episode
from codea1_env.sandbox import Sandbox
from codea1_env.support.logs import every_line
from codea1_env.training.config import RunError
from codea1_env.training.problems_of_run import problems_of_run
from codea1_env.training.run_folder import EPISODES, read_config

_AT_ONCE = 64
"""Episodes that are judged together."""


@dataclass(frozen=True)
class Rejudged:
    """An episode, with what it was paid and what it is paid now."""

    step: int
    task_id: str
    program: int | None
    round: int
    coder: tuple[float | None, float | None]
    """The coder's reward in the log, and now."""
    tester: tuple[tuple[float | None, float | None], ...]
    """The same for each suite."""

    @property
    def changed(self) -> bool:
        """Whether anybody is paid otherwise."""
        return any(before != now for before, now in (self.coder, *self.tester))

    def row(self) -> Mapping[str, Any]:
        """As a line of JSON."""
        return {**dataclasses.asdict(self), "changed": self.changed}


def changed_rules(
    rules: RefereeConfig, rewards: Mapping[str, Any], others: Mapping[str, Any]
) -> RefereeConfig:
    """Return rules with the given fields of `RewardConfig` and of `RefereeConfig` in place of theirs; None keeps one."""
    paid = {name: value for name, value in rewards.items() if value is not None}
    ruled = {name: value for name, value in others.items() if value is not None}
    return replace(rules, rewards=replace(rules.rewards, **paid), **ruled)


class EpisodesOf:
    """The logged episodes of a run whose problems are known, and how many lines are left out.

    Raises:
        RunError: There is no log.
    """

    def __init__(self, run: Path, problems: Collection[str]) -> None:
        self._log, self._problems = run / EPISODES, problems
        self.left_out = 0
        if not self._log.is_file():
            raise RunError(f"Expect {run} to hold {EPISODES}, actually: it does not")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows; a line that is damaged, or of another problem, is counted."""
        self.left_out = 0
        for row, _ in every_line(self._log):
            if row is not None and is_episode(row) and row["task_id"] in self._problems:
                yield row
            else:
                self.left_out += 1

    def remark(self) -> str:
        """Say how many lines were left out; "" for none."""
        if not self.left_out:
            return ""
        return f"{self.left_out} lines of {self._log} are left out: damaged, or of problems that config.toml does not have."


def rejudge(
    run: Path,
    rules: RefereeConfig,
    sandbox: Sandbox,
    told: Callable[[int], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Rejudged]:
    """Judge the logged episodes of a run again, one program of each problem and step.

    Answers are read anew. The tests that were replayed from the Mistake Book are those of the log.

    `told` hears after each batch how many episodes it had, `say` what is left out.

    Raises:
        RunError: It is no run, or its players judged each other.
    """
    config = read_config(run)
    if config.oracle == "coder":
        raise RunError(
            "Expect a run with oracle='reference', actually: oracle='coder', whose values are not logged"
        )
    problems = {problem.task_id: problem for problem in problems_of_run(config)}
    referee = Referee(sandbox, rules)
    episodes = EpisodesOf(run, problems)
    whole = iter(episodes)
    while rows := list(itertools.islice(whole, _AT_ONCE)):
        yield from _judged(rows, problems, referee)
        told(len(rows))
    say(episodes.remark())


def _judged(
    rows: list[dict[str, Any]], problems: Mapping[str, Problem], referee: Referee
) -> Iterator[Rejudged]:
    of = [problems[row["task_id"]] for row in rows]
    programs = referee.read_programs(of, [row.get("answer", row["code"]) for row in rows])
    parts = [
        AttackAnswers(
            problem,
            [program],
            [suite.get("answer", "") for suite in row["suites"]],
            [test["test"] for test in row["history"]],
        )
        for row, problem, program in zip(rows, of, programs, strict=True)
    ]
    for row, (_, verdict) in zip(rows, referee.judge_parts(parts), strict=True):
        yield Rejudged(
            row["step"],
            row["task_id"],
            row.get("program"),
            row.get("round", 0),
            (row.get("reward"), verdict.code_reward),
            tuple(
                (suite.get("reward"), now.rewards.test)
                for suite, now in zip(row["suites"], verdict.suites, strict=True)
            ),
        )
