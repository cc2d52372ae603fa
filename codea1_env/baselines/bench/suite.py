"""The settings of a benchmark."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from codea1_env.agents.algorithms import ALGORITHMS, teaches
from codea1_env.baselines.bench.entries import DEFAULT_ENTRIES, QUICK_ENTRIES
from codea1_env.training import PlayerConfig, TrainConfig
from codea1_env.training.preset_files import file_table, preset_table
from codea1_env.training.settings import apply_table, replaced

SWEEP_SEED = 1000
"""The first seed of a sweep. Those of the runs in the table are below it."""


@dataclass(frozen=True)
class Rates:
    """Multiples of both players' learning rates.

    Example:
        >>> Rates(coder=4.0).apply(BenchConfig().base(0)).coder.learning_rate
        8.0
    """

    coder: float = 1.0
    tester: float = 1.0

    def apply(self, config: TrainConfig) -> TrainConfig:
        """The configuration with learning rates that are multiplied."""
        return replaced(
            config,
            {
                "coder.learning_rate": config.coder.learning_rate * self.coder,
                "tester.learning_rate": config.tester.learning_rate * self.tester,
            },
        )


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
    """Steps of a run; without a preset each visits a quarter of the problems."""
    num_iterations: int = 4
    """Updates per batch of algorithms that clip (GRPO): at the first one the ratio is 1, and nothing is clipped.
    Algorithms that have no such setting make one."""
    sweep: tuple[float, ...] = (0.25, 1.0, 4.0, 16.0, 64.0)
    """Multiples of both players' learning rates that are tried for each algorithm first; its runs get the best
    for each player. A single one is not tried: all get it."""
    sweep_seeds: int = 2
    """Runs with each multiple, with seeds 1000, 1001, ... that are in no table."""
    eval_steps: int | None = None
    """Measure every so many steps, and before the first and after the last; None for four times in a run, with a preset
    for what that says. Forgetting is what is lost between measurements."""
    eval_problems: int = 12
    """Language models: measure on so many problems that are not trained on, too; 0 for none."""
    processes: int = len(os.sched_getaffinity(0))
    """Runs at the same time. Has no influence on the results."""
    preset: str | None = None
    """Settings of all runs: a preset of `codea1 train` such as smollm2-cpu, or a TOML file. Its players, language models
    for example, learn by each algorithm. None for tabular players, with settings that suit this benchmark."""

    def __post_init__(self) -> None:
        for name in ("seeds", "max_problems", "max_steps", "num_iterations", "sweep_seeds", "processes"):  # fmt: skip
            if getattr(self, name) < 1:
                raise ValueError(f"Expect {name} to be at least 1, actually: {getattr(self, name)}")
        for name, least in (("eval_steps", 1), ("eval_problems", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"Expect {name} to be at least {least}, actually: {value}")
        if not self.algorithms:
            raise ValueError("Expect algorithms to name at least one, actually: none")
        if self.seeds > SWEEP_SEED:
            raise ValueError(
                f"Expect seeds to be at most {SWEEP_SEED}, since those above are of the sweep, actually: {self.seeds}"
            )
        usable = [rate for rate in self.sweep if rate > 0 and math.isfinite(rate)]
        if not usable or len(set(usable)) < len(self.sweep):
            raise ValueError(
                f"Expect sweep to be different multiples above 0, actually: {self.sweep}. 1 for no sweep."
            )

    def base(self, seed: int) -> TrainConfig:
        """The settings of a run, before those of its entry."""
        quarter = max(1, self.max_steps // 4)
        # A sweep only asks how a run ends.
        often = self.max_steps if seed >= SWEEP_SEED else self.eval_steps
        if self.preset is not None:
            runs = _of_preset(self.preset)
            return dataclasses.replace(
                runs,
                problems=self.problems,
                max_problems=self.max_problems,
                max_steps=self.max_steps,
                time_budget=None,
                save_total_limit=1,
                seed=seed,
                num_iterations=self.num_iterations,
                eval_steps=often or runs.eval_steps,
                eval_problems=self.eval_problems,
            )
        medium = str(files("codea1_env") / "problem_sets" / "starter" / "medium.jsonl")
        return TrainConfig(
            problems=medium if self.problems == "starter-medium" else self.problems,
            max_problems=self.max_problems,
            problems_per_step=max(1, self.max_problems // 4),
            num_suites=4,
            max_steps=self.max_steps,
            coder=PlayerConfig(learning_rate=2.0),
            num_iterations=self.num_iterations,
            eval_steps=often or quarter,
            save_steps=quarter,
            save_total_limit=1,
            seed=seed,
            workers=1,
        )


def with_preset(config: BenchConfig, preset: str) -> BenchConfig:
    """Return the settings of a benchmark whose sizes are those of a preset, as far as it says them.

    Args:
        config: A benchmark of tabular players.
        preset: A name or a TOML file.

    Raises:
        ValueError: There is none, or it is wrong.
    """
    runs = _of_preset(preset)
    models = runs.has_language_model
    return dataclasses.replace(
        config,
        preset=str(Path(preset).resolve()) if preset.endswith(".toml") else preset,
        algorithms=tuple(name for name, kind in ALGORITHMS.items() if teaches(kind, "llm"))
        if models
        else config.algorithms,
        problems=runs.problems,
        max_problems=runs.max_problems or config.max_problems,
        max_steps=runs.max_steps,
        num_iterations=runs.num_iterations,
        # A sweep of models takes hours: who wants one asks for it.
        sweep=(1.0,) if models else config.sweep,
        processes=processes_of(runs),
    )


def processes_of(runs: TrainConfig) -> int:
    """Runs at the same time: one model computes with all processors, and takes gigabytes."""
    return 1 if runs.has_language_model else BenchConfig().processes


def _of_preset(preset: str) -> TrainConfig:
    table: dict[str, Any] = (
        file_table(Path(preset)) if preset.endswith(".toml") else preset_table(preset)
    )
    return apply_table(TrainConfig(), table, preset)


QUICK = BenchConfig(QUICK_ENTRIES, seeds=2, max_problems=6, max_steps=8, sweep=(1.0,))
"""A benchmark that only shows that everything works: without a sweep it cannot say which algorithm is better."""
