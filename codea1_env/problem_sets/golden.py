r"""Golden tests that are text -> cases, and what is left of them.

Statements and test modules are read by `codea1_env.reading.golden`; for files from outside that happens in the analysis
process. What cannot be data becomes a test module, which runs whole with the program.

    >>> found = read_statements(["assert double(2) == 4", "assert double(2) > 3"], "double")
    >>> found.cases, "assert double(2) > 3" in found.test_module
    ((Case(args=(2,), kwargs={}, expected=4),), True)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from codea1_env.compare import Compare
from codea1_env.reading.golden import GoldenCase, golden_cases
from codea1_env.sandbox import AnalysisError, Case, default_sandbox, equal

Ask = Callable[..., Any]
"""Calls a function that reads text: here, or in the analysis process."""


def here(function: Callable[..., Any], *arguments: Any) -> Any:
    """Read text of ours in this process."""
    return function(*arguments)


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Read hostile text in the analysis process."""
    return default_sandbox().analyse(function, *arguments)


class Golden(NamedTuple):
    """What golden tests say."""

    cases: tuple[Case, ...] = ()
    compare: Compare = "equal"
    atol: float = 0.0
    test_module: str = ""
    """A test module of what is no data; "" if all is."""


def read_statements(tests: Sequence[str], entry_point: str, ask: Ask = here) -> Golden:
    """Read tests that are statements, each on its own."""
    if not tests:
        return Golden()
    try:
        rows: list[tuple[list[GoldenCase], str | None]] = ask(
            golden_cases, list(tests), entry_point
        )
    except AnalysisError as error:
        rows = [([], str(error)) for _ in tests]
    if any(map(_uses_files, tests)):  # which those behind it may read
        rows = [([], "works with files") for _ in tests]
    rule, tolerance = _rule([case for cases, reason in rows if reason is None for case in cases])
    found: list[Case] = []
    left: list[str] = []
    set_up: list[str] = []
    for test, (cases, reason) in zip(tests, rows, strict=True):
        if reason is not None or not all(_fits(case, rule, tolerance) for case in cases):
            left.append("\n".join([*set_up, test]))
        elif cases:
            found += map(_case, cases)
        elif test.strip():  # names and imports for those behind it
            set_up.append(test)
    if set_up and not (found or left):
        left = ["\n".join(set_up)]  # it asserts nothing
    return Golden(tuple(found), rule, tolerance, module_of(left) if left else "")


def read_module(text: str, entry_point: str, ask: Ask = here) -> Golden:
    r"""Read a test module, which is data as a whole or not at all.

    Example:
        >>> read_module("from solution import f\ndef test_a():\n    assert f(2) == 4", "f").cases
        (Case(args=(2,), kwargs={}, expected=4),)
    """
    found = read_statements([text], entry_point, ask)
    return Golden(test_module=text) if found.test_module or not found.cases else found


_STRING = re.compile(
    r"\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|#[^\n]*+"
)
_WORK = re.compile(
    r"(?<![\w.])open *\(|\b(?:tempfile|shutil|tmp_path|tmpdir)\b"
    r"|\.(?:write_text|write_bytes|mkdir|makedirs|touch|unlink) *\("
)


def _uses_files(text: str) -> bool:
    """Whether a test does something to files: what the function returns may depend on it."""
    return bool(_WORK.search(text) and _WORK.search(_STRING.sub("''", text)))


def module_of(tests: Sequence[str]) -> str:
    r"""Return a test module of texts, each of which is run with all names of the program.

    Example:
        >>> print(module_of(["assert f(2).x == 4"]))
        import solution
        <BLANKLINE>
        <BLANKLINE>
        def run(text):
            exec(text, dict(vars(solution)))
        <BLANKLINE>
        <BLANKLINE>
        def test_1():
            run('assert f(2).x == 4')
        <BLANKLINE>
    """
    parts = ["import solution", "def run(text):\n    exec(text, dict(vars(solution)))"]
    parts += [f"def test_{number}():\n    run({test!r})" for number, test in enumerate(tests, 1)]
    return "\n\n\n".join(parts) + "\n"


def _case(found: GoldenCase) -> Case:
    return Case(tuple(found[0]), found[1], found[2])


def _rule(cases: Sequence[GoldenCase]) -> tuple[Compare, float]:
    through = {case[5] for case in cases}
    if through == {"set"}:
        return "set", 0.0
    with_floats = [case for case in cases if _has_float(case[2])]
    stated = [_tolerance(case) for case in with_floats]
    if stated and None not in stated:
        largest = max(filter(None, stated), default=0.0)
        return "equal", largest if largest > _DEFAULT else 0.0
    return "equal", 0.0


_DEFAULT = 1e-6


def _fits(case: GoldenCase, rule: Compare, tolerance: float) -> bool:
    stated, through = _tolerance(case), case[5]
    converted = through not in ("", "int") and rule != through
    return not converted and (stated is None or stated <= max(tolerance, _DEFAULT))


def _tolerance(case: GoldenCase) -> float | None:
    """Return the absolute tolerance that a test states for its value; None if it states none."""
    expected, absolute, relative = case[2:5]
    if absolute is None and relative is None:
        return None
    size = max((abs(each) for each in _numbers(expected)), default=0.0)
    return max(absolute or 0.0, (relative or 0.0) * size)


def _numbers(value: Any) -> list[float]:
    if type(value) in (int, float):
        return [value] if equal(value, value) and abs(value) < float("inf") else []
    if type(value) is dict:
        value = list(value.values())
    return [n for each in value for n in _numbers(each)] if type(value) in (list, tuple) else []


def _has_float(value: Any) -> bool:
    if type(value) is dict:
        value = list(value.values())
    if type(value) in (list, tuple):
        return any(map(_has_float, value))
    return type(value) is float
