"""Where a run computes: an engine makes its sandbox, its referee and its language models, and the loop need not know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from codea1_env.judging.verdicts import RefereeConfig
from codea1_env.problems import Problem
from codea1_env.referee import Referee
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.training.config import TrainConfig
from codea1_env.training.language_models import Role
from codea1_env.training.time_budget import RunPlan, fit_to_machine


class Engine(Protocol):
    """What makes the parts of a run."""

    elsewhere: Collection[Role]
    """Roles whose players compute on other machines, each on its own."""

    def fit(
        self,
        config: TrainConfig,
        problems: Sequence[Problem],
        started: float,
        known: Mapping[str, float],
        say: Callable[[str], None],
        tell: Callable[[float], None],
    ) -> RunPlan:
        """Decide what a configuration leaves to the machine: see `fit_to_machine`."""
        ...

    def sandbox(self, config: TrainConfig, limits: Limits) -> Sandbox:
        """Make the sandbox in which programs run."""
        ...

    def referee(self, sandbox: Sandbox, rules: RefereeConfig) -> AbstractContextManager[Referee]:
        """Make the referee."""
        ...


class LocalEngine:
    """This process; with several, each computes with its own device."""

    elsewhere: Collection[Role] = ()

    fit = staticmethod(fit_to_machine)

    def sandbox(self, config: TrainConfig, limits: Limits) -> Sandbox:
        """Make a sandbox on this machine."""
        return Sandbox(workers=config.workers, limits=limits)

    def referee(self, sandbox: Sandbox, rules: RefereeConfig) -> AbstractContextManager[Referee]:
        """Make a referee in this process."""
        return nullcontext(Referee(sandbox, rules))


def engine_of(config: TrainConfig) -> Engine:
    """Make the engine that a configuration names.

    Raises:
        RunError: Several processes were started for an engine that starts its own.
        ClusterError: There is no cluster at the address.
        MissingExtraError: Ray is not installed.
    """
    if config.engine == "local":
        return LocalEngine()
    from codea1_env.training.ray_engine import RayEngine

    return RayEngine(config.address)
