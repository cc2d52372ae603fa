"""What can be wrong with a run before or while it is resumed."""

from __future__ import annotations


class RunError(ValueError):
    """A run cannot be started or resumed as asked. The message says what to do instead."""
