"""Algorithms of this project as players of the suite: softmax tables in NumPy, many rounds at once.

A step has up to 8 groups of 32 episodes: for each problem 8 programs, against each program 4 suites. The groups of an
algorithm are the programs of a problem, and the suites against a program. A coder has a table for each problem. A tester has
a table for each problem and one for each program of it that it has seen; where programs are new, its logits are linear in
what it sees of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from codea1_env.agents import make_algorithm
from codea1_env.suite.opponents import SUITES, CoderOpponent, TesterOpponent
from codea1_env.suite.rounds import Payoffs, Rounds
from codea1_env.suite.tasks import GROUP, SuiteError, SuiteTask, Track
from codea1_env.suite.updates import draw, step
from codea1_env.suite.worlds import Floats, Ints, SuiteWorld

PROGRAMS = GROUP // SUITES
"""Programs of a group."""
_AT_ONCE = 8
"""Groups of a step."""
_CARRIED = 0.1
"""Share of what is learned against a program that goes to all programs of the problem."""


@dataclass(frozen=True)
class SuiteEntry:
    """What plays: an algorithm and how it is used, or players that learn nothing."""

    algorithm: str = "grpo"
    """Name, or FILE.py:CLASS."""
    args: Mapping[str, Any] = field(default_factory=dict)
    coder_rate: float = 2.0
    tester_rate: float = 16.0
    lesson: Literal["paid", "negated", "ignored", "shuffled"] = "paid"
    """What it learns from: rewards, less than nothing of them, random numbers, or those of others of its group."""
    factor: float = 1.0
    """What both rates are multiplied by, after tuning."""
    coder: Literal["learns", "random", "oracle"] = "learns"
    tester: Literal["learns", "blind", "memory", "random", "oracle", "fixed", "pool"] = "learns"

    @property
    def learns(self) -> bool:
        """Whether it has learning rates."""
        return "learns" in (self.coder, self.tester) or self.tester == "blind"


ROWS: Mapping[str, Mapping[str, Any]] = {
    "negated-rewards": {"lesson": "negated"},
    "shuffled-rewards": {"lesson": "shuffled"},
    "ignored-rewards": {"lesson": "ignored"},
    "hundredfold-rate": {"factor": 100.0},
    "blind": {"tester": "blind"},
    "memory": {"tester": "memory"},
    "random-tests": {"tester": "random"},
    "fixed-tests": {"tester": "fixed"},
    "oracle-tests": {"tester": "oracle"},
    "pool-tests": {"tester": "pool"},
    "random": {"coder": "random", "tester": "random"},
    "oracle": {"coder": "oracle", "tester": "oracle"},
}
"""Rows that are no algorithm: GRPO with a fault, or with another tester, and players that learn nothing."""
FAULTY = ("negated-rewards", "ignored-rewards", "hundredfold-rate")
"""Rows with GRPO's own tuning."""
BAD = (*FAULTY, "random")
"""Rows that are worse than GRPO, or the game tells nothing of an algorithm."""


