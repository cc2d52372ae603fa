"""Makes the language models of a run: loads them once, and gives each player what it learns with.

An engine fits a run to its machines and makes the models, and the loop need not know where they compute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from codea1_env.agents import Learner
from codea1_env.agents.llm.agent import (
    FrozenLanguagePlayer,
    LanguagePlayer,
    LLMAgent,
    fit,
    longest_prompt,
)
from codea1_env.agents.llm.completions import Backend, encode_chat, shared_backend
from codea1_env.agents.llm.computing import Computing, choose_computing
from codea1_env.agents.llm.engines import check_engine, server_engine, vllm_engine
from codea1_env.agents.llm.learners import GRPOLearner, share_weights
from codea1_env.agents.llm.prompts import make_wording
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.llm.wordings import EXAMPLE, EXAMPLE_PROGRAM
from codea1_env.agents.models import (
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
from codea1_env.support.extras import require
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.trainer_arguments import (
    Role,
    check_batches,
    check_trainers,
    making,
    roles_of,
    trainer_setup,
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
    computed again for their gradients, whatever the trainers' fields say.
    """

    def __init__(
        self,
        config: TrainConfig,
        problems: int,
        roles: Sequence[Role] | None = None,
        *,
        spare_memory: bool = False,
    ) -> None:
        self._config, self._problems = config, problems
        self._roles = roles_of(config) if roles is None else roles
        self._spare_memory = spare_memory
        self._bases: dict[Path, Any] = {}
        self._folders: dict[Role, Path] = {}
        self._engines: dict[tuple[Path, Role | None], Backend] = {}
        self._players: dict[Role, Any] = {}
        if config.has_language_model:
            check_engine(config.backend)

    # ---- Players. All of these raise a RunError if the model, the trainer or the engine cannot be had as configured.

    def player(
        self, role: Role, seed: int, engine: Backend | None = None, *, sharded: bool = False
    ) -> Learner:
        """Make the player of a role; `engine` answers for it instead of the one of the configuration.

        If it is `sharded`, each of the processes that learn together has a part of the model (FSDP), and all must save it.
        """
        self._find_all(role)
        with making(role):
            if self._config.player(role).freeze:
                engine = shared_backend(engine or self._engine(role, trained=False))
                sampling = self._config.player(role).sampling
                agent = LLMAgent(engine, sampling, seed, write=self._wording())
                player: Any = FrozenLanguagePlayer(agent)
            else:
                player = self._learner(role, seed, engine, sharded)
        self._players[role] = player
        return player  # type: ignore[no-any-return]

    def writer(self, role: Role, seed: int) -> tuple[LanguagePlayer, Callable[[Path], None]]:
        """Make a player that draws as the role's own would, with weights that are trained elsewhere.

        Returns it and the function that gives it weights, which it needs before it can answer: a folder that `save_weights` wrote.
        """
        engine, sampling = self.engine(role), self._config.player(role).sampling
        adapter = role if self._config.lora_rank else None
        with making(role):
            agent = LLMAgent(engine, sampling, seed, adapter=adapter, write=self._wording())
        return FrozenLanguagePlayer(agent), lambda folder: engine.update(folder, adapter)

    def engine(self, role: Role) -> Backend:
        """Start what would answer for the player of a role, as it is before it learns."""
        self._find_all(role)
        with making(role):
            return self._engine(role, trained=self._config.lora_rank == 0)

    def close(self) -> None:
        """Free what engines and players hold; all engines at once: of several in one process none works after the first is gone."""
        for player in self._players.values():
            if isinstance(player, LanguagePlayer):  # a trainer of one's own may make another
                player.close()
        for engine in self._engines.values():
            engine.close()

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

    def _find_all(self, asked: Role) -> None:
        """Find the models of all players before the first is loaded, which may take minutes."""
        if asked not in self._folders:
            self.find(asked)
        if self._config.backend == "server" and len(set(self._folders.values())) > 1:
            named = ", ".join(f"{role}: {folder}" for role, folder in self._folders.items())
            raise RunError(
                f"Expect one model for all players with backend='server' (a server has one), actually: {named}. Leave "
                "coder.model and tester.model out, or set backend to 'vllm' or 'transformers'"
            )

    # ---- Parts of players

    def _learner(self, role: Role, seed: int, engine: Backend | None, sharded: bool) -> GRPOLearner:
        config, folder, dtype = self._config, self._folders[role], self._computing.dtype
        formats = {"bf16": dtype == "bfloat16", "fp16": dtype == "float16"}
        setup = trainer_setup(config, role, self._problems, formats)
        forced = {"fsdp": sharded, "gradient_checkpointing": self._spare_memory}
        fields = {**setup.fields, **{name: True for name, wanted in forced.items() if wanted}}
        adapter = None
        if config.lora_rank:
            adapter = require("peft").LoraConfig(
                r=config.lora_rank,
                lora_alpha=config.lora_alpha,
                target_modules="all-linear",
                task_type="CAUSAL_LM",
            )
        model = self._model(folder, trained=config.lora_rank == 0)
        if engine is None and config.backend != "transformers":
            engine = self._engine(role, trained=True)
        return GRPOLearner(
            role,
            model,
            load_tokenizer(folder),
            replace(setup, fields=fields),
            peft_config=adapter,
            engine=engine,
            seed=seed,
            write=self._wording(),
            batch_size=config.generation_batch,
            computing=self._computing,
        )

    def _engine(self, role: Role, *, trained: bool) -> Backend:
        """What answers for a role: players of one model share vLLM, in which each has an adapter; else each has one to itself."""
        config, folder = self._config, self._folders[role]
        if config.backend == "transformers":
            model, computing = self._model(folder, trained=trained), self._computing
            batch = config.generation_batch
            tokenizer = load_tokenizer(folder)
            return TransformersBackend(model, tokenizer, batch, computing.dtype, computing.threads)
        players = Counter((self._folders[each], self._alone(each)) for each in self._folders)
        place = folder, self._alone(role)
        if place not in self._engines:
            blocks = (config.coder.sampling, config.tester.sampling)
            length = max(each.max_prompt_length + each.max_completion_length for each in blocks)
            if config.backend == "server":
                engine = server_engine(config.server_url, folder, length)
            else:
                share = config.vllm_gpu_share / len(players)
                engine = vllm_engine(
                    folder, length, config.lora_rank or None, players[place], share
                )
            self._engines[place] = engine
        return self._engines[place]

    def _alone(self, role: Role) -> Role | None:
        """The player that has an engine to itself, because all its weights change; None if it shares one."""
        return None if self._config.lora_rank else role

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
        return decided_computing(self._config)[1]

    def _wording(self) -> Any:
        config = self._config
        return make_wording(config.prompts, config.num_tests, config.tester_examples)


def decided_computing(config: TrainConfig) -> tuple[TrainConfig, Computing]:
    """Decide how models compute where the configuration leaves it open, as suits this machine; returns both.

    Raises a ValueError if the configuration asks for what this machine does not have.
    """
    dtype = None if config.dtype == "auto" else config.dtype
    found = choose_computing(best_device(), dtype=dtype, threads=config.threads)
    return replace(config, dtype=found.dtype, threads=found.threads), found


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
        roles = roles_of(config)
        for role in roles:  # before torch is imported, which takes long
            with making(role):
                folder = local_folder(config.model_of(role))
                if folder is not None:
                    check_chat(folder)
        models = LanguageModels(config, problems)
        check_trainers(config, problems)
        if roles and not resumed:
            check_batches(config, problems, gpu=best_device() != "cpu")
        if not roles or config.backend != "transformers":
            return config, models
        models.find(say=say)  # nothing is loaded for a run whose other model cannot be used
        if not resumed:
            with making(roles[0]):
                config, computing = decided_computing(config)
            say(f"Computing in {computing}.")
        return config, LanguageModels(config, problems, spare_memory=_spare_memory(say))

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
