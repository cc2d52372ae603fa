"""Players: the two protocols, scripted players, and tabular players; and the algorithms by which players learn."""

from __future__ import annotations

from codea1_env.agents.algorithms import ALGORITHMS, GRPO, RLOO, make_algorithm
from codea1_env.agents.one_model import TabularSelfPlayer
from codea1_env.agents.policy import Algorithm, Sample, SoftmaxPolicy
from codea1_env.agents.protocols import Imitator, Learner, Setting, as_learner, own_player
from codea1_env.agents.scripted import (
    BoundaryTester,
    CopierTester,
    FixedAgent,
    GoldenTester,
    MutantCoder,
    ReferenceCoder,
    ScriptedAgent,
)
from codea1_env.agents.tabular import Pool, TabularAgent, pool_of_programs, pool_of_tests
from codea1_env.rollout import Agent, Answer, Experience
from codea1_env.support.plugins import find_class

__all__ = [
    "ALGORITHMS",
    "GRPO",
    "RLOO",
    "Agent",
    "Algorithm",
    "Answer",
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
