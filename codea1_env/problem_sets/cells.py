r"""Problems that are tables, so that every fault is known exactly: what experiments with adversaries are made on.

A problem is a function of one number, `f(x)` for x in 0..C-1: a table of C cells, drawn from a seed and written as Python.
A wrong program is wrong on the cells of its fault set and right elsewhere. Sandbox, referee and Mistake Book treat it as
any other problem; what tabular players choose from (`pool_of_programs`, `pool_of_tests`) comes from here, too. Nothing is
held back of these pools: a program is one of them or not, and its correctness is measured over all cells.

    >>> from codea1_env.problems import load_problems
    >>> problem = load_problems("cells:C=8,faults=1/4,families=2,problems=1")[0]
    >>> print(problem.reference)
    def f(x: int) -> int:
        return int("86523000"[x])
    <BLANKLINE>
    >>> pools = pools_of(problem)
    >>> [sorted(faults) for faults in pools.faults]
    [[], [1, 4], [3, 5]]
    >>> pools.tests[:2]
    ('assert f(0) == 8', 'assert f(1) == 6')
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from codea1_env.problem_sets.problem import Problem, ProblemsError
from codea1_env.sandbox import Case

NAME = "cells"
"""Name of the problem set; `cells:C=64,faults=1/8` says what differs from the defaults."""
_DIGITS = 10
_MOST_CELLS = 4096


@dataclass(frozen=True)
class CellsConfig:
    """A world of cells. Raises a ProblemsError if a value is out of its range, or the values contradict each other."""

    C: int = 256
    """Cells of a problem: its inputs are 0..C-1."""
    faults: Fraction = Fraction(1, 64)
    """Share of the cells in a fault set; at least one cell."""
    families: int = 8
    """Fault sets of a problem. Wrong program i is wrong on fault set i, and on the next `holes` - 1."""
    holes: int = 1
    """Fault sets of a wrong program."""
    disjoint: bool = True
    """No two fault sets share a cell; otherwise each is drawn on its own."""
    right: int = 1
    """Right programs that a coder can choose; 0 for a pool in which every program has a hole."""
    valid: Fraction = Fraction(1)
    """Share of a tester's tests that predict the right value."""
    problems: int = 8
    """Problems of the set."""
    seed: int = 0
    """Decides tables, fault sets and wrong values."""

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("C", self.C, 2, _MOST_CELLS),
            ("faults", self.faults, Fraction(1, _MOST_CELLS), 1),
            ("families", self.families, 1, 1024),
            ("holes", self.holes, 1, self.families),
            ("right", self.right, 0, 64),
            ("valid", self.valid, 0, 1),
            ("problems", self.problems, 1, 10_000),
            ("seed", self.seed, 0, 2**32),
        ):
            if not least <= value <= most:
                said = f"Expect {name} from {least} to {most}, actually: {value}."
                raise ProblemsError(NAME, said)
        if self.disjoint and self.size * self.families > self.C:
            raise ProblemsError(
                NAME,
                f"Expect {self.families} disjoint fault sets of {self.size} cells to fit into C={self.C}. "
                "Lower faults or families, or say disjoint=0.",
            )
        if self.right + self.families < 2:
            raise ProblemsError(NAME, "Expect at least 2 programs: raise right or families.")

    @property
    def size(self) -> int:
        """Cells of a fault set."""
        return max(1, round(self.C * self.faults))

    @classmethod
    def read(cls, text: str) -> CellsConfig:
        """Read `C=256,faults=1/64,...`; what is not named has its default.

        Example:
            >>> CellsConfig.read("C=64,faults=1/8").size
            8
        """
        kinds: dict[str, type] = {each.name: type(each.default) for each in dataclasses.fields(cls)}
        given: dict[str, int | bool | Fraction] = {}
        for part in filter(None, text.split(",")):
            name, _, value = (each.strip() for each in part.partition("="))
            kind = kinds.get(name)
            if kind is None:
                near = difflib.get_close_matches(name, kinds, n=1, cutoff=0.5)
                hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(kinds)}."
                raise ProblemsError(NAME, f"Expect NAME=VALUE, actually {part!r:.60}. {hint}")
            if name in given:
                raise ProblemsError(NAME, f"Expect {name} once, actually twice.")
            try:
                number = Fraction(value)
                given[name] = kind(number)
                if given[name] != number:
                    raise ValueError
            except (ValueError, ZeroDivisionError, OverflowError):
                said = f"Expect {name} to be of type {kind.__name__}, actually: {value!r:.60}."
                raise ProblemsError(NAME, said) from None
        return cls(**given)  # type: ignore[arg-type]  # of the types that the fields have

    def __str__(self) -> str:
        values = ((each.name, getattr(self, each.name)) for each in dataclasses.fields(self))
        return ",".join(f"{name}={int(v) if v is True or v is False else v}" for name, v in values)