def find_entry(name: str, args: Mapping[str, Any] | None = None) -> SuiteEntry:
    """Return what plays: an algorithm by name or FILE.py:CLASS, or a row of `ROWS`. Wrong names raise a ValueError."""
    own = dict(args or {})
    if name in ROWS:
        if own:
            raise SuiteError(f"Expect no hyperparameters for the row {name}, actually: {own!r:.80}")
        return SuiteEntry(**ROWS[name])
    try:
        json.dumps(own, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SuiteError(
            f"Expect hyperparameters that JSON can hold, actually: {own!r:.80}"
        ) from error
    if "learning_rate" in own:
        raise SuiteError(
            "Expect the learning rates that `codea1 suite tune` finds, actually a hyperparameter learning_rate"
        )
    make_algorithm(name, {"learning_rate": 1.0}, "tabular", own)
    return SuiteEntry(algorithm=name, args=own)


class Tables:
    """Logits of a problem and, if less than all is `carried`, of a program are added; a program's number is problem * programs + choice.

    A coder has those of problems alone: one of its steps moves the other problems by the share `shared`.
    """

    def __init__(
        self, shape: tuple[int, int], programs: int = 1, carried: float = 1.0, shared: float = 0.0
    ) -> None:
        self._programs, self._carried, self._shared = programs, carried, shared
        self.question = np.zeros(shape)
        self.shown = np.zeros((shape[0] * programs, 1 if carried == 1 else shape[1]))

    def logits_of(self, keys: Ints) -> Floats:
        """Return logits by number."""
        return self.question[keys // self._programs] + self.shown[keys]

    def change(self, keys: Ints, change: Floats) -> None:
        """Divide what was learned, of different numbers, between programs and problems."""
        own = (1 - self._shared) * self._carried * change
        np.add.at(self.question, keys // self._programs, own)
        if self._shared:
            self.question += self._shared * change.sum(axis=0)
        if self._carried < 1:
            self.shown[keys] += (1 - self._carried) * change


class LinearTester:
    """Logits are linear in the bits of a program; the program's number is group * programs + choice."""

    def __init__(self, world: SuiteWorld, blind: bool) -> None:
        tags = world.tags.reshape(-1, world.bits)
        self._seen = np.ones((len(tags), 1 if blind else 1 + world.bits), np.float32)
        if not blind:
            self._seen[:, 1:] = tags
        self._seen /= np.sqrt(self._seen.shape[1])
        self.weights = np.zeros((self._seen.shape[1], world.task.C))

    def logits_of(self, keys: Ints) -> Floats:
        """Return the logits for programs."""
        logits: Floats = self._seen[keys] @ self.weights
        return logits

    def change(self, keys: Ints, change: Floats) -> None:
        """Take the step on the weights: the gradient of all programs together."""
        self.weights += self._seen[keys].T @ change


def _seen_tables(world: SuiteWorld, *, blind: bool) -> Tables | LinearTester:
    if world.bits:
        return LinearTester(world, blind)
    task = world.task
    return Tables((task.problems, task.C), task.programs, 1.0 if blind else _CARRIED)


class TablePlayer:
    """A player with tables, which an algorithm changes."""

    def __init__(
        self,
        entry: SuiteEntry,
        rate: float,
        tables: Tables | LinearTester,
        rng: np.random.Generator,
    ) -> None:
        self.tables, self._lesson, self._rng = tables, entry.lesson, rng
        settings = {"learning_rate": rate * entry.factor}
        self._algorithm = make_algorithm(entry.algorithm, settings, "tabular", dict(entry.args))

    def choose(self, keys: Ints, size: int) -> Ints:
        """Draw an answer from the table of each key."""
        different, which = np.unique(keys, return_inverse=True)
        return draw(self.tables.logits_of(different)[which], size, self._rng)

    def learn(self, keys: Ints, drawn: Ints, rewards: Floats) -> None:
        """Take a step: `rewards` has a row for each group of answers."""
        if self._lesson == "ignored":
            rewards = self._rng.random(rewards.size).reshape(rewards.shape)
        elif self._lesson == "shuffled":
            rewards = self._rng.permuted(rewards, axis=1)
        elif self._lesson == "negated":
            rewards = -rewards
        different, which = np.unique(keys, return_inverse=True)
        before = self.tables.logits_of(different).astype(np.float64)
        after = step(self._algorithm, before, different, which, drawn, rewards)
        self.tables.change(different, after - before)


class MemoryTester:
    """Control that learns nothing of other programs: it repeats the tests that broke a program, and else tries new ones."""

    def __init__(self, world: SuiteWorld, rng: np.random.Generator) -> None:
        self._rng, self._cells = rng, world.task.C
        self._seen = world.seen.reshape(-1, self._cells)
        self._known: dict[int, set[int]] = {}
        self._tried: dict[int, set[int]] = {}

    def choose(self, keys: Ints, size: int) -> Ints:
        """Return suites against programs."""
        suites = []
        for key in keys.tolist():
            order = self._rng.permutation(sorted(self._known.get(key, ()))).tolist()[:size]
            tried = self._tried.setdefault(key, set())
            while len(order) < size:
                cell = int(self._rng.integers(self._cells))
                if cell not in order and (cell not in tried or len(tried) > self._cells - size):
                    order.append(cell)
            tried |= set(order)
            suites.append(order)
        return np.array(suites)

    def remember(self, keys: Ints, tests: Ints, paid: Payoffs) -> None:
        """Keep the tests that broke programs: those of suites that did, one by one as the referee shows them."""
        for key, suite in zip(keys.tolist(), tests.tolist(), strict=True):
            self._known.setdefault(key, set()).update(c for c in suite if self._seen[key, c])


class SuiteRun:
    """An entry plays an id. `step` plays up to 256 episodes; nothing is left when `over`."""

    def __init__(
        self, entry: SuiteEntry, task: SuiteTask, seed: int, track: Track = "both"
    ) -> None:
        self.task, self.rounds = task, Rounds(task, seed)
        self.rng = np.random.default_rng([seed, 3])
        world = self.rounds.world
        coder = "population" if track == "tester" else entry.coder
        tester = "population" if track == "coder" else entry.tester
        self.coder: TablePlayer | CoderOpponent
        self.tester: TablePlayer | MemoryTester | TesterOpponent
        if coder == "learns":
            tables = Tables((task.problems, task.programs), shared=task.shared)
            self.coder = TablePlayer(entry, entry.coder_rate, tables, self.rng)
        else:
            self.coder = CoderOpponent(world, coder)
        if tester == "memory":
            self.tester = MemoryTester(world, self.rng)
        elif tester == "learns" or tester == "blind":
            seen = _seen_tables(world, blind=tester == "blind")
            self.tester = TablePlayer(entry, entry.tester_rate, seen, self.rng)
        else:
            self.tester = TesterOpponent(world, tester)

    @property
    def over(self) -> bool:
        """Whether all episodes of the id have been played."""
        return self.rounds.begun >= self.task.episodes

    def step(self) -> tuple[Ints, Ints, Ints, Payoffs]:
        """Play and learn; returns episodes, programs, tests and what came of them."""
        left = (self.task.episodes - self.rounds.begun) // GROUP
        episodes = self.rounds.begin(min(_AT_ONCE, self.task.problems, left) * GROUP)
        problem, index = self.rounds.world.at(episodes)
        if isinstance(self.coder, CoderOpponent):
            programs = self.coder.choose(episodes)
        else:
            programs = np.repeat(self.coder.choose(problem[::SUITES], 1)[:, 0], SUITES)
        keys = index * self.task.programs + programs
        if isinstance(self.tester, TesterOpponent):
            tests = self.tester.choose(episodes, programs)
        else:
            tests = self.tester.choose(keys, self.task.K)
        paid = self.rounds.end(episodes, programs, tests)
        if isinstance(self.coder, TablePlayer):
            rewards = paid.coder.reshape(-1, SUITES).mean(axis=1).reshape(-1, PROGRAMS)
            self.coder.learn(problem[::SUITES], programs[::SUITES, None], rewards)
        if isinstance(self.tester, TablePlayer):
            self.tester.learn(keys, tests, paid.tester.reshape(-1, SUITES))
        elif isinstance(self.tester, MemoryTester):
            self.tester.remember(keys, tests, paid)
        return episodes, programs, tests, paid
