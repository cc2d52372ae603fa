"""Players by name, language models, or players from a file of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from codea1_env.agents import Agent, opponents
from codea1_env.agents.llm.engines import computing_for, is_model, load_player
from codea1_env.agents.models import DEFAULT_MODEL
from codea1_env.agents.opponents import SCRIPTED, make_opponent
from codea1_env.cli.errors import InputError, unknown_name, user_input
from codea1_env.cli.parsing import ComputingOptions
from codea1_env.cli.tables import say
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Sandbox

if TYPE_CHECKING:
    from codea1_env.training.checkpoints import SavedRun

CODERS, TESTERS = SCRIPTED["coder"], SCRIPTED["tester"]


def is_own(name: str) -> bool:
    """Whether a player's name means one of the user's: FILE.py:NAME or module:NAME.

    Example:
        >>> is_own("mine.py:Coder"), is_own("golden"), is_own("http://127.0.0.1:8000/v1")
        (True, False, False)
    """
    return (":" in name and "://" not in name) or name.endswith(".py")


def check_name(name: str, known: Sequence[str]) -> None:
    """Raise an `InputError` for a name that no scripted player has."""
    if name not in known:
        raise InputError(
            f"{unknown_name('player', name, known)} (FILE.py:NAME takes your own; {DEFAULT_MODEL}, owner/name or "
            "a folder takes a language model)"
        )


def check_references(name: str, known: Sequence[str], problems: Sequence[Problem]) -> None:
    """Raise an `InputError` for problems that a scripted coder has no program for."""
    with user_input():
        opponents.check_references(name, _role_of(known), problems)


def make_player(
    name: str,
    known: Sequence[str],
    problems: Sequence[Problem],
    sandbox: Sandbox,
    seed: int,
    num_tests: int = 8,
    computing: ComputingOptions | None = None,
) -> Agent:
    """Return the player of this name.

    Args:
        name: One of `known`, a language model (see `load_player`), or FILE.py:NAME (see `own_player`).
        known: `CODERS` or `TESTERS`.
        problems: The problems of the game.
        sandbox: Where scripted players run what they must.
        seed: Seed of the player's random choices.
        num_tests: Tests of an answer of a scripted tester.
        computing: What was asked for of language models.

    Raises:
        InputError: There is no such player.
    """
    try:
        if not is_own(name) and name not in known and is_model(name):
            asked = computing or ComputingOptions()
            chosen = computing_for(name, asked.asked_dtype, asked.threads)
            say(Console(stderr=True), f"{name} computes in {chosen}.")
            return load_player(name, seed, computing=chosen)
        if not is_own(name):
            check_name(name, known)
        return make_opponent(name, _role_of(known), problems, sandbox, seed, num_tests)
    except (ValueError, ImportError) as error:
        raise InputError(str(error)) from error


def _role_of(known: Sequence[str]) -> opponents.Role:
    return "coder" if known is CODERS else "tester"


def common_problems(
    source: str | None, split: str | None, runs: Sequence[SavedRun]
) -> list[Problem]:
    """Return what runs can play: of the source, or of the first run without one, what every table knows."""
    if source is not None or not runs:
        with user_input():
            found = load_problems(source or "starter", split)
    else:
        found = list(runs[0].problems)
    for each in runs:
        if "tabular" in (each.config.coder.player, each.config.tester.player):
            known = {problem.task_id for problem in each.problems}
            found = [problem for problem in found if problem.task_id in known]
    if not found:
        raise InputError(
            "expect problems that every run was trained on, actually: there is none that all have in common. "
            "Name runs with the same problems"
        )
    return found
