"""Players by name, language models, or players from a file of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from codea1_env.agents import Agent, BoundaryTester, GoldenTester, MutantCoder, ReferenceCoder
from codea1_env.agents.custom import FileError, load_file
from codea1_env.agents.llm.player import computing_for, is_model, load_player
from codea1_env.agents.models import DEFAULT_MODEL
from codea1_env.cli.errors import InputError, unknown_name
from codea1_env.cli.parsing import ComputingOptions
from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox

CODERS = ("mutant", "reference")
TESTERS = ("golden", "boundary")


def make_player(
    name: str,
    known: Sequence[str],
    problems: Sequence[Problem],
    sandbox: Sandbox,
    seed: int,
    num_tests: int = 8,
    computing: ComputingOptions | None = None,
) -> Agent:
    """The player of this name.

    Args:
        name: One of `known`, a language model (see `load_player`), or FILE.py:NAME, where NAME is a class that
            needs no arguments, or an agent.
        known: `CODERS` or `TESTERS`.
        problems: The problems of the game.
        sandbox: Where scripted players run what they must.
        seed: Seed of the player's random choices.
        num_tests: Tests of an answer of a scripted tester.
        computing: What was asked for of language models.

    Raises:
        InputError: There is no such player.
    """
    if ".py" in name:
        return _from_file(name)
    if name not in known and is_model(name):
        try:
            asked = computing or ComputingOptions()
            chosen = computing_for(name, asked.asked_dtype, asked.threads)
            Console(stderr=True).print(f"{name} computes in {chosen}.", highlight=False)
            return load_player(name, seed, computing=chosen)
        except (ValueError, ImportError) as error:
            raise InputError(str(error)) from error
    if name not in known:
        raise InputError(
            f"{unknown_name('player', name, known)} (FILE.py:NAME takes your own; {DEFAULT_MODEL}, owner/name or "
            "a folder takes a language model)"
        )
    bare = [problem.task_id for problem in problems if not problem.reference.strip()]
    if known is CODERS and bare:
        raise InputError(
            f"expect problems with a reference for the coder {name!r}, actually {bare[0]} has none. Choose a coder "
            "that writes its own programs"
        )
    if name == "mutant":
        return MutantCoder(problems, sandbox, seed=seed)
    if name == "reference":
        return ReferenceCoder(problems, seed=seed)
    if name == "golden":
        return GoldenTester(problems, num_tests, seed)
    return BoundaryTester(problems, sandbox, num_tests, seed)


def _from_file(name: str) -> Agent:
    """The agent that a file of the user's defines. It is their own code, and runs in this process."""
    file, colon, attribute = name.rpartition(":")
    if not colon:
        raise InputError(
            f"expect FILE.py:NAME, actually: {name!r}. Add a colon and the agent's name"
        )
    try:
        module = load_file(Path(file))
    except FileError as error:
        raise InputError(f"e{str(error)[1:]}") from error
    made = getattr(module, attribute, None)
    if made is None:
        raise InputError(f"expect {file} to define {attribute!r}, actually: it does not")
    agent = made() if isinstance(made, type) else made
    if not callable(getattr(agent, "act", None)):
        raise InputError(
            f"expect {attribute} in {file} to be an agent, actually: it has no method act"
        )
    return agent  # type: ignore[no-any-return]  # checked just now; the file is not known to mypy
