"""Experience of the players of an experiment: their rewards, or a control in their place."""

from __future__ import annotations

import dataclasses

import numpy as np

from codea1_env.baselines.diagnose.play_config import PlayConfig
from codea1_env.rollout import Experience, Rollouts
from codea1_env.training import TrainConfig
from codea1_env.training.reward_model import NgramRidge, PaidProgram

_JUDGED_STEPS = TrainConfig().reward_model_after


class Lessons:
    """Makes experience of the rollouts of a step.

    Args:
        config: The run.
        rng: Shuffles rewards, or draws them.
    """

    def __init__(self, config: PlayConfig, rng: np.random.Generator) -> None:
        self._config, self._rng = config, rng
        self._judged: list[PaidProgram] = []

    def for_coder(self, step: int, played: Rollouts) -> list[Experience]:
        """Return the coder's experience."""
        return self._scored(step, self._paid(played.coder_experience()))

    def for_tester(self, played: Rollouts) -> list[Experience]:
        """Return the tester's experience."""
        experience = played.tester_experience(self._config.suite_selection)
        if not self._config.shuffled:
            return self._paid(experience)
        groups: dict[str, list[int]] = {}
        for number, item in enumerate(experience):
            groups.setdefault(item.group, []).append(number)
        mixed = list(experience)
        for members in groups.values():
            for number, other in zip(members, self._rng.permutation(members), strict=True):
                mixed[number] = dataclasses.replace(
                    experience[number], reward=experience[int(other)].reward
                )
        return self._paid(mixed)

    def _paid(self, experience: list[Experience]) -> list[Experience]:
        if self._config.lesson in ("paid", "scored"):
            return experience
        draws = self._rng.random(len(experience)).tolist()
        return [
            item
            if item.reward is None
            else dataclasses.replace(
                item, reward=-item.reward if self._config.lesson == "negated" else draw
            )
            for item, draw in zip(experience, draws, strict=True)
        ]

    def _scored(self, step: int, experience: list[Experience]) -> list[Experience]:
        """Return the rewards that a reward model predicts, once it has seen the verdicts of the first steps."""
        if self._config.lesson != "scored":
            return experience
        if step < _JUDGED_STEPS:
            self._judged += [
                PaidProgram(item.observation["problem"], item.action, item.reward)
                for item in experience
                if item.reward is not None
            ]
            return experience
        if step == _JUDGED_STEPS:
            self._scorer = NgramRidge(self._judged)
        return [
            dataclasses.replace(
                item, reward=self._scorer.score(item.observation["problem"], item.action)
            )
            for item in experience
        ]
