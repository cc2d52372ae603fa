"""What runs on a node for a language model: one process that answers and learns, alone or as one of several."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from codea1_env.agents import Experience
from codea1_env.agents.llm.agent import Usage
from codea1_env.agents.llm.completions import Message
from codea1_env.spaces import Observation
from codea1_env.support import start
from codea1_env.support.extras import require
from codea1_env.training.config import TrainConfig
from codea1_env.training.language_models import LanguageModels, computing_of, decided_computing
from codea1_env.training.trainer_arguments import Role


class LearnerActor:
    """One process of the group that plays a role: the player of a local run is inside.

    All processes of a group are asked the same, at the same time.
    """

    def __init__(self, config: TrainConfig, role: Role, folder: str) -> None:
        start.spin_briefly()
        with suppress(OSError):  # another machine may not have it, and not need it
            os.chdir(folder)
        self._config = config
        self._role = role
        self._player: Any = None
        self._files = tempfile.TemporaryDirectory(prefix="codea1-learner-")

    def meeting_point(self) -> dict[str, str]:
        """Find an address and a port at which the processes of a group can meet this one, in environment variables."""
        address = require("ray.util", "ray").get_node_ip_address()
        with socket.socket() as probe:
            probe.bind(("", 0))
            return {"MASTER_ADDR": address, "MASTER_PORT": str(probe.getsockname()[1])}

    def choose(self) -> tuple[TrainConfig, str]:
        """Fill in number format and threads that the run leaves open, as they suit this machine, and say so."""
        found = computing_of(self._config)
        return decided_computing(self._config, found), str(found)

    def make(self, config: TrainConfig, problems: int, seed: int, place: Mapping[str, str]) -> None:
        """Make the player; `place` says in environment variables which process of its group this is.

        Raises a RunError if the model, the trainer or the engine cannot be had as configured.
        """
        os.environ |= place
        self._models = LanguageModels(config, problems, roles=(self._role,))
        self._player = self._models.player(self._role, seed)

    def act(self, observations: Sequence[Observation]) -> tuple[list[str], Usage]:
        """Answer each observation, and say what it took."""
        answers = self._player.act(observations)
        return answers, self._player.take_usage()

    def chat(self, observation: Observation) -> list[Message]:
        """Return the chat that the model is shown for an observation."""
        chat: list[Message] = self._player.agent.chat(observation)
        return chat

    def calls(self) -> int:
        """Return how many batches were drawn."""
        return int(self._player.agent.calls)

    def draw_from(self, calls: int) -> None:
        """Draw the next batch as if so many had been drawn."""
        self._player.agent.draw_from(calls)

    def learn(self, experience: Sequence[Experience]) -> dict[str, float]:
        """Learn from the answers of one step."""
        return dict(self._player.learn(experience))

    # Checkpoints lie where the loop is, which may share no folder with this machine.

    def save(self) -> list[tuple[str, int]]:
        """Write the player's state here; returns the names of its files, and their sizes."""
        folder = self.empty()
        self._player.save(folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]

    def read(self, name: str, start: int, number: int) -> bytes:
        """Return bytes of a file that `save` wrote."""
        with (Path(self._files.name) / name).open("rb") as file:
            file.seek(start)
            return file.read(number)

    def empty(self) -> Path:
        """Begin to receive files of a player's state."""
        self._files.cleanup()
        self._files = tempfile.TemporaryDirectory(prefix="codea1-learner-")
        return Path(self._files.name)

    def append(self, name: str, data: bytes) -> None:
        """Receive bytes of a file."""
        path = Path(self._files.name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)

    def load(self) -> None:
        """Restore the state whose files were received."""
        self._player.load(Path(self._files.name))
        self.empty()

    def close(self) -> None:
        """Free what is held here."""
        self._files.cleanup()
        if self._player is not None:
            self._models.close()
