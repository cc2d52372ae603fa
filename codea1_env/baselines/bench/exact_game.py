"""The exact game that a run of tables played: how exploitable its players are, and how much of it is cyclic.

Strategies are those of the run's checkpoints. A payoff is whether a test breaks a program: the referee is asked once
for all runs of a benchmark with the same pools. A tester's strategy is that of the first test of its suites.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from codea1_env.agents import Pool, TabularAgent
from codea1_env.baselines.payoffs import Floats, game_figures
from codea1_env.referee import Referee, Round
from codea1_env.sandbox import Sandbox
from codea1_env.support.logs import write_whole
from codea1_env.training.checkpoints import checkpoints, load_run

_PROBLEMS = 8
"""Problems that are measured, the first ones: the figures are means, and the sandbox runs each program of each."""
_MAX_PAIRS = 2048
"""Programs times tests of a problem that is measured."""

Game = dict[str, dict[str, float]]
"""Problem -> measure -> value."""


def measure_game(run: Path, known: Path) -> Game:
    """Measure the game of a finished run; empty where a player is no table of programs or of tests.

    Args:
        run: Folder of the run.
        known: Folder of payoffs that runs with the same pools have asked for; this one's are added.

    Raises:
        RunError: It has no checkpoints of these players.
    """
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
        for path in checkpoints(run):
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


def only_last_checkpoint(run: Path) -> None:
    """Delete the checkpoints that were kept to measure the game."""
    for path in checkpoints(run)[:-1]:
        shutil.rmtree(path)


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
