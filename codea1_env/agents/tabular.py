"""Learning players without a language model: real algorithms, on a CPU, in seconds.

A tabular player chooses from a pool of good and bad answers. It learns by the same rewards, groups and losses as a language
model. What is held back for measuring (`codea1_env.evaluation.held_out`) is in no pool, nor is anything made from it.
"""

from __future__ import annotations

import hashlib
import itertools
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codea1_env.agents.policy import CARRIED, Algorithm, Sample, SoftmaxPolicy, updated
from codea1_env.agents.scripted import TEST_SEPARATOR, draw, writable
from codea1_env.agents.state import (
    KnownProblems,
    load_saved_state,
    read_state,
    rng_state,
    saved_state,
    shown_to,
    write_json,
)
from codea1_env.agents.variants import variants
from codea1_env.evaluation.held_out import HeldOut
from codea1_env.problem_sets.cells import is_of_cells, pools_of
from codea1_env.problem_sets.problem import call_of
from codea1_env.problem_sets.wrong_programs import program_that
from codea1_env.problems import Problem, ProblemsError
from codea1_env.reading.examples import called
from codea1_env.rollout import Experience
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation


@dataclass(frozen=True)
class Pool:
    """The answers that a tabular agent can give to one problem, or the parts of its answers."""

    problem: Problem
    items: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """Changes when any item changes."""
        return hashlib.sha256("\0".join(self.items).encode("utf-8", "surrogatepass")).hexdigest()


def pool_of_programs(split: HeldOut, size: int = 16) -> Pool:
    """Make a pool of programs: the reference, mutants of it, a stub, and one that cannot be parsed; or that of a problem of cells."""
    problem = split.problem
    if is_of_cells(problem):
        return Pool(problem, pools_of(problem).programs)
    stub = program_that(problem, "return None")
    broken = problem.reference + "\n    return (\n"
    mutants = split.train_mutants[: max(0, size - 3)]
    return Pool(problem, _distinct([problem.reference, *mutants, stub, broken]))


_GOLDEN = 64
"""Golden tests that a pool is made from, at most: some problems have a thousand."""


