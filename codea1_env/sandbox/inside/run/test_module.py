"""Runs a program and its tests in one process: a test file that imports it, or a text that sees its names.

What is said here can be forged by the program, and results say so (`judged="inside"`).

Messages out, one frame each, as the codec's plain data: ("collected", names of the tests), which may come with the
program's statements and branches; ("test", number, finding, stdout, stderr, coverage) for each that has ended;
("failed", finding) where nothing could be collected; ("end",).
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import types
import unittest
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

from .texts import Compile, HowItEnded, Send, Texts, finding_of

if TYPE_CHECKING:
    from .reached import Reached

NEEDS_PYTEST = "tests that are functions need pytest, which is not installed: pip install 'codea1-env[evaluation]'"


def run(job: dict[str, Any], send: Send) -> None:
    """Import a test file, which imports the program, and run its tests.

    Args:
        job: `code`, `module`, `test`; `text`: whether the test sees the program's names, or one, `entry_point`;
            `first`: how many tests are left out; `pytest`, `coverage`: what is used of them;
            `has_folder`: whether the current folder may be written to.
        send: Sends one message.
    """
    os.environ["CI"] = (
        "1"  # Hypothesis so has neither chance nor deadlines: load must not make a verdict
    )
    program, tests = job["module"], f"test_{job['module'].rpartition('.')[2]}"
    compilers: dict[str, Compile] = {}
    if job["pytest"]:
        from .pytest_driver import Driver, rewritten

        compilers[tests] = rewritten
    if not job["has_folder"]:
        os.chdir("/proc")  # the current folder may be gone, and here nobody can make a file
    known = {program: job["code"], tests: job["test"]}
    texts = Texts(
        known, os.getcwd(), write=job["has_folder"] and not job["text"], compilers=compilers
    )
    reached = None
    if job["coverage"]:
        reached = _measured(job["code"], texts.path(program), send)
    module = types.ModuleType(tests)
    seen: dict[str, Any] = {}
    if job["text"]:
        finding, seen = _names(program, job["entry_point"])
        if finding is not None:
            send(("unloaded", finding))
            return
    finding = _imported(module, texts, seen)
    if finding is not None:
        send(("failed", finding, (reached.new() if reached is not None else None)))
    elif job["pytest"]:
        driver = Driver(texts, module, send, job["first"], reached, job["has_folder"], job["text"])
        driver.run(seen)
    else:
        own = {name: value for name, value in vars(module).items() if seen.get(name) is not value}
        if job["text"] and not any(_is_test(*item) for item in own.items()):
            send(("collected", [], None))
        else:
            _by_unittest(module, own, texts, send, job["first"])
    send(("end",))


def _measured(code: str, path: str, send: Send) -> Reached | None:
    from .reached import Reached

    try:
        reached = Reached(code, path)
    except Exception:  # no program at all: its import says so
        return None
    send(("measured", reached.statements, reached.branches))
    return reached


def _names(program: str, entry_point: str | None) -> tuple[HowItEnded | None, dict[str, Any]]:
    """Import the program, and return the names of it that a text sees."""
    try:
        names = vars(importlib.import_module(program))
    except BaseException as error:
        return finding_of(error, "error"), {}
    if entry_point is not None and entry_point not in names:
        return HowItEnded(
            "error", f"NameError: the program does not define {entry_point!r}", error="NameError"
        ), {}
    return None, {
        name: value
        for name, value in names.items()
        if entry_point in (None, name) and not (name.startswith("__") and name.endswith("__"))
    }


def _imported(module: types.ModuleType, texts: Texts, seen: dict[str, Any]) -> HowItEnded | None:
    """Run the test file; how that ended, where it did not end well."""
    name = module.__name__
    spec = texts.find_spec(name)
    assert spec is not None
    module.__spec__, module.__file__, module.__loader__ = spec, spec.origin, texts
    module.__dict__.update(seen)
    sys.modules[name] = module
    try:
        texts.exec_module(module)
    except BaseException as error:
        kind = "fail" if isinstance(error, AssertionError) else "error"
        found = finding_of(error, kind, texts.line_of(name, error))
        outcomes = sys.modules.get("_pytest.outcomes")
        is_skip = outcomes is not None and isinstance(error, outcomes.Skipped)
        return found._replace(kind="skip") if is_skip else found
    return None


class _Result(unittest.TestResult):
    """Notes how each test of unittest ends."""

    def __init__(self, numbers: dict[str, int], texts: Texts, name: str, send: Send) -> None:
        super().__init__()
        self._numbers, self._texts, self._name, self._send = numbers, texts, name, send
        self._finding = HowItEnded("pass")
        self._of_class: HowItEnded | None = None

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().startTest(test)
        self.send_before(self._numbers.get(test.id(), 0))
        self._finding = HowItEnded("pass")

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        number = self._numbers.pop(test.id(), None)
        if number is not None:
            self._send(("test", number, self._finding, "", "", None))

    def _note(self, kind: str, error: BaseException | None, text: str = "") -> None:
        line = self._texts.line_of(self._name, error)
        finding = finding_of(error, kind, line, text=text)
        self._of_class = finding
        if self._finding.kind == "pass":
            self._finding = finding

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self._note("fail", err[1])

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self._note("error", err[1])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            self._note("fail" if issubclass(err[0], test.failureException) else "error", err[1])

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        self._note("fail", None, "it was expected to fail")

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        self._finding = HowItEnded("skip", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self._finding = HowItEnded("skip", "it failed, as was expected")

    def send_before(self, first: int) -> None:
        """Report tests that were not reached, because what their class or module does first has failed."""
        why = self._of_class or HowItEnded("skip")
        for name, number in [*self._numbers.items()]:
            if number < first:
                del self._numbers[name]
                self._send(("test", number, why, "", "", None))


def _is_case(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, unittest.TestCase)


def _is_test(name: str, value: Any) -> bool:
    """Whether pytest would find tests under a name of a module."""
    is_class = isinstance(value, type) and name.startswith("Test")
    return is_class or _is_case(value) or (name.startswith("test") and callable(value))


def _by_unittest(
    module: types.ModuleType, own: dict[str, Any], texts: Texts, send: Send, first: int
) -> None:
    """Run the test cases of a module without pytest; `own` are the names that it defines."""
    if any(_is_test(*item) and not _is_case(item[1]) for item in own.items()):
        send(
            (
                "failed",
                HowItEnded("error", NEEDS_PYTEST, error="ModuleNotFoundError", missing="pytest"),
                None,
            )
        )
        return
    cases = list(_flat(unittest.defaultTestLoader.loadTestsFromModule(module)))
    send(
        (
            "collected",
            [case.id().partition(".")[2].replace(".", "::")[:300] for case in cases],
            None,
        )
    )
    numbers = {case.id(): number for number, case in enumerate(cases) if number >= first}
    result = _Result(numbers, texts, module.__name__, send)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        unittest.TestSuite(cases[first:]).run(result)
    result.send_before(len(cases))


def _flat(suite: Any) -> Any:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from _flat(each)
        else:
            yield each
