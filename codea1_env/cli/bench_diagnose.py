"""`codea1 bench diagnose`: what a learned adversary is good for, question by question."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from codea1_env.baselines.diagnose.experiments import EXPERIMENTS, find_experiments, find_row
from codea1_env.baselines.diagnose.running import RowRun, run_experiment
from codea1_env.baselines.diagnose.scores import SCORES, content_of
from codea1_env.cli.errors import INTERRUPTED, check_least, user_input
from codea1_env.cli.parsing import parse
from codea1_env.cli.tables import print_markdown
from codea1_env.rendering.progress import say
from codea1_env.report.diagnostics import diagnosis
from codea1_env.report.folders import Diagnosed
from codea1_env.support.jobs import DIAGNOSTICS, Jobs
from codea1_env.support.logs import write_whole
from codea1_env.support.plugins import find_in_working_folder
from codea1_env.support.stopping import terminable

_QUICK_SEEDS = 2


@dataclass(frozen=True)
class DiagnoseCommand:
    """Ask what an adversary is good for, in the worlds of codea1-suite.

    Each experiment turns one knob, and shows every row beside a control that could refute it. Writes a record of each run,
    DIAGNOSE.md and scores.json (`codea1 report FOLDER` shows them). Exit code 1 if a run failed.
    """

    names: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="EXPERIMENT ...", help=f"All if none is named: {', '.join(EXPERIMENTS)}."
        ),
    ] = ()
    rows: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = ()
    """More rows for each experiment, beside its own: algorithms (ppo, "ppo(entropy=0.02)", FILE.py:CLASS), rows of the suite
    (memory), and either by other rules (ppo@no-book, grpo@learnability)."""
    seeds: int | None = None
    """Runs of each row in each setting; None for 5, or 2 with --quick."""
    first_seed: int = 0
    """The first seed. What is tuned should be tuned on seeds from 1000 on."""
    quick: bool = False
    """Three settings of each experiment, and two seeds."""
    processes: int = len(os.sched_getaffinity(0))
    """Records at the same time. Has no influence on the results."""
    output_dir: Path | None = None
    """Results folder; None for a new one in runs/, named after the time. Runs that it has are not made again."""
    json: bool = False
    """Print the runs to stdout as one JSON object; all else goes to stderr."""

    def __post_init__(self) -> None:
        check_least(self, seeds=1, processes=1, first_seed=0)


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 bench diagnose`; returns the exit code."""
    find_in_working_folder()
    command = parse(DiagnoseCommand, arguments, name="bench diagnose")
    number, quick = command.seeds or (_QUICK_SEEDS if command.quick else 5), command.quick
    folder = command.output_dir or Path("runs") / time.strftime("diagnose-%Y%m%d-%H%M%S")
    console = Console(stderr=command.json)
    seeds = range(command.first_seed, command.first_seed + number)
    with user_input():  # neither a wrong name nor a damaged file should cost a run
        experiments = find_experiments(command.names, command.rows)
        for name in command.rows:
            find_row(name)
        asked = {
            "experiments": command.names,
            "rows": command.rows,
            "seeds": [*seeds],
            "quick": quick,
        }
        typed = f"codea1 bench diagnose {shlex.join(arguments)}".rstrip()
        jobs = Jobs(folder, asked, DIAGNOSTICS, resume=None, command=typed)
    left, runs = sum(len(each.rows) for each in experiments), list[RowRun]()

    def tell(name: str, came: list[RowRun]) -> None:
        nonlocal left
        left -= 1
        say(console, f"{name:12} {came[0].row:30} {_told(came)}   {left} rows left")

    try:
        with jobs, terminable():
            for each in experiments:
                runs += run_experiment(folder, each, seeds, quick=quick, processes=command.processes, tell=tell)  # fmt: skip
    except KeyboardInterrupt:
        say(console, f"To go on, say the same with --output-dir {folder}")
        return INTERRUPTED
    content = content_of(experiments, runs)
    write_whole(folder / SCORES, json.dumps(content, indent=1, allow_nan=False) + "\n")
    text = diagnosis(Diagnosed(folder.name, content["scores"], content["experiments"]))
    (folder / "DIAGNOSE.md").write_text(text, encoding="utf-8")
    if command.json:
        print(json.dumps({"output_dir": str(folder), "runs": [each._asdict() for each in runs]}))
    else:
        print_markdown(text, console)
    say(console, f"Results folder: {folder}")
    return 1 if any(each.error for each in runs) else 0


def _told(runs: Sequence[RowRun]) -> str:
    """Say the means of a row over seeds, setting by setting, and why runs failed."""
    errors = dict.fromkeys(run.error for run in runs if run.error)
    means = []
    for setting in dict.fromkeys(run.setting for run in runs):
        values = [v for run in runs if run.setting == setting and (v := run.value) is not None]
        means.append(f"{sum(values) / len(values):.3f}" if values else "failed")
    return "; ".join([" ".join(means), *errors])
