"""Opponents from the past: an earlier version of a tabular player answers some questions (fictitious self-play).

Who trains only against the newest opponent may forget how to beat older ones, and two such players can go round in
circles. Here a share of the questions is answered by an earlier moment of the same player (Heinrich et al. 2015; Lanctot
et al. 2017, arXiv 1711.00832). Nobody learns from answers of the past: the other player does, from what they did to it.

Runs of `codea1 train` have `opponents = "past"`, which keeps moments in files and lets one side of a whole step be of the past;
here it is question by question, in memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from codea1_env.agents.policy import SoftmaxPolicy
from codea1_env.agents.tabular import TabularAgent
from codea1_env.rollout import Answer, Experience
from codea1_env.spaces import Observation

Sampling = Literal["uniform", "latest"]


class WithPast:
    """A tabular player that also answers as an earlier version of itself.

    Answers to one question are all of one moment, so that they stay comparable.

    Args:
        player: The player. It goes on learning from its own answers.
        share: Share of the questions that the past answers, once there is one.
        every: Steps of learning between two moments that are kept.
        most: Moments that are kept at most; then every other one goes, and twice as many steps lie between them.
        sampling: Every moment alike, or the latest only.
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
        sampling: Sampling = "uniform",
    ) -> None:
        if not 0 <= share <= 1 or every < 1 or most < 2:
            raise ValueError(
                f"Expect a share from 0 to 1, steps of at least 1 and 2 moments or more, actually: {share}, {every} and {most}"
            )
        self.player, self.share, self.every, self.most = player, share, every, most
        self.sampling, self._rng, self._steps = sampling, rng, 0
        self._moments: list[SoftmaxPolicy] = []

    @property
    def policy(self) -> SoftmaxPolicy:
        """The present tables."""
        return self.player.policy

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each question by the present version or by an earlier one."""
        answers: list[str] = []
        for _, group in itertools.groupby(observations, _question):
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
        latest = self.sampling == "latest"
        return self._moments[-1 if latest else int(number) % len(self._moments)]

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


def _question(observation: Observation) -> tuple[str, str, int, int]:
    return (
        observation["task_id"],
        observation["code"],
        observation["round"],
        observation["turn"],
    )
