"""The co-evolution loop, to be read from top to bottom. What its steps do stands in `codea1_env.training.run`."""

from __future__ import annotations

import time

from rich.console import Console

from codea1_env.agents.llm.completions import world_size
from codea1_env.sandbox import Sandbox
from codea1_env.support.logs import read_rows
from codea1_env.training import run_folder, summary
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import LocalEngine
from codea1_env.training.panel_table import panel_table
from codea1_env.training.players import OwnPlayer
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
    started = time.monotonic()
    check_installed(config.tracker)
    if world_size() > 1:
        raise RunError(
            f"Expect one process, which starts those of language models by itself, actually: WORLD_SIZE={world_size()}. "
            "Start it without a launcher, with engine='ray', coder.devices and tester.devices."
        )
    problems = problems_of_run(config)
    with Run(config, problems, console, started, resume=resume) as run:
        run.open(_engine_of, sandbox, coder, tester)
        while run.goes_on:
            run.take_step()
        run.finish()
    return _result(run, console)


def _engine_of(config: TrainConfig) -> LocalEngine:
    if config.engine == "local":
        return LocalEngine()
    from codea1_env.training.ray.engine import RayEngine

    return RayEngine()


def _result(run: Run, console: Console) -> TrainResult:
    path, step, config = run.folder.path, run.step, run.config
    rows = list(read_rows(path / run_folder.METRICS))
    start, end = summary.start_and_end(rows)
    done = step >= config.max_steps
    measured = {
        **summary.measured_problems("held_out", read_rows(path / run_folder.HELD_OUT)),
        **summary.measured_problems("unseen", read_rows(path / run_folder.UNSEEN)),
    }
    result = TrainResult(path, step, done or run.time_is_over, start, end, measured)
    if (panel := panel_table(list(read_rows(path / run_folder.PANEL)))) is not None:
        console.print(panel)
    console.print(summary.summary_table(result))
    if config.has_language_model:
        console.print(summary.phases_table(read_rows(path / run_folder.TIMINGS), rows))
    if not done:
        why = "The time is over" if run.time_is_over else "Stopped"
        console.print(
            f"{why} after step {step}. To go on: codea1 train --resume --output-dir {path}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    console.print(f"Run folder: {path}", highlight=False, markup=False, soft_wrap=True)
    return result
