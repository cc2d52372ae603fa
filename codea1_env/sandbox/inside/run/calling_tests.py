"""Calls one test function, with the values that `pytest.mark.parametrize` gives it, or says why it cannot."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

_NO_TESTS = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


_MARKS = "_pytest.mark.structures"


class CannotRunError(Exception):
    """A test is there that nobody can run."""


def cannot_run(name: str, missing: list[str]) -> CannotRunError:
    """Return the error for a test with parameters that nobody has a value for."""
    return CannotRunError(f"{name} needs {', '.join(missing)}, and there are no fixtures")


def marks_of(owner: Any) -> tuple[Any, ...]:
    """Return the marks of pytest on a function or class, or of a module's names."""
    found = (
        owner.get("pytestmark", ()) if isinstance(owner, dict) else getattr(owner, "pytestmark", ())
    )
    marks = tuple(found) if isinstance(found, (list, tuple)) else (found,)
    return tuple(
        mark for mark in marks if type(mark).__module__ == _MARKS
    )  # nothing of the program's


def is_left_out(test: object, marks: tuple[Any, ...]) -> bool:
    """Whether pytest would not run a test, or not mind that it fails: it tests nothing."""
    for mark in (*marks_of(test), *marks):
        name = getattr(mark, "name", "")
        conditions = getattr(mark, "args", ())[:1]
        if name in ("skip", "xfail") or (name == "skipif" and any(conditions)):
            return True
    return False


def _tables(
    test: object, marks: tuple[Any, ...]
) -> list[tuple[list[str], list[tuple[object, ...]]]]:
    """Names and rows of each `pytest.mark.parametrize`, where pytest is one of the allowed packages."""
    tables = []
    for mark in (*marks_of(test), *marks):
        if getattr(mark, "name", "") == "parametrize":
            given = dict(zip(("argnames", "argvalues"), mark.args, strict=False)) | mark.kwargs
            names, rows = given["argnames"], given["argvalues"]
            single = isinstance(names, str) and "," not in names
            names = names.split(",") if isinstance(names, str) else names
            names = [name.strip() for name in names if name.strip()]
            tables.append((names, [_row(row, single) for row in rows]))
    return tables


def _row(row: Any, single: bool) -> tuple[object, ...]:
    if type(row).__name__ == "ParameterSet":  # of `pytest.param`
        return tuple(row.values)
    return (row,) if single else tuple(row)


def _needed(function: Callable[..., object]) -> list[str]:
    """Return the parameters that a call must give."""
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        each.name
        for each in parameters
        if each.default is inspect.Parameter.empty and each.kind not in variable
    ]


def missing_of(test: Callable[..., object], marks: tuple[Any, ...] = ()) -> list[str]:
    """Return the parameters of a test that nobody has a value for."""
    given = {name for names, _ in _tables(test, marks) for name in names}
    return [name for name in _needed(test) if name not in given]


def check_is_run(test: object, name: str) -> None:
    """Refuse what is not run by being called.

    Raises:
        CannotRunError: It is a coroutine or a generator.
    """
    code = getattr(test, "__code__", None)
    if code is not None and code.co_flags & _NO_TESTS:
        raise CannotRunError(f"{name} is a coroutine or a generator, which nobody runs")


def call(test: Callable[..., object], marks: tuple[Any, ...] = ()) -> None:
    """Run a test, once for each row of its parameters.

    Args:
        test: The test.
        marks: Those of its class and its module.

    Raises:
        CannotRunError: It needs what only a framework could give it.
        BaseException: Whatever it raised.
    """
    name = getattr(test, "__name__", "a test")
    missing = missing_of(test, marks)
    if missing:
        raise cannot_run(name, missing)
    check_is_run(test, name)
    tables = _tables(test, marks)
    for rows in itertools.product(*(rows for _, rows in tables)):
        given: dict[str, object] = {}
        for (names, _), row in zip(tables, rows, strict=True):
            given.update(zip(names, row, strict=True))
        test(**given)


def call_hook(hook: Callable[..., object] | None, argument: object) -> None:
    """Call what stands before or after tests, which may ask for what they are."""
    if hook is not None:
        hook(*([argument] if _needed(hook) else []))
