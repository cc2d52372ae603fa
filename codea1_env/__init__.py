"""Code-A1: a game in which one player writes programs and the other writes tests to break them.

    >>> import codea1_env
    >>> env = codea1_env.parallel_env()

The names below are imported when they are first used, so that `import codea1_env` stays cheap and
never loads a deep-learning library. The import also registers the game with PettingZoo.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from codea1_env.support import start

start.leave_on_interrupt()  # before what takes long
start.register_environments()

__version__ = "0.1.0"

if TYPE_CHECKING:
    from codea1_env.agents import Agent, Experience, Learner
    from codea1_env.code_a1_v1 import env, parallel_env, raw_env
    from codea1_env.mistake_book import MistakeBook
    from codea1_env.mutation import Mutant, generate_mutants
    from codea1_env.problems import Problem, load_problems, register_source
    from codea1_env.referee import Referee, RefereeConfig, Round, Verdict
    from codea1_env.rewards import RewardConfig, SuiteOutcome, SuiteRewards, suite_rewards
    from codea1_env.sandbox import Job, Limits, Outcome, Sandbox
    from codea1_env.spaces import CODER, TESTER, Observation
    from codea1_env.training import PlayerConfig, TesterConfig, TrainConfig, train

_HOME = {
    "Agent": "agents",
    "CODER": "spaces",
    "Experience": "agents",
    "Job": "sandbox",
    "Learner": "agents",
    "Limits": "sandbox",
    "MistakeBook": "mistake_book",
    "Mutant": "mutation",
    "Observation": "spaces",
    "Outcome": "sandbox",
    "PlayerConfig": "training",
    "Problem": "problems",
    "Referee": "referee",
    "RefereeConfig": "referee",
    "RewardConfig": "rewards",
    "Round": "referee",
    "Sandbox": "sandbox",
    "SuiteOutcome": "rewards",
    "SuiteRewards": "rewards",
    "TESTER": "spaces",
    "TesterConfig": "training",
    "TrainConfig": "training",
    "Verdict": "referee",
    "env": "code_a1_v1",
    "generate_mutants": "mutation",
    "load_problems": "problems",
    "parallel_env": "code_a1_v1",
    "raw_env": "code_a1_v1",
    "register_source": "problems",
    "suite_rewards": "rewards",
    "train": "training",
}
"""Public name -> the module that defines it. The imports above say the same to type checkers."""

_PARTS = ("agents", "baselines", "code_a1_v1", "evaluation", "sandbox", "training")
"""Submodules that need no import of their own: `codea1_env.code_a1_v1.env()`."""

__all__ = [
    "CODER",
    "TESTER",
    "Agent",
    "Experience",
    "Job",
    "Learner",
    "Limits",
    "MistakeBook",
    "Mutant",
    "Observation",
    "Outcome",
    "PlayerConfig",
    "Problem",
    "Referee",
    "RefereeConfig",
    "RewardConfig",
    "Round",
    "Sandbox",
    "SuiteOutcome",
    "SuiteRewards",
    "TesterConfig",
    "TrainConfig",
    "Verdict",
    "__version__",
    "env",
    "generate_mutants",
    "load_problems",
    "parallel_env",
    "raw_env",
    "register_source",
    "suite_rewards",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use (PEP 562)."""
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, also those that are not loaded yet."""
    return sorted({*globals(), *__all__})
