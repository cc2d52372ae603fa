"""Learning rates of a submission: `codea1 suite tune` searches them on worlds that are for tuning."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from codea1_env.suite.players import SuiteEntry
from codea1_env.suite.running import play, run_works
from codea1_env.suite.tasks import EXPERIMENTS, TUNING_SEED, SuiteTask, Track, digest, tasks

RATES = tuple((3.0**i, 8 * 3.0**i) for i in range(6))
"""Learning rates of coder and tester that tuning tries."""
_SEEDS = (TUNING_SEED,)


class Trial(NamedTuple):
    """A setting that tuning tries."""

    track: Track
    experiment: str
    setting: int

    def __str__(self) -> str:
        return f"{self.track} {self.experiment} {RATES[self.setting]}"


def tune(
    entry: SuiteEntry,
    tracks: Sequence[Track],
    *,
    processes: int,
    tell: Callable[[str], None] = lambda line: None,
    experiments: Sequence[str] = EXPERIMENTS,
) -> dict[str, Any]:
    """Search learning rates: 6 settings on the same tuning worlds for everybody. Returns the content of tuning.json.

    The score of a setting is the mean measure over those ids of the experiment that separate.
    """
    found: dict[Trial, float] = {}

    def hear(trial: Trial, value: float) -> None:
        found[trial] = value
        tell(f"{trial}: {value:.3f}")

    pairs = [(track, name) for track in tracks for name in experiments if _ids(name, track)]
    trials = [Trial(*pair, setting) for pair in pairs for setting in range(len(RATES))]
    run_works({trial: partial(play_trial, entry, trial) for trial in trials}, hear, processes)
    rates: dict[str, dict[str, list[float]]] = {}
    for track, name in pairs:
        best = max(range(len(RATES)), key=lambda i: found[Trial(track, name, i)])
        rates.setdefault(track, {})[name] = list(RATES[best])
    tried = [
        {
            "track": t.track,
            "experiment": t.experiment,
            "rates": list(RATES[t.setting]),
            "mean": mean,
        }
        for t, mean in found.items()
    ]
    settings = {"suite_sha256": digest("v1"), "seeds": list(_SEEDS), "rates": rates}
    return {**settings, "tried": sorted(tried, key=str)}


def _ids(experiment: str, track: Track) -> list[SuiteTask]:
    own = [
        task
        for task in tasks().values()
        if task.experiment == experiment and track in task.tracks and task.part == "score"
    ]
    return [task for task in own if task.separates] or own


def play_trial(entry: SuiteEntry, trial: Trial) -> float:
    """Return the mean measure of a setting."""
    coder, tester = RATES[trial.setting]
    tried = dataclasses.replace(entry, coder_rate=coder, tester_rate=tester)
    own = itertools.product(_ids(trial.experiment, trial.track), _SEEDS)
    return float(np.mean([play(tried, task, seed, trial.track)[0] for task, seed in own]))
