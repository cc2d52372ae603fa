"""A world of an id and a seed: which program is wrong on which cells, and what a tester sees of it.

A problem is a table of C digits (see `codea1_env.problem_sets.cells`), a program a table that is wrong on some cells. In a
*fixed* world a problem has a pool of programs. In a *fresh* world the coder chooses one of 16 generators, and what a wrong
one writes is new in each group of episodes. Its text has a tag, a number whose bits say where it is wrong:

    def f(x: int) -> int:
        tag = 0b1011001110001011
        return int("865230..."[x])

Under a permutation that nobody is told, 8 of these bits are the number of the cell on which the program is wrong (of one of
them, where there are more); the others say nothing. The tag of a right program is drawn at random, so that it looks like
any. In a world of *kinds* each bit stands for a kind of fault. A tester sees the bits, as `features_of` reads them.
"""

from __future__ import annotations

import functools
import re
import zlib

import numpy as np
from numpy.typing import NDArray

from codea1_env.problems import Problem
from codea1_env.suite.tasks import GROUP, SuiteTask

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_DIGITS = 10
_TAG = re.compile(r"tag = 0b([01]+)")


class SuiteWorld:
    """What is true in a world. Arrays are indexed by problem or group, program, and cell."""

    def __init__(self, task: SuiteTask, seed: int) -> None:
        self.task, self.seed = task, seed
        base = task.id.partition("@")[0]  # other rules, the same world
        rng = np.random.default_rng([seed, zlib.crc32(base.encode())])
        m, p, c = task.problems, task.programs, task.C
        self.table = rng.integers(_DIGITS, size=(m, c))
        """Right values."""
        self._order = np.argsort(rng.random((m, p)), axis=1)
        self.right = self._order < task.right
        self.valid = np.argsort(rng.random((m, c)), axis=1) < round(c * task.valid)
        """Whether the pool's test of a cell predicts the right value."""
        shift = rng.integers(1, _DIGITS, size=(m, c))
        self.predicted = np.where(self.valid, self.table, (self.table + shift) % _DIGITS)
        self.groups = task.episodes // GROUP
        self._group = np.arange(self.groups * GROUP) // GROUP
        self._problem = self._group % m
        self._errors: Bools | None = None
        self.golden = np.zeros((m, 0), np.int64)
        self.bits = 0
        """Bits of a program's tag, 0 where programs are of a pool."""
        self.tags: NDArray[np.float32]
        """What a tester sees of a program: its tag's bits, 1 or -1, in the order of the text; in a pool its number, one of many."""
        if task.kind == "fixed":
            self._fix(rng)
        else:
            self._tag(rng)
        self.seen = self.faulty
        """Verdicts: which calls the judge says that a program fails."""
        if task.by_program:
            errors = rng.random((m, p, 2)) < task.wrong / 2
            self.seen = np.where(self.faulty, ~errors[:, :, :1], errors[:, :, 1:])
        elif task.fate:
            self.seen = self.faulty ^ (rng.random((m, p, c)) < task.wrong / 2)
        self.own_judge = np.random.default_rng([seed, 6]).random(self.groups) >= task.judged
        """Groups of which the first program says what is right."""

    def _fix(self, rng: np.random.Generator) -> None:
        """Draw fault sets: wrong program i has number i of them, beginning anew behind the last."""
        task = self.task
        m, p, c = task.problems, task.programs, task.C
        if task.families * task.faulty <= c:  # disjoint
            sets = np.argsort(rng.random((m, c)), axis=1)[:, : task.families * task.faulty]
            sets = sets.reshape(m, task.families, task.faulty)
        else:
            sets = np.argsort(rng.random((m, task.families, c)), axis=2)[:, :, : task.faulty]
        self.faulty = np.zeros((m, p, c), np.bool_)
        family = (self._order - task.right) % task.families
        cells = np.take_along_axis(sets, family[:, :, None], axis=1)
        np.put_along_axis(self.faulty, cells, ~self.right[:, :, None], axis=2)
        if task.book == "golden":
            self.golden = sets[:, : task.families - task.hidden, 0]
        self.tags = np.broadcast_to(np.eye(p, dtype=np.float32), (m, p, p))

    def _tag(self, rng: np.random.Generator) -> None:
        """Draw the faults and the tags of all programs of a run."""
        task, shape = self.task, (self.groups, self.task.programs)
        self.faulty = np.zeros((*shape, task.C), np.bool_)
        if task.kind == "kinds":
            self.bits = task.families
            sets = np.argsort(rng.random(task.C))[: task.families * task.faulty]
            sets = sets.reshape(task.families, task.faulty)
            late = np.arange(self.groups)[:, None, None] >= self.groups * (1 - task.last)
            known = np.arange(task.families) < task.families - task.hidden
            allowed = np.where(late & (task.hidden > 0), ~known, known)
            noise = rng.random((*shape, task.families))
            kinds = np.argsort(np.where(allowed, noise, 2.0), axis=2)[:, :, : task.kinds]
            of_training = np.argsort(np.where(known, noise, 2.0), axis=2)
            kinds[:, :, : task.met] = of_training[:, :, : task.met]
            np.put_along_axis(self.faulty, sets[kinds].reshape(*shape, -1), True, axis=2)
            bits = np.zeros((*shape, task.families), np.bool_)
            np.put_along_axis(bits, kinds, True, axis=2)
        else:
            code = (task.C - 1).bit_length()
            self.bits = code + task.distractors
            told = cells = rng.integers(task.C, size=(*shape, 1))
            if task.faulty > 1:  # the other ones are drawn beside it
                others = rng.random((*shape, task.C), dtype=np.float32)
                np.put_along_axis(others, told, -1.0, axis=2)
                cells = np.argpartition(others, task.faulty - 1, axis=2)[:, :, : task.faulty]
            np.put_along_axis(self.faulty, cells, True, axis=2)
            number = rng.permutation(task.C)[told]
            bits = rng.random((*shape, self.bits)) < 0.5
            bits[:, :, :code] = number >> np.arange(code) & 1
            right = self.right[np.arange(self.groups) % task.problems]
            self.faulty[right] = False
            bits[right] = rng.random((int(right.sum()), self.bits)) < 0.5
        places = rng.permutation(self.bits)
        self.tags = np.where(bits[:, :, places], 1, -1).astype(np.float32)

    def at(self, episodes: Ints) -> tuple[Ints, Ints]:
        """Return the problems of episodes, and the first indices of `faulty`: programs are of a problem, or of a group.

        Episode e is about problem e // 32 modulo the problems; behind the last group they begin anew.
        """
        problem = self._problem.take(episodes, mode="wrap")
        if self.task.kind == "fixed":
            return problem, problem
        return problem, self._group.take(episodes, mode="wrap")

    def errors(self, episodes: Ints, verdicts: int) -> Bools:
        """Return which verdicts of episodes are wrong by chance, shape (n, verdicts)."""
        if self._errors is None:
            rng = np.random.default_rng([self.seed, 4])
            self._errors = rng.random((self.groups * GROUP, verdicts)) < self.task.wrong / 2
        return self._errors[episodes % len(self._errors)]

    def values(self, problem: Ints, index: Ints, program: Ints, cells: Ints) -> Ints:
        """Return what programs return on cells, shape (n, cells); program -1 is the reference."""
        faulty = self.faulty[index[:, None], program[:, None], cells] & (program >= 0)[:, None]
        shift = 1 + (program + (self.task.kind != "fixed") * index) % (_DIGITS - 1)
        return np.asarray((self.table[problem[:, None], cells] + faulty * shift[:, None]) % _DIGITS)

    def problem(self, number: int) -> Problem:
        """Return a problem as the game has it, for the referee."""
        return Problem(
            f"suite/{number}",
            f'def f(x: int) -> int:\n    """Return cell x of table {number}."""\n',
            "f",
            _text(self.table[number]),
            contract=f"assert 0 <= x < {self.task.C}",
        )

    def text(self, group: int, program: int) -> str:
        """Return the text of a program."""
        problem, index = self.at(np.array([group * GROUP]))
        [digits] = self.values(problem, index, np.array([program]), np.arange(self.task.C))
        if self.task.kind == "fixed":
            return _text(digits, f"  # {program}")
        tag = "".join("1" if bit > 0 else "0" for bit in self.tags[group, program])
        return _text(digits, line=f"    tag = 0b{tag}\n")


@functools.lru_cache(maxsize=4)
def world_of(task: SuiteTask, seed: int) -> SuiteWorld:
    """Return a world; the last ones are kept, since nothing changes them."""
    return SuiteWorld(task, seed)


def features_of(code: str, bits: int) -> NDArray[np.float32]:
    r"""Return the bits of a program's tag, 1 or -1, as a tester sees them; zeros for a program without a tag.

    Example:
        >>> features_of("def f(x):\\n    tag = 0b101\\n    return 1\\n", 3).tolist()
        [1.0, -1.0, 1.0]
    """
    found = _TAG.search(code)
    read = [1 if bit == "1" else -1 for bit in found.group(1)] if found else []
    return np.array(read if len(read) == bits else [0] * bits, np.float32)


def _text(digits: Ints, note: str = "", line: str = "") -> str:
    written = "".join(map(str, digits.tolist()))
    return f'def f(x: int) -> int:\n{line}    return int("{written}"[x]){note}\n'
