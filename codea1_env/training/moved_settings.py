"""Names that settings had before each player had a block of its own, to say what they are called now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOVED = {
    "coder": "coder.player",
    "freeze_coder": "coder.freeze",
    "learning_rate": "coder.learning_rate",
    "coder_sampling": "coder.sampling",
    "coder_trainer": "coder.trainer",
    "tester": "tester.player",
    "freeze_tester": "tester.freeze",
    "tester_learning_rate": "tester.learning_rate",
    "tester_model": "tester.model",
    "tester_sampling": "tester.sampling",
    "tester_trainer": "tester.trainer",
    "tester_objective": "tester.objective",
}
"""Old name -> new name. "coder" and "tester" were the names of players; now they are the names of the blocks."""


def moved_names(settings: Mapping[str, Any]) -> str:
    """Say which settings have other names now; nothing if none has.

    Args:
        settings: Name -> value, as in a TOML file or a call of `TrainConfig`.

    Example:
        >>> moved_names({"tester": "golden", "seed": 3, "learning_rate": 1.0})
        'learning_rate is now coder.learning_rate; tester is now tester.player'
    """
    return "; ".join(
        f"{old} is now {new}"
        for old, new in MOVED.items()
        if old in settings and (old not in ("coder", "tester") or isinstance(settings[old], str))
    )
