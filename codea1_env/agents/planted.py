"""Scripts around planted faults: a coder that plants them, and a tester that tries every number of a program's text."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

from codea1_env.agents.scripted import TEST_SEPARATOR, FixedAgent
from codea1_env.agents.state import KnownProblems, read_json, write_json
from codea1_env.evaluation.planting import SPARRING, Planter
from codea1_env.problems import Problem
from codea1_env.reading.examples import split_examples
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation

_NUMBER = re.compile(r"(?:(?<=\\n)|(?<![\w.]))\d+(?![\w.])")
"""Also behind a new line that is written as an escape."""
_DOCSTRING = re.compile(r'("""|\'\'\').*?\1', re.DOTALL)


class PlantedCoder(FixedAgent):
    """Submits the reference with a fault on a few values of an argument, drawn anew each time; see `codea1_env.mutation.planted`.

    Where none can be planted, it submits the reference.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        sandbox: Sandbox,
        seed: int = 0,
        kinds: Sequence[str] = SPARRING,
    ) -> None:
        self._problems = KnownProblems(problems)
        self._planter = Planter(problems, sandbox)
        self._kinds = tuple(kinds)
        self.random = random.Random(seed)

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Return one program for each observation, in order."""
        problems = [self._problems[each] for each in observations]
        asked = [(problem, self.random.choice(self._kinds)) for problem in problems]
        made = self._planter.plant(asked, self.random)
        return [
            problem.reference if found is None else found.code
            for problem, found in zip(problems, made, strict=True)
        ]

    def save(self, path: Path) -> None:
        """Write the state of the random generator."""
        version, state, gauss = self.random.getstate()
        write_json(path / "rng.json", [version, list(state), gauss])

    def load(self, path: Path) -> None:
        """Restore the state of the random generator."""
        version, state, gauss = read_json(path / "rng.json")
        self.random.setstate((version, tuple(state), gauss))


class NumbersTester(FixedAgent):
    r"""Tests every number that the program's text names: how far copying goes without reading. A control.

    It puts each number in the place of one of the first example, and guesses the value.

    Example:
        >>> from codea1_env.spaces import observe
        >>> problem = Problem("twice", ">>> f(2)\n4", "f", "f = int")
        >>> NumbersTester().act([observe(problem, code="def f(n): return 9 if n == 417 else 2 * n", turn=1)])
        ['assert f(9) == 4\n\nassert f(417) == 4\n\nassert f(2) == 4']
    """

    def __init__(self, num_tests: int | None = 8) -> None:
        self.num_tests = num_tests

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Return one suite for each observation, in order."""
        return [TEST_SEPARATOR.join(self._tests(seen)) for seen in observations]

    def _tests(self, seen: Observation) -> list[str]:
        examples = split_examples(seen["problem"], seen["entry_point"])[1]
        numbers = self.numbers(_DOCSTRING.sub("", seen["code"]))
        if not examples:
            return []
        call, equals, value = examples[0].rpartition(" == ")
        made = [
            f"{call[: at.start()]}{number}{call[at.end() :]}{equals}{value}"
            for number in numbers
            for at in _NUMBER.finditer(call)
        ]
        return made[: self.num_tests]

    def numbers(self, code: str) -> list[str]:
        """Return the numbers that are tested, in order."""
        return list(dict.fromkeys(_NUMBER.findall(code)))
