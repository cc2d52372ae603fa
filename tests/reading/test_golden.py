"""Golden tests of data files are read into cases, and nothing is left out silently."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codea1_env.reading.golden import golden_cases
from codea1_env.sandbox import Sandbox

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def rows(name: str) -> Iterator[Any]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def entry_point(row: Any) -> str:
    called = row["test_list"][0].replace("(", " ").split()
    code = row["code"].replace(" (", "(")
    return str(next(name for name in called if f"def {name}(" in code))


def test_mbpp_is_data_but_for_five_rows() -> None:
    left = []
    for row in rows("mbpp.jsonl.gz"):
        tests = [*row["test_list"], *row["challenge_test_list"]]
        setup, *read = golden_cases([row["test_setup_code"], *tests], entry_point(row))
        assert setup[0] == []
        if any(reason is not None for _, reason in read):
            left.append(row["task_id"])
        else:
            assert [len(cases) for cases, _ in read] == [1] * len(tests)
    assert left == [367, 533, 596, 601, 927]


def test_unleaked_test_bench_is_data_but_for_forty_tests() -> None:
    read = [
        golden_cases([test], row["func_name"])
        for row in rows("ult_lite.jsonl.gz")
        for test in row["test_list"]
    ]
    assert len(read) == 1000
    assert sum(reason is None for ((_, reason),) in read) == 960


CASES = {
    "assert f(1, k='a') == [2]": ((1,), {"k": "a"}, [2], None, None, ""),
    "assert f(1) is None": ((1,), {}, None, None, None, ""),
    "assert not f(1)": ((1,), {}, False, None, None, ""),
    "assert f(1)": ((1,), {}, True, None, None, ""),
    "assert (f(1)) == (3), 'why'": ((1,), {}, 3, None, None, ""),
    "x = [1]\ny = {'a': x}\nassert f(x, y) == x * 2": (([1], {"a": [1]}), {}, [1, 1], None, None, ""),
    "assert int(f(5)) == 35": ((5,), {}, 35, None, None, "int"),
    "import math\nassert math.isclose(f(1), 2.5, abs_tol=1e-3)": ((1,), {}, 2.5, 1e-3, 1e-9, ""),
    "assert Solution().f(1) == 2": ((1,), {}, 2, None, None, ""),
}  # fmt: skip


@pytest.mark.parametrize(("text", "case"), CASES.items(), ids=CASES.keys())
def test_it_is_a_case(text: str, case: Any) -> None:
    assert golden_cases([text], "f") == [([case], None)]
    assert golden_cases([text.replace("Solution().f", "f")], "Solution.f") == [([case], None)]


@pytest.mark.parametrize(
    "text",
    [
        "assert f(1) != 2",
        "assert f(object()) == 2",
        "x = [1]\nf(x)\nassert x == [2]",
        "assert f(1)[0] == 2",
        "assert f(1) ==",
        "with pytest.raises(ValueError):\n    f(1)",
        "assert g(1) == 2",
        "assert 1 == 1",
        "assert f(" + "[" * 120 + "]" * 120 + ") == 1",
    ],
)
def test_what_is_no_case_says_why(text: str) -> None:
    (before, (cases, reason), behind) = golden_cases(["assert f(0) == 1", text, "assert f(3) == 1"], "f")  # fmt: skip
    assert before == ([((0,), {}, 1, None, None, "")], None)
    assert behind == ([((3,), {}, 1, None, None, "")], None)
    assert cases == []
    assert reason


def test_a_builtin_name_can_be_the_function() -> None:
    assert golden_cases(["assert sum(10, 15) == 6"], "sum")[0][0][0][:3] == ((10, 15), {}, 6)


def test_large_rows_are_read() -> None:
    values = list(range(120_000))
    started = time.process_time()
    ((cases, reason),) = golden_cases([f"assert f({values}) == {values}"], "f")
    assert (cases[0][0], cases[0][2], reason) == ((values,), values, None)
    assert time.process_time() - started < 5
    digits = "7" * 20_000
    ((cases, reason),) = golden_cases([f"assert f(1) == {digits}"], "f")
    assert (reason, cases[0][2] % 1000) == (None, 777)


def test_rows_without_an_end_are_bounded() -> None:
    text = "for a in range(900):\n  for b in range(900):\n    for c in range(900):\n      assert f(a) == b"
    started = time.process_time()
    ((_, reason),) = golden_cases([text], "f")
    assert reason
    assert time.process_time() - started < 5


MODULE = """
import unittest
import pytest
from solution import f, Solution

ROWS = [(2, 4), (3, 9)]

@pytest.mark.parametrize("n, expected", ROWS)
def test_rows(n, expected):
    assert f(n) == expected

class TestIt(unittest.TestCase):
    four = 4

    def test_it(self):
        self.assertEqual(f(self.four), 16)
        self.assertEqual(Solution().f(5), 25)
"""


def test_a_module_is_cases() -> None:
    ((cases, reason),) = golden_cases([MODULE], "f")
    given = [(case[0][0], case[2]) for case in cases]
    assert given == [(2, 4), (3, 9), (4, 16), (5, 25)]
    assert reason is None


@pytest.mark.parametrize(
    "test",
    [
        "def test_a():\n    f(1)",
        "def test_a():\n    with pytest.raises(ValueError):\n        f(-1)",
        "def test_a(tmp_path):\n    assert f(tmp_path) == 1",
        "def test_a():\n    x = [1]\n    f(x)\n    assert x == [2]",
        "def test_a():\n    assert len(f(1)) == 1",
        "class TestA:\n    def test_a(self):\n        assert helper(1) == 2",
        "@pytest.fixture\ndef n():\n    return 2\ndef test_a(n):\n    assert f(n) == 4",
        "class TestA:\n    def setup_method(self):\n        self.n = 2\n    def test_a(self):\n        assert f(self.n) == 4",
        "@pytest.mark.skip\ndef test_a():\n    assert f(0) == 1",
        "@unittest.skip('x')\nclass TestA(unittest.TestCase):\n    def test_a(self):\n        assert f(0) == 1",
    ],
)
def test_what_a_module_says_otherwise_is_named(test: str) -> None:
    ((cases, reason),) = golden_cases([f"{MODULE}\n{test}\n"], "f")
    assert len(cases) == 4
    assert reason


def test_hostile_files_are_read_where_they_do_no_harm(sandbox: Sandbox) -> None:
    found = sandbox.analyse(golden_cases, ["assert f(1) == 2", "(" * 90_000], "f")
    assert found[0] == ([((1,), {}, 2, None, None, "")], None)
    assert found[1][1]
