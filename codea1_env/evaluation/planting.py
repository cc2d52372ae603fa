"""Plants faults in the references of problems, and lets the referee check that each is one."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codea1_env.mutation.planted import KINDS, Place, Planted, place_of, plant
from codea1_env.mutation.planted_reads import ReadPlace, plant_read, reading_of
from codea1_env.problem_sets.problem import call_of
from codea1_env.problems import Problem
from codea1_env.referee import Referee, Round
from codea1_env.sandbox import UNKNOWN, AnalysisError, Case, Sandbox
from codea1_env.sandbox.inside.analysis.literals import write

SPARRING = tuple(name for name, kind in KINDS.items() if kind.sparring)
"""Kinds of faults that testers may be trained on."""
_TRIES = 16
_MOST_CHARS = 60
"""Of a wrong result that is written into a program."""


@dataclass(frozen=True)
class _Ground:
    """What faults of a function are made of."""

    place: Place
    argument: int
    case: Case
    """A golden test whose other arguments stay."""
    wrong: tuple[str, ...]

    def draw(self, problem: Problem, kind: str, rng: random.Random) -> Planted:
        """Plant a fault."""
        name = self.place.parameters[self.argument]
        return plant(problem.reference, self.place, name, kind, self.wrong, rng)

    def call(self, problem: Problem, value: int) -> str | None:
        """A call with a value of the argument that decides."""
        args = list(self.case.args)
        args[self.argument] = value
        return call_of(problem.entry_point, replace(self.case, args=tuple(args)))


@dataclass(frozen=True)
class _InputGround:
    """What faults of a program are made of."""

    place: ReadPlace
    stdin: str
    """A golden input whose other words stay."""

    def draw(self, problem: Problem, kind: str, rng: random.Random) -> Planted:
        """Plant a fault."""
        return plant_read(problem.reference, self.place, kind, rng)

    def call(self, problem: Problem, value: int) -> str | None:
        """A call with an input that has a value in the place of the number that decides."""
        lines = [line.split(" ") for line in self.stdin.split("\n")]
        lines[self.place.row][self.place.word] = str(value)
        return call_of("", Case(("\n".join(map(" ".join, lines)),)))


class Planter:
    """Plants faults on whole-number arguments of functions, and on whole numbers that programs read.

    Args:
        problems: Problems whose references get faults.
        sandbox: Where references are taken apart, and faults are checked.

    Attributes:
        left_out: Task id -> why no fault can be planted.

    Example:
        >>> from codea1_env.problems import load_problems
        >>> from codea1_env.sandbox import default_sandbox
        >>> problem = load_problems("planted")[0]
        >>> [made] = Planter([problem], default_sandbox()).plant([(problem, "equal")], random.Random(0))
        >>> made.code != problem.reference
        True
    """

    def __init__(self, problems: Sequence[Problem], sandbox: Sandbox) -> None:
        self._referee = Referee(sandbox)
        self._grounds: dict[str, Sequence[_Ground | _InputGround]] = {}
        self.left_out: dict[str, str] = {}
        for problem in problems:
            found: Sequence[_Ground | _InputGround] | str
            if problem.kind == "program":
                found = _grounds_of_program(problem, self._referee)
            else:
                found = _grounds_of(problem, sandbox)
            if isinstance(found, str):
                self.left_out[problem.task_id] = found
            else:
                self._grounds[problem.task_id] = found

    def suits(self, problem: Problem) -> bool:
        """Whether a fault can be planted in the reference of a problem."""
        return problem.task_id in self._grounds

    def plant(
        self, asked: Sequence[tuple[Problem, str]], rng: random.Random
    ) -> list[Planted | None]:
        """Plant a fault of the kind that is asked for in each reference; None where none was found in a few tries."""
        found: dict[int, Planted] = {}
        for _ in range(_TRIES):
            left = [i for i, (each, _) in enumerate(asked) if i not in found and self.suits(each)]
            if not left:
                break
            drawn = [(i, *self._draw(*asked[i], rng)) for i in left]
            verdicts = self._referee.judge([each for *_, each in drawn])
            for (i, made, _), verdict in zip(drawn, verdicts, strict=True):
                if verdict.failed:
                    found[i] = made
        return [found.get(i) for i in range(len(asked))]

    def _draw(self, problem: Problem, kind: str, rng: random.Random) -> tuple[Planted, Round]:
        """Plant a fault, and return it with a round whose only test hits it."""
        grounds = self._grounds[problem.task_id]
        ground = rng.choice(grounds) if len(grounds) > 1 else grounds[0]
        made = ground.draw(problem, kind, rng)
        return made, _round_of(problem, made.code, ground, made.value)


def _grounds_of(problem: Problem, sandbox: Sandbox) -> Sequence[_Ground] | str:
    """Find what faults of a problem are made of, or say why there can be none."""
    known = [case for case in problem.cases if case.expected is not UNKNOWN and not case.kwargs]
    texts = [write(case.expected) for case in known]
    wrong = tuple(dict.fromkeys(each for each in texts if each and len(each) <= _MOST_CHARS))
    if not problem.reference.strip() or len(wrong) < 2:
        return "it has no reference, or no golden tests with different values"
    try:
        fields = sandbox.analyse(place_of, problem.reference, problem.entry_point)
    except AnalysisError as error:
        return f"its reference cannot be read: {error}"
    if fields is None:
        return "its reference is no plain function with a body below its head"
    place = Place(*fields)
    for number in range(len(place.parameters)):
        if all(len(case.args) > number and type(case.args[number]) is int for case in known):
            return [_Ground(place, number, known[0], wrong)]
    return "it takes no whole number"


def _round_of(problem: Problem, code: str, ground: _Ground | _InputGround, value: int) -> Round:
    return Round(problem, code, [[f"assert {ground.call(problem, value)} == None"]])


_NUMBER = re.compile("-?[0-9]+")
_MOST_INPUTS = 3
_MOST_PLACES = 8
"""Numbers of a golden input that are tried, and golden inputs."""
_VALUE = 500
"""One that a fault could be planted on."""


def _grounds_of_program(problem: Problem, referee: Referee) -> Sequence[_InputGround] | str:
    """Find numbers that a program reads and that may be any of three digits, or say why there is none."""
    if not problem.reference.strip() or not problem.cases:
        return "it has no reference, or no golden inputs"
    try:
        places, parsers = referee.sandbox.analyse(reading_of, problem.reference)
    except AnalysisError as error:
        return f"its reference cannot be read: {error}"
    grounds = []
    for case in problem.cases[:_MOST_INPUTS]:
        stdin: str = case.args[0]
        words = [line.split(" ") for line in stdin.split("\n")]
        numbers = [
            (i, j)
            for i, line in enumerate(words)
            for j, word in enumerate(line)
            if _NUMBER.fullmatch(word)
        ]
        found = [ReadPlace(*fields) for fields in places]
        found = [each for each in found if (each.row, each.word) in numbers]
        at = numbers[:_MOST_PLACES] if parsers else []
        found += [ReadPlace("n", 2, "    ", *place, parsers[0]) for place in at]
        grounds += [_InputGround(place, stdin) for place in found]
    rounds = [_round_of(problem, problem.reference, each, _VALUE) for each in grounds]
    verdicts = zip(grounds, referee.judge(rounds), strict=True)
    able = [each for each, said in verdicts if any(test.attacks for test in said.suites[0].tests)]
    # A fault beside the number that is read is the plainer one.
    able = [each for each in able if not each.place.parser] or able
    return able or "it reads no whole number that may have any value"
