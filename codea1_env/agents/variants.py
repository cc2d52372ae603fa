"""Turns golden tests into other tests: wrong, weak, and near the boundaries.

`variants` reads test text, which is untrusted, so it runs in a helper process (`Sandbox.analyse`), where
this file is loaded on its own; it therefore imports only the standard library and readers.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codea1_env.agents.input_variants import MOST, near_inputs
from codea1_env.reading.examples import called
from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read, write

MAX_BOUNDARY = 12
"""Boundary tests made from one golden test at most."""


def variants(tests: list[str], entry_point: str) -> list[dict[str, list[str]]]:
    """Return for each test its variants by kind; none for another form than `assert entry_point(<literals>) == <literal>`.

    - "wrong": the same call, with another value than the golden one.
    - "weak": the call without a value, and a comparison that nearly every program passes.
    - "boundary": calls with one argument moved to a boundary of its type, with the golden value as a guess. Of a program:
      other inputs in the format of the golden ones, see `codea1_env.agents.input_variants`.

    Example:
        >>> for kind, made in variants(["assert half(4) == 2"], "half")[0].items():
        ...     print(kind, made[:3])
        wrong ['assert half(4) == 3']
        weak ['half(4)', 'assert half(4) is not None']
        boundary ['assert half(0) == 2', 'assert half(1) == 2', 'assert half(-1) == 2']
    """
    function = called(entry_point)
    parts = [_parse(test, function) for test in tests]
    near: list[list[object]] | list[None] = [None] * len(tests)
    if not entry_point:  # a program, whose one argument is what it reads
        read = [each for each in parts if each]
        others = iter(near_inputs([str(arguments[0][1]) for arguments, _ in read]))
        near = [list[object](next(others)) if each else [] for each in parts]
    return [_variants(each, function, moved) for each, moved in zip(parts, near, strict=True)]


def _variants(
    parts: tuple[list[tuple[str, object]], object] | None,
    function: str,
    inputs: Sequence[object] | None,
) -> dict[str, list[str]]:
    if parts is None:
        return {"wrong": [], "weak": [], "boundary": []}
    arguments, value = parts

    def call(given: list[tuple[str, object]]) -> str:
        listed = [f"{name}={literal(item)}" if name else literal(item) for name, item in given]
        return f"{function}({', '.join(listed)})"

    original, most = call(arguments), MAX_BOUNDARY if inputs is None else MOST
    near = [
        call([*arguments[:place], (name, moved), *arguments[place + 1 :]])
        for place, (name, argument) in enumerate(arguments)
        for moved in (boundary_values(argument) if inputs is None else inputs)
    ]
    return {
        "wrong": [f"assert {original} == {literal(other_value(value))}"],
        "weak": [original, f"assert {original} is {'None' if value is None else 'not None'}"],
        "boundary": [f"assert {text} == {literal(value)}" for text in near[:most]],
    }


def _parse(test: str, function: str) -> tuple[list[tuple[str, object]], object] | None:
    """Return the arguments, each with its keyword or "", and the value of `assert function(...) == value`."""
    try:
        match ast.parse(test).body:
            case [
                ast.Assert(
                    test=ast.Compare(
                        left=ast.Call(func=name) as call, ops=[ast.Eq()], comparators=[value]
                    )
                )
            ] if ast.unparse(name) == function and all(keyword.arg for keyword in call.keywords):
                arguments = [("", read(argument)) for argument in call.args]
                arguments += [(str(item.arg), read(item.value)) for item in call.keywords]
                return arguments, read(value)
    except (SyntaxError, ValueError, RecursionError, MemoryError, NotLiteralError):
        pass  # not text that can be parsed, or not literals
    return None


def boundary_values(value: object) -> list[object]:
    """Return values of the same type where faults like to hide.

    Example:
        >>> boundary_values([3, 1, 2])
        [[], [3], [3, 1], [2, 1, 3], [3, 1, 2, 3, 1, 2]]
        >>> boundary_values(True)
        [False]
    """
    made: list[object] = []
    match value:
        case bool():
            made = [not value]
        case int():
            made = [0, 1, -1, value - 1, value + 1, -value]
        case float():
            made = [0.0, 1.0, -1.0, -value, value + 0.5]
        case str() | list() | tuple():
            twice = value * 2 if len(value) < 50 else value
            made = [value[:0], value[:1], value[:-1], value[::-1], twice]
            if isinstance(value, str):
                made += [value.upper(), f" {value}"]
        case set():
            made = [set(), set(sorted(value, key=literal)[:1])]
        case dict():
            made = [{}, dict(list(value.items())[:1]), dict(list(value.items())[::-1])]
    kept: list[object] = []
    for item in made:
        # As text, because 1 == True and 0.0 == -0.0.
        if literal(item) not in [literal(value), *map(literal, kept)]:
            kept.append(item)
    return kept


def other_value(value: object) -> object:
    """Return a value of the same kind that is not equal to the given one.

    Example:
        >>> other_value([1]), other_value("a"), other_value(None)
        ([1, None], 'a?', 0)
    """
    match value:
        case bool():
            return not value
        case float():
            return value + 1.0 if abs(value) < 1e15 else 0.0
        case int() | complex():
            return value + 1
        case str():
            return value + "?"
        case bytes():
            return value + b"?"
        case list():
            return [*value, None]
        case tuple():
            return (*value, None)
        case dict():
            return {**value, "?": None}
        case set():
            return {*value, "?"}
    return 0


def literal(value: object) -> str:
    """Return the text of a literal: sets are in a fixed order, and infinity can be read.

    Example:
        >>> literal(({"b", "a"}, [1]))
        "({'a', 'b'}, [1])"
    """
    return write(value) or repr(value)
