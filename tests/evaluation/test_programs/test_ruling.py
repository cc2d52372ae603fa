"""What the reference says of tests. Every test that does not count has a fault of a closed list."""

from __future__ import annotations

import dataclasses
import itertools
from concurrent.futures import Future

import pytest

from codea1_env.evaluation.test_programs.ruling import Reference, RuledProblem, TestValidity
from codea1_env.oracle import BrokenReferenceError
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import InfraError, Job, JobResult, Outcome, Sandbox, TestResult

INC = Problem(
    "inc",
    "def inc(n):",
    "inc",
    "def inc(n):\n    if n == 'luck':\n        return hash(n)\n"
    "    return (i for i in range(n)) if n < 0 else n + 1\n",
)

TESTS = {
    "assert inc(": InvalidReason.UNPARSABLE,
    "assert inc('\ud800') == 1": InvalidReason.UNPARSABLE,
    "assert 1 + 1 == 2": InvalidReason.NEVER_CALLS,
    "for n in []:\n    assert inc(n) == 2": InvalidReason.NEVER_CALLS,
    "assert inc(1) == inc(1)": InvalidReason.TESTS_NOTHING,
    "try:\n    inc(1)\nexcept Exception:\n    pass": InvalidReason.TESTS_NOTHING,
    "inc = abs\nassert inc(1) == 1": InvalidReason.TAMPERS,
    "assert inc.__code__.co_argcount == 1\ninc(1)": InvalidReason.TAMPERS,
    "assert inc(1) == 1": InvalidReason.WRONG_VALUE,
    "assert inc(1) > 2": InvalidReason.WRONG_VALUE,
    "assert inc([]) == 1": InvalidReason.RAISES,
    "inc([])": InvalidReason.RAISES,
    "import nothing.at_all\nassert inc(1) == 2": InvalidReason.NOT_INSTALLED,
    "inc(1)\nwhile True:\n    pass": InvalidReason.TIMEOUT,
    "inc(1)\nimport os\nos._exit(0)": InvalidReason.LIMIT,
    "inc(1)\nx = [0] * 10**10": InvalidReason.LIMIT,
    "assert inc(-1) == [0]": InvalidReason.UNENCODABLE,
    "assert inc('luck') == 0": InvalidReason.NON_DETERMINISTIC,
}


@pytest.fixture(scope="module")
def rulings(sandbox: Sandbox) -> dict[str, TestValidity]:
    return Reference(sandbox, share=0.25).rule(RuledProblem.of(INC), TESTS)


@pytest.mark.parametrize("test", TESTS)
def test_the_fault_of_a_test(rulings, test):
    assert rulings[test].fault is TESTS[test], rulings[test].reason
    assert rulings[test].reason


def test_a_test_that_counts_has_none(sandbox):
    ruled = Reference(sandbox, share=0.25).rule(RuledProblem.of(INC), ["assert inc(1) == 2"])
    [ruling] = ruled.values()
    assert (ruling.status, ruling.reason, ruling.fault) == ("kept", "", None)


def test_a_package_that_is_missing_is_named(rulings):
    assert rulings["import nothing.at_all\nassert inc(1) == 2"].missing_module == "nothing"
    assert rulings["assert inc([]) == 1"].missing_module is None


PLUS = RuledProblem("plus", "inc", "def inc(n):\n    return n + 1\n")


@pytest.fixture(scope="module")
def reference(sandbox: Sandbox) -> Reference:
    return Reference(sandbox, share=0.25)


@pytest.mark.parametrize(
    "test",
    [
        "assert inc(7) == 8",
        "assert 8 == inc(7), 'message'",
        "assert inc(7) != 9",
        "assert inc(7) < 9",
        "x = 7\nassert inc(x) == x + 1",
        "r = inc(7)\nassert r == 8",
        "for n in range(10):\n    assert inc(n) == n + 1",
        "def check(candidate):\n    assert candidate(7) == 8\ncheck(inc)",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(inc(7), 8)\nT('test_a').debug()",
        "def test_inc():\n    assert inc(1) == 2",
        "assert [inc(n) for n in range(10)] == list(range(1, 11))",
        "import math\nassert math.isclose(inc(7.0), 8)",
        "import random\nassert inc(random.randint(7, 9)) < 11 and inc(7) == 8",
    ],
)
def test_tests_that_pass_on_the_reference_count(reference, test):
    ruling = reference.rule(PLUS, [test])[test]
    assert (ruling.status, ruling.text, ruling.reason, ruling.fault) == ("kept", test, "", None)


