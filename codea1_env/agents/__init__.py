"""Players: the two protocols, scripted players, and tabular players with their algorithms."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from codea1_env.agents.custom import Setting, as_learner, own_player
from codea1_env.agents.grpo import GRPO
from codea1_env.agents.one_model import TabularSelfPlayer
from codea1_env.agents.policy import Algorithm, Sample, SoftmaxPolicy
from codea1_env.agents.pools import Pool, pool_of_programs, pool_of_tests
from codea1_env.agents.protocols import Agent, Experience, Imitator, Learner
from codea1_env.agents.rloo import RLOO
from codea1_env.agents.scripted import (
    BoundaryTester,
    CopierTester,
    FixedAgent,
    GoldenTester,
    MutantCoder,
    ReferenceCoder,
    ScriptedAgent,
)
from codea1_env.agents.tabular import TabularAgent
from codea1_env.support.plugins import find_class

__all__ = [
    "ALGORITHMS",
    "GRPO",
    "RLOO",
    "Agent",
    "Algorithm",
    "BoundaryTester",
    "CopierTester",
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
    "Setting",
    "SoftmaxPolicy",
    "TabularAgent",
    "TabularSelfPlayer",
    "as_learner",
    "find_class",
    "make_algorithm",
    "own_player",
    "pool_of_programs",
    "pool_of_tests",
]

ALGORITHMS: dict[str, Callable[..., Algorithm]] = {"grpo": GRPO, "rloo": RLOO}
"""Name -> dataclass. Add a class here, and `TrainConfig(algorithm=...)` finds it."""


def make_algorithm(name: str, settings: Mapping[str, Any]) -> Algorithm:
    """Make an algorithm from those settings that it has a parameter for.

    Args:
        name: One of `ALGORITHMS`, or `module:Class` or `FILE.py:Class` for one of your own.
        settings: Name -> value.

    Raises:
        ValueError: There is no algorithm of this name, or it needs what is no setting.

    Example:
        >>> make_algorithm("rloo", {"learning_rate": 0.5, "epsilon": 0.2})
        RLOO(learning_rate=0.5)
    """
    kind: Callable[..., Algorithm]
    if name in ALGORITHMS:
        kind = ALGORITHMS[name]
    elif ":" in name:
        kind = find_class(name)
        if not callable(getattr(kind, "update", None)):
            raise ValueError(
                f"Expect {name} to be an algorithm, with a method update(policy, samples), actually: it has "
                "none. A player of your own, with act and learn, is not an algorithm."
            )
    else:
        raise ValueError(
            f"Expect the algorithm to be one of {', '.join(ALGORITHMS)}, module:Class or FILE.py:Class, actually: {name!r}"
        )
    known = inspect.signature(kind).parameters
    needed = [
        each.name
        for each in known.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    unknown = [each for each in needed if each not in settings]
    if unknown:
        raise ValueError(
            f"Expect {name} to be made from settings of the run ({', '.join(sorted(settings))}), actually it needs: "
            f"{', '.join(unknown)}. Give these a default."
        )
    return kind(**{key: settings[key] for key in settings if key in known})
