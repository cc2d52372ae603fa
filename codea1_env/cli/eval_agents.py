"""The coder that `codea1 eval code` asks, by name: a new one for each batch, or one that is told the batch's seed.

An answer may depend on the batch and its seed alone: then an evaluation can go on at any batch after a kill.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from codea1_env.agents import Agent, MutantCoder, ReferenceCoder, TabularAgent
from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import BackendError, SamplingConfig
from codea1_env.agents.llm.openai_backend import OpenAIBackend
from codea1_env.agents.llm.player import is_model, load_player
from codea1_env.agents.llm.prompts import WORDINGS
from codea1_env.agents.models import ModelError
from codea1_env.cli.errors import InputError
from codea1_env.cli.export import find_weights
from codea1_env.cli.players import CODERS, make_player
from codea1_env.evaluation.code_generation import CoderOf
from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox
from codea1_env.training import RunError
from codea1_env.training.saved_run import load_run


def is_server(name: str) -> bool:
    """Whether an agent's name is the address of a model server."""
    return name.startswith(("http://", "https://"))


def is_language_model(name: str) -> bool:
    """Whether sampling settings mean something to this agent."""
    if is_server(name):
        return True
    return name not in CODERS and ".py" not in name and is_model(name) and not _is_table(name)


def coder_of(
    name: str,
    model: str | None,
    problems: Sequence[Problem],
    sandbox: Sandbox,
    sampling: SamplingConfig,
    wording: str,
    stack: ExitStack,
) -> CoderOf:
    """Find the coder of this name.

    Args:
        name: "reference", "mutant", FILE.py:NAME, a language model (see `load_player`), the address of an
            OpenAI-compatible server, or the folder of a training run.
        model: The server's name for the model; None for its first.
        problems: The problem set.
        sandbox: Where scripted coders run what they must.
        sampling: How language models draw.
        wording: A key of `WORDINGS`.
        stack: Closed when the coder is not needed any more.

    Raises:
        InputError: There is no such coder, or it cannot be loaded.
    """
    if name == "reference":
        return lambda seed: ReferenceCoder(problems, seed=seed)
    if name == "mutant":
        mutants = MutantCoder(problems, sandbox)
        return lambda seed: _reseeded(mutants, seed)
    try:
        if is_server(name):
            context = sampling.max_prompt_length + sampling.max_completion_length
            backend = OpenAIBackend(name, model, context_length=context)
            return _asking(LLMAgent(backend, sampling), wording)
        if (Path(name) / "config.toml").is_file():
            if _is_table(name):
                return _table(Path(name), problems, sandbox, stack)
            name = str(find_weights(Path(name), "coder", None))
        if is_language_model(name):
            return _asking(load_player(name, sampling=sampling), wording)
    except (BackendError, ModelError, RunError, ImportError) as error:
        raise InputError(str(error)) from error
    agent = make_player(name, CODERS, problems, sandbox, 0)
    return lambda seed: agent


def _asking(agent: LLMAgent, wording: str) -> CoderOf:
    write = WORDINGS[wording]()
    return lambda seed: LLMAgent(
        agent.backend, agent.sampling, seed, adapter=agent.adapter, write=write
    )


def _is_table(name: str) -> bool:
    """Whether this is the run of a player that is no language model."""
    if not (Path(name) / "config.toml").is_file():
        return False
    try:
        find_weights(Path(name), "coder", None)
    except RunError:
        return True
    return False


def _table(path: Path, problems: Sequence[Problem], sandbox: Sandbox, stack: ExitStack) -> CoderOf:
    """The tabular coder of a run, which knows only the problems that it was trained on."""
    run = load_run(path, sandbox, stack)
    known = {problem.prompt for problem in run.problems}
    strange = [problem.task_id for problem in problems if problem.prompt not in known]
    if strange:
        raise InputError(
            f"expect problems that {path} was trained on, actually {len(strange)} are not, such as "
            f"{strange[0]}: a tabular player knows no others. Give --problems {run.config.problems}"
            + (f" --split {run.config.split}" if run.config.split else "")
            + (f" --max-problems {len(run.problems)}" if run.config.max_problems else "")
        )
    coder = run.players.coder
    if isinstance(coder, TabularAgent):
        return lambda seed: _reseeded(coder, seed)
    return lambda seed: coder


def _reseeded(agent: MutantCoder | TabularAgent, seed: int) -> Agent:
    agent.rng = np.random.default_rng(seed)
    return agent
