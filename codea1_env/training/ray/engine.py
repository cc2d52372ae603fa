"""A run whose language models compute on the nodes of a Ray cluster; its loop, judges, logs and checkpoints stay here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from codea1_env.agents import Experience, Learner
from codea1_env.agents.llm.agent import LanguagePlayer, LLMAgent, Usage
from codea1_env.agents.llm.completions import Message
from codea1_env.agents.llm.vllm_backend import untried
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation
from codea1_env.training import trainer_arguments
from codea1_env.training.config import PlayerError, RunError, TrainConfig
from codea1_env.training.language_models import LocalEngine, Models
from codea1_env.training.players import seed_of
from codea1_env.training.ray import role_group
from codea1_env.training.ray.cluster import check_versions, connect
from codea1_env.training.ray.files import append, pieces
from codea1_env.training.ray.judging import RayReferee
from codea1_env.training.ray.role_group import LearnerLostError, RoleGroup
from codea1_env.training.trainer_arguments import Role


class RemoteAgent(LLMAgent):
    """The agent of a player elsewhere."""

    def __init__(self, group: RoleGroup) -> None:
        self._group = group
        self.usage = Usage()

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Return one answer for each observation, in order."""
        answers: list[str]
        answers, self.usage = self._group.all("act", list(observations))[0]
        return answers

    @property
    def calls(self) -> int:
        """How many batches were drawn."""
        return int(self._group.first("agent", "calls"))

    def draw_from(self, calls: int) -> None:
        """Let all processes draw as if so many batches had been drawn."""
        self._group.all("agent", "draw_from", calls)

    def chat(self, observation: Observation) -> list[Message]:
        """Return the chat that the model is shown for an observation."""
        return list(self._group.first("agent", "chat", observation))


class RemotePlayer(LanguagePlayer):
    """A language model that plays and learns elsewhere. Its state is saved and restored where the loop is."""

    def __init__(self, group: RoleGroup) -> None:
        super().__init__(RemoteAgent(group))
        self._group = group

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Learn from the answers of one step. All processes have the same metrics."""
        return self._group.all("learn", list(experience))[0]  # type: ignore[no-any-return]

    def save(self, path: Path) -> None:
        """Write the state, which all processes have in common."""
        self._group.all("save")
        while (piece := self._group.first("saved")) is not None:
            append(path, *piece)
        self._group.all("empty")

    def load(self, path: Path) -> None:
        """Restore what `save` wrote, in all processes."""
        self._group.all("empty")
        for name, piece in pieces(path):
            self._group.all("append", name, piece)
        self._group.all("load")


class RemoteModels:
    """The language models of a run, on the nodes of a cluster."""

    def __init__(self, groups: Sequence[RoleGroup]) -> None:
        self._groups = {group.role: group for group in groups}

    def player(self, role: Role, seed: int) -> Learner:
        """Give the player of a role. It was made with this seed."""
        return RemotePlayer(self._groups[role])

    def writer(self, role: Role, seed: int) -> tuple[Any, Callable[[Path], None]]:
        """Refuse: settings do not let opponents from the past play on a cluster."""
        raise NotImplementedError

    def close(self) -> None:
        """End all processes."""
        for group in self._groups.values():
            group.close()


class RayEngine(LocalEngine):
    """Language models compute on the nodes, where programs are judged, too. Tabular players stay in this process."""

    def fit(
        self, config: TrainConfig, problems: int, say: Callable[[str], None], *, resumed: bool
    ) -> tuple[TrainConfig, Models]:
        """Join the cluster, start the processes of language models, and decide what they compute with where that is left open.

        Raises a RunError if there is no cluster, it has not what is asked for, or a model cannot be had as configured; a
        MissingExtraError without Ray; a PlayerError if a process was lost, for which memory was short perhaps.
        """
        self._say = say
        self.elsewhere = roles = trainer_arguments.roles_of(config)
        if not resumed:
            trainer_arguments.check_trainer_fields(config)
        trainer_arguments.check_batches(config, problems, gpu=False)
        self._ray = connect(config.address, role_group.processes_of(config, roles))
        check_versions(self._ray)
        if config.backend == "vllm" and roles and (told := untried()) is not None:
            say(told)
        gpu = role_group.device_of(self._ray, config, roles, say)
        if not roles:
            return config, RemoteModels([])
        with ExitStack() as stack:
            groups = []
            for role in roles:
                groups.append(RoleGroup(self._ray, config, role, gpu, os.getcwd()))
                stack.callback(groups[-1].close)
            try:
                if config.dtype == "auto" or config.threads is None:
                    config, told = groups[0].first("choose", config, roles[0])
                    say(f"Computing in {told}.")
                made = [g.make(config, problems, seed_of(config, g.role)) for g in groups]
                for wait in made:
                    wait()
            except (ValueError, ImportError) as error:
                raise RunError(str(error)) from error
            except LearnerLostError as error:
                raise PlayerError(str(error)) from error
            stack.pop_all()
        return config, RemoteModels(groups)

    def referee(self, sandbox: Sandbox, rules: RefereeConfig) -> Referee:
        """Make what judges on the nodes."""
        return RayReferee(self._ray, sandbox, rules, self._say)
