"""Forgeries that once passed whole tasks with nothing calculated: none is right in any mode that judges outside."""

from __future__ import annotations

import time

import pytest

from codea1_env.sandbox import UNKNOWN, Case, Outcome

# Who judges does not depend on how strongly programs are confined.
LEVELS = ("process", "kernel", "namespaces")
REFUSED = {
    Outcome.FAIL, Outcome.UNENCODABLE, Outcome.OUTPUT_LIMIT, Outcome.ERROR, Outcome.MEMORY, Outcome.TIMEOUT,
}  # fmt: skip

_LIAR = """
import numpy as np
class Float(float):
    @property
    def __class__(self): return float
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
    __rsub__ = __mul__ = __rmul__ = __abs__ = __sub__
    def __float__(self): return 2.5
    def __hash__(self): return 0
class Changes:
    n = 0
    def __float__(self):
        Changes.n += 1
        return 2.5 if Changes.n % 2 else 3.5
    def __mul__(self, other): return other
class NoItems(list):
    def __len__(self): return 3
    def __iter__(self): return iter(())
class Lying(type):
    def __eq__(cls, other): return True
    def __hash__(cls): return hash(float)
class Typed(metaclass=Lying): pass
"""
# What a program returns -> expected values that it must not be taken for.
FORGERIES = {
    "empty arrays for a list of any length": "[[np.empty((0, n))]] * n",
    "an empty array": "np.empty((0, 1))",
    "an array of no columns": "np.empty((3, 0))",
    "infinity of half precision": "np.float16('inf')",
    "the same in a list": "[np.float16('inf')] * n",
    "not a number": "np.float64('nan')",
    "a float that pleases": "Float(1)",
    "the same in a list, again": "[Float(1)] * n",
    "a float that changes": "Changes()",
    "a list without items": "NoItems()",
    "a type that lies": "Typed()",
    "a masked array": "np.ma.masked_all(n)",
    "a matrix": "np.matrix([[2.5]])",
    "a record": "np.zeros(1, dtype=[('a', 'f8')])",
    "an array of objects": "np.array([Float(1)], dtype=object)",
    "an array that is a billion numbers": "np.broadcast_to(np.float64(2.5), (10**9,))",
    "an array of a billion empty lists": "np.empty((10**9, 0))",
    "one that holds it": "[np.broadcast_to(np.int8(1), (10**9,))]",
}
EXPECTED = {
    "a float": 2.5, "a large number": 65_520.0, "an int": 3, "a list": [1.5, 2.5, 3.5], "lists": [[1, 2], [3, 4], [5, 6]],
    "a tuple": (2.5, True), "a text": "abc", "a dict": {"a": 2.5}, "a set": {1, 2},
}  # fmt: skip


CHECKS = (
    "assert f(1) == {}", "assert {} == f(1)", "import math\nassert math.isclose(f(1), {})", "assert list(f(1)) == {}",
)  # fmt: skip
INSIDE = ("assert abs(f(1) - {}) < 1e-6", "assert f(1) in [{}]", "assert sorted(f(1)) == {}")
"""These run with the program, which can forge what comes of them."""


def test_no_forgery_is_right(arena):
    cases = [Case((1,), {}, value) for value in EXPECTED.values()]
    tests = [check.format(repr(value)) for value in EXPECTED.values() for check in CHECKS]
    for name, forgery in FORGERIES.items():
        code = f"{_LIAR}\nn = 3\ndef f(x): return {forgery}"
        started = time.process_time()
        found = list(arena.sandbox.run_tests(code, tests, entry_point="f"))
        for rule in ("equal", "exact", "set"):
            for atol in (0.0, 0.01):
                found += arena.sandbox.run_cases(code, "f", cases, compare=rule, atol=atol)
        assert {result.judged for result in found} == {"outside"}, name
        assert {result.outcome for result in found} <= REFUSED, name
        assert time.process_time() - started < 10.0, name


def test_what_a_program_can_forge_says_that_it_was_judged_inside(arena):
    code = f"{_LIAR}\ndef f(x): return Float(1)"
    tests = [check.format(2.5) for check in INSIDE]
    found = arena.sandbox.run_tests(code, tests, entry_point="f")
    assert {result.judged for result in found} == {"inside"}
    assert Outcome.PASS in {result.outcome for result in found}, "else nothing was forged"


def test_numbers_of_numpy_are_right_where_pythons_would_be(arena):
    code = "import numpy as np\ndef f(x): return x({})"
    rows = {
        "np.float16(2.5)": 2.5, "np.int64(3)": 3, "np.array([1.5, 2.5, 3.5])": [1.5, 2.5, 3.5],
        "[np.bool_(True)]": [True], "np.eye(2)": [[1.0, 0.0], [0.0, 1.0]], "np.array(7)": 7,
    }  # fmt: skip
    for returned, value in rows.items():
        code = f"import numpy as np\ndef f(x): return {returned}"
        [result] = arena.sandbox.run_cases(code, "f", [Case((1,), {}, value)])
        assert result.passed, returned
        assert arena.outcome(code, f"assert f(1) == {value!r}") is Outcome.PASS


def test_something_is_something(arena):
    for returned, expected in {
        "object()": True,
        "None": False,
        "np.empty((9**9, 0))": True,
    }.items():
        code = f"import numpy as np\ndef f(x): return {returned}"
        right, wrong = Case((1,), {}, expected), Case((1,), {}, not expected)
        found = arena.sandbox.run_cases(code, "f", [right, wrong], compare="not-none")
        outcomes = (
            [Outcome.OUTPUT_LIMIT] * 2 if "9**9" in returned else [Outcome.PASS, Outcome.FAIL]
        )
        assert [result.outcome for result in found] == outcomes


@pytest.mark.parametrize("value", [object(), UNKNOWN, memoryview(b"x"), lambda: 1])
def test_cases_are_plain_data(arena, value):
    for case in (Case((value,), {}, 1), Case((1,), {}, value), Case((), {"a": [value]}, 1)):
        with pytest.raises(TypeError, match="case 1"):
            arena.sandbox.run_cases("def f(*a, **k): return 1", "f", [case])


def test_arguments_keep_their_types(arena):
    values = [bytearray(b"x"), range(3), b"x", {1: (2, [3])}, frozenset({1}), 2**70, 1.5]
    code = "def f(x): return type(x).__name__"
    cases = [Case((value,), {}, type(value).__name__) for value in values]
    assert all(result.passed for result in arena.sandbox.run_cases(code, "f", cases))
