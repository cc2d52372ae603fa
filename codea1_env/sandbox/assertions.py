"""Tests given as text: what each says is read in the analysis process and remembered; what a call returned is compared here.

The data may be hostile. It is of exact builtin types, which the codec has decoded: no operation here runs foreign code.
"""

from __future__ import annotations

import builtins
import math
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .analysis import Analyst
from .compare import read_returned, short
from .inside import codec
from .inside.analysis.assertions import read_tests
from .inside.errors import message_of
from .outcomes import guarded, too_long
from .results import NO_TESTS, AnalysisError, Outcome, TestResult

_REMEMBERED_BYTES = 32_000_000
_OVERHEAD = 500  # bytes of one remembered test
_BATCH = 16  # tests, in one request
_TIMEOUT = 8.0  # seconds, for one test alone
_PYTHON_NAMES = frozenset(dir(builtins)) | sys.stdlib_module_names
_DEFINES_TESTS = re.compile(
    r"^\s*(?:async\s+def|def|class)\s+[tT]est|TestCase|^\s*(?:import|from)\s+pytest\b", re.MULTILINE
)


class Assertion(NamedTuple):
    """What a test says of one call; see `inside.analysis.assertions.read_test`."""

    name: str
    call: bytes
    rule: str
    expected: bytes
    tolerances: Mapping[str, float]


class TextTest(NamedTuple):
    """A test that runs together with the program, as a program of its own."""

    by_pytest: bool
    """Whether it may define test functions or classes."""


ReadTest = Assertion | TextTest | TestResult
"""A TestResult where the text cannot be a test at all."""


def _made(test: str, raw: tuple[Any, ...]) -> ReadTest:
    kind, *details = raw
    if kind == "call":
        return Assertion(*details)
    if kind == "nothing":
        return TestResult(Outcome.ERROR, NO_TESTS, vacuous=True)
    if kind == "text":
        return TextTest(_DEFINES_TESTS.search(test) is not None)
    return TestResult(Outcome.SYNTAX_ERROR, details[0])


def _size(test: str, read: ReadTest) -> int:
    size = len(test) + _OVERHEAD
    return size + len(read.call) + len(read.expected) if isinstance(read, Assertion) else size


class AssertionReader:
    """Reads test texts. What was read least recently is forgotten first."""

    def __init__(self, analyst: Analyst) -> None:
        self._analyst = analyst
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str | None], ReadTest] = OrderedDict()
        self._bytes = 0

    def read(self, tests: Sequence[str], entry_point: str | None = None) -> list[ReadTest]:
        """Read some tests, in order."""
        # The entry point matters only where Python has that name.
        name = entry_point if entry_point in _PYTHON_NAMES else None
        found: dict[str, ReadTest] = {}
        with self._lock:
            for test in tests:
                known = self._known.get((test, name))
                if known is not None and test not in found:
                    found[test] = known
                    self._known.move_to_end((test, name))
        texts = list(dict.fromkeys(tests))
        found.update({test: why for test in texts if (why := too_long(test)) is not None})
        missing = [test for test in texts if test not in found]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            read = dict(zip(batch, self._read(batch, name), strict=True))
            found |= read
            self._remember(read, name)
        return [found[test] for test in tests]

    def _read(self, tests: list[str], name: str | None) -> list[ReadTest]:
        try:
            return list(map(_made, tests, self._analyst.analyse(read_tests, tests, name)))
        except AnalysisError:  # one of them: its neighbours are innocent
            return [self._read_one(test, name) for test in tests]

    def _read_one(self, test: str, name: str | None) -> ReadTest:
        try:
            (raw,) = self._analyst.analyse(read_tests, [test], name, timeout=_TIMEOUT)
        except AnalysisError as error:
            return TestResult(Outcome.SYNTAX_ERROR, f"cannot be parsed: {error}")
        return _made(test, raw)

    def _remember(self, read: dict[str, ReadTest], name: str | None) -> None:
        with self._lock:
            for test, each in read.items():
                if (test, name) not in self._known:
                    self._known[test, name] = each
                    self._bytes += _size(test, each)
            while self._bytes > _REMEMBERED_BYTES:
                (forgotten, _), oldest = self._known.popitem(last=False)
                self._bytes -= _size(forgotten, oldest)


_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda value, expected: bool(value == expected),
    "is": lambda value, expected: value is expected,
    "true": lambda value, _: bool(value),
    "false": lambda value, _: not value,
    "returned": lambda value, _: True,
}


@guarded
def verdict(test: Assertion, reply: bytes | TestResult, meter: codec.Meter) -> TestResult:
    """Judge an assertion by what came of its call, exactly as Python would."""
    found = read_returned(reply, meter) if isinstance(reply, bytes) else reply
    if isinstance(found, TestResult):
        return found
    value, expected = found.value, codec.decode(test.expected)
    try:
        if test.rule == "close":
            holds = math.isclose(value, expected, **test.tolerances)
        else:
            holds = _HOLDS[test.rule](value, expected)
    # The values are hostile, the code is only Python's own and ours: whatever it raises is the verdict.
    except Exception as error:
        name = type(error).__name__
        return TestResult(Outcome.ERROR, f"{name}: {message_of(error)}", error=name)
    if holds:
        return TestResult(Outcome.PASS)
    if test.rule in ("==", "is"):
        said = f"returned {short(value)}, expected {test.rule} {short(expected)}"
    else:
        said = f"the assertion is false; returned {short(value)}"
    return TestResult(Outcome.FAIL, said)
