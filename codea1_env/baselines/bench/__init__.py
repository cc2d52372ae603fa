"""The benchmark of algorithms: many short training runs side by side, and what they say together."""

from codea1_env.baselines.bench.ranking import leaderboard
from codea1_env.baselines.bench.results import Result, collect
from codea1_env.baselines.bench.schedule import run_all
from codea1_env.baselines.bench.suite import (
    DEFAULT_ENTRIES,
    BenchConfig,
    Entry,
    EntryError,
    find_entry,
)
from codea1_env.evaluation.result_folder import FolderError

__all__ = [
    "DEFAULT_ENTRIES",
    "BenchConfig",
    "Entry",
    "EntryError",
    "FolderError",
    "Result",
    "collect",
    "find_entry",
    "leaderboard",
    "run_all",
]
