"""The check of a problem's contract: it runs, and takes the problem's own tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codea1_env.judging.contracts import contracted, refused
from codea1_env.problem_sets.problem import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import CallResult, Limits, Outcome, Sandbox

Call = tuple[Sequence[Any], dict[str, Any]]
_ANY: Call = ((), {})
"""Shows whether a contract is Python at all, where there are no golden tests."""


def contract_fault(
    problem: Problem, calls: Sequence[Call], sandbox: Sandbox, limits: Limits
) -> str:
    """Return what is wrong with the contract of a problem whose reference runs, and what to do; "" if nothing is.

    Args:
        problem: The problem.
        calls: Those of its golden tests.
        sandbox: Where the contract runs, without the reference.
        limits: For each call.
    """
    if not problem.contract.strip():
        return ""
    code, name = contracted(problem.reference, problem.entry_point, problem.contract, answers=False)
    results = sandbox.call(code, name, calls or [_ANY], limits=limits)
    for number, result in enumerate(results, 1):
        said = _fault(result)
        if said and (calls or SyntaxError.__name__ in said):
            which = f" on test {number}" if calls else ""
            return f"Expect the contract to take the golden tests, actually{which}: {said:.200}. Correct it."
    return ""


def _fault(result: CallResult) -> str:
    if result.outcome is Outcome.PASS:
        return ""
    reason, fault = refused(result) or ("", None)
    if fault is InvalidReason.OUTSIDE_CONTRACT:
        return f"it is {reason}"
    return reason or f"the contract ends with {result.outcome.value}, {result.message}"
