"""What a sandbox elsewhere is asked, and what it answers: plain values, which can be sent."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from codea1_env.sandbox import Sandbox


@dataclass(frozen=True)
class Request:
    """A call of one of the methods of `Sandbox` that start a job and return its future."""

    method: str
    """"submit", "submit_calls", "submit_encoded" or "submit_script"."""
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def start(self, sandbox: Sandbox) -> Future[Any]:
        """Start it here."""
        future: Future[Any] = getattr(sandbox, self.method)(*self.arguments, **self.keywords)
        return future


@dataclass(frozen=True)
class Failure:
    """An answer: the sandbox raised."""

    error: Exception


def packed(items: Sequence[Any]) -> bytes:
    """Pickle a batch as one: Ray sends small bytes along with the call, and many small objects slowly."""
    return pickle.dumps(list(items), pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes) -> list[Any]:
    """Read what `packed` made. Both ends are this package's own code."""
    items: list[Any] = pickle.loads(data)
    return items
