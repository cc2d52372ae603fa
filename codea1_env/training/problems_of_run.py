"""Which problems a run trains on, in which order, and what is played in place of groups that teach nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from codea1_env.agents.opponents import SCRIPTED, check_scripted
from codea1_env.problems import Problem, check_playable, load_problems
from codea1_env.rollout import Experience, Rollouts
from codea1_env.training.config import RunError, TrainConfig, algorithm_of, who_needs_one
from codea1_env.training.trainer_arguments import suite_groups

_STREAM = 3
"""Of random numbers, beside those of players and demonstrations."""


def problems_of_run(config: TrainConfig) -> list[Problem]:
    """Load what a run trains on.

    Raises a RunError if nothing is left that its players can play, a ProblemsError or OSError if it cannot be loaded.
    """
    problems = load_problems(config.problems, config.split, config.difficulty)[
        : config.max_problems
    ]
    if not problems:
        raise RunError(
            f"Expect problems to train on, actually: {config.problems!r} has none in the split "
            f"{config.split!r}. Choose another split, or None for all problems."
        )
    if config.oracle == "reference":
        check_playable(problems)
    tester = config.tester.player
    try:
        if tester in SCRIPTED["tester"]:
            check_scripted(tester, "tester", problems)
    except ValueError as error:
        raise RunError(f"problems={config.problems!r}: {error}") from error
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


def warning_of_few(number: int, config: TrainConfig) -> str:
    """Tell a person that there are fewer problems to measure on than asked for.

    Example:
        >>> warning_of_few(12, TrainConfig(eval_problems=5000))
        "12 problems to measure on that are not trained on, not 5000 (eval_problems): 'starter' has no more as hard outside the split 'train'."
    """
    where = f" outside the split {config.split!r}" if config.split else ""
    return (
        f"{number} problems to measure on that are not trained on, not {config.eval_problems} (eval_problems): "
        f"{config.problems!r} has no more as hard{where}."
    )


class DynamicSampling:
    """What a run plays again, and what is learned from."""

    def __init__(self, config: TrainConfig, problems: Sequence[Problem]) -> None:
        self._config = config
        self._problems = problems
        found = {
            role: getattr(algorithm_of(config, role), "extra_rounds", 0)
            for role in who_needs_one(config)
            if not config.player(role).freeze
        }
        if config.self_play:  # of one language model the coder's settings count
            found.setdefault("tester", found.get("coder", 0))
        if config.tester.objective != "rewards":
            found["tester"] = 0
        self._rounds = {role: found.get(role, 0) for role in ("coder", "tester")}

    @property
    def active(self) -> bool:
        """Whether a player learns so."""
        return any(self._rounds.values())

    def of_step(self, batch: Sequence[Problem], step: int) -> Replacements:
        """Choose replacements for groups whose rewards are all equal (dynamic sampling)."""
        names = {problem.task_id for problem in batch}
        order = np.random.default_rng([self._config.seed, step, _STREAM]).permutation(
            len(self._problems)
        )
        spare = [self._problems[i] for i in order if self._problems[i].task_id not in names]
        return Replacements(self._config, self._rounds, len(batch), spare)


@dataclass
class Replacements:
    """Chooses what else is played in a step, and what its players learn from."""

    config: TrainConfig
    rounds: Mapping[str, int]
    """Role -> rounds of other problems that may be played for it."""
    size: int
    """Problems of the step."""
    spare: list[Problem]
    """Other problems, in the order in which they are played."""
    done: int = 0
    """Rounds that were played."""

    def more(self, played: Rollouts) -> list[Problem]:
        """Return the problems to be played next; none if there is enough, or an end to it."""
        lacking = 0
        for role in ("coder", "tester"):
            if self.done < self.rounds[role]:
                wanted, groups = self._groups(role, played)
                missing = wanted - sum(map(_differs, groups))
                lacking = max(lacking, math.ceil(missing / (wanted // self.size)))
        self.done += 1
        chosen, self.spare = self.spare[:lacking], self.spare[lacking:]
        return chosen

    def lesson(self, role: Literal["coder", "tester"], played: Rollouts) -> list[Experience]:
        """Select the experience that a player learns from."""
        wanted, groups = self._groups(role, played)
        if self.rounds[role]:
            groups = sorted(groups, key=lambda group: not _differs(group))  # stable
        return [item for group in groups[:wanted] for item in group]

    def _groups(
        self, role: Literal["coder", "tester"], played: Rollouts
    ) -> tuple[int, list[list[Experience]]]:
        if role == "coder":
            return self.size * self.config.max_rounds, _groups_of(played.coder_experience())
        experience = played.tester_experience(self.config.suite_selection)
        return suite_groups(self.config, self.size), _groups_of(experience)


def _groups_of(experience: Sequence[Experience]) -> list[list[Experience]]:
    """Divide experience into its groups, in the order in which they begin."""
    found: dict[str, list[Experience]] = {}
    for item in experience:
        found.setdefault(item.group, []).append(item)
    return list(found.values())


def _differs(group: Sequence[Experience]) -> bool:
    return len({item.reward for item in group if item.reward is not None}) > 1
