"""Players that follow a script: to try the game out, to measure others against, to train against."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from codea1_env.agents.state import KnownProblems, read_json, rng_state, write_json
from codea1_env.agents.variants import variants
from codea1_env.evaluation.held_out import mutants_of
from codea1_env.problem_sets.expected import NoValueError, golden_statements, unknown_cases
from codea1_env.problems import Problem, load_problems
from codea1_env.reading.examples import split_examples
from codea1_env.rollout import Experience
from codea1_env.sandbox import Sandbox, default_sandbox
from codea1_env.spaces import Observation

TEST_SEPARATOR = "\n\n"
"""Between the tests of a suite."""


class FixedAgent:
    """Base of players that do not learn: with an `act`, a subclass can take part in training."""

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Do nothing."""
        return {}

    def save(self, path: Path) -> None:
        """Write nothing: there is no state."""

    def load(self, path: Path) -> None:
        """Read nothing: there is no state."""


class ScriptedAgent(FixedAgent, ABC):
    """Base of players that know the problems, and may draw from their own random generator.

    `problems` are those of the game; None for the starter set. A scripted player knows reference and golden tests.
    """

    def __init__(self, problems: Sequence[Problem] | None = None, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        problems = load_problems("starter") if problems is None else problems
        self._problems = KnownProblems(problems)
        self._known: dict[str, list[str]] = {}

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Return one answer for each observation, in order."""
        return [self.answer(self._problems[observation]) for observation in observations]

    @abstractmethod
    def answer(self, problem: Problem) -> str:
        """Return the answer to one problem."""

    def once(self, problem: Problem, make: Callable[[], list[str]]) -> list[str]:
        """Make the items of a problem at the first use, and keep them."""
        if problem.task_id not in self._known:
            self._known[problem.task_id] = make()
        return self._known[problem.task_id]

    def save(self, path: Path) -> None:
        """Write the state of the random generator."""
        write_json(path / "rng.json", rng_state(self.rng))

    def load(self, path: Path) -> None:
        """Restore the state of the random generator."""
        self.rng.bit_generator.state = read_json(path / "rng.json")


class ReferenceCoder(ScriptedAgent):
    """Submits the reference solution."""

    def answer(self, problem: Problem) -> str:
        """Return the reference."""
        return problem.reference


class MutantCoder(ScriptedAgent):
    """Submits the reference with one small fault, another one each time, chosen by the seed."""

    def __init__(
        self,
        problems: Sequence[Problem] | None = None,
        sandbox: Sandbox | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(problems, seed)
        self._sandbox = sandbox or default_sandbox()

    def answer(self, problem: Problem) -> str:
        """Return a mutant, or the reference where there is nothing to mutate."""

        def mutants() -> list[str]:
            found = mutants_of(problem, self._sandbox)
            return [mutant.code for mutant in found] or [problem.reference]

        known = self.once(problem, mutants)
        return known[int(self.rng.integers(len(known)))]


class GoldenTester(ScriptedAgent):
    """Submits golden tests, drawn without replacement (None for all); none of a problem whose tests are no data.

    Where the problem gives only inputs, the reference is asked for the values.
    """

    def __init__(
        self,
        problems: Sequence[Problem] | None = None,
        num_tests: int | None = 8,
        seed: int = 0,
        sandbox: Sandbox | None = None,
    ) -> None:
        super().__init__(problems, seed)
        self.num_tests = num_tests
        self._sandbox = sandbox

    def answer(self, problem: Problem) -> str:
        """Return golden tests."""

        def golden() -> list[str]:
            texts: Sequence[str] = problem.tests
            if unknown_cases(problem):
                with suppress(NoValueError):
                    texts = golden_statements(problem, self._sandbox or default_sandbox())
            return list(filter(writable, texts))

        tests = self.once(problem, golden)
        return TEST_SEPARATOR.join(draw(tests, self.num_tests, self.rng))


class BoundaryTester(ScriptedAgent):
    """Submits calls near the boundaries of the arguments' types.

    It moves one argument of a golden test at a time to a boundary of its type: 0, empty, negative, reversed, ... The
    value is a guess, that of the golden call. A referee with `wrong_oracle="correct"` attacks with wrong guesses, too.
    Problems without golden tests of the form `assert f(<literals>) == <literal>` get an empty suite.
    """

    def __init__(
        self,
        problems: Sequence[Problem] | None = None,
        sandbox: Sandbox | None = None,
        num_tests: int = 8,
        seed: int = 0,
    ) -> None:
        super().__init__(problems, seed)
        self.num_tests = num_tests
        self._sandbox = sandbox or default_sandbox()

    def answer(self, problem: Problem) -> str:
        """Return a suite of boundary tests."""

        def boundary() -> list[str]:
            golden = list(itertools.islice(filter(writable, problem.tests), _GOLDEN))
            made = self._sandbox.analyse(variants, golden, problem.entry_point)
            return list(dict.fromkeys(test for row in made for test in row["boundary"]))

        known = self.once(problem, boundary)
        return TEST_SEPARATOR.join(draw(known, self.num_tests, self.rng))


class CopierTester(FixedAgent):
    r"""Submits the first examples that the problem's text shows (None for all), whatever the program is: a control.

    Example:
        >>> from codea1_env.spaces import observe
        >>> CopierTester().act([observe(Problem("one", ">>> f(2)\n4", "f", "f = int"), turn=1)])
        ['assert f(2) == 4']
    """

    def __init__(self, num_tests: int | None = 8) -> None:
        self.num_tests = num_tests

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Return the examples of each problem, in their order."""
        shown = [split_examples(seen["problem"], seen["entry_point"])[1] for seen in observations]
        return [TEST_SEPARATOR.join(tests[: self.num_tests]) for tests in shown]


_GOLDEN = 64
"""Golden tests whose arguments are moved, at most: some problems have a thousand."""
_MOST_CHARS = 1000
"""Of a test: what a player could write."""


def writable(test: str) -> bool:
    """Whether a player could write this test."""
    return len(test) <= _MOST_CHARS and TEST_SEPARATOR not in test


def draw(items: Sequence[str], number: int | None, rng: np.random.Generator) -> list[str]:
    """Draw items without replacement, all if there are no more; in random order."""
    order = rng.permutation(len(items))[:number]
    return [items[int(index)] for index in order]
