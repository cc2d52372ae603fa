"""The co-evolution loop, to be read from top to bottom. What its steps do stands in `codea1_env.training.run`."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from codea1_env.agents.llm.processes import rank
from codea1_env.sandbox import Sandbox
from codea1_env.support.logs import read_rows
from codea1_env.training import run_folder, summary
from codea1_env.training.batches import roles_of
from codea1_env.training.config import TrainConfig
from codea1_env.training.engine import LocalEngine
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.players import OwnPlayer, make_language_model
from codea1_env.training.problems_of_run import problems_of_run
from codea1_env.training.run import Run
from codea1_env.training.summary import TrainResult
from codea1_env.training.trackers import check_installed


def train(
    config: TrainConfig,
    *,
    resume: bool = False,
    sandbox: Sandbox | None = None,
    coder: OwnPlayer | None = None,
    tester: OwnPlayer | None = None,
    console: Console | None = None,
) -> TrainResult:
    """Train a coder and a tester against each other.

    Args:
        config: Everything that decides what happens.
        resume: Go on with the run in `config.output_dir`, from its last checkpoint to the same bytes as if it
            had never stopped.
        sandbox: Where programs and tests run; None for one of its own with `config.workers` workers.
        coder: A player of your own, or a class that makes it from a `Setting`, instead of the one that
            `config.coder.player` names.
        tester: A player of your own, instead of the one that `config.tester.player` names.
        console: Where progress and summary are shown; None for standard output.

    Raises:
        RunError: The run cannot be started or resumed.
        PlayerError: A language model or its engine failed.
        ValueError: The problems do not suit the configuration.

    Example::

        result = train(TrainConfig(max_steps=50, seed=1))
        print(result.end["held_out/pass_rate"], result.output_dir)
    """
    console = console or Console()
    started = time.perf_counter()
    check_installed(config.tracker)
    problems = problems_of_run(config)
    if rank() > 0:
        return _follow(config, len(problems))
    with Run(config, problems, console, started, resume=resume) as run:
        run.open(_engine_of, sandbox, coder, tester)
        while run.goes_on:
            run.take_step()
        run.finish()
    return _result(run.folder.path, run.step, run.config, console)


def _engine_of(config: TrainConfig) -> LocalEngine:
    if config.engine == "local":
        return LocalEngine()
    from codea1_env.training.ray.engine import RayEngine

    return RayEngine(config.address)


def _follow(config: TrainConfig, problems: int) -> TrainResult:
    """Be one of the other processes of a run: make the same players, and do what the first does with them."""
    models = LanguageModels(config, problems)
    for role in roles_of(config):
        make_language_model(config, role, models)
    models.follow()
    models.close()
    return TrainResult(config.output_dir or Path("runs"), config.max_steps, True, {}, {})


def _result(path: Path, step: int, config: TrainConfig, console: Console) -> TrainResult:
    """Sum the run up, and show it."""
    rows = list(read_rows(path / run_folder.METRICS))
    start, end = summary.start_and_end(rows)
    result = TrainResult(path, step, step >= config.max_steps, start, end)
    console.print(summary.summary_table(result))
    if config.has_language_model:
        console.print(summary.phases_table(read_rows(path / run_folder.TIMINGS), rows))
    if not result.finished:
        console.print(
            f"Stopped after step {step}. To go on: codea1 train --resume --output-dir {path}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    console.print(f"Run folder: {path}", highlight=False, markup=False, soft_wrap=True)
    return result