MARK = RuledProblem("mark", "mark", "def mark(rows):\n    rows[0][0] = 1\n    return rows\n")


@pytest.mark.parametrize(
    ("test", "right"),
    [
        ("assert mark([[0] * 2] * 2) == [[1, 0], [1, 0]]", True),
        ("assert mark([[0] * 2] * 2) == [[1, 0], [0, 0]]", False),
        ("assert mark([[0] * 2] * 2) == [[1, 0]] * 2", True),
        ("rows = [[0] * 2] * 2\nassert mark(rows) == [[1, 0], [1, 0]]", True),
        ("assert mark([[0, 0], [0, 0]]) == [[1, 0], [0, 0]]", True),
        ("assert mark(([0] * 2,) * 2) == ([1, 0], [1, 0])", True),
    ],
)
def test_rows_that_are_one_list_are_one_list_for_reference_and_programs(
    reference, sandbox, test, right
):
    ruling = reference.rule(MARK, [test])[test]
    assert (ruling.status == "kept") is right, ruling.reason
    [result] = sandbox.run_tests(MARK.reference, [test], entry_point="mark")
    assert result.passed is right


def test_rows_that_are_one_list_are_no_repetition_of_rows_that_are_not(reference):
    tests = ["assert mark([[0] * 2] * 2) != []", "assert mark([[0, 0], [0, 0]]) != []"]
    one, other = reference.rule(MARK, tests).values()
    assert one.key != other.key


@pytest.mark.parametrize(
    ("test", "kept"),
    [
        ("assert inc(7) == 7", "assert inc(7) == 8"),
        ("assert inc(3 + 4) == [1], 'because it is [1]'", "assert inc(3 + 4) == 8"),
        ("assert 'x' == inc(7)", "assert inc(7) == 8"),
        ("n = 7\nexpected = 9\nassert inc(n) == expected", "assert inc(7) == 8"),
        ("assert inc(n=7) == 0", "assert inc(n=7) == 8"),
    ],
)
def test_a_wrong_prediction_is_corrected(reference, test, kept):
    ruling = reference.rule(PLUS, [test])[test]
    assert (ruling.status, ruling.text, ruling.fault) == (
        "corrected",
        kept,
        InvalidReason.WRONG_VALUE,
    )
    assert ruling.reason.endswith("the reference returns 8")
    assert ruling.key == reference.rule(PLUS, [kept])[kept].key


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("assert inc(7) != 8", "contradicts the reference"),
        ("assert inc(7) > 8", "contradicts the reference"),
        ("assert inc(7) is None", "contradicts the reference"),
        ("assert not inc(7)", "contradicts the reference"),
        ("assert inc(7) in [7, 9]", "contradicts the reference"),
        ("for n in [1, 7]:\n    assert inc(n) == n", "contradicts the reference"),
        ("assert inc('a') == 'b'", "raises on the reference: TypeError"),
        ("assert inc(1, 2) == 3", "raises on the reference: TypeError"),
        ("assert inc(undefined) == 3", "raises on the reference: NameError"),
        ("import nothing\nassert inc(1) == 2", "raises on the reference: ModuleNotFoundError"),
        ("assert inc(", "cannot be parsed"),
        ("assert inc(1) == '\0'", "cannot be parsed"),
        ("assert inc('\ud800') == 1", "cannot be parsed"),
        ("assert inc(" + "(" * 100_000 + ")" * 100_000 + ") == 1", "cannot be parsed"),
        ("", "never calls inc"),
        ("assert add(1, 2) == 3", "never calls inc"),
        ("assert 1 + 1 == 2  # inc", "never calls inc"),
        ("if False:\n    assert inc(1) == 2", "never calls inc"),
        ("for n in []:\n    assert inc(n) == 2", "never calls inc"),
        ("def test_inc():\n    assert inc(1) == 3", "contradicts the reference"),
        ("def test_inc():\n    assert True", "never calls inc"),
        ("assert callable(inc)", "never calls inc"),
        ("assert inc(1) == inc(1)", "always true"),
        ("assert (inc(1) == 5, 'never false')", "always true"),
    ],
)
def test_tests_that_do_not_count(reference, test, reason):
    ruling = reference.rule(PLUS, [test])[test]
    assert (ruling.status, ruling.text) == ("invalid", test)
    assert reason in ruling.reason


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        # Ends or hangs the process that evaluates the arguments.
        ("assert inc(exit()) == 1", "raises on the reference"),
        ("import sys\nassert inc(sys.exit(0)) == 1", "ends the process"),
        ("assert inc(__import__('os')._exit(0)) == 1", "ends the process"),
        ("import os\ninc(1)\nos.kill(os.getpid(), 9)", "reference"),
        ("import time\nassert inc(time.sleep(60) or 1) == 2", "takes too long"),
        ("while inc(1):\n    pass", "takes too long"),
        # Passes by luck, or on the reference only.
        ("import datetime as d\nassert inc(1) and d.datetime.now().microsecond == 7", "reference"),
        # Puts something else in the place of the function.
        ("inc = lambda n: n + 1\nassert inc(7) == 8", "rebinds inc"),
        ("assert (inc := lambda n: n + 1)(7) == 8", "rebinds inc"),
        ("globals()['inc'] = lambda n: n + 1\nassert inc(7) == 8", "never calls inc"),
        ("exec('def inc(n): return n + 1')\nassert inc(7) == 8", "never calls inc"),
        ("import builtins\nbuiltins.len = lambda _: 8\ndel builtins\nassert len('inc') == 8", ""),
        # Does not care what the function does.
        ("try:\n    inc(7)\nexcept Exception:\n    pass", "passes whatever inc does"),
        ("import contextlib\nwith contextlib.suppress(BaseException):\n    assert inc(7) == 0", "passes whatever inc does"),
        ("def t(g):\n    try:\n        return g()\n    except BaseException:\n        return 1\nassert t(lambda: inc(7)) or True is not None", "passes whatever inc does"),
        # The reference manages only just.
        ("assert sum(range(10 ** 9)) and inc(7) == 8", "takes too long"),
        ("def deep(n):\n    return n and deep(n - 1)\nassert deep(10 ** 5) == 0 and inc(7) == 8", "RecursionError"),
        ("assert inc(len([0] * 10 ** 11)) > 0", "reference"),
    ],
)  # fmt: skip
def test_hostile_tests_do_not_count(reference, test, reason):
    ruling = reference.rule(PLUS, [test])[test]
    assert ruling.status == "invalid"
    assert reason in ruling.reason


