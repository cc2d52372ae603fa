"""`codea1 bench algorithms`: which algorithm and which baseline trains the better players."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from codea1_env.baselines.bench.results import (
    SWEEP,
    Result,
    RunTable,
    TrainingJob,
    jobs_of,
    open_folder,
    read_settings,
    results_of,
    write_results,
)
from codea1_env.baselines.bench.schedule import check_files, run_all
from codea1_env.baselines.bench.suite import (
    QUICK,
    SWEEP_SEED,
    BenchConfig,
    Entry,
    find_entry,
    with_preset,
)
from codea1_env.baselines.bench.sweep import choose, failures_of, sweep_jobs
from codea1_env.cli.errors import INTERRUPTED, InputError, user_input
from codea1_env.cli.parsing import parse, parse_some
from codea1_env.cli.tables import print_markdown
from codea1_env.problems import load_problems
from codea1_env.rendering.display import counted, counted_of
from codea1_env.rendering.progress import WorkProgress, say
from codea1_env.report.benchmarks import leaderboard
from codea1_env.support.jobs import Jobs, results_in
from codea1_env.support.machine import this_machine
from codea1_env.support.plugins import find_in_working_folder
from codea1_env.support.stopping import terminable
from codea1_env.training import TrainConfig
from codea1_env.training.config import check_algorithms
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.trainer_arguments import check_trainers


@dataclass(frozen=True)
class Basis:
    """What decides the defaults of the other options."""

    preset: str | None = None
    quick: bool = False
    resume: bool = False
    output_dir: Path | None = None


@dataclass(frozen=True)
class AlgorithmsCommand:
    """Train with each algorithm over several seeds, and compare them.

    First each one's learning rates are chosen in runs with other seeds (--sweep). Writes LEADERBOARD.md, results.jsonl,
    sweep.jsonl and plots to the results folder. Exit code 1 if a run failed.
    """

    settings: Annotated[BenchConfig, tyro.conf.arg(name="")] = field(default_factory=BenchConfig)
    quick: bool = False
    """A benchmark of about two minutes (of tabular players), which only shows that everything works: no learning rates
    are swept."""
    output_dir: Path | None = None
    """Results folder; None for a new one in runs/, named after the time."""
    resume: bool = False
    """Go on with the benchmark in --output-dir, with its own settings, and run again what failed; more algorithms and
    seeds, and another sweep, may be given, which it then goes on with."""
    json: bool = False
    """Print the results to stdout as one JSON object; the progress display goes to stderr."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 bench algorithms`; returns the exit code."""
    find_in_working_folder()
    basis = parse_some(Basis, arguments, name="bench algorithms")
    if basis.resume and basis.output_dir is None:
        raise InputError("expect --output-dir DIR with --resume: the results folder to go on with")
    if basis.preset is not None and basis.quick:
        raise InputError("expect --quick or --preset, actually: both. --max-steps shortens runs")
    settings = QUICK if basis.quick else BenchConfig()
    with user_input():
        if basis.preset is not None:
            settings = with_preset(settings, basis.preset)
        elif basis.output_dir and basis.resume and not basis.quick and results_in(basis.output_dir):
            settings = read_settings(basis.output_dir)
    default = AlgorithmsCommand(settings=settings)
    command = parse(AlgorithmsCommand, arguments, name="bench algorithms", default=default)
    folder = command.output_dir or Path("runs") / time.strftime("algorithms-%Y%m%d-%H%M%S")
    with user_input():  # a wrong name should not cost a run
        entries = list(dict.fromkeys(map(find_entry, command.settings.algorithms)))
        # Files are kept by their full names, so that a benchmark can be resumed from anywhere.
        names = tuple(each.name for each in entries)
        config = dataclasses.replace(command.settings, algorithms=names, preset=settings.preset)
        base = config.base(0)
        load_problems(base.problems, base.split)
        for entry in entries:
            try:
                check_row(entry, base, partial(say, Console(stderr=True)))
            except ValueError as error:
                raise InputError(f"{entry.name}: {error}") from error
        jobs = open_folder(folder, config, resume=command.resume)
    with jobs:
        return _run(command, config, entries, jobs)


