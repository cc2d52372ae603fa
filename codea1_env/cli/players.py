"""Players by name, of a script, a model, a run or a file; and the options of whom evaluations ask.

An answer may depend on the batch and its seed alone: then an evaluation can go on at any batch after a kill.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
import tyro
from rich.console import Console

from codea1_env.agents import Agent, TabularAgent, TabularSelfPlayer
from codea1_env.agents.llm.agent import FrozenLanguagePlayer, LLMAgent
from codea1_env.agents.llm.completions import BackendError, SamplingConfig
from codea1_env.agents.llm.computing import Computing, choose_computing
from codea1_env.agents.llm.engines import Engine, is_model, load_player
from codea1_env.agents.llm.openai_backend import OpenAIBackend
from codea1_env.agents.llm.prompts import FewShot, PromptTemplate, make_wording
from codea1_env.agents.models import DEFAULT_MODEL, best_device
from codea1_env.agents.opponents import SCRIPTED, Role, check_scripted, make_opponent
from codea1_env.agents.scripted import ScriptedAgent
from codea1_env.cli.errors import InputError, check_least, unknown_name, user_input
from codea1_env.cli.parsing import ComputingOptions, Packages, SandboxLevel, check_packages
from codea1_env.evaluation.runner import AgentOf
from codea1_env.problems import Problem, load_problems
from codea1_env.rendering.progress import say
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.support.plugins import find
from codea1_env.training import RunError
from codea1_env.training.checkpoints import checkpoint_of, find_weights, load_run
from codea1_env.training.problems_of_run import problems_of_run
from codea1_env.training.run_folder import read_config

if TYPE_CHECKING:
    from codea1_env.training import TrainConfig
    from codea1_env.training.checkpoints import SavedRun, TrainedOn

PlayerKind = Literal["scripted", "server", "own", "table", "weights", "model", "unknown"]
"""What a player's name means; `table` and `weights` are folders of runs."""


def kind_of(role: Role, name: str) -> PlayerKind:
    """What the name of a player of this role means.

    Example:
        >>> [kind_of("coder", name) for name in ("mutant", "golden", "mine.py:Coder", "http://127.0.0.1:8000/v1")]
        ['scripted', 'unknown', 'own', 'server']
    """
    if name in SCRIPTED[role]:
        return "scripted"
    if is_server(name):
        return "server"
    if is_own(name):
        return "own"
    if (Path(name) / "config.toml").is_file():
        try:
            find_weights(Path(name), role, None)
        except RunError:
            return "table"
        return "weights"
    return "model" if is_model(name) else "unknown"


def is_own(name: str) -> bool:
    """Whether a player's name means one of the user's: FILE.py:NAME or module:NAME."""
    return (":" in name and not is_server(name)) or name.endswith(".py")


def is_server(name: str) -> bool:
    """Whether an agent's name is the address of a model server."""
    return name.startswith(("http://", "https://"))


def check_name(name: str, known: Sequence[str]) -> None:
    """Raise an `InputError` for a name that none of these scripted players has."""
    if name not in known:
        raise InputError(
            f"{unknown_name('player', name, known)} (FILE.py:NAME takes your own; {DEFAULT_MODEL}, owner/name or "
            "a folder takes a language model)"
        )


def make_player(
    name: str,
    role: Role,
    problems: Sequence[Problem],
    sandbox: Sandbox,
    seed: int,
    num_tests: int = 8,
    computing: ComputingOptions | None = None,
    runs: Mapping[str, SavedRun] = MappingProxyType({}),
) -> Agent:
    """Return the player of this name; one of a run draws from this seed.

    Args:
        name: One of `SCRIPTED`, a language model (see `load_player`), FILE.py:NAME (see `own_player`), or one of `runs`.
        role: What it plays.
        problems: The problems of the game.
        sandbox: Where scripted players run what they must.
        seed: Seed of the player's random choices.
        num_tests: Tests of an answer of a scripted tester, or that a language model is asked for.
        computing: What was asked for of language models.
        runs: Training runs, by name.

    Raises:
        InputError: There is no such player.
    """
    if name in runs:
        players = runs[name].players
        return reseeding(players.coder if role == "coder" else players.tester)(seed)
    _check_is_there(name)
    kind = kind_of(role, name)
    with user_input():
        if kind in ("model", "server"):
            chosen = choose(name, computing or ComputingOptions(), Console(stderr=True))
            return load_player(name, seed, computing=chosen, write=FewShot(num_tests))
        if kind == "unknown":
            check_name(name, SCRIPTED[role])
        return make_opponent(name, role, problems, sandbox, seed, num_tests)


def choose(
    name: str,
    options: ComputingOptions,
    console: Console,
    recorded: Mapping[str, Any] = MappingProxyType({}),
) -> Computing:
    """Choose how a language model computes, and say so; `recorded` is what an evaluation has that goes on."""
    dtype = options.asked_dtype or recorded.get("dtype")
    threads = options.threads or recorded.get("threads")
    with user_input():
        chosen = choose_computing(best_device(), dtype=dtype, threads=threads)
    say(console, f"{name} computes in {chosen}.")
    return chosen


