"""Measures one player as training does, on what training holds back: what `codea1 eval held-out` does."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from codea1_env.agents import FixedAgent
from codea1_env.evaluation import HeldOut, hold_out, kills, pass_rates
from codea1_env.evaluation.asking import TestEvaluation
from codea1_env.evaluation.held_out import Flag
from codea1_env.evaluation.statistics import Count, Estimate, pass_at_k
from codea1_env.evaluation.suites.figures import share
from codea1_env.evaluation.task import ProblemAnswers, ProblemFault, Question
from codea1_env.problems import Problem
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.rollout import Agent, ask
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.spaces import Observation, observe
from codea1_env.training.config import TrainConfig
from codea1_env.training.measuring import beyond, with_control
from codea1_env.training.metrics import mean
from codea1_env.training.run_folder import read_config

_UNJUDGED = "unjudged"
"""Held-back tests of programs, or mutants, that could not be judged: they are in no figure."""
_COUNTED = {"kill_rate": "mutants", "copier_kill_rate": "mutants", "new_kill_rate": "new_mutants"}
"""Share of mutants -> how many there are."""


class _Says(FixedAgent):
    """Gives the answers that were written before."""

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = answers

    def act(self, observations: Sequence[Observation]) -> Sequence[str]:
        return self._answers


@dataclass(kw_only=True, eq=False)
class HeldOutEvaluation(TestEvaluation[ProblemAnswers, Mapping[str, float | None]]):
    """Measure a player on golden tests and mutants that training holds back.

    The figures are those of metrics.jsonl (`held_out/pass_rate`, `held_out/kill_rate`, ...), the values of a problem those of
    held_out.jsonl: with the problems, the seed and `eval_samples` of a run, what it measures of the same answers.
    """

    kind = "held-out"
    judged_together = True
    unit = "problems"
    figure = "{measure}"
    defaults = {"num_samples": TrainConfig.eval_samples}  # noqa: RUF012  never changed
    fixed = ("samples", "partial")
    limits = Limits(call_cpu_time=TrainConfig.time_limit)
    help = {  # noqa: RUF012  never changed
        "agent": "Who is measured: a scripted player, a language model, the address of an OpenAI-compatible server, the "
        "folder of a training run, or FILE.py:NAME.",
        "num_samples": "A coder's programs for each problem, or mutants of it that a tester is shown.",
    }

    role: Literal["coder", "tester"] = "coder"  # type: ignore[misc]  # an option here
    """Measure what programs pass, or what suites kill."""
    held_out_seed: int | None = None
    """Of what is held back: the seed of the run. None for that of the run that --agent names, or 0."""
    difficulty: str | None = None  # type: ignore[misc]  # an option here
    """Only problems that the source calls so hard."""
    measure: str = field(init=False)
    splits: dict[str, HeldOut] = field(init=False, default_factory=dict)
    copied: Mapping[str, Sequence[Flag]] = field(init=False, default_factory=dict)
    referee: Referee = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.measure = "pass_rate" if self.role == "coder" else "kill_rate"

    def adopt(self, run: Path | None, given: Set[str]) -> dict[str, Any]:
        """Take the seed of a run and its problems, where nothing else is said."""
        if run is None:
            return {}
        config = read_config(run)
        if self.held_out_seed is None:
            self.held_out_seed = config.seed
        if given & {"problems", "split", "max_problems", "difficulty"}:
            return {}
        self.difficulty = config.difficulty
        names = ("problems", "split", "max_problems")
        return {name: getattr(config, name) for name in names}

    def settings(self, asked: bool) -> dict[str, Any]:
        """All options; the seed is known by now."""
        return super().settings(asked) | {"held_out_seed": self.held_out_seed or 0}

    def begin(self, sandbox: Sandbox) -> None:
        """Make the referee."""
        super().begin(sandbox)
        self.referee = Referee(sandbox, RefereeConfig(limits=self.limits))

    def check(self, problem: Problem) -> ProblemFault:
        """Refuse what can only be evaluated on."""
        fault = "" if problem.playable else "it has no reference whose function tests can call"
        return ProblemFault(problem.task_id, fault)

    def questions(self, num_samples: int) -> list[Question]:
        """Every problem so often; or its first mutants, as training orders them."""
        if not self.splits:
            usable = [each for task, each in self.problems.items() if task not in self.faults()]
            found = hold_out(usable, self.sandbox, self.held_out_seed or 0)
            if self.role == "tester":
                found, self.copied = with_control(found, self.referee, num_samples)
            self.splits = {each.problem.task_id: each for each in found}
        return [
            Question(each.problem, i, code)
            for each in self.splits.values()
            for i, code in enumerate(
                [""] * num_samples if self.role == "coder" else each.mutants[:num_samples]
            )
        ]

    def ask(self, agent: Agent, batch: Sequence[Question], tests: Sequence[str]) -> Sequence[str]:
        """Ask for programs, or for suites against the mutants."""
        if self.role == "tester":
            return super().ask(agent, batch, tests)
        return ask(agent, "coder", [observe(each.problem) for each in batch])

    def judge(self, problem: Problem, sample: ProblemAnswers) -> Mapping[str, float | None]:
        """Measure the player by its answers."""
        split, number = [self.splits[sample.task_id]], len(sample.samples)
        player = _Says([each.row["answer"] for each in sample.samples])
        if self.role == "coder":
            rates = pass_rates(player, split, self.sandbox, number)[sample.task_id]
            count = Count(len(rates.solved), sum(rates.solved))
            found = {
                f"pass@{k}": pass_at_k(count, k) if count.samples >= k else None
                for k in sorted({1, number})
            }
            return {"pass_rate": rates.held_out, **found, **_unjudged(rates.unjudged)}
        killed = kills(player, split, self.referee, number)[sample.task_id]
        copied = self.copied[sample.task_id]
        new = beyond(killed, copied)
        return {
            "kill_rate": mean(killed),
            "copier_kill_rate": mean(copied),
            "new_kill_rate": mean(new),
            "mutants": len(killed) - killed.count(None),
            "new_mutants": len(new),
            **_unjudged(killed.count(None)),
        }

    def estimate(self) -> Estimate | None:
        """Return the first of the figures, to show while it runs."""
        figure = self.figures().get(self.measure)
        return None if figure is None else Estimate(**figure)

    def figures(self) -> dict[str, Any]:
        """Means over problems; what is killed over all mutants."""
        if self.role == "coder":
            return {name: each for name, each in super().figures().items() if name != _UNJUDGED}
        values = [self.verdicts[task][0] for task in self.scored]
        found = {}
        for name, number in _COUNTED.items():
            rows = [{"killed": (each[name] or 0) * (each[number] or 0), **each} for each in values]
            figure = share(rows, "killed", number)
            found[name] = None if figure is None else dataclasses.asdict(figure)
        return found

    def summary(self) -> dict[str, Any]:
        """Also how much could not be judged, where something could not."""
        number = sum(int(self.verdicts[task][0].get(_UNJUDGED) or 0) for task in self.scored)
        return super().summary() | _unjudged(number)

    def lines(self, report: Mapping[str, Any]) -> list[str]:
        """Also what could not be judged."""
        what = "held-out tests of programs" if self.role == "coder" else "mutants"
        number = report.get(_UNJUDGED)
        more = [f"{number} {what} could not be judged, and are in no figure"] if number else []
        return [*super().lines(report), *more]


def _unjudged(number: int) -> dict[str, int]:
    return {_UNJUDGED: number} if number else {}
