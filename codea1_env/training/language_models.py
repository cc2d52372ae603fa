"""Makes the language models of a run: loads them once, and gives each player what it learns with."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codea1_env.agents import Learner
from codea1_env.agents.llm.completions import Backend, BackendError
from codea1_env.agents.llm.computing import Computing, Dtype, choose_computing
from codea1_env.agents.llm.processes import (
    LeadingPlayer,
    SharedAgent,
    dismiss,
    follow,
    rank,
    world_size,
)
from codea1_env.agents.models import best_device, load_model, load_tokenizer, resolve
from codea1_env.training.config import TrainConfig
from codea1_env.training.errors import RunError

Role = Literal["coder", "tester", "model"]
"""Who answers; "model" is one that plays both roles."""


_COSTLY = ("beta", "num_iterations", "gradient_checkpointing", "bf16", "fp16")
"""Fields of a trainer that decide how long an update takes, apart from sizes."""


@dataclass(frozen=True)
class _Plan:
    """What is to be made of a role's model."""

    role: Role
    folder: Path
    learns: bool
    seed: int


class LanguageModels:
    """The language models of a run, made when they are asked for.

    Args:
        config: The run.
        problems: Number of problems to train on: a step has no more.
        bases: Models that are loaded already, folder by folder; those that are loaded here are added.
    """

    def __init__(
        self, config: TrainConfig, problems: int, bases: dict[Path, Any] | None = None
    ) -> None:
        self._config = config
        self._groups = min(config.problems_per_step, problems)
        self._bases = {} if bases is None else bases
        self._chosen: dict[Path, Computing] = {}
        self._engine: Backend | None = None
        self._players: dict[str, Any] = {}

    def player(self, role: Role, seed: int) -> Learner:
        """Make the player of a role.

        Raises:
            RunError: The model, the trainer or the engine cannot be had as configured.
        """
        config = self._config
        try:
            plan = _Plan(role, resolve(config.model_of(role)), not config.player(role).freeze, seed)
            imitates = role == "tester" and config.tester.objective == "golden-tests"
            learner = self._imitator if imitates else self._learner
            player = learner(plan) if plan.learns else self._frozen(plan)
            self._players[role] = player
            return player if world_size() == 1 else LeadingPlayer(role, player)
        except (ValueError, BackendError) as error:
            raise RunError(f"Cannot make the {role}: {error}") from error

    def follow(self) -> None:
        """Play the part of a process that is not the first: do what that tells, until it is done."""
        follow(self._players)

    def dismiss(self) -> None:
        """Let the other processes go. After a failure the launcher ends them: they may be anywhere."""
        if world_size() > 1 and self._players:
            dismiss()

    def close(self) -> None:
        """Free what the engine holds."""
        if self._engine is not None:
            self._engine.close()

    def _learner(self, plan: _Plan) -> Learner:
        from codea1_env.agents.llm.grpo_learner import GRPOLearner
        from codea1_env.agents.llm.grpo_settings import UpdateShape

        config = self._config
        trainer_cls, config_cls = find_trainer(config.trainer_cls)
        return GRPOLearner(
            plan.role,
            self._model(plan.folder, trained=config.lora_rank == 0),
            load_tokenizer(plan.folder),
            shape=self._shape(plan.role, UpdateShape),
            fields=self._fields(plan.role),
            trainer_cls=trainer_cls,
            config_cls=config_cls,
            tester_sampling=config.tester.sampling if plan.role == "model" else None,
            **self._common(plan),
        )

    def trial(self, role: Role, size: int, updates: int) -> Any:
        """Make a player that learns from one group of this size at a time, to be thrown away: for measuring.

        It trains like those of the run, but for the size of its batch.
        """
        from codea1_env.agents.llm.grpo_learner import GRPOLearner
        from codea1_env.agents.llm.grpo_settings import UpdateShape

        plan = _Plan(role, resolve(self._config.model_of(role)), learns=True, seed=0)
        # No more of the user's fields than what costs time: others may be of another trainer, or wrong.
        fields = {name: value for name, value in self._fields(role).items() if name in _COSTLY}
        return GRPOLearner(
            role,
            self._model(plan.folder, trained=self._config.lora_rank == 0),
            load_tokenizer(plan.folder),
            shape=UpdateShape(1, size, updates),
            fields=fields,
            **self._common(plan),
        )

    def _imitator(self, plan: _Plan) -> Learner:
        from codea1_env.agents.llm.grpo_settings import UpdateShape
        from codea1_env.agents.llm.sft_learner import SFTLearner

        config = self._config
        return SFTLearner(
            self._model(plan.folder, trained=config.lora_rank == 0),
            load_tokenizer(plan.folder),
            # As many as `demonstrations` shows.
            shape=UpdateShape(self._groups, config.num_suites, config.max_steps),
            fields={
                "learning_rate": config.tester.learning_rate,
                **self._formats("tester"),
                **config.tester.trainer,
            },
            **self._common(plan),
        )

    def _common(self, plan: _Plan) -> dict[str, Any]:
        """What all players that learn are made with."""
        return {
            "sampling": self._config.player(plan.role).sampling,
            "peft_config": self._adapter(),
            "engine": self._external_engine(plan.folder),
            "seed": plan.seed,
            "write": self._wording(),
            "batch_size": self._config.generation_batch,
            "computing": self._computing(plan.folder),
        }

    def _frozen(self, plan: _Plan) -> Learner:
        from codea1_env.agents.llm.agent import LLMAgent
        from codea1_env.agents.llm.language_player import FrozenLanguagePlayer
        from codea1_env.agents.llm.transformers_backend import TransformersBackend

        engine = self._external_engine(plan.folder) or TransformersBackend(
            self._model(plan.folder, trained=False),
            load_tokenizer(plan.folder),
            self._config.generation_batch,
            self._computing(plan.folder).generation_dtype,
            self._computing(plan.folder).generation_threads,
        )
        agent = LLMAgent(
            engine,
            self._config.player(plan.role).sampling,
            plan.seed + rank(),
            write=self._wording(),
        )
        return FrozenLanguagePlayer(agent if world_size() == 1 else SharedAgent(agent))

    def _model(self, folder: Path, *, trained: bool) -> Any:
        """A model in float32 to train, or one whose weights all players share that do not change them."""
        from codea1_env.agents.llm.grpo_learner import share_weights

        if trained:
            return load_model(folder, dtype="float32", device=best_device())
        if folder not in self._bases:
            dtype = self._computing(folder).dtype
            self._bases[folder] = load_model(folder, dtype=dtype, device=best_device())
        return share_weights(self._bases[folder])

    def _computing(self, folder: Path) -> Computing:
        """How the model computes: as the configuration says, which is asked for what a run has chosen."""
        if folder not in self._chosen:
            self._chosen[folder] = computing_of(self._config, folder)
        return self._chosen[folder]

    def _adapter(self) -> Any:
        if self._config.lora_rank == 0:
            return None
        from peft import LoraConfig

        return LoraConfig(
            r=self._config.lora_rank,
            lora_alpha=self._config.lora_alpha,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )

    def _shape(self, role: Role, make: Callable[..., Any]) -> Any:
        config = self._config
        programs = config.num_generations if config.suite_selection == "all" else 1
        coder, tester = self._groups, self._groups * programs
        if role == "tester":
            return make(tester, config.num_suites, config.max_steps)
        groups = coder if role == "coder" else coder + tester
        return make(groups, config.num_generations, config.max_steps)

    def _wording(self) -> Any:
        from codea1_env.agents.llm.prompts import WORDINGS

        return WORDINGS[self._config.prompts](self._config.num_tests, self._config.tester_examples)

    def _fields(self, role: Role) -> dict[str, Any]:
        """Fields of the trainer's configuration: the run's settings, then the role's own."""
        config = self._config
        return {
            "learning_rate": config.player(role).learning_rate,
            "epsilon": config.epsilon,
            "epsilon_high": config.epsilon_high,
            "beta": config.beta,
            "loss_type": config.loss_type,
            "num_iterations": config.num_iterations,
            **self._formats(role),
            **config.player(role).trainer,
        }

    def _formats(self, role: Role) -> dict[str, Any]:
        """The trainer's names of the number format."""
        dtype = self._computing(resolve(self._config.model_of(role))).dtype
        return {"bf16": dtype == "bfloat16", "fp16": dtype == "float16"}

    def _external_engine(self, folder: Path) -> Backend | None:
        """The engine that both players share, or None if the trained models generate themselves."""
        if self._config.backend == "transformers":
            return None
        if self._engine is None:
            self._engine = self._start_engine(folder)
        return self._engine

    def _start_engine(self, folder: Path) -> Backend:
        config = self._config
        both = (config.coder.sampling, config.tester.sampling)
        length = max(each.max_prompt_length + each.max_completion_length for each in both)
        if config.backend == "server":
            from codea1_env.agents.llm.openai_backend import OpenAIBackend

            return OpenAIBackend(
                config.server_url,
                tokenizer=load_tokenizer(folder),
                context_length=length,
                vllm=True,
            )
        from codea1_env.agents.llm.vllm_backend import VLLMBackend

        # A graph is not worth its compilation where there is no GPU.
        return VLLMBackend(
            folder,
            context_length=length,
            max_lora_rank=config.lora_rank,
            enforce_eager=best_device() == "cpu",
        )