def common_problems(
    source: str | None, split: str | None, runs: Sequence[TrainedOn]
) -> list[Problem]:
    """Problems that all runs can play: of the source, or of the first run without one, those that every table knows."""
    if source is not None or not runs:
        with user_input():
            found = load_problems(source or "starter", split)
    else:
        found = list(runs[0].problems)
    for each in runs:
        if has_tables(each):
            known = {problem.task_id for problem in each.problems}
            found = [problem for problem in found if problem.task_id in known]
    if not found:
        raise InputError(
            "expect problems that every run was trained on, actually: there is none that all have in common. "
            "Name runs with the same problems"
        )
    return found


def has_tables(run: TrainedOn) -> bool:
    """Whether a player of a run knows only the problems that it was trained on."""
    return "tabular" in (run.config.coder.player, run.config.tester.player)


_WRITERS = {
    "coder": 'Who writes the programs: "reference", "mutant" (the reference with one fault), "planted" (with a fault that only its text names)',
    "tester": 'Who writes the tests: "golden" (the problem\'s own), "boundary", "copier", "numbers" (each number of the program)',
    "anybody": "Who writes the samples: a scripted player (of `codea1 play --help`)",
}


def agent_option(who: str = "anybody") -> Any:
    """Metavar and help of the option --agent, by role."""
    return tyro.conf.arg(
        metavar="NAME_OR_PATH",
        help=f'{_WRITERS[who]}, a language model ("smollm2-135m", owner/name on the hub, a folder with a model or an '
        "adapter), the address of an OpenAI-compatible server, the folder of a training run, or FILE.py:NAME.",
    )