@dataclass(frozen=True)
class Pools:
    """What tabular players choose from, and what is true of it."""

    programs: tuple[str, ...]
    """The right ones first."""
    faults: tuple[frozenset[int], ...]
    """Cells on which each program is wrong."""
    families: tuple[frozenset[int], ...]
    """The fault sets."""
    tests: tuple[str, ...]
    """A test for each cell."""
    valid: tuple[bool, ...]
    """Which tests predict the right value."""


def cells(config: CellsConfig = CellsConfig()) -> list[Problem]:
    """Make the problems of a world."""
    return [_problem(config, number) for number in range(config.problems)]


def is_cells(source: str) -> bool:
    """Whether a source of problems is a world of cells."""
    return source.partition(":")[0] == NAME


def load_cells(source: str) -> list[Problem]:
    """Make the problems that `cells` or `cells:NAME=VALUE,...` names."""
    return cells(CellsConfig.read(source.partition(":")[2]))


def is_of_cells(problem: Problem) -> bool:
    """Whether `pools_of` knows the pools of a problem."""
    return problem.metadata.get("source") == NAME


def pools_of(problem: Problem) -> Pools:
    """Return the pools of a problem that `cells` made."""
    config = CellsConfig.read(problem.metadata["world"])
    return _pools(config, int(problem.metadata["number"]))


def _problem(config: CellsConfig, number: int) -> Problem:
    table = _table(config, number)
    return Problem(
        task_id=f"{NAME}/{number}",
        prompt=f'def f(x: int) -> int:\n    """Return cell x of table {number}, for x from 0 to {config.C - 1}."""\n',
        entry_point="f",
        reference=_program(table),
        cases=_cases(table),
        contract=f"assert 0 <= x < {config.C}",
        metadata={"source": NAME, "split": "train", "world": str(config), "number": str(number)},
    )


def _cases(table: Sequence[int]) -> tuple[Case, ...]:
    return tuple(Case((cell,), {}, value) for cell, value in enumerate(table))


def _rng(config: CellsConfig, number: int, stream: int) -> np.random.Generator:
    # Not of the whole configuration: worlds that differ in one knob have the same tables.
    return np.random.default_rng([config.seed, number, stream])


def _table(config: CellsConfig, number: int) -> list[int]:
    return [int(value) for value in _rng(config, number, 0).integers(_DIGITS, size=config.C)]


def _program(table: Iterable[int], note: str = "") -> str:
    digits = "".join(map(str, table))
    return f'def f(x: int) -> int:\n    return int("{digits}"[x]){note}\n'


def _tables(config: CellsConfig, number: int) -> list[list[int]]:
    table, families = _table(config, number), _families(config, number)
    tables = [table] * config.right
    for first in range(config.families):
        own = [families[(first + i) % config.families] for i in range(config.holes)]
        faults = frozenset[int]().union(*own)
        # By another value for each, so that two programs of the same faults are two texts.
        tables.append([(v + 1 + first % (_DIGITS - 1)) % _DIGITS if x in faults else v for x, v in enumerate(table)])  # fmt: skip
    return tables


def _pools(config: CellsConfig, number: int) -> Pools:
    tables, table = _tables(config, number), _table(config, number)
    rng = _rng(config, number, 2)
    right = np.zeros(config.C, bool)
    right[rng.permutation(config.C)[: round(config.C * config.valid)]] = True
    shifts = rng.integers(1, _DIGITS, size=config.C)
    predicted = [v if ok else (v + int(s)) % _DIGITS for v, ok, s in zip(table, right, shifts, strict=True)]  # fmt: skip
    return Pools(
        tuple(
            _program(each, f"  # {i}" if i or not config.right else "")
            for i, each in enumerate(tables)
        ),
        tuple(
            frozenset(x for x, (v, true) in enumerate(zip(each, table, strict=True)) if v != true)
            for each in tables
        ),
        _families(config, number),
        tuple(f"assert f({cell}) == {value}" for cell, value in enumerate(predicted)),
        tuple(v == true for v, true in zip(predicted, table, strict=True)),
    )


def _families(config: CellsConfig, number: int) -> tuple[frozenset[int], ...]:
    rng = _rng(config, number, 1)
    order = rng.permutation(config.C)
    found = []
    for family in range(config.families):
        start = family * config.size if config.disjoint else 0
        found.append(frozenset(int(cell) for cell in order[start : start + config.size]))
        if not config.disjoint:
            order = rng.permutation(config.C)
    return tuple(found)
