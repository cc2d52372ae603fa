"""The settings of a benchmark."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files

from codea1_env.baselines.bench.entries import DEFAULT_ENTRIES, QUICK_ENTRIES
from codea1_env.training import PlayerConfig, TrainConfig


@dataclass(frozen=True)
class BenchConfig:
    """What a benchmark runs.

    Raises:
        ValueError: A value is out of its range.
    """

    algorithms: tuple[str, ...] = DEFAULT_ENTRIES
    """What to compare: names of baselines and algorithms, module:Class, or FILE.py:Class. The first is what
    the others are compared with."""
    seeds: int = 5
    """Runs of each, with seeds 0, 1, ..."""
    problems: str = "starter-medium"
    """Problems to train on: "starter-medium" for the middle tier of the starter set, or what `codea1 train` takes.
    Three golden tests tell nearly all programs of the easy tier apart; those of the middle tier they do not."""
    max_problems: int = 24
    """Train on the first so many."""
    max_steps: int = 32
    """Steps of a run; each visits a quarter of the problems."""
    processes: int = len(os.sched_getaffinity(0))
    """Runs at the same time. Has no influence on the results."""

    def __post_init__(self) -> None:
        for name in ("seeds", "max_problems", "max_steps", "processes"):
            if getattr(self, name) < 1:
                raise ValueError(f"Expect {name} to be at least 1, actually: {getattr(self, name)}")
        if not self.algorithms:
            raise ValueError("Expect algorithms to name at least one, actually: none")

    def base(self, seed: int) -> TrainConfig:
        """The settings of a run, before those of its entry."""
        medium = str(files("codea1_env") / "problem_sets" / "starter" / "medium.jsonl")
        return TrainConfig(
            problems=medium if self.problems == "starter-medium" else self.problems,
            max_problems=self.max_problems,
            problems_per_step=max(1, self.max_problems // 4),
            num_suites=4,
            max_steps=self.max_steps,
            coder=PlayerConfig(learning_rate=2.0),
            eval_steps=max(1, self.max_steps // 4),
            save_steps=max(1, self.max_steps // 4),
            save_total_limit=1,
            seed=seed,
            workers=1,
        )


QUICK = BenchConfig(QUICK_ENTRIES, seeds=2, max_problems=6, max_steps=8)
"""A benchmark that only shows that everything works."""
