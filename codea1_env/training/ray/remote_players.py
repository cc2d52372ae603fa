"""Players whose language models compute on the nodes of a cluster; to the loop they are like any others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from codea1_env.agents import Experience
from codea1_env.agents.llm.agent import LanguagePlayer, LLMAgent, Usage
from codea1_env.agents.llm.completions import Message
from codea1_env.spaces import Observation
from codea1_env.training.ray.role_group import RoleGroup

_PIECE = 64 << 20
"""Bytes of a file that are sent at a time."""


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
        return int(self._group.first("calls"))

    def draw_from(self, calls: int) -> None:
        """Let all processes draw as if so many batches had been drawn."""
        self._group.all("draw_from", calls)

    def chat(self, observation: Observation) -> list[Message]:
        """Return the chat that the model is shown for an observation."""
        chat: list[Message] = self._group.first("chat", observation)
        return chat


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
        files: list[tuple[str, int]] = self._group.first("save")
        for name, size in files:
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                for start in range(0, size, _PIECE):
                    file.write(self._group.first("read", name, start, _PIECE))
        self._group.first("empty")

    def load(self, path: Path) -> None:
        """Restore what `save` wrote, in all processes."""
        group = self._group
        group.all("empty")
        for source in sorted(each for each in path.rglob("*") if each.is_file()):
            name = source.relative_to(path).as_posix()
            with source.open("rb") as file:
                while piece := file.read(_PIECE):
                    group.all("append", name, piece)
        group.all("load")
