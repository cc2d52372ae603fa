"""`codea1 eval cross-play`: every coder against every tester."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

import codea1_env
from codea1_env.agents.opponents import SCRIPTED, Role, has_golden_tests
from codea1_env.cli.errors import (
    INTERRUPTED,
    InputError,
    check_least,
    library_errors,
)
from codea1_env.cli.parsing import SandboxLevel, parse
from codea1_env.cli.players import common_problems, make_player, reseeding
from codea1_env.cli.tables import EvaluationProgress, print_markdown, say
from codea1_env.evaluation.cross_play import CrossPlayEvaluation, Opponents, write_cross_play
from codea1_env.evaluation.report import build_report
from codea1_env.evaluation.result_folder import (
    CROSS_PLAY,
    REPORT,
    VERDICTS,
    FolderError,
    ResultFolder,
)
from codea1_env.evaluation.runner import AgentOf, EvaluationPlan, EvaluationRun, Stopped
from codea1_env.evaluation.samples import digest_of_problems
from codea1_env.problems import Problem, check_playable
from codea1_env.rendering.display import counted_of, short_names
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.support.plugins import digest_of
from codea1_env.support.stopping import stop_request
from codea1_env.training import RunError
from codea1_env.training.checkpoints import checkpoints, load_run


@dataclass(frozen=True)
class CrossPlayCommand:
    """Let every coder play against every tester.

    A player is a name (coders: mutant, reference; testers: golden, boundary, copier), FILE.py:NAME, or the folder of a
    run, whose last checkpoint plays. Writes CROSSPLAY.md and crossplay.json; `codea1 report` draws a heat map.
    """

    coders: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = SCRIPTED["coder"]
    """Coders, by name, file or run folder."""
    testers: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = SCRIPTED["tester"]
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
    output_dir: Path | None = None
    """Where the results are written; None for a new folder in runs/, named after the time."""
    resume: bool = False
    """Go on with what --output-dir holds, after the last coder whose programs were attacked; the other options must be
    the same."""
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the results to stdout as one JSON object."""

    def __post_init__(self) -> None:
        check_least(self, num_samples=1, workers=1, max_problems=1, seed=0)
        for option, names, known in (
            ("--coders", self.coders, SCRIPTED["coder"]),
            ("--testers", self.testers, SCRIPTED["tester"]),
        ):
            if not names:
                raise ValueError(
                    f"Expect {option} to name at least one player, actually: none. Name {' or '.join(known)}, "
                    "FILE.py:NAME or the folder of a run, or leave the option out"
                )
        if self.output_dir and self.output_dir.exists() and not self.output_dir.is_dir():
            raise ValueError(
                f"Expect --output-dir to be a folder, actually {self.output_dir} is a file. Name another"
            )


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 eval cross-play`; returns the exit code."""
    command = parse(CrossPlayCommand, arguments, name="eval cross-play")
    path = command.output_dir or Path("runs") / time.strftime("cross-play-%Y%m%d-%H%M%S")
    try:
        typed = f"codea1 eval cross-play {shlex.join(arguments)}".rstrip()
        written = _play(command, path, typed)
    except (FolderError, RunError) as error:
        raise InputError(str(error)) from error
    except (Stopped, KeyboardInterrupt):
        say(
            Console(stderr=True),
            f"Stopped. To go on, add: --resume --output-dir {path}",
        )
        return INTERRUPTED
    if command.json:
        print(json.dumps(json.loads(written[1].read_text(encoding="utf-8"))))
        return 0
    print_markdown(written[0].read_text(encoding="utf-8"), Console())
    for path in written:
        say(Console(), str(path))
    return 0


def _play(command: CrossPlayCommand, path: Path, typed: str) -> list[Path]:
    """Make the players, let them play, and write what came of it."""
    limits = Limits(call_cpu_time=0.5)
    with library_errors(), ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(command.workers, limits, level=command.sandbox_level))
        every = tuple(dict.fromkeys((*command.coders, *command.testers)))
        runs = {name: load_run(Path(name), sandbox, stack) for name in every if Path(name).is_dir()}
        problems = common_problems(command.problems, command.split, list(runs.values()))
        problems = problems[: command.max_problems]
        check_playable(problems)
        bare = [each for each in problems if not has_golden_tests(each)]
        if bare and "golden" in command.testers:
            part = counted_of(len(bare), len(problems), "problems")
            say(Console(stderr=True), f"The tester golden has no tests for {part}")

        def player(name: str, role: Role) -> AgentOf:
            seed = command.seed
            return reseeding(make_player(name, role, problems, sandbox, seed, runs=runs))

        names = short_names(every)
        coders = {names[name]: player(name, "coder") for name in command.coders}
        testers = {names[name]: player(name, "tester") for name in command.testers}

        def opponents(_: int) -> Any:
            """All players; what they draw begins anew with each coder."""
            sides = ({n: of(command.seed) for n, of in side.items()} for side in (coders, testers))
            return Opponents(*sides)

        own = CrossPlayEvaluation(coders=tuple(coders), testers=tuple(testers))
        own.load(problems)
        settings = _settings(command, every, problems) | {"evaluates": own.kind}
        folder = stack.enter_context(
            ResultFolder(path, settings, resume=command.resume, kind=CROSS_PLAY, command=typed)
        )
        stop = stack.enter_context(stop_request())
        stop.step = "the programs that run now"
        own.begin(sandbox)
        console = Console(stderr=True)
        shown = stack.enter_context(EvaluationProgress(console, own))
        size = len(problems) * command.num_samples
        shown.begin(own.unit, size * len(coders), len(folder.rows(VERDICTS)))
        at_work = EvaluationRun(
            own, folder, lambda: stop.requested, command.workers + 1, partial(say, console)
        )
        plan = EvaluationPlan(command.num_samples, size, command.seed)
        at_work.judge_agent(opponents, plan, shown.judged)
        folder.write(REPORT, build_report(own, settings, {}))
    return write_cross_play(path, own.played())


def _settings(command: CrossPlayCommand, players: Sequence[str], problems: Sequence[Problem]) -> dict[str, Any]:  # fmt: skip
    """All that the results depend on."""
    states = {
        name: checkpoints(Path(name))[-1].name if Path(name).is_dir() else digest_of(name)
        for name in players
    }
    return {
        "codea1_env": codea1_env.__version__,
        "coders": list(command.coders),
        "testers": list(command.testers),
        "states": {name: state for name, state in states.items() if state},
        "problems": command.problems,
        "split": command.split,
        "max_problems": command.max_problems,
        "problems_sha256": digest_of_problems(problems),
        "num_samples": command.num_samples,
        "seed": command.seed,
    }
