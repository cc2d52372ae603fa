"""Runs the tests that a test program defines and does not run itself, as pytest and unittest would find them.

Only in the test's process. What is found belongs to the test's text, as hostile as that may be: the program can
put no function or class there.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import types
import unittest
from _lsprof import Profiler
from collections.abc import Callable
from typing import Any, TypeGuard

from ..bridge import operations
from ..bridge.assertions import contains_assertion
from ..bridge.handles import Handle
from .calling_tests import (
    CannotRunError,
    call,
    call_hook,
    cannot_run,
    check_is_run,
    is_left_out,
    marks_of,
    missing_of,
)

_FUNCTIONS = inspect.CO_OPTIMIZED  # the code of classes has not got this flag
_NAMES = ("test", "Test")
_HANDLERS = (
    bytes([dis.opmap["CHECK_EXC_MATCH"]]),
    bytes([dis.opmap["PUSH_EXC_INFO"], dis.opmap["POP_TOP"]]),
)
_PLAIN = (types.FunctionType, staticmethod, classmethod)
_callable = callable  # a test may have a name of its own for it


def run_all(code: types.CodeType, namespace: dict[str, Any]) -> None:
    """Run a test program, then the tests that it has defined at its top level and not run.

    Args:
        code: What the program compiles to.
        namespace: Its names.

    Raises:
        CannotRunError: A test needs what only a framework could give it.
        BaseException: Whatever the program or one of its tests raised, first of all an AssertionError.
    """
    blocks = [each for each in code.co_consts if type(each) is types.CodeType]
    may_define = any(not each.co_flags & _FUNCTIONS for each in blocks) or any(
        name.startswith(_NAMES) for name in code.co_names
    )
    if "unittest" in code.co_names:
        _let_failures_out()
    before = dict(namespace)  # the program's names: no test of this text
    calls = _Calls(code.co_filename)
    with calls if may_define else contextlib.nullcontext():
        exec(code, namespace)
    own = [
        (name, value)
        for name, value in [*namespace.items()]
        if name not in before or before[name] is not value
    ]
    values = dict(own)
    for block in blocks:
        if block.co_name in values:
            _check_is_whole(code, block, values[block.co_name], namespace["__name__"])
    if may_define:
        _Tests(namespace, calls, code).run(own)


def _check_is_whole(text: types.CodeType, block: types.CodeType, value: Any, home: str) -> None:
    """Refuse a test that a decorator of the program has put something else in the place of.

    Raises:
        CannotRunError: It has.
    """
    name, whole = block.co_name, True
    if block.co_flags & _FUNCTIONS:
        if not _is_of_text(value, block, text):
            # What asserts nothing may be a helper; one that is called like a test is called by others.
            helps = not name.startswith(_NAMES) or _is_used(text, name)
            whole = helps and not contains_assertion(block)
    else:
        methods = [each for each in block.co_consts if type(each) is types.CodeType]
        methods = [each for each in methods if each.co_name.startswith("test")]
        whole = not methods or (
            _is_class(value) and (value.__module__, value.__qualname__) == (home, name)
        )
        for inner in methods if whole else ():
            method = vars(value).get(inner.co_name, inner)
            method = getattr(method, "__func__", method)
            if method is not inner and not _is_of_text(method, inner, block):
                whole, name = False, inner.co_name
    if not whole:
        raise CannotRunError(f"{name} was replaced by something that is no function of the test")


def _is_used(text: types.CodeType, name: str) -> bool:
    asked = dis.get_instructions(text)
    return any(each.opname == "LOAD_NAME" and each.argval == name for each in asked)


@functools.lru_cache(maxsize=64)
def _names_in(code: types.CodeType) -> frozenset[str]:
    """Return the names that a text asks for, but for those that it only binds."""
    asked = {each.argval for each in dis.get_instructions(code) if each.opname.startswith("LOAD_")}
    found = {name for name in asked if type(name) is str}
    inner = [_names_in(each) for each in code.co_consts if type(each) is types.CodeType]
    return frozenset(found).union(*inner)


def _is_of_text(value: object, block: types.CodeType, around: types.CodeType) -> bool:
    """Whether a value is a function of the test's text, and not that of another of its tests."""
    # As `unittest.skip` and `mock.patch` make them. A program cannot make one here.
    if type(value) is types.FunctionType and value.__code__.co_filename != block.co_filename:
        with contextlib.suppress(ValueError):  # it wraps itself
            value = inspect.unwrap(value)
    if type(value) is not types.FunctionType:
        return False
    code = value.__code__
    is_other = code is not block and any(code is each for each in around.co_consts)
    return code.co_filename == block.co_filename and not is_other


