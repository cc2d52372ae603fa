"""`codea1 play`: one episode between two players, shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import tyro

from codea1_env.cli.errors import (
    InputError,
    check_least,
    library_errors,
    unknown_name,
    user_input,
)
from codea1_env.cli.parsing import ComputingOptions, SandboxLevel, parse
from codea1_env.cli.players import CODERS, TESTERS, make_player
from codea1_env.code_a1_v1 import parallel_env
from codea1_env.problems import Problem, load_problems
from codea1_env.rollout import AnswerError, ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import CODER, TESTER


@dataclass(frozen=True)
class PlayCommand(ComputingOptions):
    """Play one episode between two players, and show it."""

    problem: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None
    """The problem, as in `codea1 problems list`; without it the seed decides."""
    problems: Annotated[str, tyro.conf.arg(metavar="SOURCE")] = "starter"
    """Where problems come from: "starter", a data set, a .jsonl, .jsonl.gz or .parquet file, or FILE.py:NAME (a function of yours)."""
    coder: Annotated[str, tyro.conf.arg(metavar="NAME|MODEL|FILE.py:NAME")] = "mutant"
    """Who writes the program: "mutant" (the reference with one fault), "reference", a language model
    ("smollm2-135m", owner/name on the hub, a folder with a model or with an exported adapter), or a class of
    yours that has the method `act`."""
    tester: Annotated[str, tyro.conf.arg(metavar="NAME|MODEL|FILE.py:NAME")] = "golden"
    """Who writes the tests: "golden" (the problem's own), "boundary" (moves arguments to the boundaries of
    their types), "copier" (the examples that the problem's text shows), a language model, or a class of yours."""
    rewards: Annotated[str, tyro.conf.arg(metavar="NAME|FILE.py:NAME")] = "code-a1"
    """What both are paid: "code-a1" (the paper's), "execution-first", another name in `codea1_env.rewards.REWARDS`, or a function of yours."""
    rounds: int = 1
    """Rounds of the episode. From the second on the coder sees which tests broke its program."""
    render: Literal["human", "ansi", "html"] = "human"
    """How to show it: for this terminal, as text with colour codes, or as an HTML page on stdout."""
    seed: int = 0
    """Decides the problem and the players' choices."""
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print what happened as one JSON object instead."""

    def __post_init__(self) -> None:
        check_least(self, rounds=1, seed=0)


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 play`; returns the exit code."""
    command = parse(PlayCommand, arguments, name="play")
    with user_input():
        problems = load_problems(command.problems)
    known = [problem.task_id for problem in problems]
    if command.problem is not None and command.problem not in known:
        raise unknown_name("problem", command.problem, known)
    with library_errors(), Sandbox(level=command.sandbox_level) as sandbox:
        play(command, problems, sandbox)
    return 0


def play(command: PlayCommand, problems: Sequence[Problem], sandbox: Sandbox) -> None:
    """Play the episode and show it."""
    with user_input():
        env = parallel_env(
            problems=problems,
            max_rounds=command.rounds,
            rewards=command.rewards,
            render_mode=None if command.json else command.render,
            sandbox=sandbox,
        )
    chosen = {} if command.problem is None else {"problem_id": command.problem}
    observations, infos = env.reset(seed=command.seed, options=chosen)
    make = partial(make_player, problems=problems, sandbox=sandbox, seed=command.seed)
    players = {
        CODER: make(command.coder, CODERS, computing=command),
        TESTER: make(command.tester, TESTERS, computing=command),
    }
    turns: list[dict[str, Any]] = []
    while env.agents:
        actor = infos[CODER]["active_agent"]
        role = "coder" if actor == CODER else "tester"
        try:
            (action,) = ask(players[actor], role, [observations[actor]])
        except AnswerError as error:
            raise InputError(str(error)) from error
        observations, rewards, _, _, infos = env.step({actor: action})
        turns.append({"agent": actor, "action": action, "rewards": rewards, "info": infos[actor]})
    if command.json:
        task_id = infos[CODER]["task_id"]
        print(json.dumps({"problem": task_id, "seed": command.seed, "turns": turns}, indent=2))
    elif command.render != "human":  # a human has seen every round when it was judged
        print(env.render())
