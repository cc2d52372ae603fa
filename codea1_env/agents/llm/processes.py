"""One of several processes that answer and learn together: each answers its share of the prompts.

The trainer averages their gradients by itself. Variables of the environment say which process this is, as torch reads them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

from codea1_env.agents.llm.completions import Backend, Completion, Messages, SamplingConfig

_PATIENCE = timedelta(days=7)
"""The others wait for as long as one answers its share."""


def world_size() -> int:
    """Return the number of processes."""
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


@lru_cache(maxsize=1)
def _group() -> tuple[Any, Any]:
    """Group for answers: on processors, and patient."""
    from torch import distributed

    return distributed.new_group(backend="gloo", timeout=_PATIENCE), distributed
