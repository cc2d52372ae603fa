"""Language models that learn from rewards: they answer through an engine, and a TRL trainer updates them."""

from __future__ import annotations

import copy
import itertools
import tempfile
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from codea1_env.agents.llm import prompts, training_state
from codea1_env.agents.llm.agent import BothRoles, LanguagePlayer, LLMAgent
from codea1_env.agents.llm.completions import (
    Backend,
    Completion,
    SamplingConfig,
    SharedBackend,
    world_size,
)
from codea1_env.agents.llm.computing import Computing, Dtype
from codea1_env.agents.llm.trainer_drive import TrainerDrive, TrainingRow
from codea1_env.agents.llm.trainer_settings import UpdateShape, grpo_config
from codea1_env.rollout import Experience
from codea1_env.spaces import Observation

ADAPTER = "default"
"""What TRL calls the adapter that it makes and trains."""


class GRPOLearner(LanguagePlayer):
    """A player that answers through an engine, and whose model TRL's GRPOTrainer updates once per step of the game.

    Trained parameters and the optimizer's state are float32; computing is in bfloat16 unless `fields` say
    otherwise (`bf16 = False`, for a model that was loaded in float32).

    Args:
        role: Which player it is; "model" for one that plays both.
        model: A causal language model. Without an adapter its weights are trained and must be float32; with one they may
            be shared with another player (`share_weights`).
        tokenizer: The model's, with a chat template.
        shape: What one update learns from.
        sampling: How answers are drawn: from all tokens. Its temperature is also that of the probabilities learned from.
        fields: Field of `trl.GRPOConfig` -> value; defaults are TRL's.
        trainer_cls: `trl.GRPOTrainer`, or a subclass of it.
        config_cls: `trl.GRPOConfig`, or a subclass of it.
        tester_sampling: How a model that plays both roles draws its suites; None for a player of one role.
        peft_config: The adapter to train, such as `peft.LoraConfig(r=16)`; None to train all weights.
        engine: Samples the answers, and gets the new weights after each update. None generates with the trained model.
        seed: Decides what is drawn, by the player and by the trainer.
        write: The wording of prompts.
        batch_size: Answers that the trained model generates at the same time.
        computing: Number formats and threads; None for the trainer's format, and torch's number of threads.
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
        trainer_cls: Any = None,
        config_cls: Any = None,
        tester_sampling: SamplingConfig | None = None,
        peft_config: Any = None,
        engine: Backend | None = None,
        seed: int = 0,
        write: prompts.PromptTemplate = prompts.DEFAULT,
        batch_size: int = 64,
        computing: Computing | None = None,
    ) -> None:
        from trl import GRPOConfig, GRPOTrainer

        _check_format(model, peft_config)
        self.shape = shape
        self.tokenizer = tokenizer
        self._memory = Memory()
        self.base = training_state.fingerprint(model)
        """Digest of the model before it learns."""
        self._folder = tempfile.TemporaryDirectory(prefix="codea1-trainer-")
        self._engine = engine
        samplings = [sampling] if tester_sampling is None else [sampling, tester_sampling]
        args = grpo_config(
            fields or {},
            shape,
            samplings=samplings,
            config_cls=config_cls or GRPOConfig,
            seed=seed,
            folder=self._folder.name,
        )
        self.drive = TrainerDrive(
            trainer_cls or GRPOTrainer,
            model,
            args,
            tokenizer,
            engine_samples=engine is not None,
            peft_config=peft_config,
            name=role,
            seed=seed,
        )
        self.drive.threads = computing.threads if computing else None
        name = ADAPTER if engine is None else role
        self._adapter = None if peft_config is None else name
        backend = self._backend(batch_size, computing)
        agents = [
            LLMAgent(backend, each, seed, adapter=self._adapter, write=write) for each in samplings
        ]
        super().__init__(BothRoles(*agents) if len(agents) > 1 else agents[0])
        self.update_engine()

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation, and remember the tokens to learn from."""
        answers = super().act(observations)
        self._memory.add(observations, self.agent.completions)
        return answers

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Update the model once. Raises an UpdateError if the trainer fails, a ValueError for another player's experience."""
        metrics = self.drive.update(self._memory.rows(experience, self.shape.group_size))
        self._memory.clear()
        self.update_engine()
        return metrics

    def _backend(self, batch_size: int, computing: Computing | None) -> Backend:
        """Answer with the trained model itself, if there is no engine; of several processes each its share."""
        from codea1_env.agents.llm.transformers_backend import TransformersBackend

        args = self.drive.trainer.args
        dtype: Dtype | None = "bfloat16" if args.bf16 else "float16" if args.fp16 else None
        backend: Backend = self._engine or TransformersBackend(
            self.drive.model,
            self.tokenizer,
            batch_size,
            computing.dtype if computing else dtype,
            computing.threads if computing else None,
        )
        shared = world_size() == 1 or isinstance(backend, SharedBackend)
        return backend if shared else SharedBackend(backend)

    def save_weights(self, path: Path) -> None:
        """Write the weights alone: the adapter, or the whole model."""
        training_state.save_weights(self.drive.model, self.tokenizer, path)

    def save(self, path: Path) -> None:
        """Write weights, optimizer and counters."""
        self.save_weights(path)
        training_state.save_trainer(self.drive, self.base, path)
        self.agent.save(path)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote. Raises a ValueError if it is of another model, version or adapter, or incomplete."""
        training_state.load_trainer(self.drive, self.base, path)
        training_state.load_weights(self.drive.model, path)
        self.agent.load(path)
        self.update_engine()

    def update_engine(self) -> None:
        """Give the weights to the engine that answers, if that is not the trained model itself."""
        if self._engine is not None:
            with tempfile.TemporaryDirectory(prefix="codea1-weights-") as folder:
                saved = training_state.save_weights(self.drive.model, self.tokenizer, Path(folder))
                self._engine.update(saved, self._adapter)

    def close(self) -> None:
        """Remove the trainer's folder. The player cannot learn afterwards."""
        self._folder.cleanup()


