"""The baselines by name. Each is the same loop with other settings, so that only those differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codea1_env.training.config import TrainConfig


@dataclass(frozen=True)
class Baseline:
    """Settings that make a training run the thing that another run is compared with.

    Example:
        >>> config = BASELINES["no-book"].apply(TrainConfig(seed=3))
        >>> config.use_book, config.seed
        (False, 3)
    """

    summary: str
    """What it shows, in one line."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Field of `TrainConfig` -> value."""

    def apply(self, config: TrainConfig) -> TrainConfig:
        """The configuration with this baseline's settings in it."""
        return dataclasses.replace(config, **self.overrides)


BASELINES: Mapping[str, Baseline] = {
    "code-a1": Baseline(
        "Both players learn against each other, and the Mistake Book replays what broke programs.",
        {"freeze_coder": False, "freeze_tester": False, "use_book": True, "black_box": False},
    ),
    "golden-tests": Baseline(
        "The coder learns from the problem's own tests: the usual way to train on code.",
        {"tester": "golden", "use_book": False},
    ),
    "frozen-tester": Baseline(
        "The tester stays as it was at the start: what a learning opponent is worth to the coder.",
        {"freeze_tester": True},
    ),
    "frozen-coder": Baseline(
        "The coder stays as it was at the start: what a learning opponent is worth to the tester.",
        {"freeze_coder": True},
    ),
    "no-book": Baseline(
        "Nothing is replayed: what the Mistake Book is worth.", {"use_book": False}
    ),
    "black-box": Baseline(
        "The tester does not see the program: what white-box testing is worth. (Tabular testers choose "
        "by problem and never look, so with them this is code-a1.)",
        {"black_box": True},
    ),
}
"""Name -> baseline. `codea1 train --baseline NAME` runs one."""
