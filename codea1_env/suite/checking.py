"""The referee's sampled check of a record: the tables that pay are compared with programs that run.

The first 200 rounds of a record and a seeded hundredth of the rest are judged by the referee of the game, in the sandbox, on
the Python text of programs and tests. Verdicts and rewards must be those that the tables give (before wrong verdicts, where
an id has them), and the tag that a tester saw must be that of the text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from codea1_env.referee import Referee, RefereeConfig, Round
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import default_sandbox
from codea1_env.suite.rounds import Rounds
from codea1_env.suite.tasks import GROUP, SuiteError, SuiteTask
from codea1_env.suite.worlds import Ints, features_of

_FIRST = 200
_SHARE = 0.01
_EQUAL = 1e-12


class SampleChecker:
    """Checks rounds of one record."""

    def __init__(self, task: SuiteTask, seed: int) -> None:
        self._chosen = np.random.default_rng([seed, 5]).random(task.episodes) < _SHARE
        self._chosen[:_FIRST] = True
        self._played, self._checked = 0, 0
        self._waiting: list[list[Ints]] = []

    def add(self, rounds: Rounds, played: Sequence[Ints]) -> None:
        """Take rounds: episodes, programs, tests, and those of the book."""
        chosen = self._chosen[self._played : self._played + len(played[0])]
        self._played += len(chosen)
        if chosen.any():
            self._waiting.append([each[chosen] for each in played])
            if sum(len(each[0]) for each in self._waiting) >= _FIRST:
                self._judge(rounds)

    def finish(self, rounds: Rounds) -> int:
        """Judge what has not been judged; returns how many rounds were."""
        if self._waiting:
            self._judge(rounds)
        return self._checked

    def _judge(self, rounds: Rounds) -> None:
        played = [np.concatenate(each) for each in zip(*self._waiting, strict=True)]
        self._waiting = []
        failed, passed, paid = rounds.judge(rounds.world.at(played[0]), played, truly=True)
        ours = np.column_stack([failed.sum(axis=1), passed.sum(axis=1), paid])
        asked = _asked(rounds, *played)
        rewards = RewardConfig(rounds.task.alpha, rounds.task.K, function=rounds.task.rewards)
        referee = Referee(default_sandbox(), RefereeConfig(rewards, reuse_programs=True))
        for episode, own, verdict in zip(played[0], ours, referee.judge(asked), strict=True):
            [suite] = verdict.suites
            counts = sum(suite.outcome.failed), suite.outcome.history_passed
            rewarded = verdict.code_reward, suite.rewards.test, suite.rewards.validity
            said = np.array([*counts, *rewarded], np.float64)
            if not verdict.load.passed or not np.allclose(said, own, rtol=0, atol=_EQUAL):
                tables, told = f"the tables {own.tolist()}", f"the referee {said.tolist()}"
                raise _difference(episode, told, tables)
        self._checked += len(asked)


def _asked(
    rounds: Rounds, episodes: Ints, programs: Ints, tests: Ints, replayed: Ints
) -> list[Round]:
    """Write rounds as the game has them."""
    world, asked = rounds.world, []
    judges = rounds.judges_of(episodes, programs).tolist()
    problems = [world.problem(number) for number in range(rounds.task.problems)]
    for number, group in enumerate((episodes // GROUP % world.groups).tolist()):
        which, program = group % len(problems), int(programs[number])
        code, problem = world.text(group, program), problems[which]
        if world.bits and (features_of(code, world.bits) != world.tags[group, program]).any():
            raise _difference(episodes[number], "the tag in the text", "the tag that was shown")
        if judges[number] >= 0:
            reference = world.text(group, judges[number])
            problem = dataclasses.replace(problem, reference=reference)
        new, old = tests[number], [cell for cell in replayed[number] if cell >= 0]
        said = [f"assert f({cell}) == {world.predicted[which, cell]}" for cell in new]
        true = [f"assert f({cell}) == {world.table[which, cell]}" for cell in old]
        asked.append(Round(problem, code, [said], true))
    return asked


def _difference(episode: int, one: str, other: str) -> SuiteError:
    return SuiteError(
        f"Expect equal judgements of episode {episode}, actually: {one}, {other}. The run ends here."
    )
