"""Writes the tests of a function or class as a file for pytest."""

from __future__ import annotations

import builtins
import itertools
import os
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codea1_env.testgen.texts import (
    STATEMENTS,
    ObservedTest,
    Shape,
    call_text,
    is_rough,
    literal,
    modules_of,
    snake_case,
)

if TYPE_CHECKING:
    from codea1_env.testgen.search import WrittenSuite
    from codea1_env.testgen.target import Target

WRITTEN = "written by codea1 testgen"  # Stands at the top of every file
_MAX_NAME = 24


# One test


def body_of(test: ObservedTest, shape: Shape) -> str:
    """Return the body of a test function.

    Example:
        >>> from codea1_env.testgen.texts import Trial
        >>> seen = {"made": True, "results": [("value", 3)], "after": {}, "attributes": {}}
        >>> body_of(ObservedTest(Trial((1, 2)), seen), Shape("add", ("a", "b")))
        'assert add(1, 2) == 3'
    """
    trial, found = test.trial, test.found
    if not shape.is_class:
        return "\n".join(_function_lines(test, shape))
    made = call_text(shape.name, trial.arguments, trial.keywords)
    if not found["made"]:
        return _expected(made, found["results"][0])
    lines = [f"{shape.object} = {made}"]
    for step, result in zip(trial.steps, found["results"], strict=True):
        source = shape.step(step, statement=True)
        if result[0] == "self":
            lines.append(f"assert {source} is {shape.object}")
        elif result == ("value", None) and step[0] in (*STATEMENTS, *shape.setting):
            lines.append(source)
        elif step[0] == "__iter__" and result[0] in ("items", "first", "breaks"):
            lines.append(_expected(shape.object, result))
        else:
            lines.append(_expected(source, result))
    for name, value in found["attributes"].items():
        lines.append(_expected(shape.attribute(name), ("value", value)))
    return "\n".join(lines)


def _function_lines(test: ObservedTest, shape: Shape) -> Iterator[str]:
    """Yield the lines of a call; arguments that it changes get names."""
    given = [*enumerate(test.trial.arguments), *test.trial.keywords.items()]
    texts: dict[Any, str] = {place: literal(value) for place, value in given}
    names = dict[Any, str]()
    for place in test.found["after"]:
        wanted = place
        if isinstance(place, int):  # the last one may stand for any number of values
            wanted = (shape.parameters[: place + 1] or ("x",))[-1]
        names[place] = name = shape.variable(wanted, names.values())
        yield f"{name} = {texts[place]}"
        texts[place] = name
    words = [text if isinstance(key, int) else f"{key}={text}" for key, text in texts.items()]
    yield _expected(shape.call(", ".join(words)), test.found["results"][0])
    for place, value in test.found["after"].items():
        yield _expected(names[place], ("value", value))


def _expected(source: str, result: tuple[str, Any]) -> str:
    """Return the statement that a source gives a result of the driver."""
    form, content = result
    match form:
        case "raises":
            return f"with pytest.raises({content[0]}):\n    {source}"
        case "breaks":
            return f"with pytest.raises({content[0]}):\n    list({source})"
        case "type":
            source = f"type({source}).__name__"
        case "repr":
            source = f"repr({source})"
        case "items":
            source = f"list({source})"
        case "first":
            source = f"[item for item, _ in zip({source}, range({len(content)}))]"
    text = literal(content)
    if content is None or type(content) is bool:
        return f"assert {source} is {text}"
    return f"assert {source} == " + (f"pytest.approx({text})" if is_rough(content) else text)


# All tests


