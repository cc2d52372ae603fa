"""What can be benchmarked: baselines, algorithms, classes of your own, and settings in files."""

from __future__ import annotations

import dataclasses
import difflib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codea1_env.agents import ALGORITHMS, find_class
from codea1_env.agents.algorithms import teaches
from codea1_env.baselines.registry import BASELINES
from codea1_env.training import TrainConfig
from codea1_env.training.settings import SettingsError, apply_table, read_toml

DEFAULT_ENTRIES = (
    "code-a1", "golden-tests", "self-play", "self-play-white-box", "self-collusion", "code-a1-no-reference",
    "sft", "frozen-tester", "copier", "frozen-coder", "no-book", "drop-wrong-oracle", "all-suites",
    "alpha=0", "alpha=0.25", "alpha=0.75", "alpha=1", "rloo",
)  # fmt: skip
"""All that differ with tabular players: "alpha=0.5" and "grpo" are code-a1, and so is "black-box", because tabular
testers choose by problem and never look at the program."""

QUICK_ENTRIES = ("code-a1", "golden-tests", "self-play")


class EntryError(ValueError):
    """There is no such baseline, algorithm or class."""


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
        return f"{safe}-{zlib.crc32(self.name.encode()):08x}" if self.of_a_file else safe

    @property
    def of_a_file(self) -> bool:
        """Whether the name is that of a file or module: others may be called like it."""
        return ":" in self.name or self.kind == "settings"

    def apply(self, config: TrainConfig) -> TrainConfig:
        """The settings of its runs."""
        if self.kind == "baseline":
            return BASELINES[self.name].apply(config)
        if self.kind == "algorithm":
            return dataclasses.replace(config, algorithm=self.name)
        if self.kind == "settings":
            return _with_settings(config, Path(self.name))
        return config


_OF_ALL = {
    "problems", "split", "difficulty", "max_problems", "max_steps", "eval_steps", "eval_samples", "eval_trained",
    "eval_problems", "seed", "time_budget", "output_dir", "save_total_limit",
}  # fmt: skip
"""Settings that all runs of a benchmark share, or they could not be compared."""


def _with_settings(config: TrainConfig, path: Path) -> TrainConfig:
    """The configuration with the settings of a file in it.

    Raises:
        SettingsError: It cannot be read, or has settings that there are not, or that all runs share.
    """
    table = read_toml(path)
    if decided := sorted(_OF_ALL & table.keys()):
        raise SettingsError(
            f"Expect {path} to have settings in which one row may differ, actually: {', '.join(decided)}, which all runs "
            "share. Leave that to the options of the benchmark, or to its --preset"
        )
    return apply_table(config, table, str(path))


def find_entry(name: str) -> Entry:
    """Find what a name means.

    Args:
        name: A baseline, an algorithm, or `module:Class` or `FILE.py:Class` of your own. A class with `act` and
            `learn` is a player; one with `update`, `trainer`, `advantages` or `loss` is an algorithm. `FILE.toml` has
            settings of the training loop that are other than those of the runs.

    Raises:
        EntryError: There is no such thing; the nearest names are offered.

    Example:
        >>> find_entry("no-book").kind, find_entry("rloo").kind
        ('baseline', 'algorithm')
        >>> find_entry("golden-test")
        Traceback (most recent call last):
            ...
        codea1_env.baselines.bench.entries.EntryError: There is no baseline or algorithm 'golden-test'. Did you mean 'golden-tests' or 'frozen-tester'?
    """
    if name in BASELINES:
        return Entry(name, "baseline")
    if name in ALGORITHMS:
        return Entry(name, "algorithm")
    if ":" in name:
        file, _, attribute = name.rpartition(":")
        if file.endswith(".py"):  # runs may have another working directory when they are resumed
            name = f"{Path(file).resolve()}:{attribute}"
        try:
            found = find_class(name)
        except ValueError as error:
            raise EntryError(str(error)) from error
        if not hasattr(found, "act") and (teaches(found, "tabular") or teaches(found, "llm")):
            return Entry(name, "algorithm")
        missing = [each for each in ("act", "learn", "save", "load") if not hasattr(found, each)]
        if missing:
            raise EntryError(
                f"Expect {name} to be a Learner (act, learn, save, load) or an algorithm (update, trainer, advantages or loss), actually: "
                f"{found.__name__} has no {', '.join(missing)}"
            )
        return Entry(name, "player")
    if name.endswith(".toml"):
        path = Path(name).resolve()  # runs may have another working directory when they are resumed
        try:
            _with_settings(TrainConfig(), path)
        except ValueError as error:
            raise EntryError(str(error)) from error
        return Entry(str(path), "settings")
    if name.endswith(".py"):
        raise EntryError(
            f"Expect the class behind the file, as {name}:NAME, actually: {name!r}. NAME is an algorithm or a player."
        )
    known = [*BASELINES, *ALGORITHMS]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Known: {', '.join(known)}"
    raise EntryError(f"There is no baseline or algorithm {name!r}. {hint}")