def test_expected_exceptions_are_no_swallowed_ones(reference):
    code = (
        "def root(n):\n    if n < 0:\n        raise ValueError('negative')\n    return n ** 0.5\n"
    )
    test = "try:\n    root(-1)\n    assert False, 'no error'\nexcept ValueError:\n    pass"
    assert reference.rule(RuledProblem("root", "root", code), [test])[test].status == "kept"


def test_methods_of_objects_can_be_tested(reference):
    code = "class Stack(list):\n    push = list.append\n"
    test = "s = Stack()\ns.push(1)\ns.push(2)\nassert s.pop() == 2\nassert s.pop() == 1"
    assert reference.rule(RuledProblem("stack", "Stack", code), [test])[test].status == "kept"


def test_values_of_many_kinds_can_be_predicted_and_corrected(reference):
    echo = RuledProblem("echo", "echo", "def echo(x):\n    return x\n")
    values = [
        "None",
        "-1.5",
        "'it\\'s \\\\n'",
        "b'\\x00'",
        "[1, (2,), {3}]",
        "{'a': {}}",
        "set()",
        "True",
        "1e400",
        "(1+2j)",
    ]
    right = [f"assert echo({value}) == {value}" for value in values]
    wrong = [f"assert echo({value}) == 'wrong'" for value in values]
    rulings = reference.rule(echo, right + wrong)
    assert [rulings[test].status for test in right] == ["kept"] * len(values)
    assert [rulings[test].status for test in wrong] == ["corrected"] * len(values)
    fixed = reference.rule(echo, [rulings[test].text for test in wrong])
    assert {ruling.status for ruling in fixed.values()} == {"kept"}


def test_a_heavy_test_does_not_count_although_the_reference_can_do_it(sandbox):
    total = RuledProblem("total", "total", "def total(n):\n    return sum(range(n))\n")
    n = 10**7
    test = f"assert total({n}) == {n * (n - 1) // 2}"
    assert Reference(sandbox, share=1.0).rule(total, [test])[test].status == "kept"
    ruling = Reference(sandbox, share=0.01).rule(total, [test])[test]
    assert (ruling.status, ruling.fault) == ("invalid", InvalidReason.TIMEOUT)


