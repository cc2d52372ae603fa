"""What can go wrong with a run."""

from __future__ import annotations


class RunError(ValueError):
    """A run cannot be started or resumed as asked. The message says what to do instead."""


class PlayerError(RuntimeError):
    """A player failed in the middle of a run. The message says why, and where the run can be resumed."""