def check_row(entry: Entry, base: TrainConfig, tell: Callable[[str], None]) -> None:
    """Raise a ValueError if a run of a row could not begin; `tell` hears what takes long to check."""
    settings = entry.apply(base)
    check_algorithms(settings, files=True)
    if entry.kind != "player" and settings.engine == "local":
        problems = settings.max_problems or settings.problems_per_step
        models = LanguageModels(settings, problems)
        check_trainers(settings, problems)
        models.find(say=tell)


def _run(command: AlgorithmsCommand, config: BenchConfig, entries: Sequence[Entry], folder: Jobs) -> int:  # fmt: skip
    console, machine = Console(stderr=command.json), this_machine()
    table = RunTable(folder)
    tried = sweep_jobs(config, entries)
    wanted = config.seeds * len(entries)
    first, then = counted(len(tried), "runs"), counted(wanted, "runs")
    say(console, f"{first} of the sweep, then {then} of the table")
    whole = _run_all(config, tried, table, console, "runs of the sweep")
    rates, swept = choose(config, entries, tried, table.rows)
    folder.write_lines(SWEEP, map(dataclasses.asdict, swept))
    jobs = jobs_of(config, entries, rates)
    whole = whole and _run_all(config, jobs, table, console, "runs")
    results = results_of(table.rows, jobs)
    write_results(folder, results)
    plots = _plots(folder.path, results, console)
    known = {(row.entry, row.seed) for row in table.rows.values() if row.status == "ok" and row.seed < SWEEP_SEED}  # fmt: skip
    others = known - {(job.entry.name, job.seed) for job in jobs}
    failures = failures_of(results_of(table.rows, tried))
    text = leaderboard(config, results, swept, str(machine), plots, failures, len(others))
    (folder.path / "LEADERBOARD.md").write_text(text, encoding="utf-8")
    failed = sum(result.status == "failed" for result in results)
    if command.json:
        about = {"output_dir": str(folder.path), "runs": wanted}
        about |= {"done": len(results), "failed": failed, "leaderboard": text}
        print(json.dumps(about))
    elif results or whole:
        print_markdown(text, console)
    say(console, f"Results folder: {folder.path}")
    if not whole:
        done = f"{counted_of(len(results), wanted, 'runs')} done"
        say(console, f"Stopped, {done}. To go on, add: --resume --output-dir {folder.path}")
        return INTERRUPTED
    # Of a row without a rate all runs of the sweep failed, and none of the table was begun.
    return 1 if failed or len(rates) < len(entries) else 0


def _run_all(config: BenchConfig, jobs: Sequence[TrainingJob], table: RunTable, console: Console, what: str) -> bool:  # fmt: skip
    """Run jobs; returns whether nobody interrupted that."""
    if not jobs:
        return True
    with user_input():
        check_files(config, jobs, table)
    told = 0
    try:
        with terminable(), WorkProgress(console) as shown:

            def report(ended: int, steps: int, failures: Sequence[str]) -> None:
                nonlocal told
                if not shown.total:
                    shown.begin("steps", len(jobs) * config.max_steps, steps)
                failed = f", {len(failures)} failed" if failures else ""
                text = f"{ended} of {len(jobs)} {what} done{failed}"
                new, told = failures[told:], len(failures)
                for failure in new:
                    say(console, f"{text}: {failure}")
                shown.tell(steps, more=lambda: text)

            run_all(config, jobs, table, report)
    except KeyboardInterrupt:
        return False
    return True


def _plots(folder: Path, results: Sequence[Result], console: Console) -> list[str]:
    from codea1_env.baselines.bench.plots import plot_all

    try:
        return plot_all(folder, results)
    except ImportError as error:
        say(console, f"No plots: {error}")
        return []
