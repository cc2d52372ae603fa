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
from .endings import Outcome
from .inside.analysis.plan import encoded_plans
from .results import AnalysisError, TestResult

MAX_CHARACTERS = 8_000_000
"""Of one program, and of one test."""

_REMEMBERED_BYTES = 32_000_000
_OVERHEAD = 500  # of one remembered plan
_BATCH = 16  # tests, in one request
_TIMEOUT = 8.0  # of one test alone: more than in there, where only Python code can be stopped
_PYTHON_NAMES = frozenset(dir(builtins)) | sys.stdlib_module_names


@dataclass(frozen=True)
class ValuePlan:
    """A test that is one expression over plain data and calls.

    Attributes:
        calls: Encoded calls, ready to be sent.
        names: The function of each call.
        expression: The encoded expression.
    """

    calls: tuple[bytes, ...]
    names: tuple[str, ...]
    expression: bytes


@dataclass(frozen=True)
class ProgramPlan:
    """A test that runs as a program.

    Attributes:
        names: The names that it uses and that a program may define.
        modules: The common modules that it uses without importing them.
        code: What it compiles to, for the test's process, where that is worth keeping.
    """

    names: tuple[str, ...]
    modules: tuple[str, ...] = ()
    code: bytes = b""


Plan = ValuePlan | ProgramPlan | TestResult
"""A TestResult where the text cannot be a test at all."""


def too_long(text: str) -> TestResult | None:
    """The result for a text that is too long to be a program or a test."""
    if len(text) <= MAX_CHARACTERS:
        return None
    return TestResult(Outcome.SYNTAX_ERROR, f"more than {MAX_CHARACTERS} characters", called=False)


def _plan(raw: tuple[Any, ...]) -> Plan:
    kind, *details = raw
    if kind == "value":
        names, calls, expression = details
        return ValuePlan(tuple(calls), tuple(names), expression)
    if kind == "program":
        names, modules, code = details
        return ProgramPlan(tuple(names), tuple(modules), code)
    return TestResult(Outcome.SYNTAX_ERROR, details[0], called=False)


def _size(test: str, plan: Plan) -> int:
    size = len(test) + _OVERHEAD
    if isinstance(plan, ValuePlan):
        size += len(plan.expression) + sum(map(len, plan.calls))
    elif isinstance(plan, ProgramPlan):
        size += len(plan.code)
    return size


class Planner:
    """Turns test texts into plans. The least recently used plans are forgotten first."""

    def __init__(self, analyst: Analyst) -> None:
        self._analyst = analyst
        self._lock = threading.Lock()
        self._plans: OrderedDict[tuple[str, str | None], Plan] = OrderedDict()
        self._bytes = 0

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
        missing = []
        for test in dict.fromkeys(tests):
            if test not in found:
                why = too_long(test)
                if why is None:
                    missing.append(test)
                else:
                    found[test] = why
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            made = dict(zip(batch, self._make(batch, name), strict=True))
            found |= made
            self._remember(made, name)
        return [found[test] for test in tests]

    def _make(self, tests: list[str], name: str | None) -> list[Plan]:
        try:
            return [_plan(raw) for raw in self._analyst.analyse(encoded_plans, tests, name)]
        except AnalysisError:  # one of them: its neighbours are innocent
            return [self._make_one(test, name) for test in tests]

    def _make_one(self, test: str, name: str | None) -> Plan:
        try:
            (raw,) = self._analyst.analyse(encoded_plans, [test], name, timeout=_TIMEOUT)
        except AnalysisError as error:
            return TestResult(Outcome.SYNTAX_ERROR, f"cannot be parsed: {error}", called=False)
        return _plan(raw)

    def _remember(self, made: dict[str, Plan], name: str | None) -> None:
        with self._lock:
            for test, each in made.items():
                if (test, name) not in self._plans:
                    self._plans[test, name] = each
                    self._bytes += _size(test, each)
            while self._bytes > _REMEMBERED_BYTES:
                (forgotten, _), plan = self._plans.popitem(last=False)
                self._bytes -= _size(forgotten, plan)
