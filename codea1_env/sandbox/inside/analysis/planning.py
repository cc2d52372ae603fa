"""Plans of tests in the form in which they are kept: small, and cheap to read.

Runs in the analysis process. See `plan.py` for what a plan is; here its expression is encoded as well, so
that whoever keeps it knows its size, and what would be costly to read becomes a program to run.
"""

from __future__ import annotations

from typing import Any

from .. import codec
from .plan import plan_tests


def encoded_plans(texts: list[str], entry_point: str | None = None) -> list[tuple[Any, ...]]:
    """Plan tests.

    Args:
        texts: The tests.
        entry_point: See `plan_test`.
    """
    return [_encoded(plan) for plan in plan_tests(texts, entry_point)]


def _encoded(plan: tuple[Any, ...]) -> tuple[Any, ...]:
    if plan[0] != "value":
        return plan
    kind, names, calls, nodes = plan
    encoded = codec.encode(nodes)
    try:
        codec.decode(encoded, meter=codec.Meter(codec.CHEAP))
    except codec.BudgetError:
        return ("program", list(dict.fromkeys(names)), [], b"")
    return (kind, names, calls, encoded)
