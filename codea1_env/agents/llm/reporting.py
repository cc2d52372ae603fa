"""How far long work has come, told to whoever shows it.

Whoever shows progress listens while it has something done; what takes long reports, and need not know to whom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[float], None]
"""Is told the share of the present piece of work that is done, from 0 to 1."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Be told of what is done inside.

    Example:
        >>> with listening(print):
        ...     report(0.5)
        0.5
        >>> report(1.0)  # nobody listens
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(share: float) -> None:
    """Tell who listens, if anybody, what share is done."""
    listener = _listener.get()
    if listener is not None:
        listener(share)
