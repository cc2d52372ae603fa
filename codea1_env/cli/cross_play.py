"""`codea1 eval cross-play`: every coder against every tester."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from codea1_env.agents.llm.engines import is_model
from codea1_env.agents.opponents import SCRIPTED, Role, has_golden_tests
from codea1_env.cli.errors import InputError, check_least
from codea1_env.cli.parsing import SandboxLevel, parse
from codea1_env.cli.players import check_name, common_problems, is_own, make_player
from codea1_env.cli.tables import print_sheet
from codea1_env.evaluation.cross_play import CrossPlay, cross_play
from codea1_env.problems import check_playable
from codea1_env.referee import Referee
from codea1_env.rendering.display import counted, counted_of, short_names
from codea1_env.rendering.progress import WorkProgress, say
from codea1_env.report.sheet import Sheet
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.training.checkpoints import load_run, trained_on

_ROLES: tuple[Role, ...] = ("coder", "tester")


@dataclass(frozen=True)
class CrossPlayCommand:
    """Let every coder play against every tester; prints who beats whom, and ratings.

    A scripted player has one role (coders: mutant, planted, reference; testers: golden, boundary, copier, numbers). Others play both: a
    language model, FILE.py:NAME, or the folder of a run, whose last checkpoint plays.
    """

    players: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME ...")]
    """Players, by name, file or run folder: a coder and a tester at least."""
    problems: str | None = None
    """What they play; None for the problems that all given runs were trained on, or the starter set."""
    split: str | None = "train"
    """The split of --problems; None for all problems of the source."""
    max_problems: int | None = None
    """Play the first so many."""
    num_samples: int = 4
    """Programs per problem and coder."""
    seed: int = 0
    """Seed of the players' draws."""
    workers: int = 2
    """Sandbox processes that work at the same time. Has no influence on the results."""
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the results to stdout as one JSON object."""

    def __post_init__(self) -> None:
        check_least(self, num_samples=1, workers=1, max_problems=1, seed=0)

    def of_role(self, role: Role) -> list[str]:
        """The players of a role."""
        (other,) = (each for each in _ROLES if each != role)
        return [name for name in dict.fromkeys(self.players) if name not in SCRIPTED[other]]


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 eval cross-play`; returns the exit code."""
    command = parse(CrossPlayCommand, arguments, name="eval cross-play")
    for name in command.players:
        if not (is_own(name) or is_model(name) or Path(name).is_dir()):
            check_name(name, (*SCRIPTED["coder"], *SCRIPTED["tester"]))
    for role in _ROLES:
        if not command.of_role(role):
            raise InputError(
                f"expect a {role} among the players, actually: none. Add {' or '.join(SCRIPTED[role])}, FILE.py:NAME or "
                "the folder of a run"
            )
    played = _play(command)
    if command.json:
        print(json.dumps(played.to_dict()))
    else:
        _show(played, Console())
    return 0


def _play(command: CrossPlayCommand) -> CrossPlay:
    limits = Limits(call_cpu_time=0.5)
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(command.workers, limits, level=command.sandbox_level))
        every = tuple(dict.fromkeys(command.players))
        trained = {name: trained_on(Path(name)) for name in every if Path(name).is_dir()}
        problems = common_problems(command.problems, command.split, list(trained.values()))
        problems = problems[: command.max_problems]
        check_playable(problems)
        bare = [each for each in problems if not has_golden_tests(each)]
        console = Console(stderr=True)
        if bare and "golden" in every:
            part = counted_of(len(bare), len(problems), "problems")
            say(console, f"The tester golden has no tests for {part}")
        runs = {name: load_run(Path(name), sandbox, stack) for name in trained}
        names = short_names(every)
        coders, testers = (
            {
                names[name]: make_player(name, role, problems, sandbox, command.seed, runs=runs)
                for name in command.of_role(role)
            }
            for role in _ROLES
        )
        shown = stack.enter_context(WorkProgress(console))
        shown.begin("coders", len(coders))
        samples = command.num_samples
        return cross_play(coders, testers, problems, Referee(sandbox), samples, shown.tell)


def _show(played: CrossPlay, console: Console) -> None:
    rows = [
        [name, *(f"{rate:.3f} ({n:.1f})" for rate, n in zip(rates, tests, strict=True))]
        for name, rates, tests in zip(
            played.coders, played.win_rates, played.right_tests, strict=True
        )
    ]
    number = counted(len(played.problems), "problems")
    note = (
        f"Share of programs for {number} that run and that no right test of a suite breaks; a suite without a right test "
        "breaks none. In brackets: right tests in a suite."
    )
    headings = ["coder \\ tester", *played.testers]
    print_sheet(Sheet.of([headings, *rows], note=note), console)
    ratings = [
        [name, role, f"{each.value:.0f} {each.interval('{:.0f}'.format)}"]
        for role, side in zip(_ROLES, played.ratings(), strict=True)
        for name, each in sorted(side.items(), key=lambda item: -item[1].value)
    ]
    note = "Ratings: Bradley-Terry, on the scale of Elo; intervals over problems."
    print_sheet(Sheet.of([["player", "role", "rating [95%]"], *ratings], note=note), console)
