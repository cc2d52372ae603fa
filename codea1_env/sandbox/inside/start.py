"""The script that a helper process runs: finds this folder once, then forgets where it is.

Usage: start.py run.zygote|analysis.analyst ARGUMENT...
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def no_hooks() -> Iterator[None]:
    """Give what is imported meanwhile cannot have functions called in each forked child.

    They make new locks, in a process that never had a second thread, and seed `random` from the system.
    That costs a child more than its fork; generators are seeded once, by the worker.
    """
    register, os.register_at_fork = os.register_at_fork, lambda **hooks: None
    try:
        yield
    finally:
        os.register_at_fork = register


if __name__ == "__main__":
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, folder)
    with no_hooks():
        module = importlib.import_module(f"inside.{sys.argv[1]}")
    sys.path.remove(folder)
    module.main(sys.argv[2:])
