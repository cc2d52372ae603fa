"""The trackers that a run can be shown by, and whether they are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Literal

from codea1_env.training.errors import RunError

TrackerName = Literal["trackio", "tensorboard", "wandb"]
"""A tracker; its package and the extra that installs it have the same name."""


def check_installed(names: Iterable[TrackerName]) -> None:
    """Check that the packages of trackers are there, without importing them.

    Raises:
        RunError: One is not. The message names the extra.
    """
    for name in names:
        found = importlib.util.find_spec(name)
        # wandb and others leave folders of their own names behind, which can be imported as empty packages.
        if found is None or found.origin is None:
            raise RunError(
                f"Expect the package {name} to be installed for --tracker {name}, actually: it is not. "
                f"Run: pip install 'codea1-env[{name}]'"
            )
