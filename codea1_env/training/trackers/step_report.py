"""What a tracker must offer, and what it is given: the run, and of each step numbers, counts of rewards, and some episodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from codea1_env.rollout import Rollouts
from codea1_env.training.metrics import Row

REWARD_EDGES = tuple(round(-1 + 0.05 * number, 2) for number in range(41))
"""Edges of the bins that rewards are counted in, always the same; what lies outside counts in the outermost bin."""
EPISODES_SHOWN = 4
"""Episodes of a step that trackers are given."""
COLUMNS = (
    "task_id", "program", "reward", "executes", "code", "suite_reward", "validity", "adversarial", "tests",
)  # fmt: skip
"""What they are given of an episode."""
_LONGEST = 2000


@dataclass(frozen=True)
class StepReport:
    """What trackers are given of a step."""

    step: int
    values: Mapping[str, float]
    """The step's rows of metrics.jsonl and timings.jsonl, without what is unknown."""
    rewards: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Name -> rewards of the step, counted between `REWARD_EDGES`."""
    samples: tuple[tuple[Any, ...], ...] = ()
    """Some episodes, as a table with these `COLUMNS`."""


def numbers(*rows: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers of rows, by name, without the step.

    Example:
        >>> numbers({"step": 1, "a": 0.5, "b": None}, {"step": 1, "c": 2})
        {'a': 0.5, 'c': 2}
    """
    return {
        name: value
        for row in rows
        for name, value in row.items()
        if name != "step" and isinstance(value, (int, float)) and math.isfinite(value)
    }


def count_rewards(rewards: Iterable[float | None]) -> tuple[int, ...]:
    """Count rewards in the fixed bins. Those that are None were not given.

    Example:
        >>> counts = count_rewards([0.0, 0.01, None, 1.0, 7.0])
        >>> counts[20], counts[-1], sum(counts)
        (2, 2, 4)
    """
    given = np.clip([each for each in rewards if each is not None], -1.0, 1.0)
    return tuple(map(int, np.histogram(given, REWARD_EDGES)[0]))


def report_of(
    step: int, played: Rollouts, episodes: Sequence[Row], *rows: Mapping[str, Any]
) -> StepReport:
    """Put together what trackers are given of a step.

    Args:
        step: Number of the step.
        played: What was played in it.
        episodes: Its rows of episodes.jsonl.
        *rows: Its rows of metrics.jsonl and timings.jsonl.
    """
    rewards = {
        "reward/coder": count_rewards(each.verdict.code_reward for each in played.episodes),
        "reward/tester": count_rewards(
            reward for each in played.episodes for reward in each.test_rewards
        ),
    }
    samples = tuple(map(_sample, episodes[:EPISODES_SHOWN]))
    return StepReport(step, numbers(*rows), rewards, samples)


def _sample(row: Row) -> tuple[Any, ...]:
    """One row of the table: an episode, with the suite that was paid most."""
    suite = max(
        row["suites"], key=lambda each: -math.inf if each["reward"] is None else each["reward"]
    )
    tests = "\n".join(
        f"{test['test']}  # {test.get('outcome') or test['status']}" for test in suite["tests"]
    )
    own = (row["task_id"], row["program"], row["reward"], row["executes"], _short(row["code"]))
    return (*own, suite["reward"], suite["validity"], suite["adversarial"], _short(tests))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."


@dataclass(frozen=True)
class TrackedRun:
    """The run that a tracker shows."""

    id: str
    """The same for all of the run, however often it is resumed; no other run has it."""
    folder: Path
    settings: Mapping[str, Any]
    """All settings by name: plain data."""
    handed: int
    """The last step that the tracker was given before the run was resumed; -1 if none. It need not have kept it."""

    @property
    def name(self) -> str:
        """Name for people: that of the folder, and the id."""
        return f"{self.folder.resolve().name}-{self.id}"


class Tracker(Protocol):
    """An open run of a tracker."""

    last: int
    """The last step that it has; those up to it need not be given again. -1 if none."""

    def log(self, report: StepReport) -> None:
        """Write what happened in a step. Steps come in order."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...
