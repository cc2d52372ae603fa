"""Algorithms of this project as players of the suite: softmax tables in NumPy, many rounds at once.

A step has up to 8 groups of 32 episodes: for each problem 8 programs, against each program 4 suites. The groups of an
algorithm are the programs of a problem, and the suites against a program. A coder has a table for each problem. A tester has
a table for each problem and one for each program of it that it has seen; where programs are new, its logits are linear in
what it sees of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from codea1_env.agents import make_algorithm
from codea1_env.suite.opponents import SUITES, CoderOpponent, TesterOpponent
from codea1_env.suite.rounds import Payoffs, Rounds
from codea1_env.suite.tasks import GROUP, SuiteTask, Track
from codea1_env.suite.updates import draw, update
from codea1_env.suite.worlds import Floats, Ints, SuiteWorld

PROGRAMS = GROUP // SUITES
"""Programs of a group."""
_AT_ONCE = 8
"""Groups of a step."""
_CARRIED = 0.1
"""Share of what is learned against a program that goes to all programs of the problem."""
RATES = tuple((3.0**i, 8 * 3.0**i) for i in range(6))
"""Learning rates of coder and tester that tuning tries."""


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


class Coder:
    """A softmax over the programs of each problem; a step on one problem moves the others by the share `task.shared`."""

    def __init__(self, task: SuiteTask) -> None:
        self._shared = task.shared
        self.logits = np.zeros((task.problems, task.programs))

    def logits_of(self, keys: Ints) -> Floats:
        """Return the logits of problems."""
        return self.logits[keys]

    def change(self, keys: Ints, change: Floats) -> None:
        """Add to the logits of different problems."""
        self.logits[keys] += (1 - self._shared) * change
        self.logits += self._shared * change.sum(axis=0)


class TableTester:
    """Logits of a problem and of a program that was seen before are added; the program's number is problem * programs + choice."""

    def __init__(self, task: SuiteTask, blind: bool) -> None:
        self._programs, self._blind = task.programs, blind
        self.question = np.zeros((task.problems, task.C))
        self.shown = np.zeros((task.problems * task.programs, 1 if blind else task.C))

    def logits_of(self, keys: Ints) -> Floats:
        """Return the logits for programs."""
        return self.question[keys // self._programs] + self.shown[keys]

    def change(self, keys: Ints, change: Floats) -> None:
        """Divide what was learned against different programs between them and their problems."""
        carried = 1.0 if self._blind else _CARRIED
        np.add.at(self.question, keys // self._programs, carried * change)
        if not self._blind:
            self.shown[keys] += (1 - carried) * change


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


class MemoryTester:
    """Control that learns nothing of other programs: it repeats the tests that broke a program, and else tries new ones."""

    def __init__(self, world: SuiteWorld, rng: np.random.Generator) -> None:
        self._rng, self._cells = rng, world.task.C
        self._known: dict[int, set[int]] = {}
        self._tried: dict[int, set[int]] = {}

    def choose(self, keys: Ints, size: int) -> Ints:
        """Return suites against programs."""
        suites = []
        for key in keys.tolist():
            known = self._known.get(key, set())
            order = [*self._rng.permutation(sorted(known)).tolist()][:size]
            tried = self._tried.setdefault(key, set())
            while len(order) < size:
                cell = int(self._rng.integers(self._cells))
                if cell not in order and (cell not in tried or len(tried) > self._cells - size):
                    order.append(cell)
            tried |= set(order)
            suites.append(order)
        return np.array(suites)

    def remember(self, keys: Ints, tests: Ints, paid: Payoffs, rounds: Rounds) -> None:
        """Keep the tests that broke programs: those of suites that did, one by one as the referee shows them."""
        seen = rounds.world.seen.reshape(-1, self._cells)
        for key, suite in zip(keys.tolist(), tests.tolist(), strict=True):
            broke = {cell for cell in suite if seen[key, cell]}
            if broke:
                self._known.setdefault(key, set()).update(broke)


class SuiteRun:
    """An entry plays an id. `step` plays up to 256 episodes; nothing is left when `over`."""

    def __init__(
        self, entry: SuiteEntry, task: SuiteTask, seed: int, track: Track = "both"
    ) -> None:
        self.entry, self.task, self.track = entry, task, track
        self.rounds = Rounds(task, seed)
        world = self.rounds.world
        self.rng = np.random.default_rng([seed, 3])
        coder = "population" if track == "tester" else entry.coder
        tester = "population" if track == "coder" else entry.tester
        self._coder_opponent = None if coder == "learns" else CoderOpponent(world, coder)
        self._tester_opponent: TesterOpponent | None = None
        if tester in ("population", "random", "oracle", "fixed", "pool"):
            self._tester_opponent = TesterOpponent(world, tester)
        blind = tester == "blind"
        self.coder = Coder(task)
        self.tester = TableTester(task, blind) if task.kind == "fixed" else LinearTester(world, blind)  # fmt: skip
        self.memory = MemoryTester(world, self.rng) if tester == "memory" else None
        self._learns = {
            "coder": self._coder_opponent is None,
            "tester": self._tester_opponent is None and self.memory is None,
        }
        rates = {
            "coder": entry.coder_rate * entry.factor,
            "tester": entry.tester_rate * entry.factor,
        }
        self.algorithms = {
            role: make_algorithm(
                entry.algorithm, {"learning_rate": rate}, "tabular", dict(entry.args)
            )
            for role, rate in rates.items()
        }

    @property
    def over(self) -> bool:
        """Whether all episodes of the id have been played."""
        return self.rounds.begun >= self.task.episodes

    def step(self) -> tuple[Ints, Ints, Ints, Payoffs]:
        """Play and learn; returns episodes, programs, tests and what came of them."""
        groups = min(_AT_ONCE, self.task.problems)
        groups = min(groups, (self.task.episodes - self.rounds.begun) // GROUP)
        episodes = self.rounds.begin(groups * GROUP)
        programs, tests, keys = self.choose(episodes)
        paid = self.rounds.end(episodes, programs, tests)
        self.learn(episodes, programs, tests, keys, paid)
        return episodes, programs, tests, paid

    def choose(self, episodes: Ints) -> tuple[Ints, Ints, Ints]:
        """Return programs and tests of whole groups, and numbers of the programs that the tester sees."""
        group = self.rounds.group_of(episodes)
        problem = group % self.task.problems
        if self._coder_opponent is not None:
            programs = self._coder_opponent.choose(episodes)
        else:
            asked = problem[::SUITES]
            programs = np.repeat(draw(self.coder.logits_of(asked), 1, self.rng)[:, 0], SUITES)
        keys = self.rounds.world.of(group, problem) * self.task.programs + programs
        if self._tester_opponent is not None:
            tests = self._tester_opponent.choose(episodes, self.rounds, programs)
        elif self.memory is not None:
            tests = self.memory.choose(keys, self.task.K)
        else:
            different, which = np.unique(keys, return_inverse=True)
            tests = draw(self.tester.logits_of(different)[which], self.task.K, self.rng)
        return programs, tests, keys

    def learn(self, episodes: Ints, programs: Ints, tests: Ints, keys: Ints, paid: Payoffs) -> None:
        """Let both players learn from whole groups."""
        if self._learns["coder"]:
            problem = self.rounds.problem_of(episodes[::SUITES])
            rewards = self._lesson(paid.coder.reshape(-1, SUITES).mean(axis=1).reshape(-1, PROGRAMS))  # fmt: skip
            update(self.algorithms["coder"], self.coder, problem, programs[::SUITES, None], rewards)
        if self._learns["tester"]:
            rewards = self._lesson(paid.tester.reshape(-1, SUITES))
            update(self.algorithms["tester"], self.tester, keys, tests, rewards)
        if self.memory is not None:
            self.memory.remember(keys, tests, paid, self.rounds)

    def _lesson(self, rewards: Floats) -> Floats:
        if self.entry.lesson == "ignored":
            return self.rng.random(rewards.size).reshape(rewards.shape)
        if self.entry.lesson == "shuffled":
            return self.rng.permuted(rewards, axis=1)
        return -rewards if self.entry.lesson == "negated" else rewards
