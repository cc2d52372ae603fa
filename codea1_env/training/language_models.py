"""Makes the language models of a run: loads them once, and gives each player what it learns with.

An engine fits a run to its machines and makes the models, and the loop need not know where they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from codea1_env.agents import Learner
from codea1_env.agents.llm.agent import (
    BothRoles,
    FrozenLanguagePlayer,
    LanguagePlayer,
    LLMAgent,
    fit,
    longest_prompt,
)
from codea1_env.agents.llm.completions import (
    Backend,
    BackendError,
    SharedBackend,
    encode_chat,
    world_size,
)
from codea1_env.agents.llm.computing import Computing, choose_computing
from codea1_env.agents.llm.engines import Engines, check_engine
from codea1_env.agents.llm.learners import GRPOLearner, share_weights
from codea1_env.agents.llm.prompts import make_wording
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.llm.wordings import EXAMPLE, EXAMPLE_PROGRAM
from codea1_env.agents.models import (
    ModelError,
    available_memory,
    best_device,
    check_chat,
    context_of,
    give_back_at_once,
    load_model,
    load_tokenizer,
    local_folder,
    resolve,
)
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.trainer_arguments import (
    Role,
    TrainerArguments,
    check_batches,
    making,
    roles_of,
)


class Models(Protocol):
    """The language models of a run: `LanguageModels` in this process, or those of a Ray cluster."""

    def player(self, role: Role, seed: int) -> Learner:
        """Make the player of a role."""

    def writer(self, role: Role, seed: int) -> tuple[LanguagePlayer, Callable[[Path], None]]:
        """Make a player whose weights are trained elsewhere, and the function that gives it weights."""

    def close(self) -> None:
        """End what computes."""


class LanguageModels:
    """The language models of a run, made when they are asked for.

    A step has no more than so many problems; roles are those played in this process, None for all. To spare memory, layers are
    computed again for their gradients, whatever the trainers' fields say. Raises a RunError if the engine is not installed, or
    there is no such algorithm.
    """

    def __init__(
        self,
        config: TrainConfig,
        problems: int,
        roles: Sequence[Role] | None = None,
        *,
        spare_memory: bool = False,
    ) -> None:
        self._config = config
        self._roles = roles_of(config) if roles is None else roles
        self._spare_memory = spare_memory
        self._bases: dict[Path, Any] = {}
        self._folders: dict[str, Path] = {}
        self._engines: Engines | None = None
        self._players: dict[str, Any] = {}
        self._arguments = TrainerArguments(config, problems)
        try:
            if config.has_language_model:
                check_engine(config.backend)
        except BackendError as error:
            raise RunError(str(error)) from error

    # ---- Players. All of these raise a RunError if the model, the trainer or the engine cannot be had as configured.

    def player(
        self, role: Role, seed: int, engine: Backend | None = None, *, sharded: bool = False
    ) -> Learner:
        """Make the player of a role; `engine` answers for it instead of the one of the configuration.

        If it is `sharded`, each of the processes that learn together has a part of the model (FSDP), and all must save it.
        """
        self._find_all(role, engine)
        with making(role):
            if self._config.player(role).freeze:
                player: Any = self._frozen(role, seed, engine)
            else:
                dtype = self._computing.dtype
                formats = {"bf16": dtype == "bfloat16", "fp16": dtype == "float16"}
                taught = self._arguments.of(role, formats)
                if sharded:
                    taught["fields"]["fsdp"] = True
                if self._spare_memory:
                    taught["fields"]["gradient_checkpointing"] = True
                player = GRPOLearner(**taught, **self._common(role, seed, engine))
        self._players[role] = player
        return player  # type: ignore[no-any-return]

    def writer(self, role: Role, seed: int) -> tuple[LanguagePlayer, Callable[[Path], None]]:
        """Make a player that draws as the role's own would, with weights that are trained elsewhere.

        Returns it and the function that gives it weights, which it needs before it can answer: a folder that `save_weights` wrote.
        """
        engine = self.engine(role)
        config, adapter = self._config, role if self._config.lora_rank else None
        samplings = [config.player(role).sampling]
        if role == "model":
            samplings.append(config.tester.sampling)
        with making(role):
            agents = [
                LLMAgent(engine, each, seed, adapter=adapter, write=self._wording())
                for each in samplings
            ]
        player = FrozenLanguagePlayer(BothRoles(*agents) if role == "model" else agents[0])
        return player, lambda folder: engine.update(folder, adapter)

    def engine(self, role: Role) -> Backend:
        """Start what would answer for the player of a role, as it is before it learns."""
        self._find_all(role)
        with making(role):
            return self._engine(role, trained=self._config.lora_rank == 0)

    def close(self) -> None:
        """Free what engines and players hold."""
        for player in self._players.values():
            if isinstance(player, LanguagePlayer):  # a trainer of one's own may make another
                player.close()
        if self._engines is not None:
            self._engines.close()

    # ---- Checks, all of which raise a RunError

    def check_trainers(self) -> None:
        """Make the configuration of every trainer, before anything is measured or loaded."""
        self._arguments.check(self._roles)

    def find(self, *first: Role, say: Callable[[str], None] | None = None) -> None:
        """Find the models and tokenizers of all players, those of `first` before the others; `say` is told what takes long."""
        for role in dict.fromkeys((*first, *self._roles)):
            with making(role):
                folder = resolve(self._config.model_of(role), say)
                self._check_prompts(role, folder)
            self._folders[role] = folder

    def _check_prompts(self, role: Role, folder: Path) -> None:
        """Check that the tokenizer writes chats, and that the lengths of the run have room for the instructions."""
        tokenizer, context = load_tokenizer(folder), context_of(folder)
        for turn, name in enumerate(("coder", "tester")):
            if role in (name, "model") and context is not None:
                asked = observe(EXAMPLE, code=EXAMPLE_PROGRAM, turn=turn)
                limit = longest_prompt(self._config.player(name).sampling, context)
                fit(asked, self._wording(), lambda chat: len(encode_chat(tokenizer, chat)), limit)

    def _find_all(self, asked: Role, given: Backend | None = None) -> None:
        """Find the models of all players before the first is loaded, which may take minutes."""
        config = self._config
        if asked not in self._folders:
            self.find(asked)
        if given is not None or config.backend == "transformers" or self._engines is not None:
            return
        samplings = (config.coder.sampling, config.tester.sampling)
        try:
            self._engines = Engines(
                config.backend,
                self._folders,
                context_length=max(
                    each.max_prompt_length + each.max_completion_length for each in samplings
                ),
                lora_rank=config.lora_rank,
                server_url=config.server_url,
                gpu_share=config.vllm_gpu_share,
            )
        except BackendError as error:
            raise RunError(str(error)) from error

    # ---- Parts of players

    def _common(self, role: Role, seed: int, engine: Backend | None) -> dict[str, Any]:
        config, folder = self._config, self._folders[role]
        adapter = None
        if config.lora_rank:
            from peft import LoraConfig

            adapter = LoraConfig(
                r=config.lora_rank,
                lora_alpha=config.lora_alpha,
                target_modules="all-linear",
                task_type="CAUSAL_LM",
            )
        return {
            "model": self._model(folder, trained=config.lora_rank == 0),
            "tokenizer": load_tokenizer(folder),
            "sampling": config.player(role).sampling,
            "peft_config": adapter,
            "engine": engine or (self._engines and self._engines.of(role)),
            "seed": seed,
            "write": self._wording(),
            "batch_size": config.generation_batch,
            "computing": self._computing,
        }

    def _frozen(self, role: Role, seed: int, engine: Backend | None) -> Learner:
        engine = engine or self._engine(role, trained=False)
        if world_size() > 1 and not isinstance(engine, SharedBackend):
            engine = SharedBackend(engine)
        sampling = self._config.player(role).sampling
        return FrozenLanguagePlayer(LLMAgent(engine, sampling, seed, write=self._wording()))

    def _engine(self, role: Role, *, trained: bool) -> Backend:
        if self._engines is not None:
            return self._engines.of(role)
        folder = self._folders[role]
        computing = self._computing
        return TransformersBackend(
            self._model(folder, trained=trained),
            load_tokenizer(folder),
            self._config.generation_batch,
            computing.dtype,
            computing.threads,
        )

    def _model(self, folder: Path, *, trained: bool) -> Any:
        """Model in float32 to train, or one whose weights all players share that do not change them."""
        if trained:
            return load_model(folder, dtype="float32", device=best_device())
        if folder not in self._bases:
            dtype = self._computing.dtype
            self._bases[folder] = load_model(folder, dtype=dtype, device=best_device())
        return share_weights(self._bases[folder])

    @cached_property
    def _computing(self) -> Computing:
        return computing_of(self._config)

    def _wording(self) -> Any:
        config = self._config
        return make_wording(config.prompts, config.num_tests, config.tester_examples)


def computing_of(config: TrainConfig) -> Computing:
    """Return how models compute in a run: as the configuration says, and where it leaves that open, as suits this machine.

    Raises a ValueError if the configuration asks for what this machine does not have.
    """
    dtype = None if config.dtype == "auto" else config.dtype
    return choose_computing(best_device(), dtype=dtype, threads=config.threads)


def decided_computing(config: TrainConfig, found: Computing) -> TrainConfig:
    """Return the run, with everything said about how its models compute."""
    return replace(config, dtype=found.dtype, threads=found.threads)


_LITTLE = 6e9
"""Bytes of free memory below which a run on a processor spares it."""


class LocalEngine:
    """This process."""

    elsewhere: Collection[Role] = ()
    """Roles whose players compute on other machines, each on its own."""

    def fit(
        self, config: TrainConfig, problems: int, say: Callable[[str], None], *, resumed: bool
    ) -> tuple[TrainConfig, Models]:
        """Make the models of a run, and decide what its configuration leaves to the machine: number formats and threads.

        Nothing is decided any more if a run is resumed. Raises a RunError if the model cannot be had or used as asked.
        """
        _check_folders(config)
        models = LanguageModels(config, problems)
        models.check_trainers()
        if config.has_language_model and not resumed:
            check_batches(config, problems, gpu=best_device() != "cpu")
        if not (config.has_language_model and config.backend == "transformers"):
            return config, models
        models.find(say=say)  # nothing is measured for a run whose other model cannot be used
        config = config if resumed else self._computing(config, say)
        return config, LanguageModels(config, problems, spare_memory=_spare_memory(say))

    def _computing(self, config: TrainConfig, say: Callable[[str], None]) -> TrainConfig:
        role = "coder" if config.coder.player == "llm" else "tester"
        try:
            computing = computing_of(config)
        except ValueError as error:
            raise RunError(f"Cannot make the {role}: {error}") from error
        say(f"Computing in {computing}.")
        return decided_computing(config, computing)

    def referee(self, sandbox: Sandbox, rules: RefereeConfig) -> Referee:
        """Make what judges, from the run's own sandbox."""
        return Referee(sandbox, rules)


def _spare_memory(say: Callable[[str], None]) -> bool:
    """Give memory back at once where a processor has little, and say so; returns whether layers are to be computed again."""
    free = available_memory() if best_device() == "cpu" else _LITTLE
    if free >= _LITTLE:
        return False
    give_back_at_once()
    say(
        f"{free / 1e9:.1f} GB of memory are free, which is little: layers are computed again for their gradients, and "
        "memory is given back at once."
    )
    return True


def _check_folders(config: TrainConfig) -> None:
    """Refuse a model that is no folder, or has no chat template, before torch is imported, which takes long."""
    for role in roles_of(config):
        if config.player(role).player == "llm":
            try:
                folder = local_folder(config.model_of(role))
                if folder is not None:
                    check_chat(folder)
            except ModelError as error:
                raise RunError(f"Cannot make the {role}: {error}") from error
