"""Learning rates of a submission: `codea1 suite tune` searches them on worlds that are for tuning."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from codea1_env.suite.players import SuiteEntry
from codea1_env.suite.running import keys_of, play, run_works
from codea1_env.suite.tasks import EXPERIMENTS, TUNING_SEED, SuiteTask, Track, digest, tasks

RATES = tuple((3.0**i, 8 * 3.0**i) for i in range(6))
"""Learning rates of coder and tester that tuning tries."""


class Trial(NamedTuple):
    """A setting that tuning tries."""

    track: Track
    experiment: str
    rates: tuple[float, float]

    def __str__(self) -> str:
        return " ".join(map(str, self))

    def play(self, entry: SuiteEntry) -> float:
        """Return the mean measure over those ids of the experiment that separate."""
        coder, tester = self.rates
        tried = dataclasses.replace(entry, coder_rate=coder, tester_rate=tester)
        keys = keys_of(_ids(self.experiment, self.track), [self.track], [TUNING_SEED])
        return float(np.mean([play(tried, key).value for key in keys]))


def _ids(experiment: str, track: Track) -> list[SuiteTask]:
    scored = [task for task in tasks().values() if task.part == "score" and task.separates]
    return [task for task in scored if task.experiment == experiment and track in task.tracks]


def tune(
    entry: SuiteEntry,
    tracks: Sequence[Track],
    *,
    processes: int,
    tell: Callable[[str], None] = lambda line: None,
    experiments: Sequence[str] = EXPERIMENTS,
) -> dict[str, Any]:
    """Search learning rates: 6 settings on the same tuning worlds for everybody. Returns the content of tuning.json."""
    found: dict[Trial, float] = {}

    def hear(trial: Trial, value: float) -> None:
        found[trial] = value
        tell(f"{trial}: {value:.3f}")

    pairs = [(track, name) for track in tracks for name in experiments if _ids(name, track)]
    trials = [Trial(*pair, setting) for pair in pairs for setting in RATES]
    run_works({trial: partial(trial.play, entry) for trial in trials}, hear, processes)
    rates: dict[str, dict[str, tuple[float, float]]] = {}
    for track, name in pairs:
        best = max(RATES, key=lambda setting: found[Trial(track, name, setting)])
        rates.setdefault(track, {})[name] = best
    tried = [{**trial._asdict(), "mean": mean} for trial, mean in found.items()]
    return {
        "suite_sha256": digest("v1"),
        "seeds": [TUNING_SEED],
        "rates": rates,
        "tried": sorted(tried, key=str),
    }
