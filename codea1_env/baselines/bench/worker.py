"""One run of a benchmark, in a process of its own: `python -m codea1_env.baselines.bench.worker FOLDER`.

FOLDER/job.json says what to do. FOLDER/result.json is written last: a process that dies leaves none.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from codea1_env.agents import Pool, TabularAgent, find_class
from codea1_env.baselines.bench import results
from codea1_env.baselines.bench.suite import SWEEP_SEED, BenchConfig, Entry, Rates
from codea1_env.baselines.payoffs import Floats, game_figures
from codea1_env.referee import Referee, Round
from codea1_env.sandbox import Sandbox, SandboxError
from codea1_env.support.logs import write_whole
from codea1_env.training import RunError, TrainConfig, train
from codea1_env.training.checkpoints import checkpoints, load_run, step_of, verify

_PROBLEMS = 8
"""Problems that are measured, the first ones: the figures are means, and the sandbox runs each program of each."""
_MAX_PAIRS = 2048
"""Programs times tests of a problem that is measured."""

Game = dict[str, dict[str, float]]
"""Problem -> measure -> value."""


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


INTERRUPTED = 130


def main(folder: Path) -> int:
    """Train; returns the exit code."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    job = json.loads((folder / results.JOB).read_text(encoding="utf-8"))
    entry = Entry(**job["entry"])
    started = time.perf_counter()
    result: dict[str, Any] = {"status": "ok", "error": ""}
    try:
        settings = entry.apply(BenchConfig(**job["bench"]).base(job["seed"]))
        config = Rates(**job["rates"]).apply(settings)
        if not _train(entry, config, folder / "run", job["machine"]):
            return INTERRUPTED
        if not config.has_language_model and job["seed"] < SWEEP_SEED:
            _measure_game(folder, entry)
    except (OSError, MemoryError, SandboxError):
        raise  # the machine's fault: the run is tried again
    except Exception as error:
        # The algorithm's fault, whatever it raises: it would fail again in the same way.
        traceback.print_exc()
        result = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    result["seconds"] = time.perf_counter() - started
    write_whole(folder / results.RESULT, json.dumps(result) + "\n")
    return 0


def _measure_game(folder: Path, entry: Entry) -> None:
    """Write game.json, and delete the checkpoints that were kept for it."""
    # Players of one's own may have no tables; with a game.json it died between its game and its result.
    if entry.kind != "player" and not (folder / results.GAME).exists():
        game = measure_game(folder / "run", folder.parent.parent.parent / results.PAYOFFS)
        write_whole(folder / results.GAME, json.dumps(game) + "\n")
    for path in checkpoints(folder / "run")[:-1]:
        shutil.rmtree(path)


def _end_with_parent(parent: int) -> None:
    """Stop after the step when the benchmark is gone: nobody would wait for the run."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _train(entry: Entry, config: TrainConfig, run: Path, machine: dict[str, Any]) -> bool:
    """Train, from the last checkpoint if there is one; returns whether the run is finished."""
    config = dataclasses.replace(config, output_dir=run)
    saved = _usable_checkpoints(run)
    if saved and step_of(saved[-1]) >= config.max_steps:
        return True  # it died between its last step and its result
    if run.exists() and not saved:
        shutil.rmtree(run)
    if config.has_language_model and not saved:  # a run that goes on has its own
        config = dataclasses.replace(config, **machine)
    own = find_class(entry.name) if entry.kind == "player" else None
    console = Console(file=io.StringIO())
    return train(config, resume=bool(saved), coder=own, tester=own, console=console).finished


def _usable_checkpoints(run: Path) -> list[Path]:
    """Return the checkpoints of a run; none if the last of them is damaged, or what was measured before it.

    Without the latter, training would go on all the same, to other results than those of a whole run.
    """
    saved = checkpoints(run)
    try:
        if saved:
            results.read_logs(run, step_of(saved[-1]))
            verify(saved[-1])
    except (results.DamagedRunError, RunError) as error:
        print(f"This run starts anew. {error}", flush=True)
        return []
    return saved


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