def _check_format(model: Any, peft_config: Any) -> None:
    import torch

    if peft_config is None and any(p.dtype != torch.float32 for p in model.parameters()):
        raise ValueError(
            "Expect a model in float32 if all its weights are trained (bfloat16 would round small "
            f"updates away), actually: {model.dtype}. Load it so, or train an adapter."
        )


class Memory:
    """Tokens of answers that are not learned from yet: experience has only their text."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], deque[Completion]] = defaultdict(deque)

    def add(self, observations: Sequence[Observation], completions: Sequence[Completion]) -> None:
        """Remember the answers to a batch of observations."""
        for observation, completion in zip(observations, completions, strict=True):
            self._known[(*observation.values(), completion.text)].append(completion)

    def rows(self, experience: Sequence[Experience], group_size: int) -> list[TrainingRow]:
        """Turn experience into rows, group after group. Raises a ValueError for answers of others, and groups of other sizes."""
        groups: dict[str, list[TrainingRow]] = defaultdict(list)
        for item in experience:
            groups[item.group].append(self._row(item))
        for name, rows in groups.items():
            if len(rows) != group_size:
                raise ValueError(
                    f"Expect groups of {group_size} answers, actually {len(rows)} in group {name!r}. "
                    "Make the learner with the group size of the run."
                )
        return [row for rows in groups.values() for row in rows]

    def clear(self) -> None:
        """Forget everything: the next step has answers of its own."""
        self._known.clear()

    def _row(self, item: Experience) -> TrainingRow:
        known = self._known.get((*item.observation.values(), item.action))
        if not known:
            raise ValueError(
                "Expect experience with answers that this player gave since it last learned, actually: "
                f"{item.action!r:.200}"
            )
        found = known.popleft()
        if not found.prompt_ids or not found.completion_ids:
            raise ValueError(
                "Expect an engine that tells the tokens of its answers, actually: it does not. Learn with "
                "the backend 'transformers' or 'vllm'."
            )
        return TrainingRow(
            found.prompt_ids, found.completion_ids, found.logprobs, item.reward, found.truncated
        )


def share_weights(model: Any) -> Any:
    """Copy a model without its weights: both have the same tensors, and each can get its own adapter."""
    tensors = itertools.chain(model.parameters(), model.buffers())
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})
