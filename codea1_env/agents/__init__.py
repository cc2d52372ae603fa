"""Players: the two protocols, scripted players, and tabular players with their algorithms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from codea1_env.agents.grpo import GRPO
from codea1_env.agents.one_model import TabularSelfPlayer
from codea1_env.agents.policy import Algorithm, Sample, SoftmaxPolicy
from codea1_env.agents.pools import Pool, pool_of_programs, pool_of_tests
from codea1_env.agents.protocols import Agent, Experience, Imitator, Learner
from codea1_env.agents.rloo import RLOO
from codea1_env.agents.scripted import (
    BoundaryTester,
    FixedAgent,
    GoldenTester,
    MutantCoder,
    ReferenceCoder,
    ScriptedAgent,
)
from codea1_env.agents.tabular import TabularAgent

__all__ = [
    "ALGORITHMS",
    "GRPO",
    "RLOO",
    "Agent",
    "Algorithm",
    "BoundaryTester",
    "Experience",
    "FixedAgent",
    "GoldenTester",
    "Imitator",
    "Learner",
    "MutantCoder",
    "Pool",
    "ReferenceCoder",
    "Sample",
    "ScriptedAgent",
    "SoftmaxPolicy",
    "TabularAgent",
    "TabularSelfPlayer",
    "make_algorithm",
    "pool_of_programs",
    "pool_of_tests",
]

ALGORITHMS: dict[str, Callable[..., Algorithm]] = {"grpo": GRPO, "rloo": RLOO}
"""Name -> dataclass. Add a class here, and `TrainConfig(algorithm=...)` finds it."""


def make_algorithm(name: str, settings: Mapping[str, Any]) -> Algorithm:
    """Make an algorithm from those settings that it has a field for.

    Raises:
        ValueError: There is no algorithm of this name.

    Example:
        >>> make_algorithm("rloo", {"learning_rate": 0.5, "epsilon": 0.2})
        RLOO(learning_rate=0.5)
    """
    if name not in ALGORITHMS:
        raise ValueError(
            f"Expect the algorithm to be one of {', '.join(ALGORITHMS)}, actually: {name!r}"
        )
    kind: Any = ALGORITHMS[name]
    known = {field.name for field in dataclasses.fields(kind)}
    algorithm: Algorithm = kind(**{key: settings[key] for key in settings if key in known})
    return algorithm