def laid_out(tests: Sequence[ObservedTest], shape: Shape) -> list[str]:
    r"""Write test functions: one for all calls that return, one for those that raise, and one for each longer test.

    Example:
        >>> from codea1_env.testgen.texts import Trial
        >>> seen = [{"made": True, "results": [("value", n)], "after": {}, "attributes": {}} for n in (1, -2)]
        >>> tests = [ObservedTest(Trial((n,)), found) for n, found in zip((2, -3), seen)]
        >>> print("\n".join(laid_out(tests, Shape("half", ("n",)))))
        def test_half():
            assert half(2) == 1
            assert half(-3) == -2
    """
    base = f"test_{snake_case(shape.name)}"
    bodies: dict[str, list[str]] = {}
    written = [(test, body_of(test, shape)) for test in tests]
    for test, body in sorted(written, key=lambda pair: _is_long(pair[1])):
        name = f"{base}_raises" if "pytest.raises(" in body else base
        if _is_long(body):
            name = _name(test, base, bodies)
        bodies.setdefault(name, []).append(body)
    for some in bodies.values():
        some.sort(key=lambda body: (len(body), body))
    parts = [
        f"def {name}():\n{textwrap.indent(chr(10).join(some), '    ')}"
        for name, some in bodies.items()
    ]
    return sorted(parts, key=lambda part: "pytest.raises(" in part)


def _is_long(body: str) -> bool:
    """Whether a test has more than one statement."""
    return body.count("\n") > body.count("pytest.raises(")


def _name(test: ObservedTest, base: str, taken: Collection[str]) -> str:
    """Name a test function after the methods that it calls, or its arguments."""
    words = [snake_case(name).strip("_") for name, _, _ in test.trial.steps] or [
        *map(_words, test.trial.arguments),
        *(f"{key}_{_words(value)}" for key, value in test.trial.keywords.items()),
    ]
    words = [word for word, _ in itertools.groupby(words)]
    shown = words if len("_".join(words)) <= _MAX_NAME else []
    name = "_".join([base, *shown])
    names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
    return next(each for each in names if each not in taken)


def _words(value: Any) -> str:
    """Return a short text for an argument."""
    if value in ("", b"", [], (), {}, set()) and not isinstance(value, (bool, int, float)):
        return "empty"
    text = re.sub(r"-(?=\d)", "minus_", literal(value)).replace(".", "_")
    return "_".join(re.findall(r"[a-z0-9_]+", text.lower(), re.A)).strip("_") or "signs"


# The file


def default_output(folder: Path, target: Target) -> Path:
    """Return the file for the tests of a target in a folder."""
    module = target.module.name.rpartition(".")[2]
    names = [module, target.name] if module.lower() != target.name.lower() else [module]
    return folder / f"test_{'_'.join(map(snake_case, names))}.py"


def pytest_file(suite: WrittenSuite) -> str:
    """Return the text of the file with the tests of a suite."""
    target = suite.target
    errors = {error for test in suite.tests for error in test.errors}
    own = {each for each in errors if each in target.names} - {target.name}
    text = "".join(f"\n\n{each}\n" for each in laid_out(suite.tests, target.shape))
    for error in errors - {target.name, *own, *vars(builtins)}:  # what nothing imports
        text = text.replace(f"pytest.raises({error}):", f"pytest.raises(Exception):  # {error}")
    blocks = [
        [f"import {name}" for name in modules_of(text)],
        ["import pytest"] if "pytest." in text else [],
        [f"from {target.module.name} import {', '.join(sorted({target.name, *own}))}"],
    ]
    head = "".join("\n" + "\n".join(block) + "\n" for block in blocks if block)
    docstring = (
        f'"""Tests of {target.name}, {WRITTEN}.\n\n'
        "They expect what the program gave when they were written: it still does the same. Whether that is\n"
        f"right, the reader decides. They notice {len(suite.killed)} of {len(suite.mutants)} small faults.\n"
        '"""\n'
    )
    return docstring + head + text


def path_hint(target: Target, output: Path) -> str:
    """Return what to put before `pytest` so that the file finds its module; "" if nothing is needed."""
    folder = output.resolve().parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    root = target.module.root.resolve()
    return "" if folder == root else f"PYTHONPATH={os.path.relpath(root)} "
