"""What writes the answers of a role on devices of its own, with the weights that the learners of the role have trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codea1_env.agents.llm.completions import (
    BackendError,
    Completion,
    Messages,
    SamplingConfig,
    encode_chat,
    rank,
    share_of,
)
from codea1_env.agents.models import load_tokenizer, resolve
from codea1_env.support.extras import require
from codea1_env.training.config import TrainConfig
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.ray.files import Receiver, pieces
from codea1_env.training.trainer_arguments import Role

_GPU_SHARE = 0.9
"""Of the GPU that an engine has to itself."""


class WriterActor(Receiver):
    """One process of a role that writes: an engine alone on its device."""

    def start(self, config: TrainConfig, role: Role) -> int:
        """Start the engine; returns how many tokens prompt and answer together may have.

        Raises a RunError if it cannot be had as configured.
        """
        alone = dataclasses.replace(config, vllm_gpu_share=_GPU_SHARE)
        self.loaded = LanguageModels(alone, problems=1, roles=(role,)).engine(role)
        return int(self.loaded.context_length)

    def generate(
        self,
        prompts: Sequence[Messages],
        sampling: SamplingConfig,
        seed: int,
        adapter: str | None,
        first: int,
    ) -> list[Completion]:
        """Answer every prompt once. See `Backend.generate`."""
        return list(self.loaded.generate(prompts, sampling, seed, adapter, first))

    def update(self, adapter: str | None) -> None:
        """Write with the weights that were received from now on. See `Backend.update`."""
        self.loaded.update(self.received, adapter)
        self.empty()


class Writers:
    """The engine of a learner whose answers are written elsewhere: every writer gets a share of the prompts, and all weights.

    Args:
        actors: The writers.
        started: What comes of `WriterActor.start`.
        model: Their language model.

    Raises:
        RunError: A writer cannot start.
        BackendError: One is lost.
    """

    def __init__(self, actors: Sequence[Any], started: Sequence[Any], model: str) -> None:
        self._ray: Any = require("ray", "ray")
        self._actors = actors
        self.context_length: int = min(self._answers(started))
        self._tokenizer = load_tokenizer(resolve(model))

    def count_tokens(self, messages: Messages) -> int:
        """Length in tokens of a chat, as the engine's prompt."""
        return len(encode_chat(self._tokenizer, messages))

    def generate(
        self,
        prompts: Sequence[Messages],
        sampling: SamplingConfig,
        seed: int,
        adapter: str | None = None,
        first: int = 0,
    ) -> list[Completion]:
        """Answer every prompt once, in order. See `Backend.generate`."""
        asked = []
        for number, actor in enumerate(self._actors):
            share = share_of(len(prompts), number, len(self._actors))
            if share:
                chats, place = [prompts[each] for each in share], first + share.start
                asked.append(actor.generate.remote(chats, sampling, seed, adapter, place))
        return [answer for answers in self._answers(asked) for answer in answers]

    def update(self, folder: Path, adapter: str | None = None) -> None:
        """Give all writers the weights in this folder: the first process of a group does. See `Backend.update`."""
        if rank() > 0:
            return
        try:
            for name, piece in pieces(folder):
                sent = self._ray.put(piece)
                self._answers([actor.append.remote(name, sent) for actor in self._actors])
            self._answers([actor.update.remote(adapter) for actor in self._actors])
        except BackendError as error:
            # One that has died says so again where it is to write: by then the step is done, and can be saved.
            if not isinstance(error.__cause__, self._ray.exceptions.ActorDiedError):
                raise

    def close(self) -> None:
        """Do nothing: who started the writers ends them."""

    def _answers(self, asked: Sequence[Any]) -> list[Any]:
        try:
            return list(self._ray.get(list(asked)))
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            raise BackendError(
                f"A process that writes was lost ({type(error).__name__}): it was killed, its node is gone, or memory ran "
                "out there."
            ) from error
