"""Calls as text."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from codea1_env.problem_sets.fuzz import in_order
from codea1_env.sandbox.inside.analysis.literals import write
from codea1_env.testgen.driver import OPERATORS

RELATIVE, ABSOLUTE = 1e-6, 1e-12
"""How close a float must come: the tolerance of `pytest.approx`."""
_DIGITS = 12
"""A float of more digits is no number that somebody has written, and may differ a little elsewhere."""
_MODULES = ("asyncio", "datetime", "decimal", "itertools")
_USED = (*_MODULES, "pytest", "expected")  # Names that tests use, or the file around them
_STRING = re.compile(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"")

STATEMENTS = ("__setitem__", "__delitem__")


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

    def call(self, arguments: str) -> str:
        """Return the text of a call of the function, which gives its result."""
        return awaited(f"{self.name}({arguments})", self.asynchronous)

    def step(self, step: Step, *, statement: bool = False) -> str:
        """Return the text of a step of a trial, which gives its result."""
        return awaited(step_text(self.object, step, statement=statement), step[0] in self.awaited)

    def attribute(self, name: str) -> str:
        """Return the text that gives an attribute, or the length."""
        return f"len({self.object})" if name == "len()" else f"{self.object}.{name}"


@dataclass(frozen=True)
class ObservedTest:
    """The test that a trial gives what it gave when it was observed."""

    trial: Trial
    found: Mapping[str, Any]
    """What `codea1_env.testgen.driver.observe` returned."""

    @property
    def errors(self) -> list[str]:
        """The exceptions that it expects."""
        forms = [each for each in self.found["results"] if each[0] in ("raises", "breaks")]
        return [str(content[0]) for _, content in forms]


def awaited(text: str, is_coroutine: bool) -> str:
    """Return a call so that it gives its result."""
    return f"asyncio.run({text})" if is_coroutine else text


def snake_case(name: str) -> str:
    """Return a name in the form that functions and variables have.

    Example:
        >>> snake_case("LRUCacheOf2")
        'lrucache_of2'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def literal(value: Any) -> str:
    """Return an expression for a value.

    Example:
        >>> import decimal
        >>> literal([float("inf"), decimal.Decimal("1.5"), {2, 1}])
        "[float('inf'), decimal.Decimal('1.5'), {1, 2}]"
    """
    return in_order(value, _leaf)


def _leaf(value: Any) -> str:
    return f"decimal.{value!r}" if isinstance(value, Decimal) else write(value) or repr(value)


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
    words = [f"{key}={literal(value)}" for key, value in keywords.items()]
    return f"{name}({', '.join([*map(literal, arguments), *words])})"


def step_text(made: str, step: Step, *, statement: bool = False) -> str:
    """Return a call of a method of `made` as people write it; an expression, unless it may be a statement.

    Example:
        >>> step_text("d", ("__getitem__", (1,), {})), step_text("d", ("pop", (1,), {}))
        ('d[1]', 'd.pop(1)')
        >>> step_text("d", ("__delitem__", (1,), {})), step_text("d", ("__delitem__", (1,), {}), statement=True)
        ('d.__delitem__(1)', 'del d[1]')
    """
    name, arguments, keywords = step
    if name in OPERATORS and (statement or name not in STATEMENTS):
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


def is_rough(value: Any) -> bool:
    """Whether numbers have so many digits that an exact comparison would ask for too much."""
    if type(value) in (list, tuple):
        numbers = all(type(item) in (int, float) for item in value)
        return numbers and any(map(is_rough, value))
    if type(value) is not float:
        return False
    return len(re.sub(r"\D", "", repr(value).partition("e")[0]).strip("0")) > _DIGITS