def pool_of_tests(split: HeldOut, sandbox: Sandbox, size: int = 16, seed: int = 0) -> Pool:
    """Make a pool of tests: right, wrong, weak and boundary ones in equal parts, and some that test nothing.

    Args:
        split: The problem. Only its tests for training are used, so held-out ones stay unseen.
        sandbox: Where the golden tests are parsed.
        size: Tests of the pool, nearly; a problem of cells has a pool of its own.
        seed: Decides which wrong, weak and boundary tests are taken.

    Raises:
        ProblemsError: The problem has no golden tests to train with.
    """
    problem = split.problem
    if is_of_cells(problem):
        return Pool(problem, pools_of(problem).tests)
    golden = list(itertools.islice(filter(writable, split.train_tests), _GOLDEN))
    if not golden:
        raise ProblemsError(
            "",
            f"Expect at least one golden test for the pool of a tabular tester, actually none in "
            f"{problem.task_id!r}. Choose problems whose tests are calls and values, such as 'starter'.",
        )
    rng = np.random.default_rng([seed, zlib.crc32(problem.task_id.encode()), 1])
    made = sandbox.analyse(variants, golden, problem.entry_point)
    hidden = filter(None, (call_of(problem.entry_point, case) for case in split.cases))
    hidden_calls = tuple(f"assert {call} == " for call in hidden)
    share = max(1, size // 4)
    tests = golden[:share]
    for kind in ("wrong", "weak", "boundary"):
        found = [test for row in made for test in row[kind] if not test.startswith(hidden_calls)]
        tests += draw(found, share, rng)
    return Pool(
        problem, _distinct([*tests, "assert 1 + 1 == 2", f"assert {called(problem.entry_point)}"])
    )


def _distinct(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


class TabularAgent:
    r"""A softmax over the pool of each problem, trained by a policy-gradient algorithm.

    The logits are the sum of a table for the problem and one for what is shown beside it (see `SoftmaxPolicy`).

    Args:
        pools: One pool per problem.
        algorithm: What turns rewards into new logits.
        rng: The player's own random generator.
        draws: Items of an answer: 1 for a coder, the number of tests for a tester.
        carried: As of `SoftmaxPolicy`.

    Example:
        >>> from codea1_env.agents import GRPO
        >>> from codea1_env.problems import Problem
        >>> from codea1_env.spaces import observe
        >>> problem = Problem("one", "def one():", "one", "def one():\n    return 1\n")
        >>> pool = Pool(problem, ("right", "wrong"))
        >>> coder = TabularAgent([pool], GRPO(), np.random.default_rng(0))
        >>> for _ in range(20):
        ...     answers = coder.act([observe(problem)] * 4)
        ...     _ = coder.learn([Experience(observe(problem), a, float(a == "right"), "g") for a in answers])
        >>> coder.act([observe(problem)] * 4)
        ['right', 'right', 'right', 'right']
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        algorithm: Algorithm,
        rng: np.random.Generator,
        draws: int = 1,
        carried: float = CARRIED,
    ) -> None:
        twice = [pool.problem.task_id for pool in pools if len(set(pool.items)) < len(pool.items)]
        if twice:
            raise ValueError(f"Expect the items of a pool to differ, actually not in: {twice[0]!r}")
        saved_state(algorithm)  # what cannot be saved is an error now, not at the first checkpoint
        self.algorithm = algorithm
        self.rng = rng
        self._problems = KnownProblems(pool.problem for pool in pools)
        self._pools = {pool.problem.task_id: pool for pool in pools}
        self._index = {
            key: {item: index for index, item in enumerate(pool.items)}
            for key, pool in self._pools.items()
        }
        sizes = {key: len(pool.items) for key, pool in self._pools.items()}
        self.policy = SoftmaxPolicy(sizes, draws, carried)

    @property
    def pools(self) -> Mapping[str, Pool]:
        """Task id -> the pool of the problem."""
        return self._pools

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Draw one answer for each observation."""
        answers = []
        for observation in observations:
            items = self._pools[self._problems[observation].task_id].items
            drawn = self.policy.draw(self._table(observation), self.rng)
            answers.append(TEST_SEPARATOR.join(items[index] for index in drawn))
        return answers

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Update the tables of the problems that were played."""
        samples = [self._sample(item) for item in experience]
        metrics = updated(self.algorithm, self.policy, samples)
        tables = sorted({sample.key for sample in samples})
        if tables:
            metrics["entropy"] = float(np.mean([self.policy.entropy(key) for key in tables]))
        return metrics

    def imitate(self, demonstrations: Sequence[Experience]) -> Mapping[str, float]:
        """Take one step up the mean log-probability of the demonstrated items, as far as they are in a pool."""
        rows: dict[str, list[tuple[int, ...]]] = {}
        for item in demonstrations:
            index = self._index[self._problems[item.observation].task_id]
            parts = item.action.split(TEST_SEPARATOR)
            drawn = tuple(index[part] for part in parts if part in index)
            if drawn:
                rows.setdefault(self._table(item.observation), []).append(drawn)
        before = {key: self.policy.logits[key].copy() for key in rows}
        losses = []
        for key, answers in rows.items():
            gradient = np.concatenate([self.policy.gradients(key, drawn) for drawn in answers])
            log_probs = [self.policy.log_probs(key, drawn) for drawn in answers]
            losses.append(-float(np.concatenate(log_probs).mean()))
            self.policy.logits[key] += self.algorithm.learning_rate * gradient.mean(axis=0)
        self.policy.settle(before)
        return {"loss": float(np.mean(losses)) if losses else 0.0}

    def save(self, path: Path) -> None:
        """Write the tables, what the algorithm remembers, and the state of the random generator."""
        state = {"tables": self.policy.state_dict(), "pools": self._fingerprints()}
        state |= {"algorithm": saved_state(self.algorithm), "rng": rng_state(self.rng)}
        write_json(path / "tabular.json", state)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote. Raises a ValueError if it is of other pools."""
        state = read_state(path / "tabular.json", self._fingerprints())
        self.policy.load_state_dict(state["tables"])
        load_saved_state(self.algorithm, state.get("algorithm"))
        self.rng.bit_generator.state = state["rng"]

    def _fingerprints(self) -> dict[str, str]:
        return {key: pool.fingerprint for key, pool in self._pools.items()}

    def _table(self, observation: Observation) -> str:
        return self.policy.table(self._problems[observation].task_id, shown_to(observation))

    def _sample(self, item: Experience) -> Sample:
        index = self._index[self._problems[item.observation].task_id]
        key = self._table(item.observation)
        parts = item.action.split(TEST_SEPARATOR) if self.policy.draws > 1 else [item.action]
        try:
            drawn = tuple(index[part] for part in parts)
        except KeyError as error:
            raise ValueError(
                f"Expect experience with answers of this player, actually: {error.args[0]!r:.200}"
            ) from error
        return Sample(key, drawn, item.reward, item.group)
