"""What runs on a node for a language model: one process that answers and learns, alone or as one of several."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.agents import Experience
from codea1_env.agents.llm.agent import Usage
from codea1_env.agents.llm.completions import Backend, SharedBackend, rank, world_size
from codea1_env.spaces import Observation
from codea1_env.support.extras import require
from codea1_env.training.config import TrainConfig
from codea1_env.training.language_models import LanguageModels, decided_computing
from codea1_env.training.ray.files import Receiver, pieces
from codea1_env.training.ray.writer_actor import Writers
from codea1_env.training.trainer_arguments import Role, making


class LearnerActor(Receiver):
    """One process of the group that plays a role: the player of a local run is inside.

    All processes of a group are asked the same, at the same time.
    """

    def meeting_point(self) -> dict[str, str]:
        """Find an address and a port at which the processes of a group can meet this one, in environment variables."""
        address = require("ray.util", "ray").get_node_ip_address()
        with socket.socket() as probe:
            probe.bind(("", 0))
            return {"MASTER_ADDR": address, "MASTER_PORT": str(probe.getsockname()[1])}

    def choose(self, config: TrainConfig, role: Role) -> tuple[TrainConfig, str]:
        """Fill in number format and threads that the run leaves open, as they suit this machine, and say so."""
        with making(role):
            config, found = decided_computing(config)
        return config, str(found)

    def make(
        self,
        config: TrainConfig,
        role: Role,
        problems: int,
        seed: int,
        place: Mapping[str, str],
        writers: tuple[Sequence[Any], Sequence[Any]],
    ) -> None:
        """Make the player; `place` says in environment variables which process of its group this is.

        `writers` are those of the role, and what comes of their start. Raises a RunError if the model, the trainer or the
        engine cannot be had as configured.
        """
        os.environ |= place
        engine: Backend | None = None
        if writers[0]:
            with making(role):
                engine = Writers(*writers, config.model_of(role))
            engine = SharedBackend(engine, alone=True) if world_size() > 1 else engine
        # A whole model is large, with its gradient and its optimizer. Nobody can write with a part of one.
        self._sharded = engine is not None and world_size() > 1 and config.lora_rank == 0
        self.loaded = LanguageModels(config, problems, roles=(role,))
        self._player = self.loaded.player(role, seed, engine, sharded=self._sharded)

    def act(self, observations: Sequence[Observation]) -> tuple[list[str], Usage]:
        """Answer each observation, and say what it took."""
        answers = self._player.act(observations)
        return answers, self._player.take_usage()

    def agent(self, name: str, *given: Any) -> Any:
        """Return an attribute of the player's agent, or what comes of a method."""
        found = getattr(self._player.agent, name)
        return found(*given) if callable(found) else found

    def learn(self, experience: Sequence[Experience]) -> dict[str, float]:
        """Learn from the answers of one step."""
        return dict(self._player.learn(experience))

    # Checkpoints lie where the loop is, which may share no folder with this machine.

    def save(self) -> None:
        """Write the player's state here: the first process does, and of a sharded model all together."""
        self.empty()
        if self._sharded or rank() == 0:
            self._player.save(self.received)
        self._saved = pieces(self.received)

    def saved(self) -> tuple[str, bytes] | None:
        """Return the next piece of what `save` wrote, with its file's name; None behind the last."""
        return next(self._saved, None)

    def load(self) -> None:
        """Restore the state whose files were received."""
        self._player.load(self.received)
        self.empty()

    def close(self) -> None:
        """Free what is held here, and leave the group: a thread of gloo may abort a process that ends without (pytorch #179291)."""
        super().close()
        distributed = require("torch").distributed
        if distributed.is_initialized():
            distributed.destroy_process_group()
