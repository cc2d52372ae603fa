"""Value mode: calls with plain data, and assertions about what they return, as in plain Python."""

from __future__ import annotations

import datetime
import math
import os
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction

import pytest
from plain_python import PlainPython

from codea1_env.sandbox import Outcome, Sandbox

ECHO = "def echo(*args, **kwargs):\n    return kwargs or (args[0] if len(args) == 1 else args)"

VALUES = [
    None, True, 0, -1, 2**100, 0.1, math.inf, 1 + 2j, "", "é\ud800😀\x00", b"\x00\xff", bytearray(b"x"),
    [], [1, [2, [3]]], list(range(1000)), [0.5] * 9, (), (1,), {}, {"a": {1: [2]}}, {(1, 2): None},
    set(), {1, "a"}, frozenset({1}), range(3), Decimal("1.50"), Fraction(1, 3), deque([1, 2], 5),
    Counter("aab"), OrderedDict(a=1), defaultdict(list, {"a": [1]}),
    datetime.datetime(2024, 2, 29, 1, 2, 3), datetime.date(2024, 2, 29), datetime.time(1, 2),
    datetime.timedelta(1, 2, 3), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
]  # fmt: skip


def test_values_come_back_as_they_went(sandbox: Sandbox) -> None:
    results = sandbox.call(ECHO, "echo", [((value,), {}) for value in VALUES])
    assert [result.outcome for result in results] == [Outcome.PASS] * len(VALUES)
    for value, result in zip(VALUES, results, strict=True):
        assert result.value == value
        assert type(result.value) is type(value)


def test_positional_and_keyword_arguments(sandbox: Sandbox) -> None:
    results = sandbox.call(
        ECHO, "echo", [((1, 2), {}), ((), {"a": [1], "b": None}), ([], {}), ((5,), {})]
    )
    assert [result.value for result in results] == [(1, 2), {"a": [1], "b": None}, (), 5]


def test_numpy_values_are_converted(sandbox: Sandbox) -> None:
    code = "import numpy as np\ndef f(k): return [np.int64(3), np.float32(0.5), np.bool_(True)][k]"
    found = [result.value for result in sandbox.call(code, "f", [((k,), {}) for k in range(3)])]
    assert found == [3, 0.5, True]
    assert [type(value) for value in found] == [int, float, bool]
    array = sandbox.call("import numpy as np\ndef f(): return np.eye(2)", "f", [((), {})])[0]
    assert array.value == [[1.0, 0.0], [0.0, 1.0]]
    assert type(array.value[0][0]) is float


@pytest.mark.parametrize(
    ("code", "outcome", "message"),
    [
        ("def f(): return 1 / 0", Outcome.ERROR, "ZeroDivisionError: division by zero"),
        (
            "def f(x): pass",
            Outcome.ERROR,
            "TypeError: f() missing 1 required positional argument: 'x'",
        ),
        ("def f(): return object()", Outcome.UNENCODABLE, "'object' is not plain data"),
        ("def f(): return (x for x in ())", Outcome.UNENCODABLE, "generator"),
        ("def f(): return [f]", Outcome.UNENCODABLE, "function"),
        ("class F(float): pass\ndef f(): return F(1)", Outcome.UNENCODABLE, "'F'"),
        ("def f():\n    a = []\n    a.append(a)\n    return a", Outcome.UNENCODABLE, "nested"),
        ("def f(): raise SystemExit(3)", Outcome.EXITED, "SystemExit(3)"),
        ("def f(): raise KeyboardInterrupt", Outcome.ERROR, "KeyboardInterrupt"),
        ("def f(): f()", Outcome.ERROR, "RecursionError"),
        ("def f(): raise MemoryError", Outcome.MEMORY, "memory"),
        ("def f(): return undefined", Outcome.ERROR, "NameError: name 'undefined' is not defined"),
        ("f = 3", Outcome.ERROR, "TypeError: 'int' object is not callable"),
        ("def g(): return 1", Outcome.ERROR, "NameError: the program does not define 'f'"),
        ("def f(: return", Outcome.SYNTAX_ERROR, "SyntaxError"),
        ("x = 1 / 0\ndef f(): return 1", Outcome.ERROR, "ZeroDivisionError"),
        ("import nothing_like_it\ndef f(): return 1", Outcome.ERROR, "ModuleNotFoundError"),
        ("import sys\nsys.exit()\ndef f(): return 1", Outcome.EXITED, "SystemExit"),
        ("\0", Outcome.SYNTAX_ERROR, "null bytes"),
    ],
)
def test_how_calls_end(sandbox: Sandbox, code: str, outcome: Outcome, message: str) -> None:
    [result] = sandbox.call(code, "f", [((), {})])
    assert result.outcome is outcome
    assert message in result.message
    assert result.value is None


def test_hash_seeds_differ_and_are_fixed(sandbox: Sandbox) -> None:
    code = "def f(): return list({'alpha', 'beta', 'gamma', 'delta', 'epsilon'})"
    first, again, *others = (
        sandbox.call(code, "f", [((), {})], hash_seed=seed)[0].value for seed in (0, 0, 1, 2, 3)
    )
    assert first == again
    assert len({tuple(each) for each in (first, *others)}) == 4
    assert len({tuple(sorted(each)) for each in (first, *others)}) == 1
    for seed in (4, -1, True, "0"):
        with pytest.raises(ValueError, match="hash_seed to be an integer from 0 to 3"):
            sandbox.call(code, "f", [((), {})], hash_seed=seed)  # type: ignore[arg-type]


