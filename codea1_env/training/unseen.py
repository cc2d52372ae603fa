"""How well language models do on problems that they are not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from codea1_env.agents.llm.agent import LanguagePlayer
from codea1_env.evaluation import HeldOut, PassRates, hold_out, kills, pass_rates
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee
from codea1_env.training.config import TrainConfig
from codea1_env.training.measuring import beyond, drawn, with_control
from codea1_env.training.metrics import Row, mean
from codea1_env.training.players import Players

_SEED = 0


def unseen_problems(config: TrainConfig, trained: Sequence[Problem]) -> list[Problem]:
    """Draw the problems for measuring: of the same source, as hard as those that are trained on, but none of them.

    Where a split is trained on, they are of the others; without one, of what `max_problems` leaves. They are the same with
    every seed, so that runs with different seeds can be compared problem by problem.

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
    return drawn(others, config.eval_problems, _SEED)


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

    def measure(self, players: Players) -> tuple[Row, list[Row]]:
        """Measure both players; one that is no language model gets None.

        Args:
            players: Both.

        Returns:
            Means, for metrics.jsonl, and one row for each problem, for unseen.jsonl; nothing without problems.
        """
        if not self._held_out:
            return {}, []
        passed: dict[str, PassRates] = {}
        killed: dict[str, list[bool]] = {}
        if isinstance(players.coder, LanguagePlayer):
            passed = pass_rates(players.coder, self._held_out, self._referee.sandbox, self._samples)
        if isinstance(players.tester, LanguagePlayer):
            killed = kills(players.tester, self._held_out, self._referee, self._samples)
        new = {name: beyond(flags, self._copied[name]) for name, flags in killed.items()}
        names = [split.problem.task_id for split in self._held_out]
        rows: list[Row] = [
            {
                "task_id": name,
                "pass_rate": passed[name].held_out if passed else None,
                "kill_rate": mean(killed.get(name, [])),
                "copier_kill_rate": mean(self._copied[name]),
                "new_kill_rate": mean(new.get(name, [])),
            }
            for name in names
        ]
        return {
            "unseen/pass_rate": mean(row["pass_rate"] for row in rows),
            "unseen/kill_rate": mean(chain.from_iterable(killed.values())),
            "unseen/copier_kill_rate": mean(chain.from_iterable(self._copied.values())),
            "unseen/new_kill_rate": mean(chain.from_iterable(new.values())),
        }, rows


def _tests_of(problem: Problem) -> tuple[str, ...]:
    """Its golden tests, or the program that has them."""
    program = () if problem.test_program is None else (problem.test_program,)
    return tuple(problem.tests) or program