def test_a_test_that_depends_on_the_hash_seed_is_not_deterministic(reference):
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    tests = [
        f"w = list({set(words)})\nassert w.index({one!r}) < w.index({other!r}) and inc(7) == 8"
        for one, other in itertools.permutations(words, 2)
    ]
    reasons = [ruling.reason for ruling in reference.rule(PLUS, tests).values()]
    assert any("non-deterministic" in reason for reason in reasons)


def test_a_reference_that_depends_on_the_hash_seed_has_no_value(reference):
    code = "def first(words):\n    return list(set(words))\n"
    test = f"assert first({[f'word {n}' for n in range(50)]}) == []"
    ruling = reference.rule(RuledProblem("first", "first", code), [test])[test]
    assert ruling.fault is InvalidReason.NON_DETERMINISTIC


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def inc(n) return n", "'broken' to run and to define inc, actually: syntax_error"),
        ("def other(n):\n    return n", "inc"),
        ("raise KeyError('x')", "error: KeyError"),
    ],
)
def test_a_broken_reference_is_an_error_in_the_data(reference, code, message):
    broken = RuledProblem("broken", "inc", code)
    failure = reference.load_failure(broken)
    assert failure is not None
    assert not failure.passed
    with pytest.raises(BrokenReferenceError, match=message):
        reference.rule(broken, ["assert inc(1) == 2"])


class Reporting(Sandbox):
    """A sandbox that reports its own failure as an outcome, once the reference is loaded."""

    working = False

    def submit(self, job: Job) -> Future[JobResult]:
        if self.working or not job.tests:
            return super().submit(job)
        future: Future[JobResult] = Future()
        failed = TestResult(Outcome.INFRA_ERROR, "no memory")
        future.set_result(JobResult(TestResult(Outcome.PASS), (failed,) * len(job.tests)))
        return future


def test_a_failure_of_the_sandbox_is_no_ruling_and_is_not_remembered():
    test = "assert inc(1) < 3"
    with Reporting(workers=1) as sandbox:
        reference = Reference(sandbox, share=0.25)
        with pytest.raises(InfraError, match="no memory"):
            reference.rule(PLUS, [test])
        sandbox.working = True
        assert reference.rule(PLUS, [test])[test].status == "kept"


class Counting(Sandbox):
    """A sandbox that counts what is asked of it."""

    asked = 0

    def submit(self, job: Job) -> Future[JobResult]:
        self.asked += 1
        return super().submit(job)


def test_rulings_are_remembered():
    tests = ["assert inc(7) == 8", "assert inc(7) > 1", "assert inc(", "assert inc(7) > 1"]
    with Counting(workers=1) as sandbox:
        reference = Reference(sandbox, share=0.25)
        first = reference.rule(PLUS, tests)
        asked = sandbox.asked
        assert reference.rule(PLUS, reversed(tests)) == first
        assert sandbox.asked == asked


class Unlucky(Sandbox):
    """A sandbox in which some tests fail from a certain run on, as one does that reads a clock."""

    def __init__(self, good_runs: int) -> None:
        super().__init__(workers=1)
        self.good_runs = good_runs

    def submit(self, job: Job) -> Future[JobResult]:
        future = super().submit(job)
        if not any("datetime" in test for test in job.tests):
            return future
        self.good_runs -= 1
        if self.good_runs >= 0:
            return future
        late: Future[JobResult] = Future()
        results = tuple(
            TestResult(Outcome.FAIL, "late") if "datetime" in test else result
            for test, result in zip(job.tests, future.result().tests, strict=True)
        )
        late.set_result(dataclasses.replace(future.result(), tests=results))
        return late


def test_a_test_that_fails_by_the_clock_gives_itself_away():
    test = "import datetime\nassert inc(1) == 2 and datetime.datetime.now().year > 2000"
    with Unlucky(good_runs=3) as sandbox:
        reference = Reference(sandbox, share=0.25)
        assert reference.rule(PLUS, [test])[test].status == "kept"
        assert not reference.confirm(PLUS, [test, "assert inc(1) == 2"])
        assert reference.confirm(PLUS, [test])
        assert reference.rule(PLUS, [test])[test].fault is InvalidReason.NON_DETERMINISTIC
