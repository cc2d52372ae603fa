"""`codea1 bench cross-play`: every coder against every tester."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from codea1_env.agents import Agent
from codea1_env.cli.errors import InputError, library_errors, user_input
from codea1_env.cli.markdown import print_markdown
from codea1_env.cli.parsing import SandboxLevel, parse
from codea1_env.cli.players import CODERS, TESTERS, make_player
from codea1_env.evaluation.cross_play import cross_play, write_cross_play
from codea1_env.evaluation.result_folder import short_names
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.training import RunError
from codea1_env.training.saved_run import SavedRun, load_run


@dataclass(frozen=True)
class CrossPlayCommand:
    """Let every coder play against every tester.

    A player is a name (coders: reference, mutant; testers: golden, boundary), FILE.py:NAME, or the folder of a
    run, whose last checkpoint plays. Writes CROSSPLAY.md, crossplay.json and a heat map.
    """

    coders: tuple[str, ...] = CODERS
    """Coders, by name, file or run folder."""
    testers: tuple[str, ...] = TESTERS
    """Testers, by name, file or run folder."""
    problems: str | None = None
    """What they play; None for the problems that all given runs were trained on, or the starter set."""
    split: str | None = "train"
    """The split of --problems; None for all problems of the source."""
    max_problems: int | None = None
    """Play the first so many."""
    num_samples: int = 4
    """Programs per problem and coder."""
    seed: int = 0
    """Seed of scripted players."""
    workers: int = 2
    """Sandbox processes that work at the same time. Has no influence on the results."""
    output_dir: Path = Path("runs/cross-play")
    """Where the results are written."""
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the results to stdout as one JSON object."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 bench cross-play`; returns the exit code."""
    command = parse(CrossPlayCommand, arguments, name="bench cross-play")
    _check(command)
    limits = Limits(call_cpu_time=0.5)
    with library_errors(), ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(command.workers, limits, level=command.sandbox_level))
        try:
            runs = {
                name: load_run(Path(name), sandbox, stack)
                for name in dict.fromkeys((*command.coders, *command.testers))
                if Path(name).is_dir()
            }
        except RunError as error:
            raise InputError(str(error)) from error
        problems = _problems(command, list(runs.values()))

        def player(name: str, known: Sequence[str]) -> Agent:
            if name in runs:
                players = runs[name].players
                return players.coder if known is CODERS else players.tester
            return make_player(name, known, problems, sandbox, command.seed)

        names = short_names((*command.coders, *command.testers))
        coders = {names[name]: player(name, CODERS) for name in command.coders}
        testers = {names[name]: player(name, TESTERS) for name in command.testers}
        referee = Referee(sandbox)
        with Console(stderr=True).status("playing"):
            result = cross_play(coders, testers, problems, referee, command.num_samples)
    written = write_cross_play(command.output_dir, result)
    if command.json:
        print(json.dumps(json.loads(written[1].read_text(encoding="utf-8"))))
        return 0
    text = written[0].read_text(encoding="utf-8")
    console = Console()
    print_markdown(text, console)
    for path in written:
        console.print(str(path), highlight=False, soft_wrap=True)
    return 0


def _check(command: CrossPlayCommand) -> None:
    """Refuse what would fail only after the players have been made, or after they have played."""
    for option, names, known in (
        ("--coders", command.coders, CODERS),
        ("--testers", command.testers, TESTERS),
    ):
        if not names:
            raise InputError(
                f"expect {option} to name at least one player, actually: none. Name {' or '.join(known)}, "
                "FILE.py:NAME or the folder of a run, or leave the option out"
            )
    for option, number, least in (
        ("--num-samples", command.num_samples, 1),
        ("--workers", command.workers, 1),
        ("--max-problems", 1 if command.max_problems is None else command.max_problems, 1),
        ("--seed", command.seed, 0),
    ):
        if number < least:
            raise InputError(
                f"expect {option} to be at least {least}, actually: {number}. Give a larger one"
            )
    if command.output_dir.exists() and not command.output_dir.is_dir():
        raise InputError(
            f"expect --output-dir to be a folder, actually {command.output_dir} is a file. Name another"
        )


def _problems(command: CrossPlayCommand, runs: Sequence[SavedRun]) -> list[Problem]:
    """What to play: what was asked for, and nothing that a player of a run does not know."""
    if command.problems is not None or not runs:
        with user_input():
            found = load_problems(command.problems or "starter", command.split)
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
    return found[: command.max_problems]
