"""The referee's sampled check of a record: the tables that pay are compared with programs that run.

The first 200 rounds of a record and a seeded hundredth of the rest are judged by the referee of the game, in the sandbox, on
the Python text of programs and tests. Verdicts and rewards must be those that the tables give (before wrong verdicts, where
an id has them), and the tag that a tester saw must be that of the text.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from codea1_env.referee import Referee, RefereeConfig, Round
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import Sandbox
from codea1_env.suite.rounds import Rounds, again_in
from codea1_env.suite.tasks import SuiteError
from codea1_env.suite.worlds import Floats, Ints, features_of

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
        episodes, programs, tests, known, cells = (
            np.concatenate(each) for each in zip(*self._waiting, strict=True)
        )
        self._waiting = []
        world, task = self._rounds.world, self._rounds.task
        group = self._rounds.group_of(episodes)
        problem = group % task.problems
        index = world.of(group, problem)
        again = again_in(tests)
        failed = world.faulty[index[:, None], programs[:, None], tests]
        fails_old = world.faulty[index[:, None], programs[:, None], cells]
        right_values = world.valid[problem[:, None], tests]
        judges = np.full(len(group), -1)
        if task.judged < 1:
            failed, right_values = self._rounds.judged(group, programs, tests)
            fails_old, _ = self._rounds.judged(group, programs, cells)
            judges = self._rounds.judges_of(group, programs)
        failed &= ~again
        passed = ~fails_old & (np.arange(cells.shape[1]) < known[:, None])
        coder, tester, validity = self._rounds.pay(right_values, again, failed, known, passed)
        asked = []
        problems = {number: world.problem(number) for number in np.unique(problem).tolist()}
        for number, (of, at) in enumerate(zip(problem.tolist(), group.tolist(), strict=True)):
            code = world.text(at, of, int(programs[number]))
            if (
                world.bits
                and (features_of(code, world.bits) != world.tags[at, programs[number]]).any()
            ):
                raise _difference(episodes[number], "the tag in the text", "the tag that was shown")
            new = [world.test(of, cell) for cell in tests[number].tolist()]
            old = [world.right_test(of, cell) for cell in cells[number, : known[number]].tolist()]
            judge = int(judges[number])
            shown = problems[of]
            if judge >= 0:
                shown = dataclasses.replace(shown, reference=world.text(at, of, judge))
            asked.append(Round(shown, code, [new], old))
        for number, verdict in enumerate(self._referee().judge(asked)):
            [suite] = verdict.suites
            right = verdict.load.passed and all(
                each == now
                for each, now in (
                    (sum(suite.outcome.failed), failed[number].sum()),
                    (suite.outcome.history_passed, passed[number].sum()),
                )
            )
            rewards = suite.rewards
            said: Floats = np.array(
                [verdict.code_reward, rewards.test, rewards.validity], np.float64
            )
            paid: Floats = np.array([coder[number], tester[number], validity[number]])
            if not right or not np.allclose(said, paid, rtol=0, atol=_EQUAL):
                raise _difference(
                    episodes[number], f"the referee {said.tolist()}", f"the tables {paid.tolist()}"
                )
        self.checked += len(asked)

    def _referee(self) -> Referee:
        if self._sandbox is None:
            self._sandbox = Sandbox(workers=1)
        task = self._rounds.task
        rewards = RewardConfig(task.alpha, task.K, function=task.rewards)
        return Referee(self._sandbox, RefereeConfig(rewards, reuse_programs=True))


def _difference(episode: Any, one: str, other: str) -> SuiteError:
    return SuiteError(
        f"Expect equal judgements of episode {int(episode)}, actually: {one}, {other}. The run ends here."
    )
