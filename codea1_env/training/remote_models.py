"""The language models of a run, on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codea1_env.agents import Learner
from codea1_env.training.language_models import Role
from codea1_env.training.remote_players import RemotePlayer
from codea1_env.training.role_group import RoleGroup, WriterGroup
from codea1_env.training.written_ahead import AheadPlayer


class RemoteModels:
    """The language models of a run, on the nodes of a cluster.

    Args:
        groups: The processes of each role, with their players made.
        writers: Those that write for a role while it learns.
    """

    def __init__(self, groups: Sequence[RoleGroup], writers: Sequence[WriterGroup] = ()) -> None:
        self._groups: dict[Any, RoleGroup] = {group.role: group for group in groups}
        self._writers: dict[Any, WriterGroup] = {writer.role: writer for writer in writers}

    def player(self, role: Role, seed: int) -> Learner:
        """Give the player of a role. It was made with this seed."""
        group, writer = self._groups[role], self._writers.get(role)
        return RemotePlayer(group) if writer is None else AheadPlayer(group, writer)

    def dismiss(self) -> None:
        """Do nothing: the processes end when they are told to, or when nobody asks them any more."""

    def close(self) -> None:
        """End all processes."""
        for group in (*self._writers.values(), *self._groups.values()):
            group.close()
