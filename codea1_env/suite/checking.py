"""The referee's sampled check of a record: the tables that pay are compared with programs that run.

The first 200 rounds of a record and a seeded hundredth of the rest are judged by the referee of the game, in the sandbox, on
the Python text of programs and tests. Verdicts and rewards must be those that the tables give (before wrong verdicts, where
an id has them), and the tag that a tester saw must be that of the text.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from codea1_env.referee import Referee, RefereeConfig, Round
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import Sandbox
from codea1_env.suite.rounds import Rounds
from codea1_env.suite.tasks import GROUP, SuiteError
from codea1_env.suite.worlds import Ints, features_of

_FIRST = 200
_SHARE = 0.01
_EQUAL = 1e-12


class SampleChecker:
    """Checks the rounds of one record. `checked` counts them."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds, self._played, self.checked = rounds, 0, 0
        self._rng = np.random.default_rng([rounds.world.seed, 5])
        self._waiting: list[tuple[Ints, ...]] = []
        self._sandbox: Sandbox | None = None

    def add(self, *played: Ints) -> None:
        """Take rounds: episodes, programs, tests, number of replayed tests, and their cells."""
        number = len(played[0])
        chosen = self._rng.random(number) < _SHARE
        first = max(0, _FIRST - self._played)
        chosen[:first] = True
        self._played += number
        if chosen.any():
            self._waiting.append(tuple(each[chosen] for each in played))
        if first and self._played >= _FIRST:
            self._judge()

    def finish(self) -> None:
        """Judge what has not been judged."""
        self._judge()
        self.close()

    def close(self) -> None:
        """Close the sandbox."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def _judge(self) -> None:
        if not self._waiting:
            return
        played = [np.concatenate(each) for each in zip(*self._waiting, strict=True)]
        self._waiting = []
        failed, passed, paid = self._rounds.judge(*played, truly=True)
        ours = np.column_stack([failed.sum(axis=1), passed.sum(axis=1), paid])
        for episode, own, verdict in zip(
            played[0], ours, self._referee().judge(self._asked(*played)), strict=True
        ):
            [suite] = verdict.suites
            outcome, rewards = suite.outcome, suite.rewards
            counts = sum(outcome.failed), outcome.history_passed
            said = np.array([*counts, verdict.code_reward, rewards.test, rewards.validity], float)
            if not verdict.load.passed or not np.allclose(said, own, rtol=0, atol=_EQUAL):
                raise _difference(episode, f"the referee {said.tolist()}", f"the tables {own.tolist()}")  # fmt: skip
        self.checked += len(ours)

    def _asked(
        self, episodes: Ints, programs: Ints, tests: Ints, known: Ints, cells: Ints
    ) -> list[Round]:
        """Write rounds as the game has them."""
        world, asked = self._rounds.world, []
        judges = self._rounds.judges_of(episodes, programs).tolist()
        groups, which = episodes // GROUP % world.groups, world.at(episodes)[0].tolist()
        problems = {number: world.problem(number) for number in set(which)}
        for number, (group, problem) in enumerate(zip(groups.tolist(), which, strict=True)):
            program = int(programs[number])
            code = world.text(group, problem, program)
            if world.bits and (features_of(code, world.bits) != world.tags[group, program]).any():
                raise _difference(episodes[number], "the tag in the text", "the tag that was shown")
            shown = problems[problem]
            if judges[number] >= 0:
                reference = world.text(group, problem, judges[number])
                shown = dataclasses.replace(shown, reference=reference)
            new = [world.test(problem, cell) for cell in tests[number].tolist()]
            old = [world.right_test(problem, cell) for cell in cells[number, : known[number]]]
            asked.append(Round(shown, code, [new], old))
        return asked

    def _referee(self) -> Referee:
        if self._sandbox is None:
            self._sandbox = Sandbox(workers=1)
        task = self._rounds.task
        rewards = RewardConfig(task.alpha, task.K, function=task.rewards)
        return Referee(self._sandbox, RefereeConfig(rewards, reuse_programs=True))


def _difference(episode: int, one: str, other: str) -> SuiteError:
    return SuiteError(
        f"Expect equal judgements of episode {episode}, actually: {one}, {other}. The run ends here."
    )
