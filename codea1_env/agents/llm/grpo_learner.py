"""A language model that learns to play: it answers through an engine, and a TRL trainer updates it."""

from __future__ import annotations

import copy
import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from codea1_env.agents.llm import prompts
from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.both_roles import BothRoles
from codea1_env.agents.llm.completions import Backend, Message, SamplingConfig
from codea1_env.agents.llm.grpo_settings import UpdateShape, trainer_config
from codea1_env.agents.llm.language_player import LanguagePlayer
from codea1_env.agents.llm.processes import SharedAgent, rank, world_size
from codea1_env.agents.llm.rows import Memory
from codea1_env.agents.llm.trainer_drive import TrainerDrive
from codea1_env.agents.llm.training_state import (
    fingerprint,
    load_trainer,
    load_weights,
    save_trainer,
    save_weights,
)
from codea1_env.agents.protocols import Experience
from codea1_env.spaces import Observation

ADAPTER = "default"
"""What TRL calls the adapter that it makes and trains."""


class GRPOLearner(LanguagePlayer):
    """A player whose model is trained by TRL's GRPOTrainer, one update per step of the game.

    Trained parameters and the optimizer's state are float32; computing is in bfloat16 unless `fields` say
    otherwise (`bf16 = false`).

    Args:
        role: Which player it is; "model" for one that plays both.
        model: A causal language model. With an adapter its own weights stay as they are, and may be shared
            with another player (`share_weights`); without, they are trained and must be float32.
        tokenizer: The model's, with a chat template.
        shape: What one update learns from.
        sampling: How answers are drawn. Its temperature is also that of the probabilities learned from.
        fields: Field of `trl.GRPOConfig` -> value; defaults are TRL's.
        peft_config: The adapter to train, such as `peft.LoraConfig(r=16)`; None to train all weights.
        engine: Samples the answers. None generates with the trained model itself. After each update the
            engine gets the new weights as an adapter with the name of the role.
        trainer_cls: The trainer: `trl.GRPOTrainer`, or a subclass of it.
        config_cls: The trainer's configuration: `trl.GRPOConfig`, or a subclass of it.
        seed: Decides what is drawn, by the player and by the trainer.
        write: The wording of prompts; None for the default.
        batch_size: Answers that the trained model generates at the same time.
        tester_sampling: How suites are drawn by a model that plays both roles, which then draws its programs
            as `sampling` says. None for a player of one role.
    """

    def __init__(
        self,
        role: Literal["coder", "tester", "model"],
        model: Any,
        tokenizer: Any,
        *,
        shape: UpdateShape,
        sampling: SamplingConfig,
        fields: Mapping[str, Any] | None = None,
        peft_config: Any = None,
        engine: Backend | None = None,
        trainer_cls: Any = None,
        config_cls: Any = None,
        seed: int = 0,
        write: Callable[[Observation], list[Message]] | None = None,
        batch_size: int = 64,
        tester_sampling: SamplingConfig | None = None,
    ) -> None:
        import torch
        from trl import GRPOConfig, GRPOTrainer

        from codea1_env.agents.llm.transformers_backend import TransformersBackend

        if sampling.temperature <= 0:
            raise ValueError(
                "Expect a temperature above 0: a player that always gives the same answer has nothing to "
                f"learn from, actually: {sampling.temperature!r}"
            )
        samplings = [sampling] if tester_sampling is None else [sampling, tester_sampling]
        if len({each.temperature for each in samplings}) > 1:
            raise ValueError(
                "Expect one temperature for both roles of a model (its trainer has one), actually: "
                f"{sampling.temperature!r} and {samplings[1].temperature!r}"
            )
        if peft_config is None and any(p.dtype != torch.float32 for p in model.parameters()):
            raise ValueError(
                "Expect a model in float32 if all its weights are trained (bfloat16 would round small "
                f"updates away), actually: {model.dtype}. Load it so, or train an adapter."
            )
        self.role = role
        self.shape = shape
        self.tokenizer = tokenizer
        self._base = fingerprint(model)
        self._memory = Memory()
        self._folder = tempfile.TemporaryDirectory(prefix="codea1-trainer-")
        args = trainer_config(
            fields or {},
            shape,
            config_cls=config_cls or GRPOConfig,
            temperature=sampling.temperature,
            max_completion_length=max(each.max_completion_length for each in samplings),
            seed=seed,
            folder=self._folder.name,
        )
        self.drive = TrainerDrive(
            trainer_cls or GRPOTrainer,
            model,
            args,
            tokenizer,
            peft_config=peft_config,
            engine_samples=engine is not None,
            name=role,
            seed=seed,
        )
        self._engine = engine
        backend = engine or TransformersBackend(
            self.drive.model, tokenizer, batch_size, compute_dtype=_compute_dtype(args)
        )
        own_adapter = None if peft_config is None else ADAPTER
        adapter = own_adapter if engine is None else role
        # Processes must not draw the same random numbers for their shares.
        agents = [
            LLMAgent(backend, each, seed + rank(), adapter=adapter, write=write or prompts.DEFAULT)
            for each in samplings
        ]
        agent = agents[0] if tester_sampling is None else BothRoles(*agents)
        super().__init__(agent if world_size() == 1 else SharedAgent(agent))
        self._update_engine()

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation, and remember the tokens to learn from."""
        answers = super().act(observations)
        self._memory.add(observations, self.agent.completions)
        return answers

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Update the model once.

        Raises:
            UpdateError: The trainer failed.
            ValueError: The experience is not of this player, or of another size than it was made for.
        """
        rows = self._memory.rows(experience, self.shape.group_size)
        metrics = self.drive.update(rows)
        self._memory.clear()
        self._update_engine()
        return metrics

    def save(self, path: Path) -> None:
        """Write weights, optimizer and counters."""
        save_weights(self.drive.model, self.tokenizer, path)
        save_trainer(self.drive, self._base, path)
        self.agent.save(path)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            ValueError: It is of another model, version or adapter, or incomplete.
        """
        load_trainer(self.drive, self._base, path)
        load_weights(self.drive.model, path)
        self.agent.load(path)
        self._update_engine()

    def _update_engine(self) -> None:
        if self._engine is not None:
            with tempfile.TemporaryDirectory(prefix="codea1-weights-") as folder:
                saved = save_weights(self.drive.model, self.tokenizer, Path(folder))
                self._engine.update(saved, self.role)


def _compute_dtype(args: Any) -> str | None:
    """The type that the trainer computes in: answers are drawn from the model as it is trained."""
    return "bfloat16" if args.bf16 else "float16" if args.fp16 else None


def share_weights(model: Any) -> Any:
    """Copy a model without its weights: both have the same tensors, and each can get its own adapter.

    Modes, hooks and adapters of the two do not meet, as they would if two adapters lived in one model.
    """
    tensors = itertools.chain(model.parameters(), model.buffers())
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})
