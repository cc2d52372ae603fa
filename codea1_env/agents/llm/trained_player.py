"""What all language models that learn have in common: engine, weights and checkpoints."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from codea1_env.agents.llm import prompts
from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.both_roles import BothRoles
from codea1_env.agents.llm.completions import Backend, SamplingConfig
from codea1_env.agents.llm.computing import Computing, Dtype
from codea1_env.agents.llm.language_player import LanguagePlayer
from codea1_env.agents.llm.processes import SharedBackend, world_size
from codea1_env.agents.llm.trainer_drive import Drive
from codea1_env.agents.llm.training_state import (
    fingerprint,
    load_trainer,
    load_weights,
    save_trainer,
    save_weights,
)

ADAPTER = "default"
"""What TRL calls the adapter that it makes and trains."""


class TrainedPlayer(LanguagePlayer):
    """A player that answers through an engine, and whose model a trainer updates.

    Args:
        role: Which player it is; "model" for one that plays both.
        model: A causal language model. With an adapter its own weights stay as they are, and may be shared
            with another player (`share_weights`); without, they are trained and must be float32.
        tokenizer: The model's, with a chat template.
        make_drive: Makes what trains the model, given a folder that the trainer may write to.
        samplings: How answers are drawn; of a model that plays both roles, programs and then suites.
        peft_config: The adapter to train, such as `peft.LoraConfig(r=16)`; None to train all weights.
        engine: Samples the answers. None generates with the trained model itself. After each update the
            engine gets the new weights as an adapter with the name of the role.
        seed: Decides what the player draws.
        write: The wording of prompts; None for the default.
        batch_size: Answers that the trained model generates at the same time.
        computing: Number formats and threads; None for the trainer's format, and torch's number of threads.
    """

    def __init__(
        self,
        role: Literal["coder", "tester", "model"],
        model: Any,
        tokenizer: Any,
        make_drive: Callable[[str], Drive],
        *,
        samplings: Sequence[SamplingConfig],
        peft_config: Any,
        engine: Backend | None,
        seed: int,
        write: prompts.PromptTemplate | None,
        batch_size: int,
        computing: Computing | None,
    ) -> None:
        import torch

        from codea1_env.agents.llm.transformers_backend import TransformersBackend

        if peft_config is None and any(p.dtype != torch.float32 for p in model.parameters()):
            raise ValueError(
                "Expect a model in float32 if all its weights are trained (bfloat16 would round small "
                f"updates away), actually: {model.dtype}. Load it so, or train an adapter."
            )
        self.role = role
        self.tokenizer = tokenizer
        self._base = fingerprint(model)
        self._folder = tempfile.TemporaryDirectory(prefix="codea1-trainer-")
        self.drive = make_drive(self._folder.name)
        self.drive.threads = computing.threads if computing else None
        self._engine = engine
        backend: Backend = engine or TransformersBackend(
            self.drive.model,
            tokenizer,
            batch_size,
            compute_dtype=(
                computing.generation_dtype if computing else _compute_dtype(self.drive.trainer.args)
            ),
            threads=computing.generation_threads if computing else None,
        )
        own_adapter = None if peft_config is None else ADAPTER
        adapter = own_adapter if engine is None else role
        if world_size() > 1:
            backend = SharedBackend(backend)
        agents = [
            LLMAgent(backend, each, seed, adapter=adapter, write=write or prompts.DEFAULT)
            for each in samplings
        ]
        agent = BothRoles(*agents) if len(agents) > 1 else agents[0]
        super().__init__(agent)
        self.update_engine()

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
        self.update_engine()

    def update_engine(self) -> None:
        """Give the weights to the engine that answers, if that is not the trained model itself."""
        if self._engine is not None:
            with tempfile.TemporaryDirectory(prefix="codea1-weights-") as folder:
                saved = save_weights(self.drive.model, self.tokenizer, Path(folder))
                self._engine.update(saved, self.role)

    def close(self) -> None:
        """Remove the trainer's folder. It cannot learn afterwards."""
        self._folder.cleanup()


def _compute_dtype(args: Any) -> Dtype | None:
    """The type that the trainer computes in: answers are drawn from the model as it is trained."""
    return "bfloat16" if args.bf16 else "float16" if args.fp16 else None
