"""Makes forked children cheap."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def no_hooks() -> Iterator[None]:
    """What is imported meanwhile cannot have functions called in each forked child.

    They make new locks, in a process that never had a second thread, and seed `random` from the system.
    That costs a child more than its fork; generators are seeded once, by the worker.
    """
    register, os.register_at_fork = os.register_at_fork, lambda **hooks: None
    try:
        yield
    finally:
        os.register_at_fork = register
