"""Plants faults in the references of problems, and lets the referee check that each is one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

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


class _NoGroundError(ValueError):
    """Why no fault can be planted in a reference."""


@dataclass(frozen=True)
class _Ground:
    """A place of a reference where faults can be planted."""

    problem: Problem
    draw: Callable[[str, random.Random], Planted]
    """Plants a fault of a kind."""
    case: Callable[[int], Case]
    """A golden test with a value in the place of the number that decides."""

    def round(self, code: str, value: int) -> Round:
        """A round whose only test has this value."""
        call = call_of(self.problem.entry_point, self.case(value))
        return Round(self.problem, code, [[f"assert {call} == None"]])


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
        self._grounds: dict[str, Sequence[_Ground]] = {}
        self.left_out: dict[str, str] = {}
        for problem in problems:
            find = _in_program if problem.kind == "program" else _in_function
            try:
                self._grounds[problem.task_id] = find(problem, self._referee)
            except AnalysisError as error:
                self.left_out[problem.task_id] = f"its reference cannot be read: {error}"
            except _NoGroundError as error:
                self.left_out[problem.task_id] = str(error)

    def plant(
        self, asked: Sequence[tuple[Problem, str]], rng: random.Random
    ) -> list[Planted | None]:
        """Plant a fault of the kind that is asked for in each reference; None where none was found in a few tries."""
        found: dict[int, Planted] = {}
        able = [i for i, (problem, _) in enumerate(asked) if problem.task_id in self._grounds]
        for _ in range(_TRIES):
            left = [i for i in able if i not in found]
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
        made = ground.draw(kind, rng)
        return made, ground.round(made.code, made.value)


def _in_function(problem: Problem, referee: Referee) -> Sequence[_Ground]:
    """Find the first argument that is a whole number in all golden tests."""
    known = [case for case in problem.cases if case.expected is not UNKNOWN and not case.kwargs]
    texts = [write(case.expected) for case in known]
    wrong = tuple(dict.fromkeys(each for each in texts if each and len(each) <= _MOST_CHARS))
    if not problem.reference.strip() or len(wrong) < 2:
        raise _NoGroundError("it has no reference, or no golden tests with different values")
    fields = referee.sandbox.analyse(place_of, problem.reference, problem.entry_point)
    if fields is None:
        raise _NoGroundError("its reference is no plain function with a body below its head")
    place = Place(*fields)
    for number in range(len(place.parameters)):
        if all(len(case.args) > number and type(case.args[number]) is int for case in known):
            break
    else:
        raise _NoGroundError("it takes no whole number")

    def draw(kind: str, rng: random.Random) -> Planted:
        return plant(problem.reference, place, place.parameters[number], kind, wrong, rng)

    def case(value: int) -> Case:
        first = known[0]
        return replace(first, args=(*first.args[:number], value, *first.args[number + 1 :]))

    return [_Ground(problem, draw, case)]


_NUMBER = re.compile("-?[0-9]+")
_MOST_INPUTS = 3
_MOST_PLACES = 8
"""Numbers of a golden input that are tried, and golden inputs."""
_VALUE = 500
"""One that a fault could be planted on."""


def _in_program(problem: Problem, referee: Referee) -> Sequence[_Ground]:
    """Find numbers that a program reads and that may be any of three digits."""
    if not problem.reference.strip() or not problem.cases:
        raise _NoGroundError("it has no reference, or no golden inputs")
    places, parsers = referee.sandbox.analyse(reading_of, problem.reference)
    grounds: list[tuple[ReadPlace, _Ground]] = []
    for case in problem.cases[:_MOST_INPUTS]:
        words = [line.split(" ") for line in case.args[0].split("\n")]
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
        for place in found:
            draw = partial(plant_read, problem.reference, place)
            grounds.append((place, _Ground(problem, draw, partial(_with_word, words, place))))
    rounds = [ground.round(problem.reference, _VALUE) for _, ground in grounds]
    verdicts = zip(grounds, referee.judge(rounds), strict=True)
    able = [each for each, said in verdicts if any(test.attacks for test in said.suites[0].tests)]
    # A fault beside the number that is read is the plainer one.
    plain = [ground for place, ground in able if not place.parser]
    if not able:
        raise _NoGroundError("it reads no whole number that may have any value")
    return plain or [ground for _, ground in able]


def _with_word(words: Sequence[Sequence[str]], place: ReadPlace, value: int) -> Case:
    lines = [list(line) for line in words]
    lines[place.row][place.word] = str(value)
    return Case(("\n".join(map(" ".join, lines)),))
