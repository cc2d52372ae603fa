"""Testers that do not learn, as controls; one that learns in another world; and players that also answer from the past."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from codea1_env.agents import FixedAgent, TabularAgent
from codea1_env.agents.policy import SoftmaxPolicy
from codea1_env.agents.scripted import TEST_SEPARATOR
from codea1_env.problem_sets.cells import Pools
from codea1_env.problems import Problem
from codea1_env.rollout import Answer, Experience
from codea1_env.spaces import Observation, observe


class WithPast:
    """A tabular player that also answers as an earlier version of itself.

    Answers to one question are all of one moment, so that they stay comparable.

    Args:
        player: The player. It goes on learning from its own answers.
        share: Share of the questions that the past answers, once there is one.
        every: Steps of learning between two moments that are kept.
        most: Moments that are kept at most; then every other one goes, and twice as many steps lie between them.
        rng: Chooses who answers.
    """

    def __init__(
        self,
        player: TabularAgent,
        rng: np.random.Generator,
        *,
        share: float = 0.5,
        every: int = 5,
        most: int = 16,
    ) -> None:
        self.player, self.share, self.every, self.most = player, share, every, most
        self._rng, self._steps = rng, 0
        self._moments: list[SoftmaxPolicy] = []

    @property
    def policy(self) -> SoftmaxPolicy:
        """The present tables."""
        return self.player.policy

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each question by the present version or by an earlier one."""
        answers: list[str] = []
        question = operator.itemgetter("task_id", "code", "round", "turn")
        for _, group in itertools.groupby(observations, question):
            asked = list(group)
            moment = self._moment()
            if moment is None:
                answers += self.player.act(asked)
            else:
                answers += [Answer(text, "past") for text in self._act_as(moment, asked)]
        return answers

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Learn from answers of the present version alone."""
        own = [item for item in experience if item.note != "past"]
        metrics = dict(self.player.learn(own))
        self._steps += 1
        if self._steps % self.every == 0:
            self._moments.append(self._copy(self.policy.state_dict()))
            if len(self._moments) > self.most:
                self._moments = self._moments[1::2]
                self.every *= 2
        return {**metrics, "past": len(self._moments)}

    def _moment(self) -> SoftmaxPolicy | None:
        chance, number = self._rng.random(), self._rng.integers(1 << 30)
        if not self._moments or chance >= self.share:
            return None
        return self._moments[int(number) % len(self._moments)]

    def _copy(self, state: Mapping[str, Any]) -> SoftmaxPolicy:
        made = SoftmaxPolicy({}, self.policy.draws, self.policy.carried)
        made.load_state_dict(state)
        return made

    def _act_as(self, moment: SoftmaxPolicy, asked: Sequence[Observation]) -> list[str]:
        now, self.player.policy = self.player.policy, moment
        try:
            return self.player.act(asked)
        finally:
            self.player.policy = now


Worlds = Mapping[str, Pools]
"""Name of a problem -> its pools."""


def _suite(pools: Pools, cells: Sequence[int]) -> str:
    return TEST_SEPARATOR.join(pools.tests[cell] for cell in cells)


def cells_of_half(pools: Pools, half: int | None) -> Sequence[int]:
    """Return the cells of every other fault set, from the first or the second on. Without `half`, all cells."""
    if half is None:
        return range(len(pools.tests))
    return sorted(frozenset().union(*pools.families[half::2]))


class RandomTester(FixedAgent):
    """Draws new tests each time, and none twice among the suites against one program."""

    def __init__(
        self,
        worlds: Worlds,
        num_tests: int,
        num_suites: int,
        rng: np.random.Generator,
        half: int | None = None,
    ) -> None:
        self._worlds, self._tests, self._suites, self._rng = worlds, num_tests, num_suites, rng
        self._half = half

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer the observations of a program in a row, with different suites."""
        answers = []
        for start in range(0, len(observations), self._suites):
            pools = self._worlds[observations[start]["task_id"]]
            order = self._rng.permutation(cells_of_half(pools, self._half)).tolist()
            for number in range(self._suites):
                first = number * self._tests % (len(order) - self._tests + 1)
                answers.append(_suite(pools, order[first : first + self._tests]))
        return answers


class GoldenCells(FixedAgent):
    """Submits golden tests: one for each fault set of a problem that is not hidden."""

    def __init__(
        self, worlds: Worlds, hidden: int, rng: np.random.Generator, *, fresh: bool = False
    ) -> None:
        self._worlds, self._hidden, self._fresh, self._rng = worlds, hidden, fresh, rng
        self._cells = {
            name: [int(rng.choice(sorted(family))) for family in pools.families]
            for name, pools in worlds.items()
        }

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation."""
        answers = []
        for observation in observations:
            cells = self._cells[observation["task_id"]]
            if self._fresh:
                cells = [cells[i] for i in self._rng.permutation(len(cells))]
            kept = cells[: len(cells) - self._hidden]
            answers.append(_suite(self._worlds[observation["task_id"]], kept))
        return answers


class FixedCells(FixedAgent):
    """Always submits the same few tests, drawn once."""

    def __init__(self, worlds: Worlds, num_tests: int, rng: np.random.Generator) -> None:
        self._answers = {
            name: _suite(pools, rng.permutation(len(pools.tests))[:num_tests].tolist())
            for name, pools in worlds.items()
        }

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation."""
        return [self._answers[observation["task_id"]] for observation in observations]


class OracleTester(FixedAgent):
    """Knows the wrong cells of each program: no tester can be better."""

    def __init__(self, worlds: Worlds, num_tests: int, rng: np.random.Generator) -> None:
        self._worlds, self._tests, self._rng = worlds, num_tests, rng

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation."""
        answers = []
        for observation in observations:
            pools = self._worlds[observation["task_id"]]
            order = self._rng.permutation(len(pools.tests)).tolist()
            faults = pools.faults_of(observation["code"])
            first = [cell for cell in order if cell in faults][:1]
            others = [cell for cell in order if cell not in first]
            answers.append(_suite(pools, (first + others)[: self._tests]))
        return answers


class OtherProgramsTester:
    """A tester that learns against programs of another world: it has the skill, and no information about this world.

    For program i it makes the calls that it makes against program i of the other world, where it is trained.
    """

    def __init__(
        self,
        worlds: Worlds,
        other: Worlds,
        problems: Sequence[Problem],
        tester: TabularAgent,
        train: Callable[[], None],
    ) -> None:
        self._worlds, self._other, self._tester, self._train = worlds, other, tester, train
        self._problems = {problem.task_id: problem for problem in problems}
        self._cells = {
            name: {test: cell for cell, test in enumerate(pools.tests)}
            for name, pools in other.items()
        }

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation."""
        shown = []
        for seen in observations:
            name = seen["task_id"]
            programs, code = self._worlds[name].programs, seen["code"]
            if code in programs:  # one of no pool is new to this tester, as it is
                code = self._other[name].programs[programs.index(code)]
            shown.append(observe(self._problems[name], code=code, turn=1))
        answers = []
        for seen, answer in zip(shown, self._tester.act(shown), strict=True):
            name = seen["task_id"]
            cells = [self._cells[name][test] for test in answer.split(TEST_SEPARATOR)]
            answers.append(_suite(self._worlds[name], cells))
        return answers

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Learn in the other world, and ignore the rewards of this one."""
        self._train()
        return {}
