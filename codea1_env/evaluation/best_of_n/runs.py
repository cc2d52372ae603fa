"""Programs on all tests of their problem, and what is chosen by that."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.evaluation.best_of_n.selection import (
    SELECTIONS,
    Matrix,
    best_program,
    random_choice,
)
from codea1_env.evaluation.suites.samples import SuiteSample, read_suite
from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox

RANDOM, BEST = "random", "best"
CHOICES: dict[str, Callable[[Matrix], float]] = {
    RANDOM: random_choice,
    **SELECTIONS,
    BEST: best_program,
}
"""Name -> chance that the chosen program of a problem is right."""
CHOSEN = {
    RANDOM: "any program (pass@1)",
    "codet": "by CodeT",
    "codet_released": "by CodeT as released",
    "most_tests": "by tests passed",
    BEST: "best program (pass@n)",
}
"""How choices are shown."""


@dataclass(frozen=True)
class Tests:
    """The distinct tests of a problem, in the order in which they were first written."""

    __test__ = False  # pytest would collect a class of this name

    texts: tuple[str, ...]
    weights: tuple[int, ...]
    """How often each was written."""
    unusable: int
    """Tests that cannot be run, or that never call the program."""


@dataclass(frozen=True)
class ProgramRun:
    """One program, to be run on all tests of its problem."""

    task_id: str
    index: int
    """Number among the programs of its problem, from 0."""
    code: str
    right: bool
    tests: Tests
    programs: int
    """Programs of the problem."""
    row: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Unused: what is kept are the tests, and verdicts."""


@dataclass(frozen=True)
class ChosenProgram:
    """What is chosen of the programs of a problem."""

    matrix: Matrix
    tests: Tests
    chances: Mapping[str, float]


def tests_of(
    problem: Problem, suites: Sequence[SuiteSample], num_tests: int, sandbox: Sandbox
) -> Tests:
    """The tests of all suites for a problem, of each suite the first ones."""
    written: Counter[str] = Counter()
    unusable = 0
    for suite in suites:
        read = read_suite(suite, problem.entry_point, num_tests, sandbox)
        for test in read.tests:
            written[test.text] += test.fault is None
            unusable += test.fault is not None
        unusable += len(read.dropped)
    usable = {text: count for text, count in written.items() if count}
    return Tests(tuple(usable), tuple(usable.values()), unusable)
