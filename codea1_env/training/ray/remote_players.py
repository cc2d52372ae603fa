"""Players whose language models compute on the nodes of a cluster; to the loop they are like any others.

Where a process of its own writes while another one learns from the answers of the step before, the weights go from the
learner to the writer, which uses those of the moment in which a step's players were made. So answers may be of weights that
are older than those that learn from them: how much older is logged as `staleness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.agents import Experience
from codea1_env.agents.llm.agent import LanguagePlayer, LLMAgent, Usage
from codea1_env.agents.llm.completions import Completion, Message
from codea1_env.spaces import Observation
from codea1_env.training.ray.learner_actor import Written
from codea1_env.training.ray.role_group import RoleGroup, WriterGroup

_PIECE = 64 << 20
"""Bytes of a file that are sent at a time."""
_COUNTERS = "agent.json"
"""The file of an agent: how far its random numbers are used up."""


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
        load_into(self._group, path, path.rglob("*"))


def load_into(group: RoleGroup, path: Path, sources: Iterable[Path]) -> None:
    """Have all processes load files that lie here, in this folder."""
    group.all("empty")
    for source in sorted(each for each in sources if each.is_file()):
        name = source.relative_to(path).as_posix()
        with source.open("rb") as file:
            while piece := file.read(_PIECE):
                group.all("append", name, piece)
    group.all("load")


class WriterAgent(RemoteAgent):
    """Answers with weights that stay as they are."""

    def __init__(self, group: RoleGroup, writer: WriterGroup, number: int, weights: Any) -> None:
        super().__init__(group)
        self.number = number
        self._weights = weights
        self._writer = writer
        self.completions: list[Completion] = []

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Return one answer for each observation, in order.

        Raises:
            WriterLostError: Nobody writes any more.
        """
        self._writer.give(self.number, self._weights)
        self.completions, self.usage = self._writer.write(observations)
        return [answer.text for answer in self.completions]


class AheadPlayer(RemotePlayer):
    """A language model of which one process writes, and others learn."""

    def __init__(self, group: RoleGroup, writer: WriterGroup) -> None:
        super().__init__(group)
        self._writer = writer
        self._number = -1
        self._follow()

    def for_step(self) -> StepPlayer:
        """Return the player of one step, which writes with the weights of now."""
        return StepPlayer(self, self._now)

    def learn_from(
        self, experience: Sequence[Experience], written: Sequence[Written], number: int
    ) -> Mapping[str, float]:
        """Learn from answers that were written with weights of this number."""
        metrics = self._group.all("learn", list(experience), list(written))[0]
        stale = self._number - number
        self._follow()
        return {**metrics, "staleness": stale}

    def save(self, path: Path) -> None:
        """Write the state."""
        super().save(path)
        # Over those of the learner, which draws nothing.
        for name, data in self._writer.counters.items():
            (path / name).write_bytes(data)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote."""
        super().load(path)
        load_into(self._writer, path, path.rglob(_COUNTERS))
        self._follow()

    def _follow(self) -> None:
        """Write with what is learned now, from the next step on."""
        self._number += 1
        weights = self._group.later("weights")
        self._now = WriterAgent(self._group, self._writer, self._number, weights)
        self.agent = self._now


class StepPlayer(LanguagePlayer):
    """Plays one step, and remembers what it wrote."""

    def __init__(self, player: AheadPlayer, agent: WriterAgent) -> None:
        super().__init__(agent)
        self._player = player
        self._writer = agent
        self._written: list[Written] = []

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation."""
        answers = super().act(observations)
        self._written += zip(observations, self._writer.completions, strict=True)
        return answers

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Learn from some of the answers."""
        wanted = {(*item.observation.values(), item.action) for item in experience}
        written = [
            (seen, answer) for seen, answer in self._written
            if (*seen.values(), answer.text) in wanted
        ]  # fmt: skip
        return self._player.learn_from(experience, written, self._writer.number)

    def save(self, path: Path) -> None:
        """Write the state of the player."""
        self._player.save(path)

    def load(self, path: Path) -> None:
        """Restore the state of the player."""
        self._player.load(path)
