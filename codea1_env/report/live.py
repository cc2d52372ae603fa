"""A run as it stands now: what it has logged, its last episodes, how fast it is and how long it will take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from codea1_env.report.episode_log import is_episode, outcome_of
from codea1_env.report.runs import LoggedRun, read_run
from codea1_env.support.logs import every_line, tail_offset
from codea1_env.training.metrics import Row
from codea1_env.training.progress import Remaining
from codea1_env.training.run_folder import EPISODES, METRICS, TIMINGS
from codea1_env.training.summary import mean_seconds

_TAIL = 4_000_000
"""Bytes of a log of episodes that are read for the last of them."""
_RECENT = 5
"""Steps that the speed is measured over."""
_SETTLED = 10.0
"""Seconds after which a run that has done all its steps will write nothing more."""


class LastEpisode(NamedTuple):
    """An episode in one line."""

    step: int
    task_id: str
    winner: str
    outcome: str
    test: str


class Pace(NamedTuple):
    """How fast a run is; None where nothing is known."""

    steps: float | None
    """Steps per second, over the last ones."""
    verdicts: float | None
    """Tests that ran, per second, over the same steps."""
    spent: float
    """Seconds of all phases that are logged."""
    left: float | None
    """Seconds that the run will still take."""


@dataclass(frozen=True)
class LiveRun:
    """A run as it stands now."""

    run: LoggedRun
    episodes: tuple[LastEpisode, ...]
    """The last ones, the latest first."""
    pace: Pace
    age: float | None
    """Seconds since it wrote a line; None if it has not."""

    @property
    def finished(self) -> bool:
        """Whether it has done all its steps, and written what comes after the last."""
        if self.run.step < self.run.config.max_steps:
            return False
        whole = bool(self.run.timings) and self.run.timings[-1]["step"] >= self.run.step
        return whole or self.age is None or self.age > _SETTLED


def read_live(path: Path, name: str, episodes: int) -> LiveRun:
    """Read a run as it stands now, with its last episodes. Files that are not there yet have no rows."""
    run, log = read_run(path, name, growing=True), path / EPISODES
    last: deque[LastEpisode] = deque(maxlen=episodes)
    for row, _ in every_line(log, tail_offset(log, _TAIL), growing=True):
        if row is not None and is_episode(row):
            last.appendleft(_in_one_line(row))
    logs = [path / name for name in (METRICS, EPISODES, TIMINGS)]
    written = [each.stat().st_mtime for each in logs if each.is_file()]
    age = max(0.0, time.time() - max(written)) if written else None
    return LiveRun(run, tuple(last), pace(run), age)


def pace(run: LoggedRun) -> Pace:
    """Measure how fast a run is, over its last steps."""
    recent = run.timings[-_RECENT:]
    seconds = sum(map(_seconds, recent))
    steps = {row["step"] for row in recent}
    verdicts = sum(row.get("sandbox/tests", 0) for row in run.metrics if row["step"] in steps)
    spent = sum(map(_seconds, run.timings))
    if not recent or not seconds:
        return Pace(None, None, spent, None)
    return Pace(len(recent) / seconds, verdicts / seconds, spent, _left(run, recent))


def _left(run: LoggedRun, recent: Sequence[Row]) -> float | None:
    """Return what the last steps say of those to come, as a run itself reckons it."""
    config, step = run.config, run.step
    if step >= config.max_steps:
        return 0.0
    clock = Remaining()
    measurements = -(-config.max_steps // config.eval_steps) - step // config.eval_steps
    each = mean_seconds(run.timings).get("evaluate", 0.0)
    clock.expect(config.max_steps - step, mean_seconds(recent), measurements, each)
    return clock.seconds()


def _seconds(row: Row) -> float:
    return float(sum(value for name, value in row.items() if name.startswith("seconds/")))


def _in_one_line(row: Row) -> LastEpisode:
    outcome, winner = outcome_of(row)
    suites = [test for suite in row["suites"] for test in suite["tests"]]
    broke = [
        test["test"]
        for test in (*suites, *row["history"])
        if test.get("outcome") not in (None, "pass")
    ]
    return LastEpisode(row["step"], row["task_id"], winner, outcome, broke[0] if broke else "")
