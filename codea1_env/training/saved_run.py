"""The players of a finished or interrupted run, to be used elsewhere."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from codea1_env.evaluation import hold_out
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Sandbox
from codea1_env.training.checkpoints import checkpoints, load_checkpoint
from codea1_env.training.config import TrainConfig
from codea1_env.training.errors import RunError
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.players import Players, make_players
from codea1_env.training.run_folder import read_config


@dataclass(frozen=True)
class SavedRun:
    """A run's players as they were at its last checkpoint."""

    config: TrainConfig
    problems: tuple[Problem, ...]
    """What they were trained on; tabular players know no others."""
    players: Players


def load_run(path: Path, sandbox: Sandbox, stack: ExitStack) -> SavedRun:
    """Load the players of a run from its last checkpoint.

    Args:
        path: Folder of the run.
        sandbox: Where the players' programs run, if they must.
        stack: Closed by the caller when the players are not needed any more.

    Raises:
        RunError: It is not the folder of a run, or it has no checkpoint that can be loaded.
    """
    config = read_config(path)
    saved = checkpoints(path)
    if not saved:
        raise RunError(
            f"Expect {path} to have a checkpoint, actually: none. Train it, or name another run."
        )
    problems = load_problems(config.problems, config.split, config.difficulty)[
        : config.max_problems
    ]
    splits = cache(lambda: hold_out(problems, sandbox, config.seed))
    models = LanguageModels(config, len(problems))
    stack.callback(models.close)
    players = make_players(config, problems, splits, sandbox, models=models)
    load_checkpoint(saved[-1], players.coder, players.tester, config)
    return SavedRun(config, tuple(problems), players)
