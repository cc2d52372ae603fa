"""Program text around tests that were written for unittest or pytest. It runs in the test's sandbox.

The sandbox has neither pytest nor its plugins, and needs few of them: the stand-in below knows what tests of
single functions use (raises, approx, parametrize and other marks, fixtures without scope).
"""

from __future__ import annotations

import re

from codea1_env.problem_sets.rows import definition_of

_UNITTEST_CHECK = """


def check(candidate):
    import unittest

    suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestCases)
    result = unittest.TestResult()
    suite.run(result)
    assert result.testsRun > 0, "no tests were found"
    for test, trace in (*result.errors, *result.failures):
        raise AssertionError(f"{test.id().rpartition('.')[2]}: {trace.strip().splitlines()[-1]}")
"""
"""Runs the class `TestCases`."""

_SOLUTION_MODULE = """import sys
import types

sys.modules["solution"] = types.ModuleType("solution")
sys.modules["solution"].{entry} = {entry}

"""
"""Makes the function importable from a module `solution`."""

_PYTEST = """import itertools
import re
import sys
import types


class _Raises:
    def __init__(self, expected, match=None):
        self.expected, self.match, self.type, self.value = expected, match, None, None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        assert kind is not None, f"DID NOT RAISE {self.expected}"
        self.type, self.value = kind, value
        if not issubclass(kind, self.expected):
            return False
        assert self.match is None or re.search(self.match, str(value)), f"{value} does not match"
        return True


def _raises(expected, function=None, *arguments, match=None, **keywords):
    context = _Raises(expected, match)
    if function is None:
        return context
    with context:
        function(*arguments, **keywords)
    return context


class _Approx:
    def __init__(self, expected, rel=None, abs=None, nan_ok=False):
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    def __eq__(self, actual):
        expected = self.expected
        if isinstance(expected, dict):
            return actual.keys() == expected.keys() and all(
                actual[key] == self._like(expected[key]) for key in expected
            )
        if isinstance(expected, (list, tuple)):
            return len(actual) == len(expected) and all(
                a == self._like(b) for a, b in zip(actual, expected)
            )
        if actual == expected or not isinstance(expected, (int, float, complex)):
            return actual == expected
        if expected != expected:
            return self.nan_ok and actual != actual
        absolute = 1e-12 if self.abs is None else self.abs
        relative = 0 if self.rel is None and self.abs is not None else self.rel or 1e-6
        return abs(actual - expected) <= max(absolute, relative * abs(expected)) != float("inf")

    def _like(self, expected):
        return _Approx(expected, self.rel, self.abs, self.nan_ok)


class _Marks:
    def __getattr__(self, name):
        return lambda *given, **_: given[0] if len(given) == 1 and callable(given[0]) else lambda f: f

    @staticmethod
    def parametrize(names, rows, **_):
        names = [n.strip() for n in names.split(",") if n.strip()] if isinstance(names, str) else list(names)
        cases = [dict(zip(names, row if len(names) > 1 else [row])) for row in rows]

        def mark(test):
            test.parameters = [*getattr(test, "parameters", []), cases]
            return test

        return mark


_fixtures = {}


def _fixture(function=None, *, name=None, **_):
    if function is None:
        return lambda f: _fixture(f, name=name)
    _fixtures[name or function.__name__] = function
    return function


def _fail(reason="", **_):
    raise AssertionError(reason)


sys.modules["pytest"] = types.ModuleType("pytest")
sys.modules["pytest"].__dict__.update(
    raises=_raises, approx=_Approx, mark=_Marks(), fixture=_fixture, fail=_fail,
    param=lambda *values, **_: values if len(values) > 1 else values[0], main=lambda *_, **__: 0,
)


def _value(name):
    made = _call(_fixtures[name], {})
    return next(made) if isinstance(made, types.GeneratorType) else made


def _call(function, given):
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    names = names[1:] if isinstance(function, types.MethodType) else names
    return function(**{n: given[n] if n in given else _value(n) for n in names if n in given or n in _fixtures})


def _run(tests):
    count = 0
    for test in tests:
        for cases in itertools.product(*getattr(test, "parameters", [])):
            _call(test, {name: value for case in cases for name, value in case.items()})
            count += 1
    return count


"""
_PYTEST_CHECK = """


def check(candidate):
    found = [(name, value) for name, value in globals().items() if callable(value)]
    count = _run(value for name, value in found if name.startswith("test"))
    for name, group in found:
        if name.startswith("Test") and isinstance(group, type):
            for method in [method for method in dir(group) if method.startswith("test")]:
                item = group()
                getattr(item, "setup_method", lambda *_: None)()
                count += _run([getattr(item, method)])
    assert count, "no tests were found"
"""
"""Runs every function called test... and every method test... of a class called Test..."""


def unittest_program(test: str, entry: str) -> str:
    """Return a test of a text that defines a class `TestCases`."""
    return check_program(test + _UNITTEST_CHECK, entry)


def pytest_program(test: str, entry: str) -> str:
    """Return a test of a module for pytest, which imports the function from a module `solution`."""
    module = _SOLUTION_MODULE.format(entry=entry) + _PYTEST + test + _PYTEST_CHECK
    return check_program(module, entry)


def check_program(test: str, entry: str) -> str:
    """Return a test that defines `check`, with the call that runs it."""
    if entry != "check":
        return f"{test.rstrip()}\n\ncheck({entry})\n"
    # The program's own function has the name of the test's: the latter must give way.
    renamed = re.sub(r"^def check\(", "def check_candidate(", test.rstrip(), flags=re.MULTILINE)
    return f"{renamed}\n\ncheck_candidate({entry})\n"


def called_by(test: str, solution: str, entry: str) -> str:
    """Return the function that a test calls; some rows name a helper of the program instead."""
    called = re.search(r"\b([^\W\d]\w*)\(\*inp\)", test)
    found = called is not None and re.search(definition_of(called[1]), solution, re.MULTILINE)
    return called[1] if called is not None and found else entry


def corrected(test: str) -> str:
    """Return a published test with the conditions of EvalPlus's own evaluator where the two differ."""
    # The test of HumanEval/32 hands the arguments over in the wrong places, and no program can pass it.
    test = test.replace(
        "assert _poly(*candidate(*inp), inp) <= 0.0001",
        "assert abs(_poly(*inp, candidate(*inp))) <= 0.0001",
    )
    # The tests of MBPP/737, 787 and 794 compare, and say nothing: every program passes.
    test = test.replace(
        "        exact_match = exp == (out is not None)\n",
        "        exact_match = exp == (out is not None)\n    assert exact_match\n",
    )
    # An empty list counts as one of floats, and numpy finds anything close to it.
    test = test.replace(
        "    if isinstance(x, (list, tuple)):\n        return all(",
        "    if isinstance(x, (list, tuple)) and x:\n        return all(",
    )
    # numpy also compares values of different types and lengths.
    return re.sub(
        r"^( +)assert np\.allclose\(out, exp, ",
        r"\1assert type(out) == type(exp)\n"
        r"\1assert not isinstance(exp, (list, tuple)) or len(out) == len(exp)\n\g<0>",
        test,
        flags=re.MULTILINE,
    )
