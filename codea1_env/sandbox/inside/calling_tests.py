"""Calls one test function, with the values that `pytest.mark.parametrize` gives it, or says why it cannot."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

_NO_TESTS = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


class CannotRunError(Exception):
    """A test is there that nobody can run."""


def cannot_run(name: str, missing: list[str]) -> CannotRunError:
    """The error for a test with parameters that nobody has a value for."""
    return CannotRunError(f"{name} needs {', '.join(missing)}, and there are no fixtures")


def _tables(test: object) -> list[tuple[list[str], list[tuple[object, ...]]]]:
    """Names and rows of each `pytest.mark.parametrize`, where pytest is one of the allowed packages."""
    tables = []
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            names, rows = mark.args[:2]
            names = names.split(",") if isinstance(names, str) else names
            names = [name.strip() for name in names if name.strip()]
            tables.append((names, [_row(row, len(names)) for row in rows]))
    return tables


def _row(row: Any, count: int) -> tuple[object, ...]:
    if type(row).__name__ == "ParameterSet":  # of `pytest.param`
        row, count = row.values, 2
    return tuple(row) if count > 1 else (row,)


def _needed(function: Callable[..., object]) -> list[str]:
    """The parameters that a call must give."""
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        each.name
        for each in parameters
        if each.default is inspect.Parameter.empty and each.kind not in variable
    ]


def missing_of(test: Callable[..., object]) -> list[str]:
    """The parameters of a test that nobody has a value for."""
    given = {name for names, _ in _tables(test) for name in names}
    return [name for name in _needed(test) if name not in given]


def check_is_run(test: object, name: str) -> None:
    """Refuses what is not run by being called.

    Raises:
        CannotRunError: It is a coroutine or a generator.
    """
    code = getattr(test, "__code__", None)
    if code is not None and code.co_flags & _NO_TESTS:
        raise CannotRunError(f"{name} is a coroutine or a generator, which nobody runs")


def call(test: Callable[..., object]) -> None:
    """Runs a test, once for each row of its parameters.

    Raises:
        CannotRunError: It needs what only a framework could give it.
        BaseException: Whatever it raised.
    """
    name = getattr(test, "__name__", "a test")
    missing = missing_of(test)
    if missing:
        raise cannot_run(name, missing)
    check_is_run(test, name)
    tables = _tables(test)
    for rows in itertools.product(*(rows for _, rows in tables)):
        given: dict[str, object] = {}
        for (names, _), row in zip(tables, rows, strict=True):
            given.update(zip(names, row, strict=True))
        test(**given)


def call_hook(hook: Callable[..., object] | None, argument: object) -> None:
    """Calls what stands before or after tests, which may ask for what they are."""
    if hook is not None:
        hook(*([argument] if _needed(hook) else []))
