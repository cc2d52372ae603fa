"""What runs on a node for a language model that learns elsewhere meanwhile: one process that only answers."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from codea1_env.agents.llm.agent import Usage
from codea1_env.agents.llm.completions import Completion
from codea1_env.spaces import Observation
from codea1_env.training.config import TrainConfig
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.learner_actor import LearnerActor, Membership, bytes_in

Counters = Mapping[str, bytes]
"""File of a checkpoint -> what is in it: how far random numbers are used up."""


class WriterActor(LearnerActor):
    """Answers with the weights that it was given last."""

    def make(self, config: TrainConfig, problems: int, seed: int, member: Membership) -> None:
        """Make what answers.

        Raises:
            RunError: The model or the engine cannot be had as configured.
        """
        self._models = LanguageModels(config, problems, roles=(self._role,))
        self._player, self._update = self._models.writer(self._role, seed)

    def take(self, weights: Mapping[str, bytes]) -> None:
        """Use these weights from now on: what `LearnerActor.weights` returned."""
        with tempfile.TemporaryDirectory(prefix="codea1-weights-") as folder:
            for name, data in weights.items():
                (Path(folder) / name).write_bytes(data)
            self._update(Path(folder))

    def write(
        self, observations: Sequence[Observation]
    ) -> tuple[list[Completion], Usage, Counters]:
        """Answer each observation, token by token, and say what it took, and how far random numbers are used up."""
        self._player.act(observations)
        with tempfile.TemporaryDirectory(prefix="codea1-counters-") as folder:
            self._player.save(Path(folder))
            counters = bytes_in(Path(folder))
        return self._player.agent.completions, self._player.take_usage(), counters
