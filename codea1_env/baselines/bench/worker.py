"""One run of a benchmark, in a process of its own."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import io
import json
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from codea1_env.agents import Pool, TabularAgent, find_class
from codea1_env.baselines.bench import results
from codea1_env.baselines.bench.results import TrainingJob
from codea1_env.baselines.bench.suite import SWEEP_SEED, BenchConfig, Entry
from codea1_env.baselines.payoffs import Floats, game_figures
from codea1_env.referee import Referee, Round
from codea1_env.sandbox import Sandbox, SandboxError
from codea1_env.support.logs import write_whole
from codea1_env.training import RunError, TrainConfig, train
from codea1_env.training.checkpoints import checkpoints, load_run, step_of

_PROBLEMS = 8
"""Problems that are measured, the first ones: the figures are means, and the sandbox runs each program of each."""
_MAX_PAIRS = 2048
"""Programs times tests of a problem that is measured."""

Game = dict[str, dict[str, float]]
"""Problem -> measure -> value."""

INTERRUPTED = 130


def measure_game(run: Path, known: Path) -> Game:
    """Measure the game of a finished run; empty where a player is no table of programs or of tests."""
    with Sandbox(workers=1) as sandbox, ExitStack() as stack:
        saved = load_run(run, sandbox, stack)
        coder, tester = saved.players.coder, saved.players.tester
        if type(coder) is not TabularAgent or type(tester) is not TabularAgent:
            return {}
        pools = {
            name: (programs, tester.pools[name])
            for name, programs in coder.pools.items()
            if len(programs.items) * len(tester.pools[name].items) <= _MAX_PAIRS
        }
        names = sorted(pools)[:_PROBLEMS]
        strategies: dict[str, list[tuple[Floats, Floats]]] = {name: [] for name in names}
        for path in regular_checkpoints(run, saved.config):
            coder.load(path / "coder")
            tester.load(path / "tester")
            for name in names:
                programs = pools[name][0].items
                shown = [""] * len(programs) if saved.config.black_box else programs
                answers = tester.policy.answers(name, shown)
                strategies[name].append((coder.policy.probabilities(name), answers))
        breaks = {name: _payoffs(*pools[name], sandbox, known) for name in names}
    return {
        name: game_figures(breaks[name], *map(np.array, zip(*strategies[name], strict=True)))
        for name in names
    }


def regular_checkpoints(run: Path, config: TrainConfig) -> list[Path]:
    """Checkpoints that a run has which nobody interrupted: whoever stops one makes another."""
    steps = {*range(0, config.max_steps, config.save_steps), config.max_steps}
    return [path for path in checkpoints(run) if step_of(path) in steps]


def _payoffs(programs: Pool, tests: Pool, sandbox: Sandbox, known: Path) -> Floats:
    """Return for each program and test whether it breaks the program; one that does not run is broken by all."""
    both = f"{programs.problem.task_id}\0{programs.fingerprint}\0{tests.fingerprint}"
    path = known / f"{hashlib.sha256(both.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}.json"
    if path.is_file():
        return np.array(json.loads(path.read_text(encoding="utf-8")), dtype=np.float64)
    suites = [[test] for test in tests.items]
    rounds = [Round(programs.problem, code, suites) for code in programs.items]
    rows = [
        [
            float(not suite.outcome.code_executes or any(suite.outcome.failed))
            for suite in verdict.suites
        ]
        for verdict in Referee(sandbox).judge(rounds)
    ]
    known.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(rows) + "\n")
    return np.array(rows, dtype=np.float64)


def run(
    job: TrainingJob,
    config: BenchConfig,
    folder: Path,
    machine: Mapping[str, Any],
    tell: Callable[[dict[str, Any]], None],
) -> None:
    """Train in `folder`, and tell what the table says of the run; exits with 130 if it was interrupted."""
    started, place = time.perf_counter(), folder / job.place / "run"
    found: dict[str, Any] = {"status": "ok"}
    try:
        settings = job.rates.apply(job.entry.apply(config.base(job.seed)))
        logs = _train(job.entry, dataclasses.replace(settings, output_dir=place), machine)
        # Players of one's own may have no tables.
        if not settings.has_language_model and job.seed < SWEEP_SEED and job.entry.kind != "player":
            for task, figures in measure_game(place, folder / results.PAYOFFS).items():
                logs.end.setdefault(task, {}).update(figures)
        found |= {"start": logs.start, "end": logs.end, "curves": results.curves_of(logs.metrics)}
    except (OSError, MemoryError, SandboxError):
        raise  # the machine's fault: the run is tried again
    except Exception as error:
        # The algorithm's fault, whatever it raises: it would fail again in the same way.
        traceback.print_exc()
        found = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    tell(found | {"seconds": time.perf_counter() - started})


def _train(entry: Entry, config: TrainConfig, machine: Mapping[str, Any]) -> results.Logs:
    """Train from the last checkpoint, or anew where there is none, or what is there is damaged."""
    run = config.output_dir or Path()
    own = find_class(entry.name) if entry.kind == "player" else None

    def logs(config: TrainConfig, resume: bool) -> results.Logs:
        console = Console(file=io.StringIO())
        if not train(config, resume=resume, coder=own, tester=own, console=console).finished:
            sys.exit(INTERRUPTED)
        return results.read_logs(run, config.max_steps)

    with suppress(FileNotFoundError), (run / ".lock").open() as lock:
        fcntl.flock(
            lock, fcntl.LOCK_EX
        )  # after a kill, the process of before may still end its step
    try:
        if saved := checkpoints(run):
            ended = step_of(saved[-1]) >= config.max_steps  # it died before it told
            return results.read_logs(run, config.max_steps) if ended else logs(config, True)
    except (RunError, results.DamagedRunError) as error:
        print(f"This run starts anew. {error}", flush=True)
    shutil.rmtree(run, ignore_errors=True)
    if config.has_language_model:  # a run that goes on has its own
        config = dataclasses.replace(config, **machine)
    return logs(config, False)
