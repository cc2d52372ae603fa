"""Tests as text: as the sandbox runs them, and as a pytest file has them."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codea1_env.problem_sets.fuzz import in_order
from codea1_env.sandbox.inside.analysis.literals import write
from codea1_env.testgen.driver import OPERATORS
from codea1_env.testgen.layout import snake_case

RELATIVE, ABSOLUTE = 1e-6, 1e-12
"""How close a float must come: the tolerance of `pytest.approx`."""
_DIGITS = 12
"""A float of more digits is no number that somebody has written, and may differ a little elsewhere."""
_MODULES = ("asyncio", "datetime", "decimal", "fractions")
_USED = (*_MODULES, "pytest", "math", "cmath", "found", "error", "sys", "Path")
"""Names that tests use, or the file around them."""
_STRING = re.compile(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"")
_MODULE_OF = {"Decimal": "decimal", "Fraction": "fractions"}

_STATEMENTS = ("__setitem__", "__delitem__")

@dataclass(frozen=True)
class GeneratedTest:
    """One test."""

    __test__ = False  # pytest would collect a class of this name

    text: str
    """The body of a test function of pytest; `pytest` and what `modules` names are imported."""
    errors: tuple[str, ...] = ()
    """Exceptions in it, which may have to be imported from the file under test."""

    @property
    def modules(self) -> list[str]:
        """Modules of the standard library that it expects to be imported."""
        return modules_of(self.text)


Step = tuple[str, tuple[Any, ...], Mapping[str, Any]]
"""A method, and the arguments that it is called with."""


@dataclass(frozen=True)
class Trial:
    """A call of a function; or the making of an object, and calls of its methods."""

    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Shape:
    """What decides how a call is written."""

    name: str
    parameters: tuple[str, ...] = ()
    """Names of the arguments by position, for those that the function changes."""
    asynchronous: bool = False
    is_class: bool = False
    awaited: Sequence[str] = ()
    """Methods that are asynchronous."""
    setting: Sequence[str] = ()
    """Methods that change their object."""

    @property
    def object(self) -> str:
        """The variable that holds the object under test."""
        return self.variable(snake_case(self.name))

    def variable(self, name: str, taken: Collection[str] = ()) -> str:
        """Return a name like this one that hides nothing which a test uses."""
        while name in (self.name, *_USED, *taken) or hasattr(builtins, name):
            name += "_"
        return name


def literal(value: Any) -> str:
    """Return an expression for a value.

    Example:
        >>> import decimal
        >>> literal([float("inf"), decimal.Decimal("1.5"), {2, 1}])
        "[float('inf'), decimal.Decimal('1.5'), {1, 2}]"
    """
    return in_order(value, _leaf)


def modules_of(text: str) -> list[str]:
    """Return the modules that a text of ours uses.

    Example:
        >>> modules_of("assert repr(f(decimal.Decimal('1'))) == 'datetime.date(2024, 1, 1)'")
        ['decimal']
    """
    code = _STRING.sub("''", text)
    return [name for name in _MODULES if re.search(rf"\b{name}\.", code)]


def call_text(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> str:
    """Return a call.

    Example:
        >>> call_text("f", [1], {"key": "a"})
        "f(1, key='a')"
    """
    words = [
        *map(literal, arguments),
        *(f"{key}={literal(value)}" for key, value in keywords.items()),
    ]
    return f"{name}({', '.join(words)})"


def step_text(made: str, step: Step, *, statement: bool = False) -> str:
    """Return a call of a method as people write it.

    Args:
        made: The object.
        step: Method and arguments.
        statement: It may be a statement, and need be no expression.

    Example:
        >>> step_text("d", ("__getitem__", (1,), {})), step_text("d", ("pop", (1,), {}))
        ('d[1]', 'd.pop(1)')
        >>> step_text("d", ("__delitem__", (1,), {})), step_text("d", ("__delitem__", (1,), {}), statement=True)
        ('d.__delitem__(1)', 'del d[1]')
    """
    name, arguments, keywords = step
    if name in OPERATORS and (statement or name not in _STATEMENTS):
        return OPERATORS[name].format(made, *map(literal, arguments))
    return f"{made}.{call_text(name, arguments, keywords)}"


def trial_text(trial: Trial, shape: Shape) -> str:
    """Return a trial in one line, for people.

    Example:
        >>> trial_text(Trial((1,), {}, (("add", (2,), {}), ("total", (), {}))), Shape("Sum", is_class=True))
        'sum_ = Sum(1); sum_.add(2); sum_.total()'
    """
    made = call_text(shape.name, trial.arguments, trial.keywords)
    if not shape.is_class or not trial.steps:
        return made
    if len(trial.steps) == 1:
        return step_text(made, trial.steps[0])
    steps = [step_text(shape.object, step) for step in trial.steps]
    return "; ".join([f"{shape.object} = {made}", *steps])


def observed_test(trial: Trial, seen: Mapping[str, Any], shape: Shape) -> GeneratedTest:
    """Return the test that a trial gives what it gave when it was observed.

    Args:
        trial: What was called.
        seen: What `codea1_env.testgen.driver.observe` returned.
        shape: How to write it.
    """
    writer = _Writer()
    results = list(seen["results"])
    if not shape.is_class:
        writer.function(trial, results[0], seen["after"], shape)
    elif not seen["made"]:
        writer.expect(call_text(shape.name, trial.arguments, trial.keywords), results[0])
    else:
        writer.line(f"{shape.object} = {call_text(shape.name, trial.arguments, trial.keywords)}")
        for step, result in zip(trial.steps, results, strict=True):
            writer.step(step, result, shape)
        for name, value in seen["attributes"].items():
            place = f"len({shape.object})" if name == "len()" else f"{shape.object}.{name}"
            writer.expect(place, ("value", value))
    return writer.test()


class _Writer:
    """Writes the lines of a test."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._errors: list[str] = []

    def line(self, text: str) -> None:
        self._lines.append(text)

    def function(
        self, trial: Trial, result: tuple[str, Any], after: Mapping[Any, Any], shape: Shape
    ) -> None:
        texts: dict[Any, str] = {
            place: literal(value)
            for place, value in (*enumerate(trial.arguments), *trial.keywords.items())
        }
        names: dict[Any, str] = {}
        for place in after:
            wanted = place
            if isinstance(place, int):  # the last one may stand for any number of values
                wanted = shape.parameters[min(place, len(shape.parameters) - 1)]
            names[place] = name = shape.variable(wanted, names.values())
            self.line(f"{name} = {texts[place]}")
            texts[place] = name
        words = [text if isinstance(key, int) else f"{key}={text}" for key, text in texts.items()]
        call = f"{shape.name}({', '.join(words)})"
        self.expect(f"asyncio.run({call})" if shape.asynchronous else call, result)
        for place, value in after.items():
            self.expect(names[place], ("value", value))

    def step(self, step: Step, result: tuple[str, Any], shape: Shape) -> None:
        source = step_text(shape.object, step, statement=True)
        if step[0] in shape.awaited:
            source = f"asyncio.run({source})"
        if result[0] == "self":
            self.line(f"assert {source} is {shape.object}")
        elif result == ("value", None) and step[0] in (*_STATEMENTS, *shape.setting):
            self.line(source)
        elif step[0] == "__iter__" and result[0] in ("items", "first", "breaks"):
            self.expect(shape.object, result)
        else:
            self.expect(source, result)

    def expect(self, source: str, result: tuple[str, Any]) -> None:
        form, content = result
        match form:
            case "raises":
                self._raising(source, content[0])
            case "breaks":
                self._raising(f"list({source})", content[0])
            case "type":
                self.line(f"assert type({source}).__name__ == {content!r}")
            case "repr":
                self.line(f"assert repr({source}) == {content!r}")
            case "items":
                self._equal(f"list({source})", content)
            case "first":
                self._equal(f"[item for item, _ in zip({source}, range({len(content)}))]", content)
            case _:
                self._equal(source, content)

    def _equal(self, source: str, value: Any) -> None:
        text = literal(value)
        if value is None or value is True or value is False:
            self.line(f"assert {source} is {text}")
        elif _is_rough(value) or (
            type(value) in (list, tuple)
            and all(type(item) in (int, float, complex) for item in value)
            and any(map(_is_rough, value))
        ):
            self.line(f"assert {source} == pytest.approx({text})")
        else:
            self.line(f"assert {source} == {text}")

    def _raising(self, source: str, error: str) -> None:
        self._errors.append(error)
        self.line(f"with pytest.raises({error}):\n    {source}")

    def test(self) -> GeneratedTest:
        return GeneratedTest("\n".join(self._lines), tuple(dict.fromkeys(self._errors)))


def is_builtin_error(name: str) -> bool:
    """Whether an exception needs no import."""
    return isinstance(getattr(builtins, name, None), type)


def _is_rough(value: Any) -> bool:
    """Whether a float has so many digits that an exact comparison would ask for too much."""
    parts = (value.real, value.imag) if type(value) is complex else (value,)
    return any(
        type(part) is float
        and len(re.sub(r"\D", "", repr(part).partition("e")[0]).strip("0")) > _DIGITS
        for part in parts
    )


def _leaf(value: Any) -> str:
    module = _MODULE_OF.get(type(value).__name__)
    return f"{module}.{value!r}" if module else write(value) or repr(value)
