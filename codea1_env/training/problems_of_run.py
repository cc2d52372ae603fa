"""Which problems a run trains on, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codea1_env.problems import Problem, check_playable, load_problems
from codea1_env.training.config import TrainConfig
from codea1_env.training.errors import RunError


def problems_of_run(config: TrainConfig) -> list[Problem]:
    """Load what a run trains on.

    Raises:
        RunError: The split has no problems.
        ProblemsError: They cannot be loaded, or not be played.
        OSError: Their file cannot be read.
    """
    problems = load_problems(config.problems, config.split, config.difficulty)[
        : config.max_problems
    ]
    if not problems:
        raise RunError(
            f"Expect problems to train on, actually: {config.problems!r} has none in the split "
            f"{config.split!r}. Choose another split, or None for all problems."
        )
    check_playable(problems)
    return problems


def problems_of_step(
    problems: Sequence[Problem], seed: int, step: int, number: int
) -> list[Problem]:
    """Return the problems of a step (counted from 0).

    Every epoch visits the problems in a new order. Those that do not fill a step are left for the next epoch,
    so that a step never has a problem twice. It all follows from the arguments: a resumed run needs no
    cursor but the step.
    """
    number = min(number, len(problems))
    epoch, place = divmod(step, len(problems) // number)
    order = np.random.default_rng([seed, epoch]).permutation(len(problems))
    return [problems[index] for index in order[place * number : (place + 1) * number]]