def computing_of(config: TrainConfig, folder: Path) -> Computing:
    """Return how a model computes in a run: as the configuration says, and where it leaves that open, measured.

    Several processes must agree without a word, so that they measure nothing.

    Raises:
        ValueError: What it says cannot be had on this machine.
    """
    dtype: Dtype | None = None if config.dtype == "auto" else config.dtype
    threads = config.threads
    if world_size() > 1:
        import torch

        dtype = dtype or ("float32" if best_device() == "cpu" else "bfloat16")
        threads = threads or torch.get_num_threads()
    return choose_computing(
        folder,
        best_device(),
        dtype=dtype,
        generation_dtype=config.generation_dtype,
        threads=threads,
        generation_threads=config.generation_threads,
    )


def find_trainer(name: str) -> tuple[Any, Any]:
    """Find a trainer and the class of its configuration.

    Args:
        name: module:class, such as "trl:GRPOTrainer".

    Raises:
        ValueError: There is no such class, or it is no trainer that can be driven.
    """
    import trl

    module, _, cls_name = name.partition(":")
    try:
        trainer = getattr(importlib.import_module(module), cls_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"Expect trainer_cls to be module:class, like 'trl:GRPOTrainer', actually: {name!r} ({error})"
        ) from error
    if not (isinstance(trainer, type) and issubclass(trainer, trl.GRPOTrainer)):
        raise ValueError(
            f"Expect trainer_cls to be trl.GRPOTrainer or a subclass of it, actually: {name!r}"
        )
    return trainer, getattr(trainer, "config_cls", trl.GRPOConfig)
