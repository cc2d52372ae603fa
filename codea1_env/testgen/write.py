"""Writes the tests of a function or class as a file for pytest: alike calls are one table, the others have names."""

from __future__ import annotations

import builtins
import itertools
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
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


def _expected(source: str, result: tuple[str, Any], text: str = "") -> str:
    """Return the statement that a source gives a result of the driver, whose content has a literal or this text."""
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
    how, text = _comparison(content), text or literal(content)
    if how == "is":
        return f"assert {source} is {text}"
    return f"assert {source} == " + (f"pytest.approx({text})" if how == "approx" else text)


def _comparison(value: Any) -> str:
    if value is None or type(value) is bool:
        return "is"
    return "approx" if is_rough(value) else "=="


# All tests


def laid_out(tests: Sequence[ObservedTest], shape: Shape) -> list[str]:
    r"""Write test functions, those that return before those that raise.

    Example:
        >>> from codea1_env.testgen.texts import Trial
        >>> seen = [{"made": True, "results": [("value", n)], "after": {}, "attributes": {}} for n in (1, -2)]
        >>> tests = [ObservedTest(Trial((n,)), found) for n, found in zip((2, -3), seen)]
        >>> print("\n".join(laid_out(tests, Shape("half", ("n",)))))
        @pytest.mark.parametrize(
            ("n", "expected"),
            [
                (2, 1),
                (-3, -2),
            ],
        )
        def test_half(n, expected):
            assert half(n) == expected
    """
    tables: dict[tuple[str, ...], list[ObservedTest]] = {}
    for number, test in enumerate(tests):
        tables.setdefault(_likeness(test, shape) or (str(number),), []).append(test)
    parts = [
        _table(key, some, shape) if len(some) > 1 else _single(some[0], shape)
        for key, some in tables.items()
    ]
    parts.sort(
        key=lambda part: ("pytest.raises(" in part[1], "parametrize" not in part[1], len(part[1]))
    )
    found: dict[str, str] = {}
    for base, text in parts:
        names = (f"{base}_{number}" for number in itertools.count(2))
        name = next(each for each in itertools.chain([base], names) if each not in found)
        found[name] = text.replace("def NAME(", f"def {name}(", 1)
    return list(found.values())


def _likeness(test: ObservedTest, shape: Shape) -> tuple[str, ...]:
    """Return what tests of one table have in common: how they compare, and the names of their arguments."""
    number = len(test.trial.arguments)
    names = [*shape.parameters[:number], *test.trial.keywords]
    is_simple = names and len(names) == number + len(test.trial.keywords)
    if shape.is_class or test.found["after"] or not is_simple:
        return ()
    form, content = test.found["results"][0]
    if form == "first":
        return ()
    what = content[0] if form in ("raises", "breaks") else _comparison(content)
    return (form, what, str(number), *names)


def _table(key: tuple[str, ...], tests: Sequence[ObservedTest], shape: Shape) -> tuple[str, str]:
    form, what, number, *given = key
    names = [shape.variable(name) for name in given]
    words = list(map("=".join, zip(given, names, strict=True)))
    call = shape.call(", ".join([*names[: int(number)], *words[int(number) :]]))
    rows = [
        [*map(literal, (*test.trial.arguments, *test.trial.keywords.values()))] for test in tests
    ]
    statement = _expected(call, tests[0].found["results"][0], "expected")
    if form in ("raises", "breaks"):
        name = f"_raises_{snake_case(what)}"
    else:
        name = "_is" if what == "is" else ""
        for row, test in zip(rows, tests, strict=True):
            row.append(literal(test.found["results"][0][1]))
        names.append("expected")
    rows.sort(key=lambda row: (sum(map(len, row)), row))
    one = len(names) == 1
    shown = ", ".join(f'"{each}"' for each in names)
    cells = [row[0] if one else f"({', '.join(row)})" for row in rows]
    lines = [
        "@pytest.mark.parametrize(",
        f"    {shown}," if one else f"    ({shown}),",
        "    [",
        *(f"        {cell}," for cell in dict.fromkeys(cells)),
        "    ],",
        ")",
        f"def NAME({', '.join(names)}):",
        textwrap.indent(statement, "    "),
    ]
    return f"test_{snake_case(shape.name)}{name}", "\n".join(lines)


def _single(test: ObservedTest, shape: Shape) -> tuple[str, str]:
    """Write one test function, named after the methods that it calls, or its arguments."""
    words = [snake_case(name).strip("_") for name, _, _ in test.trial.steps] or [
        *map(_words, test.trial.arguments),
        *(f"{key}_{_words(value)}" for key, value in test.trial.keywords.items()),
    ]
    words = [word for word, _ in itertools.groupby(words)]
    shown = words if len("_".join(words)) <= _MAX_NAME else []
    name = "_".join(["test", snake_case(shape.name), *shown])
    return name, f"def NAME():\n{textwrap.indent(body_of(test, shape), '    ')}"


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


def pytest_file(suite: WrittenSuite, output: Path) -> str:
    """Return the text of the file that will lie at `output`, formatted by ruff if it has settings there."""
    target = suite.target
    errors = {error for test in suite.tests for error in test.errors}
    own = {each for each in errors if each in target.names} - {target.name}
    text = "".join(f"\n\n{each}\n" for each in laid_out(suite.tests, target.shape))
    for error in errors - {target.name, *own, *vars(builtins)}:  # what nothing imports
        text = text.replace(f"pytest.raises({error}):", f"pytest.raises(Exception):  # {error}")
    imported = {target.offered: {target.name}}
    imported.setdefault(target.module.name, set()).update(own)
    blocks = [
        [f"import {name}" for name in modules_of(text)],
        ["import pytest"] if "pytest." in text else [],
        [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(imported.items()) if names],
    ]  # fmt: skip
    head = "".join("\n" + "\n".join(block) + "\n" for block in blocks if block)
    docstring = (
        f'"""Tests of {target.name}, {WRITTEN}.\n\n'
        "They expect what the program gave when they were written: it still does the same. Whether that is\n"
        f"right, the reader decides. They notice {len(suite.killed)} of {len(suite.mutants)} small faults.\n"
        '"""\n'
    )
    return _formatted(docstring + head + text, output.resolve())


def path_hint(target: Target, output: Path) -> str:
    """Return what to put before `pytest` so that the file finds its module; "" if nothing is needed."""
    folder = output.resolve().parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    root = target.module.root.resolve()
    found = target.module.installed or folder == root
    return "" if found else f"PYTHONPATH={os.path.relpath(root)} "


def _formatted(text: str, output: Path) -> str:
    command = shutil.which("ruff") or shutil.which("ruff", path=str(Path(sys.executable).parent))
    if command is None or not any(map(_has_settings, output.parents)):
        return text
    for part in (["check", "--fix-only", "--select", "I"], ["format"]):
        words = [command, *part, "--quiet", "--stdin-filename", str(output), "-"]
        done = subprocess.run(
            words, input=text, capture_output=True, cwd=output.parent, encoding="utf-8"
        )
        text = done.stdout if done.returncode == 0 and done.stdout else text
    return text


def _has_settings(folder: Path) -> bool:
    if any((folder / name).is_file() for name in ("ruff.toml", ".ruff.toml")):
        return True
    project = folder / "pyproject.toml"
    return project.is_file() and b"[tool.ruff" in project.read_bytes()