def _let_failures_out() -> None:
    """Let failures out: a test program that runs its classes itself must not only print them."""

    def run(runner: object, test: unittest.TestSuite | unittest.TestCase) -> unittest.TestResult:
        test.debug()
        result = unittest.TestResult()
        result.testsRun = test.countTestCases()
        return result

    def fail(result: object, test: object, error: Any) -> None:
        raise error[1]

    def fail_part(result: object, test: object, part: object, error: Any) -> None:
        if error is not None:
            raise error[1]

    # Results that nobody may look at: a failure goes on to the test program.
    unittest.TestResult.addFailure = fail  # type: ignore[method-assign, assignment]
    unittest.TestResult.addError = fail  # type: ignore[method-assign, assignment]
    unittest.TestResult.addSubTest = fail_part  # type: ignore[method-assign, assignment]
    vars(unittest)["main"] = lambda *arguments, **keywords: None  # all are run at the end
    unittest.TextTestRunner.run = run  # type: ignore[assignment, method-assign]


class _Calls:
    """Which functions of a text are called while this is entered, and not only by a program.

    A test that a program calls does not show it whether that ended well.

    A profiler of the interpreter's own is the cheapest way to see it, and needs no change of the text.

    Args:
        file_name: Where their code comes from.
    """

    def __init__(self, file_name: str) -> None:
        self._file_name = file_name
        self._profiler = Profiler(subcalls=True, builtins=False)
        self._codes: set[types.CodeType] = set()

    def __enter__(self) -> None:
        self._profiler.enable()

    def __exit__(self, *error: object) -> None:
        self._profiler.disable()
        for entry in self._profiler.getstats():
            if getattr(entry.code, "co_filename", None) != operations.__file__:
                called = [each.code for each in entry.calls or ()]
                self._codes.update(filter(self._is_of_text, called))

    def _is_of_text(self, code: object) -> TypeGuard[types.CodeType]:
        return isinstance(code, types.CodeType) and code.co_filename == self._file_name

    def has(self, function: object) -> bool:
        """Whether it was called, or what it wraps."""
        return _code_of(function) in self._codes


