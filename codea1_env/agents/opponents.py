"""Players by name: scripted ones, and players of your own."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from codea1_env.agents.planted import NumbersTester, PlantedCoder
from codea1_env.agents.protocols import Setting, own_player
from codea1_env.agents.scripted import (
    BoundaryTester,
    CopierTester,
    GoldenTester,
    MutantCoder,
    ReferenceCoder,
    ScriptedAgent,
    writable,
)
from codea1_env.agents.tabular import Pool, pool_of_programs, pool_of_tests
from codea1_env.evaluation.held_out import hold_out
from codea1_env.problem_sets.expected import unknown_cases
from codea1_env.problems import Problem
from codea1_env.rollout import Agent
from codea1_env.sandbox import Sandbox

Role = Literal["coder", "tester"]
SCRIPTED: Mapping[Role, tuple[str, ...]] = {
    "coder": ("mutant", "planted", "reference"),
    "tester": ("golden", "boundary", "copier", "numbers"),
}
"""Names of scripted players, by role."""
_Script = ScriptedAgent | CopierTester | PlantedCoder | NumbersTester
Opponent = str | Agent | Callable[..., Agent]
"""A player: a name, an agent, or what makes one (see `codea1_env.agents.own_player`)."""


def make_opponent(
    player: Opponent,
    role: Role,
    problems: Sequence[Problem],
    sandbox: Sandbox,
    seed: int = 0,
    num_tests: int = 8,
) -> Agent:
    """Make a player.

    Args:
        player: A name in `SCRIPTED`, ``FILE.py:NAME`` or ``module:NAME``, an agent, or what makes one.
        role: What it plays.
        problems: The problems of the game, which scripted players know.
        sandbox: Where scripted players run what they must.
        seed: Seed of the player's random choices.
        num_tests: Tests of an answer of a scripted tester.

    Raises:
        ValueError: There is no such player, or it cannot be made, or these are no problems for it.
    """
    if not isinstance(player, str) or ":" in player or player.endswith(".py"):

        def pools() -> list[Pool]:
            splits = hold_out(problems, sandbox, seed)
            if role == "coder":
                return [pool_of_programs(split) for split in splits]
            return [pool_of_tests(split, sandbox, seed=seed) for split in splits]

        return own_player(player, Setting(role, num_tests, 1.0, seed, sandbox, pools))
    known = SCRIPTED[role]
    if player not in known:
        near = difflib.get_close_matches(player, known, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"Expect the {role} to be one of {', '.join(known)}, FILE.py:NAME or an agent, actually: {player!r}.{meant}"
        )
    check_scripted(player, role, problems)
    return scripted(player, problems, sandbox, seed, num_tests)


def check_scripted(name: str, role: Role, problems: Sequence[Problem]) -> None:
    """Raise a ValueError for a problem that a scripted coder has no program for, or if "golden" has a test for none."""
    bare = [problem.task_id for problem in problems if not problem.reference.strip()]
    if role == "coder" and bare:
        raise ValueError(
            f"Expect problems with a reference for the coder {name!r}, actually {bare[0]} has none. Choose a coder "
            "that writes its own programs"
        )
    if name == "golden" and not any(map(has_golden_tests, problems)):
        raise ValueError(
            f"Expect problems with golden tests for the tester {name!r}, actually none of {len(problems)} has one. "
            "Choose a tester that writes its own tests"
        )


def has_golden_tests(problem: Problem) -> bool:
    """Whether the tester "golden" writes something for a problem; it asks for unknown values."""
    return bool(unknown_cases(problem)) or any(map(writable, problem.tests))


def scripted(
    name: str, problems: Sequence[Problem], sandbox: Sandbox, seed: int, num_tests: int
) -> _Script:
    """Make a scripted player of a name in `SCRIPTED`."""
    makers: dict[str, Callable[[], _Script]] = {
        "mutant": lambda: MutantCoder(problems, sandbox, seed),
        "planted": lambda: PlantedCoder(problems, sandbox, seed),
        "reference": lambda: ReferenceCoder(problems, seed),
        "copier": lambda: CopierTester(num_tests),
        "numbers": lambda: NumbersTester(num_tests),
        "golden": lambda: GoldenTester(problems, num_tests, seed, sandbox),
        "boundary": lambda: BoundaryTester(problems, sandbox, num_tests, seed),
    }
    return makers[name]()
