"""Pays the coder of a run by a reward model, once that has seen the verdicts of the first steps."""

from __future__ import annotations

import math
import numbers
from dataclasses import replace
from functools import cached_property

from codea1_env.rewards import RewardError
from codea1_env.rollout import RolloutEpisode, Rollouts
from codea1_env.support.logs import read_rows
from codea1_env.support.plugins import explained
from codea1_env.training.config import TrainConfig
from codea1_env.training.reward_model import PaidProgram, RewardModel, find_reward_model
from codea1_env.training.run_folder import VERDICTS, RunFolder


class PredictedRewards:
    """Pays the coder of a run."""

    def __init__(self, config: TrainConfig, folder: RunFolder) -> None:
        self._name, self._after = config.reward_model, config.reward_model_after
        self._folder = folder

    def paid(self, played: Rollouts, step: int) -> Rollouts:
        """Return what was played in a step, counted from 1, with the programs' rewards as the model predicts them.

        Raises:
            RewardError: A model of the user's raised, or its score is no number from 0 to 1.
        """
        if self._name is None:
            return played
        if step > self._after:
            return replace(played, episodes=tuple(map(self._scored, played.episodes)))
        judged = [(each, each.verdict.code_reward) for each in played.episodes]
        rows = [
            {
                "step": step,
                "problem": each.problem.prompt,
                "program": each.program.code,
                "reward": reward,
            }
            for each, reward in judged
            if reward is not None
        ]
        self._folder.append(VERDICTS, rows)
        return played

    @cached_property
    def _model(self) -> RewardModel:
        make = find_reward_model(self._name or "")
        rows = read_rows(self._folder.path / VERDICTS)
        judged = [PaidProgram(row["problem"], row["program"], row["reward"]) for row in rows]
        with explained(make, "__init__", RewardError):
            return make(judged)  # type: ignore[no-any-return]  # checked when it was found

    def _scored(self, episode: RolloutEpisode) -> RolloutEpisode:
        if episode.program.problem is not None:  # no program, which nobody needs to run to see
            return replace(episode, verdict=replace(episode.verdict, code_reward=0.0))
        model = self._model
        with explained(type(model), "score", RewardError):
            score = model.score(episode.problem.prompt, episode.program.code)
        real = isinstance(score, numbers.Real) and not isinstance(score, bool)
        if not (real and math.isfinite(score) and 0 <= score <= 1):
            raise RewardError(
                f"Expect {type(model).__name__}.score to return a number from 0 to 1, actually: {score!r:.200}"
            )
        return replace(episode, verdict=replace(episode.verdict, code_reward=float(score)))
