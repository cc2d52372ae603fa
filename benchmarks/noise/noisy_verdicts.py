"""Rewards of Code-A1 with verdicts that are wrong at random: what the noise of verdicts does to learning.

Each test that a program passes fails it with a probability: 0.024 is what `python benchmarks/verdict_noise.py` measured of tests
that fail right programs by default (the boundary tester), 0.169 what it measured where tests may use any arguments and
floats are compared exactly (the hostile tester). Only rewards are changed: the Mistake Book remembers what really happened.
Draws are a stream of the process, so that a run that was resumed is not the same as one that never stopped.

    codea1 bench algorithms --algorithms code-a1 benchmarks/noise/low.toml benchmarks/noise/high.toml --seeds 3 --sweep 1
"""

from __future__ import annotations

import dataclasses
import random

from codea1_env.rewards import RewardConfig, SuiteOutcome, code_a1

_RNG = random.Random(0)


def low(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Return the noise of the game's rules."""
    return code_a1(_noisy(outcome, 0.024), config)


def high(outcome: SuiteOutcome, config: RewardConfig) -> tuple[float | None, float]:
    """Return the noise of the release's rules against hostile tests."""
    return code_a1(_noisy(outcome, 0.169), config)


def _noisy(outcome: SuiteOutcome, rate: float) -> SuiteOutcome:
    return dataclasses.replace(
        outcome,
        failed=[failed or _RNG.random() < rate for failed in outcome.failed],
        history_passed=sum(_RNG.random() >= rate for _ in range(outcome.history_passed)),
    )