@dataclass(frozen=True, kw_only=True)
class AskingOptions(ComputingOptions):
    """Whom to ask, and how."""

    agent: Annotated[str | None, agent_option()] = None
    backend: Engine = "transformers"
    """What language models generate with in this process, on a GPU where there is one. "vllm" needs the extra vllm,
    and is many times faster on a GPU."""
    model: str | None = None
    """The server's name for the model; None for its first."""
    request: dict[str, Any] = field(default_factory=dict)
    """More fields of what a server is asked, such as 'reasoning_effort = "low", max_completion_tokens = 2048, max_tokens =
    "None"': None leaves a field out."""
    num_samples: Annotated[int, tyro.conf.arg(aliases=["-n"], metavar="N")] = 1
    """Programs, or suites of tests, that an agent writes for each problem."""
    temperature: float | None = None
    """Sampling temperature of a language model; None for that of the agent's run, or 0.7."""
    top_p: float | None = None
    """A language model draws from the likeliest tokens that together have this probability; None for that of the agent's
    run, or 0.95."""
    max_completion_length: int | None = None
    """Tokens of an answer of a language model; None for those of the agent's run, or 1024."""
    prompts: str | None = None
    """Wording for language models: "few-shot", with a worked example, for small ones; "detailed"; or FILE.py:NAME. None for
    that of the agent's run, or "few-shot"."""
    tester_examples: Literal["shown", "hidden"] | None = None
    """Whether a language model that tests sees the examples of the problem's text; None for as in its run, or "shown"."""
    seed: int = 0
    """Seed of the agent's draws."""
    workers: int | None = None
    """Sandbox processes that work at the same time; None for one per core. Has no influence on the results."""
    packages: Packages = ()
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the report as one JSON object; the progress display goes to stderr."""

    def __post_init__(self) -> None:
        check_least(self, num_samples=1, workers=1, seed=0)
        check_packages(self.packages)
        with user_input():
            self.wording()

    @property
    def cores(self) -> int:
        """Sandbox processes."""
        return self.workers or len(os.sched_getaffinity(0))

    def sandbox(self, limits: Limits | None = None) -> Sandbox:
        """Return a new sandbox."""
        packages = ("numpy", *self.packages)
        return Sandbox(self.cores, limits, level=self.sandbox_level, packages=packages)

    def decided(self, recorded: Mapping[str, Any], console: Console) -> Self:
        """Fill in what a server or this machine decides, as it was recorded of an evaluation that goes on."""
        name = self.agent or ""
        if is_server(name):
            # Of two models behind one address the answers are not to be mixed.
            return self if self.model else replace(self, model=served_model(name))
        if not self.computes_here:
            return self
        chosen = choose(name, self, console, recorded)
        return replace(self, dtype=chosen.dtype, threads=chosen.threads)

    @property
    def computes_here(self) -> bool:
        """Whether the agent is a language model that transformers runs in this process."""
        if self.agent is None or self.backend != "transformers":
            return False
        roles: tuple[Role, ...] = ("coder", "tester")
        return any(kind_of(role, self.agent) in ("weights", "model") for role in roles)

    def sampling(self) -> SamplingConfig:
        """How language models draw."""
        with user_input():
            return SamplingConfig(
                temperature=0.7 if self.temperature is None else self.temperature,
                top_p=0.95 if self.top_p is None else self.top_p,
                max_prompt_length=4096,
                max_completion_length=self.max_completion_length or 1024,
                stop=("\n```\n",),
            )

    def wording(self, num_tests: int = 8) -> PromptTemplate:
        """How language models are asked."""
        return make_wording(self.prompts or "few-shot", num_tests, self.tester_examples or "shown")

    def as_in_run(self, role: Role) -> tuple[Self, TrainConfig | None]:
        """Fill in how the agent was asked in its run, where it has one and nothing else was said."""
        name = self.agent or ""
        if kind_of(role, name) != "weights":
            return self, None
        with user_input():
            config = read_config(Path(name))
        own = config.player(role).sampling
        run = {
            "temperature": own.temperature,
            "top_p": own.top_p,
            "max_completion_length": own.max_completion_length,
            "prompts": config.prompts,
            "tester_examples": config.tester_examples,
        }
        missing: dict[str, Any] = {
            key: value for key, value in run.items() if getattr(self, key) is None
        }
        return replace(self, **missing), config


def is_language_model(role: Role, name: str) -> bool:
    """Whether sampling settings mean something to this player."""
    return kind_of(role, name) in ("server", "weights", "model")


def check_agent(role: Role, name: str) -> None:
    """Refuse a name that means nobody, before anything is loaded."""
    _check_is_there(name)
    kind = kind_of(role, name)
    if kind == "own":
        with user_input():
            find(name, "player")
    elif kind == "unknown" and any(name in names for names in SCRIPTED.values()):
        other = "tester" if role == "coder" else "coder"
        raise InputError(
            f"unknown player {name!r} among those who are a {role}: it is a {other}. Name {' or '.join(SCRIPTED[role])}"
        )
    elif kind == "unknown":
        check_name(name, SCRIPTED[role])


def _check_is_there(name: str) -> None:
    """Refuse a folder that does not exist where other runs are, and so is no model of the hub."""
    path = Path(name)
    # A bare word is the name of a player or model.
    named = path.parent != Path() and not is_own(name)
    if named and not path.exists() and any(path.parent.glob("*/config.toml")):
        raise InputError(
            f"expect the name of a folder that exists, actually there is no {name}. "
            f"{path.parent} holds other runs: name one of them"
        )


def check_problems(role: Role, name: str, problems: Sequence[Problem]) -> None:
    """Refuse problems that this player cannot be asked about, before anything is written."""
    kind = kind_of(role, name)
    if kind == "scripted":
        with user_input():
            check_scripted(name, role, problems)
    if kind != "table":
        return
    path = Path(name)
    checkpoint_of(path)
    config = read_config(path)
    trained = problems_of_run(config)
    known = {problem.prompt for problem in trained}
    strange = [problem.task_id for problem in problems if problem.prompt not in known]
    if strange:
        raise InputError(
            f"expect problems that {path} was trained on, actually {len(strange)} are not, such as "
            f"{strange[0]}: a tabular player knows no others. Give --problems {config.problems}"
            + (f" --split {config.split}" if config.split else "")
            + (f" --max-problems {len(trained)}" if config.max_problems else "")
        )


def served_model(name: str) -> str:
    """Return the name that a server has for its first model."""
    backend = OpenAIBackend(name)
    backend.close()
    return backend.model


def player_of(
    role: Role,
    options: AskingOptions,
    problems: Sequence[Problem],
    sandbox: Sandbox,
    wording: PromptTemplate,
    num_tests: int,
    stack: ExitStack,
) -> AgentOf:
    """Find the player that options name. Language models are asked in this wording, scripted testers for so many tests."""
    name = options.agent or ""
    kind = kind_of(role, name)
    if kind == "table":
        players = load_run(Path(name), sandbox, stack).players
        return reseeding(players.coder if role == "coder" else players.tester)
    if kind in ("server", "weights", "model"):
        try:
            agent = _language_model(role, name, kind, options)
        except BackendError as error:
            raise InputError(str(error)) from error
        stack.callback(agent.backend.close)
        return lambda seed: FrozenLanguagePlayer(
            LLMAgent(agent.backend, agent.sampling, seed, adapter=agent.adapter, write=wording)
        )
    made = make_player(name, role, problems, sandbox, 0, num_tests)  # a wrong name is told now
    if kind == "own":  # anew for each batch, with its seed
        return lambda seed: make_player(name, role, problems, sandbox, seed, num_tests)
    return reseeding(made)


def _language_model(role: Role, name: str, kind: PlayerKind, options: AskingOptions) -> LLMAgent:
    draws = options.sampling()
    if kind == "server":
        context = draws.max_prompt_length + draws.max_completion_length
        backend = OpenAIBackend(name, options.model, context_length=context, fields=options.request)
        return LLMAgent(backend, draws)
    return load_player(
        str(find_weights(Path(name), role, None)) if kind == "weights" else name,
        sampling=draws,
        backend=options.backend,
        computing=choose_computing(
            best_device(), dtype=options.asked_dtype, threads=options.threads
        ),
    )


def reseeding(agent: Agent) -> AgentOf:
    """One player for all batches; if it draws from a generator of its own, that begins anew in each."""

    def of(seed: int) -> Agent:
        if isinstance(agent, ScriptedAgent | TabularAgent | TabularSelfPlayer):
            agent.rng = np.random.default_rng(seed)
        return agent

    return of
