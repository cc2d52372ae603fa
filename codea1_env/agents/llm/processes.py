"""Several processes train together: the first plays the game, all answer and learn.

    accelerate launch --num_processes 8 -m codea1_env.cli train --preset qwen2.5-coder-1.5b-8gpu

The first process runs the loop. It tells the others what it asks of a player (`act`, `learn`, `load`), and
they do the same with their own copy. Each engine answers its share of the prompts; the trainer averages gradients.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from codea1_env.agents.llm.agent import LanguagePlayer, Usage
from codea1_env.agents.llm.completions import Backend, Completion, Messages, SamplingConfig
from codea1_env.rollout import Experience
from codea1_env.spaces import Observation

_PATIENCE = timedelta(days=7)
"""The others wait for as long as the first process judges and measures."""


def world_size() -> int:
    """Return the number of processes that a launcher such as `accelerate launch` has started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Return the number of this process; the first is 0."""
    return int(os.environ.get("RANK", "0"))


def share_of(items: int, number: int, of: int) -> range:
    """Places of one of the nearly equal shares of so many items."""
    return range(items * number // of, items * (number + 1) // of)


class SharedBackend:
    """An engine of which every process has one, and answers its share: the answers are those of one process."""

    def __init__(self, backend: Backend) -> None:
        self._own = backend
        self.context_length = backend.context_length
        self.count_tokens = backend.count_tokens
        self.update = backend.update
        self.close = backend.close

    def generate(
        self,
        prompts: Sequence[Messages],
        sampling: SamplingConfig,
        seed: int,
        adapter: str | None = None,
        first: int = 0,
    ) -> list[Completion]:
        """Answer every prompt, together with the other processes, which must call this, too."""
        mine = share_of(len(prompts), rank(), world_size())
        found = self._own.generate(
            [prompts[place] for place in mine], sampling, seed, adapter, first + mine.start
        )
        gathered: list[list[Completion]] = [[] for _ in range(world_size())]
        group, distributed = _group()
        distributed.all_gather_object(gathered, found, group=group)
        return [answer for answers in gathered for answer in answers]


class LeadingPlayer(LanguagePlayer):
    """The first process's player: tells the others what it does."""

    def __init__(self, role: str, player: Any) -> None:
        super().__init__(player.agent)
        self._role, self._player = role, player

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer, together with the others."""
        return self._all("act", observations)  # type: ignore[no-any-return]

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Learn, together with the others."""
        return self._all("learn", experience)  # type: ignore[no-any-return]

    def load(self, path: Path) -> None:
        """Restore what `save` wrote, in all processes."""
        self._all("load", path)

    def save(self, path: Path) -> None:
        """Write the state, which all processes have in common."""
        self._player.save(path)

    def take_usage(self) -> Usage:
        """Return the usage of all answers since the last call of this method."""
        return self._player.take_usage()  # type: ignore[no-any-return]

    def _all(self, method: str, argument: Any) -> Any:
        _tell((self._role, method, argument))
        return getattr(self._player, method)(argument)


def follow(players: Mapping[str, Any]) -> None:
    """Do in another process what the first tells, until it is done."""
    while (order := _tell(None)) is not None:
        role, method, argument = order
        getattr(players[role], method)(argument)
    leave_at_exit()


def dismiss() -> None:
    """Tell the other processes that the run is done."""
    _tell(None)
    leave_at_exit()


@lru_cache(maxsize=1)
def leave_at_exit() -> None:
    """Leave the group of processes before Python ends: threads of the group that find it ending abort the process.

    Not for a process that fails: to leave may wait for the others, and the launcher waits for this process.
    """
    from torch import distributed

    atexit.register(distributed.destroy_process_group)


def _tell(order: Any) -> Any:
    """Send an order from the first process to the others; returns it in all."""
    group, distributed = _group()
    orders = [order]
    distributed.broadcast_object_list(orders, src=0, group=group)
    return orders[0]


@lru_cache(maxsize=1)
def _group() -> tuple[Any, Any]:
    """Group for orders: on processors, and patient."""
    from torch import distributed

    return distributed.new_group(backend="gloo", timeout=_PATIENCE), distributed
