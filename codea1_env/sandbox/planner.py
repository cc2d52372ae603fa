"""Plans for tests, made in the analysis process and remembered."""

from __future__ import annotations

import builtins
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .analysis import Analyst
from .inside.plan import plan_tests
from .results import AnalysisError, Outcome, TestResult

_REMEMBERED_CHARACTERS = 32_000_000
_PYTHON_NAMES = frozenset(dir(builtins)) | sys.stdlib_module_names
_OVERHEAD = 500  # of one remembered plan, in characters' worth of memory


@dataclass(frozen=True)
class ValuePlan:
    """A test that is one expression over plain data and calls.

    Attributes:
        calls: Encoded calls, ready to be sent.
        names: The function of each call.
        nodes: The expression.
    """

    calls: tuple[bytes, ...]
    names: tuple[str, ...]
    nodes: tuple[Any, ...]


@dataclass(frozen=True)
class ProxyPlan:
    """A test that runs as a program.

    Attributes:
        names: The names that it uses and that a program may define.
        modules: The common modules that it uses without importing them.
    """

    names: tuple[str, ...]
    modules: tuple[str, ...] = ()


Plan = ValuePlan | ProxyPlan | TestResult
"""A TestResult where the text cannot be a test at all."""


def _plan(raw: tuple[Any, ...]) -> Plan:
    kind, *details = raw
    if kind == "value":
        names, calls, nodes = details
        return ValuePlan(tuple(calls), tuple(names), nodes)
    if kind == "proxy":
        return ProxyPlan(*map(tuple, details))
    return TestResult(Outcome.SYNTAX_ERROR, details[0], called=False)


class Planner:
    """Turns test texts into plans. The least recently used plans are forgotten first."""

    def __init__(self, analyst: Analyst) -> None:
        self._analyst = analyst
        self._lock = threading.Lock()
        self._plans: OrderedDict[tuple[str, str | None], Plan] = OrderedDict()
        self._characters = 0

    def plans(self, tests: Sequence[str], entry_point: str | None = None) -> list[Plan]:
        """One plan per test, in order.

        Args:
            tests: Test texts.
            entry_point: See `Job.entry_point`.
        """
        # The entry point matters to a plan only where Python has that name.
        name = entry_point if entry_point in _PYTHON_NAMES else None
        found: dict[str, Plan] = {}
        with self._lock:
            for test in tests:
                plan = self._plans.get((test, name))
                if plan is not None and test not in found:
                    found[test] = plan
                    self._plans.move_to_end((test, name))
        missing = [test for test in dict.fromkeys(tests) if test not in found]
        if missing:
            made = dict(zip(missing, self._make(missing, name), strict=True))
            found |= made
            self._remember(made, name)
        return [found[test] for test in tests]

    def _make(self, tests: list[str], name: str | None) -> list[Plan]:
        try:
            return [_plan(raw) for raw in self._analyst.analyse(plan_tests, tests, name)]
        except AnalysisError as error:
            if len(tests) > 1:  # find the culprit; its neighbours are innocent
                middle = len(tests) // 2
                return self._make(tests[:middle], name) + self._make(tests[middle:], name)
            return [TestResult(Outcome.SYNTAX_ERROR, f"cannot be parsed: {error}", called=False)]

    def _remember(self, made: dict[str, Plan], name: str | None) -> None:
        with self._lock:
            for test, each in made.items():
                if (test, name) not in self._plans:
                    self._characters += len(test) + _OVERHEAD
                self._plans[test, name] = each
            while self._characters > _REMEMBERED_CHARACTERS:
                (forgotten, _), _ = self._plans.popitem(last=False)
                self._characters -= len(forgotten) + _OVERHEAD
