"""What a benchmark compares, and its settings."""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import with_config

from codea1_env.agents import find_class
from codea1_env.agents.algorithms import ALGORITHMS, Player, make_algorithm, teaches
from codea1_env.baselines import BASELINES
from codea1_env.training import PlayerConfig, TrainConfig, settings

DEFAULT_ENTRIES = (
    "code-a1", "golden-tests", "self-play", "self-play-white-box", "self-collusion", "code-a1-no-reference",
    "black-box", "sft", "frozen-tester", "copier", "frozen-coder", "no-book", "drop-wrong-oracle", "all-suites",
    "alpha=0", "alpha=0.25", "alpha=0.75", "alpha=1", "rloo",
)  # fmt: skip
"""All that differ: "alpha=0.5" and "grpo" are code-a1."""

QUICK_ENTRIES = ("code-a1", "golden-tests", "self-play")
_OF_ALL = {
    "problems", "split", "difficulty", "max_problems", "max_steps", "eval_steps", "eval_samples", "eval_trained",
    "eval_problems", "seed", "max_minutes", "output_dir", "save_total_limit",
}  # fmt: skip
"""Settings that all runs of a benchmark share, or they could not be compared."""
MOMENTS = 8
"""Checkpoints of a run of tables, for the exact game that it played."""
SWEEP_SEED = 1000
"""The first seed of a sweep. Those of the runs in the table are below it."""


@dataclass(frozen=True)
class Entry:
    """One line of the table."""

    name: str
    kind: Literal["baseline", "algorithm", "player", "settings"]
    """What `name` names. A player is a class that implements `Learner`; it plays both roles. Settings are a TOML file."""

    @property
    def folder(self) -> str:
        """The name as a folder; those of files are told apart by a checksum of the whole path."""
        short = self.name.rpartition("/")[2]
        safe = "".join(c if c.isalnum() or c in "-=." else "_" for c in short)
        # Others may be called like it.
        of_a_file = ":" in self.name or "(" in self.name or self.kind == "settings"
        return f"{safe}-{zlib.crc32(self.name.encode()):08x}" if of_a_file else safe

    def apply(self, config: TrainConfig) -> TrainConfig:
        """Return the settings of its runs."""
        if self.kind == "baseline":
            return BASELINES[self.name].apply(config)
        if self.kind == "algorithm":
            name, own = with_own(self.name)
            return dataclasses.replace(config, algorithm=name, algorithm_args=own)
        if self.kind == "settings":
            return _with_settings(config, Path(self.name))
        return config


def with_own(name: str) -> tuple[str, dict[str, Any]]:
    """Tell a name from the hyperparameters behind it: `ppo(entropy=0.02)`."""
    if not name.endswith(")"):
        return name, {}
    short, _, own = name.removesuffix(")").partition("(")
    return short, settings.read_inline_table(own)


def _with_settings(config: TrainConfig, path: Path) -> TrainConfig:
    table = settings.read_toml(path)
    if decided := sorted(_OF_ALL & table.keys()):
        raise settings.SettingsError(
            f"Expect {path} to have settings in which one row may differ, actually: {', '.join(decided)}, which all runs "
            "share. Leave that to the options of the benchmark, or to its --preset"
        )
    return settings.apply_table(config, table, str(path))


def find_entry(name: str) -> Entry:
    """Find what a name means.

    Args:
        name: A baseline; an algorithm, perhaps with hyperparameters (`ppo(entropy=0.02)`); `module:Class` or
            `FILE.py:Class` of your own; `FILE.toml` with other settings of the training loop. A class with `act` and
            `learn` is a player; one with `update`, `trainer`, `advantages` or `loss` is an algorithm.

    Raises:
        ValueError: There is no such thing; the nearest names are offered.

    Example:
        >>> find_entry("no-book").kind, find_entry("rloo").kind
        ('baseline', 'algorithm')
        >>> find_entry("golden-test")
        Traceback (most recent call last):
            ...
        ValueError: There is no baseline or algorithm 'golden-test'. Did you mean 'golden-tests' or 'frozen-tester'?
    """
    if name in BASELINES:
        return Entry(name, "baseline")
    short, own = with_own(name)
    if short in ALGORITHMS:
        make_algorithm(short, {"learning_rate": 1.0}, _player_of(ALGORITHMS[short]), own)
        return Entry(name, "algorithm")
    if own:
        entry = find_entry(short)
        if entry.kind == "algorithm":
            make_algorithm(entry.name, {"learning_rate": 1.0}, _player_of(find_class(short)), own)
            return Entry(entry.name + name[len(short) :], "algorithm")
        raise ValueError(f"Expect an algorithm before the hyperparameters, actually: {short!r}")
    if ":" in name:
        file, _, attribute = name.rpartition(":")
        if file.endswith(".py"):  # runs may have another working directory when they are resumed
            name = f"{Path(file).resolve()}:{attribute}"
        found = find_class(name)
        if not hasattr(found, "act") and (teaches(found, "tabular") or teaches(found, "llm")):
            return Entry(name, "algorithm")
        missing = [each for each in ("act", "learn", "save", "load") if not hasattr(found, each)]
        if missing:
            raise ValueError(
                f"Expect {name} to be a Learner (act, learn, save, load) or an algorithm (update, trainer, advantages or loss), actually: "
                f"{found.__name__} has no {', '.join(missing)}"
            )
        return Entry(name, "player")
    if name.endswith(".toml"):
        path = Path(name).resolve()  # runs may have another working directory when they are resumed
        _with_settings(TrainConfig(), path)
        return Entry(str(path), "settings")
    if name.endswith(".py"):
        raise ValueError(
            f"Expect the class behind the file, as {name}:NAME, actually: {name!r}. NAME is an algorithm or a player."
        )
    known = [*BASELINES, *ALGORITHMS]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.65)
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Known: {', '.join(known)}"
    raise ValueError(f"There is no baseline or algorithm {name!r}. {hint}")


