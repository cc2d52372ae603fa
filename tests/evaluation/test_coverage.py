"""Coverage of references by tests: what coverage.py says of the same calls."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from codea1_env.evaluation.suites.coverage import Coverage, measure_coverage
from codea1_env.evaluation.suites.samples import SuiteSample, SuiteTest, read_suite
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Limits, Sandbox

ORACLE = Path(__file__).with_name("run_coverage_py.py")


def problem(code: str, entry_point: str = "f") -> Problem:
    return Problem("test/0", f"def {entry_point}", entry_point, code)


def coverage_py(cases: Sequence[tuple[Problem, Sequence[str]]]) -> list[list[int]]:
    """Lines, those hit, branches, those hit, as coverage.py reports them. It runs what it is given."""
    pytest.importorskip("coverage")
    rows = [(each.reference, each.entry_point, list(tests)) for each, tests in cases]
    command = [sys.executable, "-W", "ignore", str(ORACLE)]
    done = subprocess.run(command, input=json.dumps(rows), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[list[int]] = json.loads(done.stdout)
    return found


def read(case: Problem, tests: Sequence[str], sandbox: Sandbox) -> tuple[SuiteTest, ...]:
    sample = SuiteSample(case.task_id, 0, {"tests": tests})
    return read_suite(sample, case.entry_point, len(tests), sandbox).tests


def measured(code: str, tests: Sequence[str], sandbox: Sandbox) -> list[Coverage]:
    case = problem(code)
    return measure_coverage(case, read(case, tests, sandbox), sandbox)


def ours(case: Problem, tests: Sequence[str], sandbox: Sandbox) -> list[int]:
    return list(
        dataclasses.astuple(measure_coverage(case, read(case, tests, sandbox), sandbox)[-1])
    )


def test_starter_problems_as_coverage_py_has_them(sandbox):
    cases = []
    for number, each in enumerate(load_problems("starter")[::16]):
        tests = each.tests if number % 2 else each.tests[number % 7 :][:1]
        cases.append((each, tests))
    theirs = coverage_py(cases)
    found = [ours(case, tests, sandbox) for case, tests in cases]
    differ = {case.task_id for (case, _), a, b in zip(cases, found, theirs, strict=True) if a != b}
    assert not differ
    assert len({tuple(row) for row in found}) > 5
    assert any(row[3] < row[2] for row in found)


def test_functions_of_unleakedtestbench_as_coverage_py_has_them(shared_data, sandbox):
    missing = {"ULT/10084"}  # it needs the package six
    changing = re.compile("import random|localtime")  # chance or the clock decides what runs
    path = shared_data / "ult_lite.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        tests = [json.loads(line)["test_list"] for line in lines]
    cases = [
        (case, suite)
        for case, suite in [*zip(load_problems(str(path)), tests, strict=True)][::25]
        if case.task_id not in missing and not changing.search(case.reference)
    ]
    theirs = coverage_py(cases)
    found = [ours(case, suite, sandbox) for case, suite in cases]
    differ = {case.task_id for (case, _), a, b in zip(cases, found, theirs, strict=True) if a != b}
    assert not differ
    assert sum(row[3] for row in found) > 50


REFERENCE = """
def f(x):
    if x == 1:
        return 1
    if x == 2:
        return 2
    return 3
"""


def test_the_first_tests_together(sandbox):
    tests = ["assert f(1) == 1", "assert f(1) == 7", "for x in (2, 3):\n    assert f(x) == x"]
    found = measured(REFERENCE, tests, sandbox)
    first = Coverage(lines=6, lines_hit=3, branches=4, branches_hit=1)
    assert found == [Coverage(6, 1, 4, 0), first, first, Coverage(6, 6, 4, 4)]
    assert found[1].line_share == 0.5
    assert found[1].branch_share == 0.25
    assert Coverage(0, 0, 0, 0).line_share is Coverage(0, 0, 0, 0).branch_share is None
    assert measured(REFERENCE, [], sandbox) == [Coverage(6, 1, 4, 0)]


def test_texts_that_are_no_data(sandbox):
    tests = [
        "assert sorted([f(1)]) == [1]",
        "assert f(3) == 3",
        "import pytest\n\n@pytest.mark.parametrize('x', [1, 2])\ndef test_a(x):\n    assert f(x) > 0",
    ]
    found = measured(REFERENCE, tests, sandbox)
    assert [each.lines_hit for each in found] == [1, 3, 5, 6]
    assert [each.branches_hit for each in found] == [0, 1, 3, 4]


def test_calls_that_raise_and_tests_that_never_call(sandbox):
    tests = ["assert f() == 1", "assert f(inf) == nan", "assert g(1) == 1", "x = 1"]
    assert measured(REFERENCE, tests, sandbox)[-1] == Coverage(6, 4, 4, 2)


def test_a_method_of_a_new_instance(sandbox):
    code = "class Solution:\n    def f(self, x):\n        if x:\n            return 1\n        return 2\n"
    case = problem(code, "Solution.f")
    found = measure_coverage(case, read(case, ["assert Solution().f(1) == 1"], sandbox), sandbox)
    assert found == [Coverage(5, 2, 2, 0), Coverage(5, 4, 2, 1)]


def test_a_test_that_ends_the_process_takes_nothing_from_others():
    code = REFERENCE.replace("        return 2\n", "        while True: pass\n")
    tests = ["assert f(1) == 1", "assert f(2) == 1", "assert f(3) == 1"]
    with Sandbox(limits=Limits(call_cpu_time=0.02, calls_per_test=1)) as sandbox:
        found = measured(code, tests, sandbox)
    assert [each.lines_hit for each in found] == [1, 3, 3, 5]