CASES = {
    "def add(a, b): return a + b": [
        "assert add(1, 2) == 3",
        "assert add(1, 2) == 4",
        "assert add(0.1, 0.2) == 0.3",
        "assert abs(add(0.1, 0.2) - 0.3) < 1e-9",
        "import math\nassert math.isclose(add(0.1, 0.2), 0.3)",
        "assert add('a', 'b') == 'ab'",
        "assert add([1], [2]) == [1, 2], 'concatenates'",
        "assert add(1, 'a') == 1",
        "assert add(b=1, a=2) == 3",
        "assert add(1) == 1",
        "assert add(1, 2) != 3",
        "assert add(2, 2) in (3, 4)",
        "assert add(1, 1) is not None",
        "assert not add(0, 0)",
        "assert add(2**100, 1) - 2**100 == 1",
        "add(1, 2)",
        "add(1, [])",
        "assert subtract(1, 2) == 3",
        "assert round(add(1.234, 1), 1) == 2.2",
    ],
    "def f(xs):\n    xs.append(len(xs))\n    return xs": [
        "assert f([]) == [0]",
        "assert f([5, 6]) == [5, 6, 2]",
        "assert f((1,)) == (1, 1)",
    ],
    "def words(s):\n    return set(s.split()), s.count(' ')": [
        "assert words('a b a') == ({'a', 'b'}, 2)",
        "assert words('') == (set(), 0)",
        "assert len(words('a b')) == 2",
        "assert sorted(words('a b')) == []",
    ],
    "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef mk(a): return P(a, [P(1, 2)])": [
        "assert mk(3) == (3, [(1, 2)])",
        "assert mk(3) == [3, [(1, 2)]]",
    ],
    "def first(s):\n    return s[0] if s else None": [
        "assert first('') is None",
        "assert first([True]) is True",
        "assert first([1]) is True",
        "assert first([0]) is not False",
    ],
}


@pytest.mark.parametrize(
    ("code", "test"), [(code, test) for code, tests in CASES.items() for test in tests]
)
def test_as_in_plain_python(code: str, test: str, sandbox: Sandbox, plain: PlainPython) -> None:
    [result] = sandbox.run_tests(code, [test])
    assert (plain.verdict(code, test) == "pass") is (result.outcome is Outcome.PASS)
    assert result.outcome in (Outcome.PASS, Outcome.FAIL, Outcome.ERROR)


def test_all_tests_of_a_job_get_their_own_result_in_order(sandbox: Sandbox) -> None:
    tests = [test for tests in CASES.values() for test in tests] + ["assert (", "pass"]
    code = "\n".join(CASES)
    together = [result.outcome for result in sandbox.run_tests(code, tests)]
    alone = [sandbox.run_tests(code, [test])[0].outcome for test in tests]
    assert together == alone
    assert together[-2:] == [Outcome.SYNTAX_ERROR, Outcome.ERROR]


def test_only_the_entry_point_is_called_when_one_is_named(sandbox: Sandbox) -> None:
    code = "def f(x): return x\ndef g(x): return x"
    tests = ["assert f(1) == 1", "assert g(1) == 1", "assert f(1) == g(1)"]
    results = sandbox.run_tests(code, tests, entry_point="f")
    assert [result.outcome for result in results] == [Outcome.PASS, Outcome.ERROR, Outcome.ERROR]
    assert results[1].message == "NameError: name 'g' is not defined"


def test_a_function_named_like_a_builtin(sandbox: Sandbox) -> None:
    code = "def sum(a, b): return a * b"
    tests = ["assert sum(3, 4) == 12", "for x in [3]:\n    assert sum(x, 4) == 12"]
    results = sandbox.run_tests(code, tests, entry_point="sum")
    assert [result.outcome for result in results] == [Outcome.PASS] * 2
    # Without being told, it could be Python's own: the text runs, with the program's names.
    [result] = sandbox.run_tests(code, ["assert sum(3, 4) == 12"])
    assert (result.outcome, result.judged) == (Outcome.PASS, "inside")


def test_replies_are_bounded_together(sandbox):
    """They are held undecoded until all calls are made."""
    code = "B = bytes(15 << 20)\ndef f(n): return B if n < 9 else n"
    results = sandbox.call(code, "f", [((n,), {}) for n in range(10)])
    kept = [result.outcome is Outcome.PASS for result in results]
    assert kept == [True] * 4 + [False] * 6
    assert {result.outcome for result in results[4:]} == {Outcome.OUTPUT_LIMIT}
    assert "larger than 64 MiB together" in results[4].message


def test_the_hash_seed_of_our_own_process_decides_nothing() -> None:
    program = (
        "from codea1_env.sandbox import Sandbox\n"
        "tests = [f'assert {kind}(f()) == {kind}({order!r})' for kind in ('list', 'tuple') for order in ('ab', 'ba')]\n"
        "with Sandbox(workers=1) as sandbox:\n"
        '    print([r.outcome.value for r in sandbox.run_tests(\'def f():\\n    return {"a", "b"}\', tests)])\n'
    )
    said = set()
    for seed in ("1", "2"):
        there = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], env=there, capture_output=True, text=True, check=True
        )
        said.add(done.stdout)
    assert len(said) == 1
    assert said.pop().count("pass") == 2
