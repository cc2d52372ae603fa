"""A run on the nodes of a Ray cluster: its loop stays in this process, with the Mistake Book, the logs and the checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from codea1_env.agents.llm.processes import world_size
from codea1_env.cluster import RemoteJudges, RemoteSandbox
from codea1_env.cluster.nodes import connect, nodes
from codea1_env.judging.rules import RefereeConfig
from codea1_env.problems import Problem
from codea1_env.referee import Referee
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.training.config import TrainConfig
from codea1_env.training.errors import RunError
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.time_budget import RunPlan


class RayEngine:
    """Programs run, rounds are judged and language models compute on the nodes. Tabular players stay in this process.

    Args:
        address: See `RemoteSandbox`.

    Raises:
        RunError: This is one of several processes.
        ClusterError: There is no cluster at the address.
        MissingExtraError: Ray is not installed.
    """

    def __init__(self, address: str) -> None:
        if world_size() > 1:
            raise RunError(
                f"Expect one process with engine='ray', which starts those of the learners itself, actually: "
                f"{world_size()}. Start it without accelerate or torchrun, with --learner-processes {world_size()}."
            )
        self._address = address
        self._ray = connect(address)
        self._workers = 1

    def fit(
        self,
        config: TrainConfig,
        problems: Sequence[Problem],
        started: float,
        known: Mapping[str, float],
        say: Callable[[str], None],
        tell: Callable[[float], None],
    ) -> RunPlan:
        """Decide nothing but number formats and threads, which the first learner's node measures."""
        self._workers = config.workers
        return RunPlan(config, {}, 0.0, LanguageModels(config, len(problems)))

    def sandbox(self, config: TrainConfig, limits: Limits) -> Sandbox:
        """Make a sandbox on every node."""
        return RemoteSandbox(config.workers, limits, address=self._address)

    def referee(self, sandbox: Sandbox, rules: RefereeConfig) -> AbstractContextManager[Referee]:
        """Make judges on the nodes, as many on each as it has workers."""
        judges = self._workers * len(nodes(self._ray))
        return RemoteJudges(sandbox, rules, judges=judges, address=self._address)
