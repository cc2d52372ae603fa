"""What tabular agents choose from: good and bad programs, good and bad tests, made from each problem.

What is held back for measuring (`codea1_env.evaluation.held_out`) is in no pool, nor is anything made from it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from codea1_env.agents.scripted import TEST_SEPARATOR, draw
from codea1_env.agents.variants import variants
from codea1_env.evaluation.held_out import HeldOut
from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox


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
    """Make a pool of programs: the reference, mutants of it, a stub, and one that cannot be parsed."""
    problem = split.problem
    stub = f"def {problem.entry_point}(*args, **kwargs):\n    return None\n"
    broken = problem.reference + "\n    return (\n"
    mutants = split.train_mutants[: max(0, size - 3)]
    return Pool(problem, _distinct([problem.reference, *mutants, stub, broken]))


def pool_of_tests(split: HeldOut, sandbox: Sandbox, size: int = 16, seed: int = 0) -> Pool:
    """Make a pool of tests: right, wrong, weak and boundary ones in equal parts, and some that test nothing.

    Args:
        split: The problem. Only its tests for training are used, so held-back ones stay unseen.
        sandbox: Where the golden tests are parsed.
        size: Tests of the pool, nearly.
        seed: Decides which wrong, weak and boundary tests are taken.

    Raises:
        ValueError: The problem has no golden tests to train with.
    """
    problem = split.problem
    golden = [test for test in split.train_tests if TEST_SEPARATOR not in test]
    if not golden:
        raise ValueError(
            f"Expect at least one golden test for the pool of a tabular tester, actually none in "
            f"{problem.task_id!r}. Choose problems whose tests are single statements, such as 'starter'."
        )
    rng = np.random.default_rng([seed, zlib.crc32(problem.task_id.encode()), 1])
    made = sandbox.analyse(variants, golden, problem.entry_point)
    hidden = sandbox.analyse(variants, list(split.tests), problem.entry_point)
    hidden_calls = tuple(f"assert {row['weak'][0]} == " for row in hidden if row["weak"])
    share = max(1, size // 4)
    tests = golden[:share]
    for kind in ("wrong", "weak", "boundary"):
        found = [test for row in made for test in row[kind] if not test.startswith(hidden_calls)]
        tests += draw(found, share, rng)
    return Pool(problem, _distinct([*tests, "assert 1 + 1 == 2", f"assert {problem.entry_point}"]))


def _distinct(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
