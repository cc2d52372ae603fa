"""Observed tests -> test functions: alike calls as one table, the others named after what they call."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from codea1_env.testgen.texts import (
    STATEMENTS,
    ObservedTest,
    Shape,
    call_text,
    is_rough,
    literal,
    snake_case,
    step_text,
)

_MAX_NAME = 24


def body_of(test: ObservedTest, shape: Shape) -> str:
    """Return the body of a test function.

    Example:
        >>> from codea1_env.testgen.texts import Trial
        >>> seen = {"made": True, "results": [("value", 3)], "after": {}, "attributes": {}}
        >>> body_of(ObservedTest(Trial((1, 2)), seen), Shape("add", ("a", "b")))
        'assert add(1, 2) == 3'
    """
    trial, found = test.trial, test.found
    made = call_text(shape.name, trial.arguments, trial.keywords)
    if not shape.is_class:
        return "\n".join(_function_lines(test, shape))
    if not found["made"]:
        return _expected(made, found["results"][0])
    lines = [f"{shape.object} = {made}"]
    for step, result in zip(trial.steps, found["results"], strict=True):
        source = step_text(shape.object, step, statement=True)
        if step[0] in shape.awaited:
            source = f"asyncio.run({source})"
        if result[0] == "self":
            lines.append(f"assert {source} is {shape.object}")
        elif result == ("value", None) and step[0] in (*STATEMENTS, *shape.setting):
            lines.append(source)
        elif step[0] == "__iter__" and result[0] in ("items", "first", "breaks"):
            lines.append(_expected(shape.object, result))
        else:
            lines.append(_expected(source, result))
    for name, value in found["attributes"].items():
        place = f"len({shape.object})" if name == "len()" else f"{shape.object}.{name}"
        lines.append(_expected(place, ("value", value)))
    return "\n".join(lines)


def _function_lines(test: ObservedTest, shape: Shape) -> list[str]:
    """Return the lines of a call; arguments that it changes get names."""
    trial, after = test.trial, test.found["after"]
    given = [*enumerate(trial.arguments), *trial.keywords.items()]
    texts: dict[Any, str] = {place: literal(value) for place, value in given}
    lines, names = [], dict[Any, str]()
    for place in after:
        wanted = place
        if isinstance(place, int):  # the last one may stand for any number of values
            wanted = (
                shape.parameters[min(place, len(shape.parameters) - 1)] if shape.parameters else "x"
            )
        names[place] = name = shape.variable(wanted, names.values())
        lines.append(f"{name} = {texts[place]}")
        texts[place] = name
    words = [text if isinstance(key, int) else f"{key}={text}" for key, text in texts.items()]
    call = f"{shape.name}({', '.join(words)})"
    lines.append(
        _expected(f"asyncio.run({call})" if shape.asynchronous else call, test.found["results"][0])
    )
    return [*lines, *(_expected(names[place], ("value", value)) for place, value in after.items())]


def _expected(source: str, result: tuple[str, Any], text: str = "") -> str:
    """Return the statement that a source gives a result; see `codea1_env.testgen.driver`.

    Args:
        source: What is evaluated.
        result: Form and content.
        text: What stands for the content; "" for a literal.
    """
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
    return list(_named(parts))


def _likeness(test: ObservedTest, shape: Shape) -> tuple[str, ...]:
    """Return what tests of one table have in common: how they compare, and the names of their arguments."""
    names = [*shape.parameters[: len(test.trial.arguments)], *test.trial.keywords]
    simple = names and len(names) == len(test.trial.arguments) + len(test.trial.keywords)
    if shape.is_class or test.found["after"] or not simple:
        return ()
    form, content = test.found["results"][0]
    what = content[0] if form in ("raises", "breaks") else _comparison(content)
    return (form, what, str(len(test.trial.arguments)), *names) if form != "first" else ()


def _table(key: tuple[str, ...], tests: Sequence[ObservedTest], shape: Shape) -> tuple[str, str]:
    form, what, number, *given = key
    names = [shape.variable(name) for name in given]
    words = [
        *names[: int(number)],
        *map("=".join, zip(given[int(number) :], names[int(number) :], strict=True)),
    ]
    call = f"{shape.name}({', '.join(words)})"
    source = f"asyncio.run({call})" if shape.asynchronous else call
    rows = [
        [*map(literal, (*test.trial.arguments, *test.trial.keywords.values()))] for test in tests
    ]
    statement = _expected(source, tests[0].found["results"][0], "expected")
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
    snake = snake_case(shape.name)
    words = [snake_case(name).strip("_") for name, _, _ in test.trial.steps] or [
        *map(_words, test.trial.arguments),
        *(f"{key}_{_words(value)}" for key, value in test.trial.keywords.items()),
    ]
    words = [word for word, _ in itertools.groupby(words)]
    name = (
        "_".join(["test", snake, *words]) if len("_".join(words)) <= _MAX_NAME else f"test_{snake}"
    )
    return name, f"def NAME():\n{textwrap.indent(body_of(test, shape), '    ')}"


def _words(value: Any) -> str:
    """Return a short text for an argument."""
    if value in ("", b"", [], (), {}, set()) and not isinstance(value, (bool, int, float)):
        return "empty"
    text = re.sub(r"-(?=\d)", "minus_", literal(value)).replace(".", "_")
    return "_".join(re.findall(r"[a-z0-9_]+", text.lower(), re.A)).strip("_") or "signs"


def _named(parts: Iterable[tuple[str, str]]) -> Iterable[str]:
    taken: set[str] = set()
    for base, text in parts:
        free = (f"{base}_{number}" for number in itertools.count(2))
        name = base
        while name in taken:
            name = next(free)
        taken.add(name)
        yield text.replace("def NAME(", f"def {name}(", 1)
