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
    from codea1_env.agents import Agent as Agent
    from codea1_env.agents import Experience as Experience
    from codea1_env.agents import Learner as Learner
    from codea1_env.code_a1_v1 import env as env
    from codea1_env.code_a1_v1 import parallel_env as parallel_env
    from codea1_env.code_a1_v1 import raw_env as raw_env
    from codea1_env.game import judge as judge
    from codea1_env.game import judge_many as judge_many
    from codea1_env.mistake_book import MistakeBook as MistakeBook
    from codea1_env.mutation import Mutant as Mutant
    from codea1_env.mutation import generate_mutants as generate_mutants
    from codea1_env.problems import Problem as Problem
    from codea1_env.problems import load_problems as load_problems
    from codea1_env.problems import register_source as register_source
    from codea1_env.referee import Referee as Referee
    from codea1_env.referee import RefereeConfig as RefereeConfig
    from codea1_env.referee import Round as Round
    from codea1_env.referee import Verdict as Verdict
    from codea1_env.rewards import RewardConfig as RewardConfig
    from codea1_env.rewards import SuiteOutcome as SuiteOutcome
    from codea1_env.rewards import SuiteRewards as SuiteRewards
    from codea1_env.rewards import suite_rewards as suite_rewards
    from codea1_env.sandbox import Job as Job
    from codea1_env.sandbox import Limits as Limits
    from codea1_env.sandbox import Outcome as Outcome
    from codea1_env.sandbox import Sandbox as Sandbox
    from codea1_env.spaces import CODER as CODER
    from codea1_env.spaces import TESTER as TESTER
    from codea1_env.spaces import Observation as Observation
    from codea1_env.training import PlayerConfig as PlayerConfig
    from codea1_env.training import TesterConfig as TesterConfig
    from codea1_env.training import TrainConfig as TrainConfig
    from codea1_env.training import train as train

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
    "judge": "game",
    "judge_many": "game",
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

__all__ = [*_HOME, "__version__"]


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
