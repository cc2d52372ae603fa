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

from codea1_env.baselines.diagnose.experiments import (
    EXPERIMENTS,
    Experiment,
    expectations,
    find_experiments,
    with_rows,
)
from codea1_env.baselines.diagnose.running import RowRun, run_all, wanted
from codea1_env.baselines.diagnose.scores import SCORES, content_of
from codea1_env.cli.errors import INTERRUPTED, InputError, check_least, library_errors, user_input
from codea1_env.cli.parsing import parse
from codea1_env.cli.tables import print_markdown
from codea1_env.rendering.display import clock, counted
from codea1_env.rendering.progress import say
from codea1_env.report.diagnostics import diagnosis
from codea1_env.report.folders import Diagnosed
from codea1_env.support.jobs import DIAGNOSTICS, FolderError, Jobs
from codea1_env.support.logs import write_whole
from codea1_env.support.plugins import find_in_working_folder
from codea1_env.support.stopping import terminable

_QUICK_SEEDS = 2


@dataclass(frozen=True)
class DiagnoseCommand:
    """Ask what an adversary is good for, in generated worlds whose faults are known exactly.

    Each experiment turns one knob, and shows every row beside a control that could refute it. Writes results.jsonl, to
    which every run is added when it ends, DIAGNOSE.md and scores.json (`codea1 report FOLDER` shows them). Exit code 1 if a run failed.
    """

    names: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="EXPERIMENT ...", help=f"All if none is named: {', '.join(EXPERIMENTS)}."
        ),
    ] = ()
    rows: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = ()
    """More rows for each experiment, beside its own: algorithms (ppo, "ppo(entropy=0.02)", FILE.py:CLASS), players of
    yours (FILE.py:CLASS), rewards, or rows of other experiments."""
    seeds: int | None = None
    """Runs of each row in each setting; None for 5, or 2 with --quick."""
    first_seed: int = 0
    """The first seed. What is tuned should be tuned on seeds from 1000 on."""
    quick: bool = False
    """Three settings of each experiment, two seeds, and without rows that take long if they are not in --rows."""
    processes: int = len(os.sched_getaffinity(0))
    """Worlds at the same time. Has no influence on the results."""
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
        chosen = find_experiments(command.names)
        experiments = [with_rows(each, command.rows, quick=quick) for each in chosen]
        worlds = wanted(experiments, seeds, quick)
        asked = {
            "experiments": command.names,
            "rows": command.rows,
            "seeds": list(seeds),
            "quick": quick,
        }
        typed = f"codea1 bench diagnose {shlex.join(arguments)}".rstrip()
        jobs = Jobs(folder, asked, DIAGNOSTICS, resume=None, command=typed)
    tell = _Shown(console, experiments, seeds).tell
    try:
        with jobs, terminable(), library_errors():
            runs = run_all(worlds, jobs, processes=command.processes, tell=tell)
    except FolderError as error:
        raise InputError(str(error)) from error
    except KeyboardInterrupt:
        say(console, f"To go on, say the same with --output-dir {folder}")
        return INTERRUPTED
    content = content_of(experiments, runs, expectations())
    write_whole(folder / SCORES, json.dumps(content, indent=1, allow_nan=False) + "\n")
    text = diagnosis(Diagnosed(folder.name, content["scores"], content["experiments"]))
    (folder / "DIAGNOSE.md").write_text(text, encoding="utf-8")
    if command.json:
        print(json.dumps({"output_dir": str(folder), "runs": [vars(each) for each in runs]}))
    else:
        print_markdown(text, console)
    say(console, f"Results folder: {folder}")
    return 1 if any(each.error for each in runs) else 0


class _Shown:
    """Shows a row of a setting after its first seed and after its last, and how long the rest takes."""

    def __init__(
        self, console: Console, experiments: Sequence[Experiment], seeds: Sequence[int]
    ) -> None:
        self._seeds = seeds
        self._console = console
        self._measures = {each.name: each.measure for each in experiments}
        self._runs: dict[tuple[str, str, str], list[RowRun]] = {}

    def tell(self, run: RowRun, left: int, seconds: float | None) -> None:
        """Take note of a run."""
        runs = self._runs.setdefault((run.experiment, run.setting, run.row), [])
        runs.append(run)
        if run.error:
            say(
                self._console,
                f"{run.experiment} {run.setting} {run.row}, seed {run.seed}: {run.error}",
            )
        if 1 < len(runs) < len(self._seeds):
            return
        measure = self._measures[run.experiment]
        values = [v for each in runs if (v := each.measures.get(measure)) is not None]
        mean = f"{sum(values) / len(values):.3f}" if values else "failed"
        of = "" if len(runs) == len(self._seeds) else f"seed 1 of {len(self._seeds)}; "
        about = "" if seconds is None else f", about {clock(seconds)}"
        runs_left = counted(left, "runs")
        rest = f"{runs_left} left{about}" if left else "the last run"
        say(
            self._console,
            f"{run.experiment:12} {run.setting:>6} {run.row:18} {measure} {mean}   {of}{rest}",
        )
