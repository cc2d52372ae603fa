"""Finds the programs that a call of a sandbox is about: for sandboxes that fail at some of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from codea1_env.sandbox import Job


def texts_of(function: Any) -> Iterator[str]:
    """Program texts that a function was made with."""
    for value in inspect.getclosurevars(function).nonlocals.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, Job):
            yield value.code
        elif inspect.isfunction(value):
            yield from texts_of(value)
