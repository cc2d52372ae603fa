"""How well language models do on problems that they are not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from codea1_env.agents.llm.language_player import LanguagePlayer
from codea1_env.evaluation import HeldOut, hold_out, kills, pass_rate
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee
from codea1_env.training.config import TrainConfig
from codea1_env.training.measuring import beyond, drawn, with_control
from codea1_env.training.metrics import Row, mean
from codea1_env.training.players import Players


def unseen_problems(config: TrainConfig, trained: Sequence[Problem]) -> list[Problem]:
    """Draw the problems for measuring: of the same source, as hard as those that are trained on, but none of them.

    Where a split is trained on, they are of the others; without one, of what `max_problems` leaves.

    Args:
        config: The settings of the run.
        trained: What is trained on.

    Returns:
        At most `config.eval_problems`; none for players that answer no other problems than those they are made for.
    """
    if config.eval_problems == 0 or not config.has_language_model:
        return []
    known = {problem.task_id for problem in trained}
    levels = {problem.metadata.get("difficulty") for problem in trained}
    others = [
        problem
        for problem in load_problems(config.problems, None, config.difficulty)
        if problem.task_id not in known
        and problem.metadata.get("difficulty") in levels
        and (config.split is None or problem.metadata.get("split") != config.split)
    ]
    return drawn(others, config.eval_problems, config.seed)


class Unseen:
    """Measures language models on other problems than those of the run. Nothing of it is a reward.

    Args:
        problems: See `unseen_problems`.
        referee: Judges what players write.
        config: The settings of the run.
    """

    def __init__(self, problems: Sequence[Problem], referee: Referee, config: TrainConfig) -> None:
        self._referee = referee
        self._samples = config.eval_samples
        # Nothing of these is shown in training: all golden tests measure.
        split = [
            replace(each, tests=_tests_of(each.problem))
            for each in hold_out(problems, referee.sandbox, config.seed)
        ]
        self._held_out: list[HeldOut]
        self._held_out, self._copied = with_control(split, referee, self._samples)

    def measure(self, players: Players) -> Row:
        """Return the metrics; none without problems, and None for a player that is no language model."""
        if not self._held_out:
            return {}
        passed = killed = new = None
        if isinstance(players.coder, LanguagePlayer):
            passed = pass_rate(players.coder, self._held_out, self._referee.sandbox, self._samples)
        if isinstance(players.tester, LanguagePlayer):
            flags = kills(players.tester, self._held_out, self._referee, self._samples)
            killed = mean(chain.from_iterable(flags.values()))
            new = mean(
                flag for name, each in flags.items() for flag in beyond(each, self._copied[name])
            )
        return {
            "unseen/pass_rate": passed,
            "unseen/kill_rate": killed,
            "unseen/copier_kill_rate": mean(chain.from_iterable(self._copied.values())),
            "unseen/new_kill_rate": new,
        }


def _tests_of(problem: Problem) -> tuple[str, ...]:
    """Its golden tests, or the program that has them."""
    program = () if problem.test_program is None else (problem.test_program,)
    return tuple(problem.tests) or program
