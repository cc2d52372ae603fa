"""`codea1 bench`: algorithms over seeds, questions about a learned adversary, and the sandbox."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

import codea1_env
from codea1_env.baselines.bench.ranking import leaderboard
from codea1_env.baselines.bench.results import (
    SWEEP,
    TrainingJob,
    collect,
    finished,
    jobs_of,
    open_folder,
    read_settings,
    write_results,
)
from codea1_env.baselines.bench.schedule import RunsDone, prepare, run_all
from codea1_env.baselines.bench.suite import (
    QUICK,
    BenchConfig,
    Entry,
    find_entry,
    with_preset,
)
from codea1_env.baselines.bench.sweep import choose, failures_of, sweep_jobs
from codea1_env.baselines.diagnose.experiments import (
    Experiment,
    expectations,
    find_experiments,
    with_rows,
)
from codea1_env.baselines.diagnose.running import RowRun, check, done_runs
from codea1_env.baselines.diagnose.running import run_all as run_experiments
from codea1_env.baselines.diagnose.scores import section, write_scores
from codea1_env.cli.errors import (
    INTERRUPTED,
    InputError,
    check_least,
    library_errors,
    unknown_name,
    user_input,
)
from codea1_env.cli.parsing import parse, parse_some
from codea1_env.cli.tables import PlainProgress, print_markdown, progress_bar, say
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.problems import load_problems
from codea1_env.rendering.display import clock
from codea1_env.support.machine import this_machine
from codea1_env.support.stopping import terminable
from codea1_env.training import TrainConfig
from codea1_env.training.algorithms import check_algorithms
from codea1_env.training.language_models import LanguageModels

USAGE = """\
usage: codea1 bench sandbox [OPTIONS]
       codea1 bench algorithms [OPTIONS]
       codea1 bench diagnose [NAME ...] [OPTIONS]

sandbox      measure the sandbox on this machine
algorithms   compare algorithms and baselines over seeds
diagnose     ask what a learned adversary is good for, one question at a time

`codea1 bench NAME --help` explains the options of each.
"""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 bench`; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in ("sandbox", "algorithms", "diagnose"):
        known = ["bench sandbox", "bench algorithms", "bench diagnose"]
        raise unknown_name("command", f"bench {name}", known)
    if name == "sandbox":
        return _of_sandbox()(rest)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # module:Class of the user, as `python -m` would find it
    return run_algorithms(rest) if name == "algorithms" else run_diagnose(rest)


def _of_sandbox() -> Callable[[Sequence[str]], int]:
    """Return the benchmark of the sandbox: it lies beside the package, in the repository."""
    folder = Path(codea1_env.__file__).resolve().parents[1] / "benchmarks"
    if not (folder / "sandbox_speed").is_dir():
        raise InputError(
            "expect a checkout of the repository, actually: the installed package alone, without benchmarks/. Run "
            "`codea1 bench sandbox` where the package is installed with `pip install -e .`"
        )
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    run: Callable[[Sequence[str]], int] = importlib.import_module("sandbox_speed.command").run
    return run


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

    First each one's learning rates are chosen in runs with other seeds (--sweep). Writes LEADERBOARD.md, results.jsonl
    and sweep.jsonl to the results folder. Exit code 1 if a run failed.
    """

    settings: Annotated[BenchConfig, tyro.conf.arg(name="")] = field(default_factory=BenchConfig)
    quick: bool = False
    """A benchmark of under two minutes (of tabular players), which only shows that everything works: no learning rates
    are swept."""
    output_dir: Path | None = None
    """Results folder; None for a new one in runs/, named after the time."""
    resume: bool = False
    """Go on with the benchmark in --output-dir, with its own settings, and run again what failed; more algorithms and
    seeds, and another sweep, may be given, which it then goes on with."""
    json: bool = False
    """Print the results to stdout as one JSON object; the progress display goes to stderr."""


def run_algorithms(arguments: Sequence[str]) -> int:
    """Run `codea1 bench algorithms`; returns the exit code."""
    basis = parse_some(Basis, arguments, name="bench algorithms")
    if basis.resume and basis.output_dir is None:
        raise InputError("expect --output-dir DIR with --resume: the results folder to go on with")
    if basis.preset is not None and basis.quick:
        raise InputError("expect --quick or --preset, actually: both. --max-steps shortens runs")
    settings = QUICK if basis.quick else BenchConfig()
    with user_input():
        if basis.preset is not None:
            settings = with_preset(settings, basis.preset)
        elif basis.output_dir and basis.resume and not basis.quick:
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
        results = open_folder(folder, config, resume=command.resume)
    with results:
        return _run(command, config, entries, results)


def check_row(entry: Entry, base: TrainConfig, tell: Callable[[str], None]) -> None:
    """Look at all that a run of a row needs, before any of them begins; `tell` hears what takes long.

    Raises:
        ValueError: It could not begin.
    """
    settings = entry.apply(base)
    check_algorithms(settings, files=True)
    if entry.kind != "player" and settings.engine == "local":
        models = LanguageModels(settings, settings.max_problems or settings.problems_per_step)
        models.check_trainers()
        models.find(say=tell)


