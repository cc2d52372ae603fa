"""Figures of choices among programs: how often the chosen one is right, and what choosing is worth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codea1_env.evaluation.best_of_n.judging import ProgramRun, Tests
from codea1_env.evaluation.best_of_n.selection import (
    SELECTIONS,
    Matrix,
    best_program,
    random_choice,
)
from codea1_env.evaluation.pass_at_k import mean_over_problems
from codea1_env.evaluation.result_folder import VERSION
from codea1_env.evaluation.samples import digest
from codea1_env.evaluation.statistics import Estimate
from codea1_env.problems import Problem

KIND = "best-of-n"
RANDOM, BEST = "random", "best"
CHOICES: dict[str, Callable[[Matrix], float]] = {
    RANDOM: random_choice,
    **SELECTIONS,
    BEST: best_program,
}
"""Name -> chance that the chosen program of a problem is right."""


@dataclass(frozen=True)
class _Chosen:
    matrix: Matrix
    tests: Tests
    chances: Mapping[str, float]


@dataclass
class BestOfNTally:
    """Counts programs as they come, and chooses where a problem has all."""

    total: int = 0
    """Programs so far."""
    chosen: dict[str, _Chosen] = field(default_factory=dict)
    _open: list[tuple[ProgramRun, str]] = field(default_factory=list)

    def add(self, run: ProgramRun, passed: str) -> None:
        """Count one more program; those of a problem come one after the other."""
        self.total += 1
        self._open.append((run, passed))
        if len(self._open) < run.programs:
            return
        matrix = Matrix(
            tuple(each.right for each, _ in self._open),
            tuple(signs for _, signs in self._open),
            run.tests.weights,
        )
        self._open.clear()
        chances = {name: choose(matrix) for name, choose in CHOICES.items()}
        self.chosen[run.task_id] = _Chosen(matrix, run.tests, chances)

    def estimate(self) -> Estimate | None:
        """How often CodeT's choice is right, so far."""
        return self._mean("codet") if self.chosen else None

    def _mean(self, name: str) -> Estimate:
        return mean_over_problems([each.chances[name] for each in self.chosen.values()])

    def figures(self) -> dict[str, Estimate]:
        """Name of a choice -> how often it is right: the mean over problems."""
        return {name: self._mean(name) for name in CHOICES} if self.chosen else {}

    def gains(self) -> dict[str, Estimate]:
        """Name of a choice -> what it has over a random one: paired, with an interval over problems."""
        if not self.chosen:
            return {}
        return {
            name: mean_over_problems(
                [each.chances[name] - each.chances[RANDOM] for each in self.chosen.values()]
            )
            for name in CHOICES
            if name != RANDOM
        }


def build_best_of_n_report(
    settings: Mapping[str, Any],
    problems: Mapping[str, Problem],
    tally: BestOfNTally,
    excluded: Mapping[str, str],
    missing: Sequence[str],
    unknown: Mapping[str, int],
) -> dict[str, Any]:
    """All that is known at the end, as report.json has it.

    Args:
        settings: Whose programs and tests, and how they ran.
        problems: Task -> problem.
        tally: What came of them.
        excluded: Problems that could not be used -> why.
        missing: Problems without tests.
        unknown: Tasks of the tests that the problem set has not.
    """
    chosen = tally.chosen.values()
    return {
        "version": VERSION,
        "kind": KIND,
        "settings": dict(settings),
        "scored": len(chosen),
        "undecided": sum(each.chances[RANDOM] in (0.0, 1.0) for each in chosen),
        "programs": tally.total,
        "tests": sum(sum(each.tests.weights) for each in chosen),
        "distinct_tests": sum(len(each.tests.texts) for each in chosen),
        "unusable_tests": sum(each.tests.unusable for each in chosen),
        "figures": {name: dataclasses.asdict(each) for name, each in tally.figures().items()},
        "gains": {name: dataclasses.asdict(each) for name, each in tally.gains().items()},
        "excluded": dict(excluded),
        "missing": list(missing),
        "unknown": dict(unknown),
        "results": {
            task: {
                "programs": len(each.matrix.right),
                "right": sum(each.matrix.right),
                "tests": sum(each.tests.weights),
                **each.chances,
                "digest": digest(problems[task]),
            }
            for task, each in tally.chosen.items()
        },
    }
