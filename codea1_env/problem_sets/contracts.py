"""Contracts: the calls that a problem speaks of, as asserts over the parameters of its function.

A contract runs in the process of the reference, before the reference, on a copy of the arguments. It has the names of
the parameters and Python's builtins, and nothing of the reference. A false assert refuses the call. Everything else
that it raises is an error of the data: the call is no test, and `codea1 problems validate` names the contract.
"""

from __future__ import annotations

import functools
import textwrap
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codea1_env.problem_sets.problem import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import CallResult, Limits, Outcome, Sandbox, TestResult

Call = tuple[Sequence[Any], dict[str, Any]]

_ANY: Call = ((), {})
_ANY_INPUT: Call = (("",), {})
"""Shows whether a contract is Python at all, where there are no golden tests."""

CALLED = "_codea1_contracted"
"""The one name that a program gets: the function that is called in the place of its own."""
_OUTSIDE = "CodeA1OutsideContract"
_BROKEN = "CodeA1BrokenContract"
_WRAPPER = """
import copy
import inspect


class CodeA1OutsideContract(Exception):
    pass


class CodeA1BrokenContract(Exception):
    pass


compiled = signature = None


def function():
    value = program[names[0]]
    for name in names[1:]:  # a method, of a new instance
        value = getattr(value(), name)
    return value


def fails(error):
    raise CodeA1BrokenContract(f"{type(error).__name__}: {error}") from None


def asserted(action):
    try:
        return action()
    except AssertionError as error:
        said, trace = str(error), error.__traceback__
        while trace is not None and not said:
            if trace.tb_next is None and trace.tb_frame.f_code.co_filename == "<contract>":
                said = text.split("\\n")[trace.tb_lineno - 1].strip().removeprefix("assert ")
            trace = trace.tb_next
    except BaseException as error:
        fails(error)
    raise CodeA1OutsideContract(said)


def validated(stdin):
    global compiled
    try:
        if compiled is None:
            exec(compile(text, "<contract>", "exec", dont_inherit=True, optimize=0), program)
        compiled = program["check"]
    except BaseException as error:
        fails(error)
    said = asserted(lambda: compiled(stdin))
    if said is not None:
        raise CodeA1BrokenContract(f"check returned {type(said).__name__}, not None")


def contracted(*arguments, **keywords):
    global compiled, signature
    called = function()
    try:
        compiled = compiled or compile(text, "<contract>", "exec", dont_inherit=True, optimize=0)
        signature = signature or inspect.signature(called)
    except Exception as error:
        fails(error)
    try:
        bound = signature.bind(*arguments, **keywords)
    except TypeError:  # the program itself refuses such arguments
        return called(*arguments, **keywords)
    bound.apply_defaults()
    asserted(lambda: exec(compiled, copy.deepcopy(bound.arguments)))
    return called(*arguments, **keywords) if answers else None


if names and names[0] not in program:
    raise NameError(f"the program does not define {names[0]!r}")
program[name] = contracted if names else validated
"""
"""Runs in a namespace of its own: whatever the program calls its functions, it changes nothing here."""
_ATTACHED = """

import builtins as {name}
{name}.exec(
    {wrapper!r},
    {{"program": {name}.globals(), "name": {name!r}, "names": {names!r}, "text": {text!r}, "answers": {answers}}},
)
"""


def contracted(
    code: str, entry_point: str, contract: str, *, answers: bool = True
) -> tuple[str, str]:
    """Return a program that checks the contract before each call, and the name to call in it."""
    if not contract.strip():
        return code, entry_point
    attached = _ATTACHED.format(
        name=CALLED,
        wrapper=_WRAPPER,
        names=entry_point.split("."),
        answers=answers,
        text=textwrap.dedent(contract).strip("\n"),
    )
    return code + attached, CALLED


def validator(contract: str) -> tuple[str, str]:
    """Return a program that checks what a program reads, and the name to call in it; see `Problem.contract`."""
    attached = _ATTACHED.format(
        name=CALLED, wrapper=_WRAPPER, names=[], answers=False, text=textwrap.dedent(contract)
    )
    return attached.lstrip(), CALLED


def refused(end: TestResult | CallResult) -> tuple[str, InvalidReason] | None:
    """Why the contract takes no such call, in words and as one of the closed list; None where it did not say so."""
    if end.outcome is not Outcome.ERROR or end.error not in (_OUTSIDE, _BROKEN):
        return None
    said = end.message.removeprefix(f"{end.error}: ")
    if end.error == _OUTSIDE:
        return f"outside the contract: {said}", InvalidReason.OUTSIDE_CONTRACT
    return f"the contract of the problem fails: {said}", InvalidReason.RAISES


def contract_fault(
    problem: Problem, calls: Sequence[Call], sandbox: Sandbox, limits: Limits
) -> str:
    """Fault of the contract of a problem whose reference runs, and what to do; "" for none."""
    if not problem.contract.strip():
        return ""
    if problem.kind == "program":
        (code, name), anything = validator(problem.contract), _ANY_INPUT
    else:
        code, name = contracted(
            problem.reference, problem.entry_point, problem.contract, answers=False
        )
        anything = _ANY
    # Up to the first that it does not take: a contract that hangs does so on most.
    results = sandbox.call(code, name, calls or [anything], limits=limits, stop=lambda value: False)
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


def contract_of(task_id: str, given: object = None) -> str:
    """Return the contract of a problem; "" where none is known.

    Example:
        >>> contract_of("HumanEval/55"), contract_of("HumanEval/55", "assert n > 2"), contract_of("mine/1")
        ('assert 0 <= n <= 200', 'assert n > 2', '')
    """
    if given is None or given == "":
        return _contracts().get(task_id, "")
    if not isinstance(given, str):
        raise TypeError(f"Expect 'contract' to be text, actually: {type(given).__name__}")
    return given


@functools.cache
def _contracts() -> dict[str, str]:
    text = Path(__file__).with_name("contracts.toml").read_text(encoding="utf-8")
    return {task_id: contract.strip("\n") for task_id, contract in tomllib.loads(text).items()}