def _run(command: AlgorithmsCommand, config: BenchConfig, entries: Sequence[Entry], folder: ResultFolder) -> int:  # fmt: skip
    console, machine = Console(stderr=command.json), this_machine()
    tried = sweep_jobs(config, entries, folder.path)
    with library_errors():
        table = config.seeds * len(entries)
        say(console, f"{len(tried)} runs of the sweep, then {table} runs of the table")
        whole = _run_all(config, tried, console, "runs of the sweep")
        rates, swept = choose(config, entries, tried)
        folder.write_lines(SWEEP, map(dataclasses.asdict, swept))
        jobs = jobs_of(config, entries, folder.path, rates)
        whole = whole and _run_all(config, jobs, console, "runs")
    results = collect(jobs)
    write_results(folder, results)
    others = finished(folder.path) - {job.folder for job in jobs}
    text = leaderboard(config, results, swept, str(machine), failures_of(tried), len(others))
    (folder.path / "LEADERBOARD.md").write_text(text, encoding="utf-8")
    failed = sum(result.status == "failed" for result in results)
    if command.json:
        about = {"output_dir": str(folder.path), "runs": config.seeds * len(entries)}
        about |= {"done": len(results), "failed": failed, "leaderboard": text}
        print(json.dumps(about))
    else:
        print_markdown(text, console)
    say(console, f"Results folder: {folder.path}")
    if not whole:
        say(console, f"To go on, add: --resume --output-dir {folder.path}")
        return INTERRUPTED
    # Of a row without a rate all runs of the sweep failed, and none of the table was begun.
    return 1 if failed or len(rates) < len(entries) else 0


def _run_all(config: BenchConfig, jobs: Sequence[TrainingJob], console: Console, what: str) -> bool:
    """Run jobs; returns whether nobody interrupted that."""
    if not jobs:
        return True
    with user_input():
        damages = prepare(config, jobs)
    for damage in damages:
        say(console, f"Repeating a run: {damage}")
    try:
        with terminable():
            _run_with_progress(config, jobs, console, what)
    except KeyboardInterrupt:
        return False
    return True


def _run_with_progress(config: BenchConfig, jobs: Sequence[TrainingJob], console: Console, what: str) -> None:  # fmt: skip
    told, steps = 0, len(jobs) * config.max_steps
    lines: PlainProgress | None = None
    with progress_bar(console, f"steps of {what}") as bar:
        task = bar.add_task("", total=steps, state="")

        def report(progress: RunsDone) -> None:
            nonlocal lines, told
            done = f"{progress.done} of {len(jobs)} {what} done"
            if progress.failures:
                done += f", {len(progress.failures)} failed"
            state = f"{done}; {', '.join(progress.running)}"
            bar.update(task, completed=progress.steps, state=state)
            new, told = progress.failures[told:], len(progress.failures)
            for failure in new:
                say(console, f"{done}: {failure}")
            if lines is None:
                lines = PlainProgress(console, progress.steps)
            lines.tell(progress.steps, steps, f"{done}, {progress.steps} of {steps} steps")

        run_all(config, jobs, report)


_QUICK_SEEDS = 2


@dataclass(frozen=True)
class DiagnoseCommand:
    """Ask what an adversary is good for, in generated worlds whose faults are known exactly.

    Each experiment turns one knob, and shows every row beside a control that could refute it. Writes results.jsonl, to
    which every run is added when it ends, DIAGNOSE.md and scores.json (`codea1 report FOLDER` shows them). Exit code 1 if a run failed.
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Experiments; all if none is named."""
    rows: tuple[str, ...] = ()
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


def run_diagnose(arguments: Sequence[str]) -> int:
    """Run `codea1 bench diagnose`; returns the exit code."""
    command = parse(DiagnoseCommand, arguments, name="bench diagnose")
    number, quick = command.seeds or (_QUICK_SEEDS if command.quick else 5), command.quick
    folder = command.output_dir or Path("runs") / time.strftime("diagnose-%Y%m%d-%H%M%S")
    with user_input():  # neither a wrong name nor a damaged file should cost a run
        chosen = find_experiments(command.names)
        experiments = [with_rows(each, command.rows, quick=quick) for each in chosen]
        check(experiments, quick)
        folder.mkdir(parents=True, exist_ok=True)
        done_runs(folder)
    console = Console(stderr=command.json)
    seeds = range(command.first_seed, command.first_seed + number)
    tell = _Shown(console, experiments, seeds).tell
    try:
        with terminable(), library_errors():
            runs = run_experiments(
                experiments, seeds, folder, quick=quick, processes=command.processes, tell=tell
            )
    except KeyboardInterrupt:
        say(console, f"To go on, say the same with --output-dir {folder}")
        return INTERRUPTED
    expected = expectations()
    lines = ["# What a learned adversary is good for", ""]
    for each in experiments:
        lines += section(each, runs, expected.get(each.name))
    text = "\n".join(lines)
    (folder / "DIAGNOSE.md").write_text(text, encoding="utf-8")
    write_scores(folder, experiments, runs, expected)
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

    def tell(self, run: RowRun, left: int, seconds: float) -> None:
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
        rest = f"{left} runs left, about {clock(seconds)}" if left else "the last run"
        say(
            self._console,
            f"{run.experiment:12} {run.setting:>6} {run.row:18} {measure} {mean}   {of}{rest}",
        )
