"""Libraries that draw from the global generators get their own stream, and leave no trace."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seed the global generators of Python, numpy and torch inside, and restore them afterwards.

    TRL, PEFT and torch draw from them. What they draw follows from the seed alone, whatever the program does
    elsewhere, and a resumed run need not save their state.

    Args:
        seed: Any integer that is not negative.
    """
    import torch

    python, arrays = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed % 2**63)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(arrays)
