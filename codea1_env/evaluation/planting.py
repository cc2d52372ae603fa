"""Plants faults in the references of problems, and lets the referee check that each is one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codea1_env.mutation.planted import KINDS, Place, Planted, place_of, plant
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
    """What faults of a problem are made of."""

    place: Place
    argument: int
    case: Case
    """A golden test whose other arguments stay."""
    wrong: tuple[str, ...]


class Planter:
    """Plants faults on whole-number arguments of functions.

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
        self._grounds: dict[str, _Ground] = {}
        self.left_out: dict[str, str] = {}
        for problem in problems:
            found = _ground_of(problem, sandbox)
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
            drawn = [(i, self._draw(*asked[i], rng)) for i in left]
            rounds = [self._round(asked[i][0], made) for i, made in drawn]
            for (i, made), verdict in zip(drawn, self._referee.judge(rounds), strict=True):
                if verdict.failed:
                    found[i] = made
        return [found.get(i) for i in range(len(asked))]

    def _draw(self, problem: Problem, kind: str, rng: random.Random) -> Planted:
        ground = self._grounds[problem.task_id]
        name = ground.place.parameters[ground.argument]
        return plant(problem.reference, ground.place, name, kind, ground.wrong, rng)

    def _round(self, problem: Problem, made: Planted) -> Round:
        """Return a round whose only test hits the fault."""
        ground = self._grounds[problem.task_id]
        args = list(ground.case.args)
        args[ground.argument] = made.value
        call = call_of(problem.entry_point, replace(ground.case, args=tuple(args)))
        return Round(problem, made.code, [[f"assert {call} == None"]])


def _ground_of(problem: Problem, sandbox: Sandbox) -> _Ground | str:
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
            return _Ground(place, number, known[0], wrong)
    return "it takes no whole number"