def _player_of(kind: Any) -> Player:
    return "tabular" if teaches(kind, "tabular") else "llm"


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
        """Return the configuration with learning rates that are multiplied."""
        changes = {
            "coder.learning_rate": config.coder.learning_rate * self.coder,
            "tester.learning_rate": config.tester.learning_rate * self.tester,
        }
        return settings.replaced(config, changes)


@with_config(settings.STRICT)
@dataclass(frozen=True)
class BenchConfig:
    """What a benchmark runs."""

    algorithms: tuple[str, ...] = DEFAULT_ENTRIES
    """What to compare: names of baselines and algorithms, module:Class, or FILE.py:Class. The first is what
    the others are compared with."""
    seeds: int = 5
    """Runs of each, with seeds 0, 1, ..."""
    problems: str = "starter-medium"
    """Problems to train on: "starter-medium" is the middle tier of the starter set, see `codea1 problems list`.
    Three golden tests tell nearly all programs of the easy tier apart; those of the middle tier they do not."""
    max_problems: int = 24
    """Train on the first so many."""
    max_steps: int = 32
    """Steps of a run; without a preset each visits a quarter of the problems."""
    num_iterations: int = 4
    """Updates per batch: at the first one the ratio is 1, and nothing is clipped. Of tables only algorithms that clip
    (GRPO) make so many, others one. With --preset that of the preset, if not given."""
    sweep: tuple[float, ...] = (0.25, 1.0, 4.0, 16.0, 64.0)
    """Multiples of both players' learning rates that are tried for each algorithm first; its runs get the best
    for each player. A single one is not tried: all get it. With --preset of language models 1, if not given."""
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
        counts = (
            "seeds",
            "max_problems",
            "max_steps",
            "num_iterations",
            "sweep_seeds",
            "processes",
        )
        for name in (*counts, "eval_steps", "eval_problems"):
            value, least = getattr(self, name), 0 if name == "eval_problems" else 1
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

    @property
    def ranks(self) -> bool:
        """Whether rows are ranked: not after so few steps of tables as `QUICK` has."""
        return self.preset is not None or self.max_steps > QUICK.max_steps

    def base(self, seed: int) -> TrainConfig:
        """Return the settings of a run, before those of its entry."""
        quarter = max(1, self.max_steps // 4)
        if self.preset is not None:
            runs = _of_preset(self.preset)
            runs = dataclasses.replace(
                runs, max_minutes=None, eval_problems=self.eval_problems, panel_size=0
            )
            every = runs.eval_steps
        else:
            every = quarter
            runs = TrainConfig(
                problems_per_step=max(1, self.max_problems // 4),
                num_suites=4,
                num_tests=4,
                coder=PlayerConfig(learning_rate=2.0),
                save_steps=quarter if seed >= SWEEP_SEED else max(1, self.max_steps // MOMENTS),
                workers=1,
            )
        return dataclasses.replace(
            runs,
            problems=self.problems,
            max_problems=self.max_problems,
            max_steps=self.max_steps,
            num_iterations=self.num_iterations,
            # A sweep only asks how a run ends.
            eval_steps=self.max_steps if seed >= SWEEP_SEED else self.eval_steps or every,
            save_total_limit=1 if seed >= SWEEP_SEED or runs.has_language_model else 2 * MOMENTS,
            seed=seed,
        )


def with_preset(config: BenchConfig, preset: str) -> BenchConfig:
    """Return the settings of a benchmark with the sizes of a preset: a name or a TOML file. Raises a ValueError for a wrong one."""
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
        # Runs that end by the clock cannot be compared.
        max_steps=runs.max_steps if runs.max_minutes is None else config.max_steps,
        num_iterations=runs.num_iterations,
        # A sweep of models takes hours: who wants one asks for it.
        sweep=(1.0,) if models else config.sweep,
        processes=processes_of(runs),
    )


def processes_of(runs: TrainConfig) -> int:
    """Return the runs at the same time: one model computes with all processors, and takes gigabytes."""
    return 1 if runs.has_language_model else BenchConfig().processes


def _of_preset(preset: str) -> TrainConfig:
    table = (
        settings.file_table(Path(preset))
        if preset.endswith(".toml")
        else settings.preset_table(preset)
    )
    return settings.apply_table(TrainConfig(), table, preset)


QUICK = BenchConfig(QUICK_ENTRIES, seeds=2, max_problems=6, max_steps=8, sweep=(1.0,))
"""A benchmark that only shows that everything works: without a sweep it cannot say which algorithm is better."""