class _Tests:
    """The tests among some names.

    Args:
        namespace: The names of a test program that has run.
        calls: What it has called itself.
        text: What it compiles to.
    """

    def __init__(self, namespace: dict[str, Any], calls: _Calls, text: types.CodeType) -> None:
        self._namespace = namespace
        self._calls = calls
        self._text = text
        self._marks = marks_of(namespace)
        # A text that catches what its tests raise may only count or print it.
        self._all_again = _catches(text)
        # Of several tests at once: functions that another function of the text has made.
        self._shared: set[types.CodeType | None] = set()

    def run(self, own: list[tuple[str, Any]]) -> None:
        """Run those of the text's own names that are tests and did not run, in order of definition."""
        # By their exact types: an object of the program may pretend to be anything.
        tests = [
            (name, value)
            for name, value in own
            if _is_class(value)
            or (type(value) is types.FunctionType and name.startswith("test"))
            or self._is_made(name, value)
        ]
        codes = [_code_of(value) for _, value in tests if type(value) is types.FunctionType]
        self._shared = {code for code in codes if codes.count(code) > 1}
        # With parameters it may be a helper of the tests: that shows when they have run.
        helpers = {
            name: missing_of(value, self._marks)
            for name, value in tests
            if type(value) is types.FunctionType and not self._calls.has(value)
        }
        helpers = {name: missing for name, missing in helpers.items() if missing}
        with self._calls if helpers else contextlib.nullcontext():
            ready = [(name, value) for name, value in tests if name not in helpers]
            self._run([run for name, value in ready for run in self._runs(name, value)])
        for name, missing in helpers.items():
            if not self._calls.has(self._namespace.get(name)):
                raise cannot_run(name, missing)

    def _is_made(self, name: str, value: object) -> bool:
        """Whether something is a test that is no plain function, as a partial is, and that nothing else uses.

        Raises:
            CannotRunError: The program has made it.
        """
        if not name.startswith("test") or type(value) in _PLAIN or not _callable(value):
            return False
        # Asked last: to take a text apart takes longer than most tests.
        if name in _names_in(self._text):
            return False
        if type(value) is Handle:
            what = f"{name} is something of the program's, and no function of the test"
            raise CannotRunError(what)
        return not _is_class(value)

    def _run(self, runs: list[Callable[[], None]]) -> None:
        if runs:
            for name in ("setUpModule", "setup_module"):
                self._hook(name)
            for run in runs:
                run()
            for name in ("teardown_module", "tearDownModule"):
                self._hook(name)

    def _hook(self, name: str) -> None:
        hook = self._namespace.get(name)
        if type(hook) is types.FunctionType:
            call_hook(hook, None)

    def _runs(self, name: str, value: Any) -> list[Callable[[], None]]:
        if not getattr(value, "__test__", True) or is_left_out(value, self._marks):
            return []
        if not _is_class(value):
            if self._has_ended(value):
                return []
            return [lambda: self._run_function(value)]
        for member, found in _members_of(value).items():
            self._is_made(member, found)
        if issubclass(value, unittest.TestCase):
            return [unittest.TestSuite(self._cases(value)).debug]
        # pytest takes no classes that need more than a call, either.
        if name.startswith("Test") and value.__init__ is object.__init__:
            return [lambda: self._run_methods(value)]
        return []

    def _run_function(self, test: Callable[..., object]) -> None:
        self._hook("setup_function")
        call(test, self._marks)
        self._hook("teardown_function")

    def _has_ended(self, test: object, own: int = 0) -> bool:
        """Whether the text has called a test, so that it would have ended there if that had failed.

        Args:
            test: The test.
            own: Parameters that it gets from its class.
        """
        if not self._calls.has(test):
            return False
        if not self._all_again and _code_of(test) not in self._shared:
            return True
        # It has been given what nothing here could give it.
        return type(test) is types.FunctionType and len(missing_of(test, self._marks)) > own

    def _has_run(self, group: type, name: str) -> bool:
        methods = [vars(base)[name] for base in group.__mro__ if name in vars(base)]
        return any(
            self._has_ended(getattr(each, "__func__", each), type(each) is not staticmethod)
            for each in methods
        )

    def _cases(self, group: type[unittest.TestCase]) -> list[unittest.TestCase]:
        """Those that a skip leaves out, or that are expected to fail, test nothing."""
        found = unittest.defaultTestLoader.getTestCaseNames(group)
        if not found and hasattr(group, "runTest"):
            found = ["runTest"]
        names = [
            name
            for name in found
            if not self._has_run(group, name)
            and not any(
                getattr(each, mark, False)
                for each in (group, getattr(group, name))
                for mark in ("__unittest_skip__", "__unittest_expecting_failure__")
            )
        ]
        if not issubclass(group, unittest.IsolatedAsyncioTestCase):
            for name in names:
                check_is_run(getattr(group, name), name)
        return [group(name) for name in names]

    def _run_methods(self, group: type) -> None:
        names = [
            name
            for name, value in _members_of(group).items()
            if (name.startswith("test") and type(value) in _PLAIN) or self._is_made(name, value)
        ]
        names = [name for name in names if not self._has_run(group, name)]
        if names:
            call_hook(getattr(group, "setup_class", None), group)
        marks = (*marks_of(group), *self._marks)
        for name in names:
            instance = group()
            test = getattr(instance, name)
            if is_left_out(test, marks):
                continue
            call_hook(getattr(instance, "setup_method", None), test)
            call(test, marks)
            call_hook(getattr(instance, "teardown_method", None), test)
        if names:
            call_hook(getattr(group, "teardown_class", None), group)


def _code_of(function: object) -> types.CodeType | None:
    """Return the code of a function; of one that wraps another by `functools.wraps`, that of the other."""
    with contextlib.suppress(ValueError):  # it wraps itself
        if type(function) is types.FunctionType:
            function = inspect.unwrap(function)
    return getattr(function, "__code__", None) if type(function) is types.FunctionType else None


def _catches(text: types.CodeType) -> bool:
    """Whether a text catches exceptions by `except`, other than in its tests themselves."""
    inner = [each for each in text.co_consts if type(each) is types.CodeType]
    helpers = [
        each for each in inner if each.co_flags & _FUNCTIONS and not each.co_name.startswith(_NAMES)
    ]
    operations = text.co_code[::2]
    # With a class or with none; the handlers of `with` and `finally` are others.
    return any(each in operations for each in _HANDLERS) or any(map(_catches, helpers))


def _members_of(group: type) -> dict[str, Any]:
    """Return what a class and its bases define, by name."""
    return {name: value for base in reversed(group.__mro__) for name, value in vars(base).items()}


def _is_class(value: object) -> bool:
    return issubclass(type(value), type)
