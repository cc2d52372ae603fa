"""Suites of tests, judged one by one and as an evaluation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from in_one_process import InFolder

from codea1_env.evaluation.runner import EvaluationPlan
from codea1_env.evaluation.samples import SuiteSample
from codea1_env.evaluation.suites import scores
from codea1_env.evaluation.suites.evaluation import SuiteEvaluation
from codea1_env.evaluation.suites.figures import difference, estimate, names, values_of
from codea1_env.evaluation.suites.scores import (
    PoolRuns,
    ProblemCheck,
    SuiteJudge,
    SuiteScore,
    kind_of,
)
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.referee import TestVerdict
from codea1_env.sandbox import AnalysisError, Limits, Sandbox
from codea1_env.support.jobs import Jobs

CLAMP = Problem(
    "demo/clamp",
    "def clamp(n):\n",
    "clamp",
    "def clamp(n):\n    if n < 0:\n        return 0\n    if n > 9:\n        return 9\n    return n\n",
)
MUTANTS = {
    "at -1": CLAMP.reference.replace("return 0", "return 1"),
    "at 10": CLAMP.reference.replace("return 9", "return 8"),
    "at 5": CLAMP.reference.replace("return n", "return -n"),
    "never": CLAMP.reference.replace("n > 9", "n >= 9"),
    "endless at 10": CLAMP.reference.replace("return 9", "while True: pass"),
}
GOLDEN = Problem(
    "demo/golden",
    CLAMP.prompt,
    "clamp",
    CLAMP.reference,
    tests=("assert clamp(-1) == 0", "assert clamp(10) == 9", "assert clamp(5) == 5"),
)


@pytest.fixture(autouse=True)
def _loops_end_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "GAME_LIMITS", Limits(call_cpu_time=0.1))
    monkeypatch.setattr(scores, "_AS_WRITTEN", Limits(call_cpu_time=0.1, run_cpu_time=0.3))


class Judge(SuiteJudge):
    """Judges with mutants of ours."""

    mutants: Sequence[str] = tuple(MUTANTS.values())

    def _make_mutants(self, source: str) -> list[str]:
        return list(self.mutants)


def judge(tests: Sequence[str], sandbox: Sandbox, num_tests: int = 5) -> SuiteScore:
    own = Judge(sandbox, num_tests)
    return own.judge(CLAMP, own.check(CLAMP), SuiteSample(CLAMP.task_id, 0, {"tests": tests}))


def test_kills_of_the_first_tests(sandbox):
    tests = ["assert clamp(-1) == 0", "assert clamp(5) == 6", "assert clamp(10) == 9",
             "assert clamp(-2) == 0", "assert clamp(5) == 5"]  # fmt: skip
    score = judge(tests, sandbox)
    assert list(map(kind_of, score.tests)) == ["", "wrong value", "", "", ""]
    assert score.mutants == 5
    assert score.killed == (1, 0, 2, 0, 1)
    assert [score.right(k) for k in (1, 2, 5)] == [1, 1, 4]


def test_what_is_no_data_is_unreadable(sandbox):
    tests = [
        "import pytest\nassert clamp(-1) == 0",
        "assert sorted([clamp(10), clamp(-1)]) == [0, 9]",
        "def test_small():\n    for n in range(10, 12):\n        assert clamp(n) == 9",
        "def test_a():\n    try:\n        clamp(3)\n    except BaseException:\n        pass",
        "assert len([1]) == 1",
    ]
    score = judge(tests, sandbox)
    assert list(map(kind_of, score.tests)) == ["", "unreadable", "", "unreadable", "never calls"]
    assert score.killed == (1, 0, 2, 0, 0)
    assert [test.text for test in score.tests] == tests


def test_a_test_of_several_calls_is_right_if_all_are(sandbox):
    several = "assert clamp(-1) == 0\nassert clamp(10) == {}"
    score = judge([several.format(8), several.format(9), several.format(9)], sandbox)
    assert list(map(kind_of, score.tests)) == ["wrong value", "", ""]
    assert [test.status for test in score.tests] == ["invalid", "kept", "duplicate"]
    assert score.killed == (0, 3, 0, 0, 0)


def test_stated_tolerances_and_floats(sandbox):
    half = Problem("demo/half", "def half(n):", "half", "def half(n):\n    return n / 3\n")
    tests = [
        "assert half(1) == 0.3333333",
        "assert half(1) == 0.333",
        "assert abs(half(1) - 0.333) < 0.001",
        "assert half(1) == 1/3",
    ]
    own = Judge(sandbox, 5)
    own.mutants = ["def half(n): return n / 3 + 5e-4"]
    score = own.judge(half, own.check(half), SuiteSample("demo/half", 0, {"tests": tests}))
    assert list(map(kind_of, score.tests)) == ["", "wrong value", "", ""]
    assert score.killed == (1, 0, 0, 0, 0)


def test_a_function_that_yields(sandbox):
    upto = Problem("demo/upto", "def upto(n):", "upto", "def upto(n):\n    yield from range(n)\n")
    own = Judge(sandbox, 5)
    own.mutants = ["def upto(n): yield 1", "def upto(n): yield 0", "def upto(n): return 0"]
    tests = ["assert list(upto(2)) == [0, 1]", "assert list(upto(1)) == [1]"]
    score = own.judge(upto, own.check(upto), SuiteSample("demo/upto", 0, {"tests": tests}))
    assert list(map(kind_of, score.tests)) == ["", "wrong value"]
    assert score.killed == (3, 0, 0, 0, 0)
    given = Judge(sandbox, 5, {"demo/upto": own.mutants})
    check = ProblemCheck("demo/upto", "", (0, 1, 2))
    score = given.judge(upto, check, SuiteSample("demo/upto", 0, {"tests": tests}))
    assert score.pool == PoolRuns(3, 3, 0, 3, 1)


def test_repeated_and_late_tests(sandbox):
    tests = ["assert clamp(1) == 1", "assert 1 == clamp(1)", "assert clamp(2) == 2"]
    score = judge(tests, sandbox, num_tests=2)
    assert [test.status for test in score.tests] == ["kept", "duplicate"]
    assert score.late == 1


def test_what_right_and_wrong_tests_do_on_wrong_programs(sandbox):
    # Wrong: all but the last program; what is equivalent passes the golden tests.
    programs = {
        GOLDEN.task_id: [*MUTANTS.values(), GOLDEN.reference, MUTANTS["at 5"], "def clamp("]
    }
    tests = [
        "assert clamp(5) == 5",
        "assert clamp(-1) == 1",
        "assert clamp(",
        "assert 1 == 1",
        "clamp(1)",
    ]
    own = Judge(sandbox, 5, programs)
    check = own.check(GOLDEN)
    assert check.wrong == (0, 1, 2, 4, 6)  # the text that came twice is one program
    score = own.judge(GOLDEN, check, SuiteSample(GOLDEN.task_id, 0, {"tests": tests}))
    assert list(map(kind_of, score.tests)) == [
        "",
        "wrong value",
        "unparsable",
        "never calls",
        "unreadable",
    ]
    # Right test: at -1, at 10, endless at 10 pass. Wrong ones: at -1 passes the first, none the second.
    assert score.pool == PoolRuns(5, 5, 3, 15, 1)


def test_mutants_are_the_wrong_programs_where_none_are_given(sandbox):
    own = SuiteJudge(sandbox, 5)
    golden = own.check(GOLDEN)
    assert golden.wrong is not None
    assert 0 < len(golden.wrong) <= 20
    without = own.check(CLAMP)
    assert without.wrong is None
    sample = SuiteSample(CLAMP.task_id, 0, {"tests": ["assert clamp(5) == 5"]})
    assert own.judge(CLAMP, without, sample).pool.programs >= len(golden.wrong)
    given = SuiteJudge(sandbox, 5, programs={CLAMP.task_id: [CLAMP.reference]})
    assert given.judge(CLAMP, given.check(CLAMP), sample).pool == PoolRuns()


def test_broken_references_are_found(sandbox):
    own = SuiteJudge(sandbox, 5)
    broken = Problem("demo/six", "def f():", "f", "import no_such_package\n\ndef f(): return 1\n")
    check = own.check(broken)
    assert "its reference does not run: error, ModuleNotFoundError" in check.fault
    assert "'no_such_package'" in check.fault
    score = own.judge(broken, check, SuiteSample("demo/six", 0, {"tests": ["assert f() == 1"]}))
    assert score == SuiteScore(check.fault)


def test_a_reference_that_cannot_be_mutated_is_excluded(sandbox):
    class Refusing(SuiteJudge):
        def _make_mutants(self, source: str) -> list[str]:
            raise AnalysisError("too deep")

    own = Refusing(sandbox, 1)
    score = own.judge(CLAMP, own.check(CLAMP), SuiteSample(CLAMP.task_id, 0, {"tests": []}))
    assert score.excluded == "its reference has no mutants: too deep"


def test_scores_survive_a_file(sandbox):
    score = judge(["assert clamp(-1) == 0", "assert clamp(5) == 6", "assert clamp("], sandbox)
    assert SuiteScore.of(json.loads(json.dumps(score.row()))) == score
    assert SuiteScore.of(SuiteScore("why").row()) == SuiteScore("why")
    check = SuiteJudge(sandbox, 5).check(GOLDEN)
    assert type(check).of(json.loads(json.dumps(check.row()))) == check


def opened(problems: Sequence[Problem], judge: SuiteJudge, folder: Jobs) -> InFolder:
    own = SuiteEvaluation(num_tests=judge._num_tests)
    own.load(problems)
    found = InFolder(own, judge._sandbox, folder)
    own.suite_judge = judge
    found.check()
    return found


def test_a_tester_sees_the_reference(sandbox, tmp_path):
    seen: list[Any] = []

    class Tester:
        def act(self, observations):
            seen.extend(observations)
            return ["assert clamp(1) == 1"] * len(observations)

    with Jobs(tmp_path, {}, resume=False) as folder:
        evaluation = opened([CLAMP], Judge(sandbox, 2), folder)
        evaluation.judge_agent(lambda _: Tester(), EvaluationPlan(3, 2, 0), evaluation.own.add)
        row = {"task_id": "demo/clamp", "answer": "assert clamp(1) == 1"}
        assert folder.rows("samples.jsonl") == [row] * 3
    assert [(each["code"], each["turn"]) for each in seen] == [(CLAMP.reference, 1)] * 3
    assert evaluation.own.total == 3


def test_a_report_by_hand(sandbox, tmp_path):
    broken = Problem("demo/broken", "def f():", "f", "def g(): return 1\n")
    silent = Problem("demo/silent", CLAMP.prompt + "#", "clamp", CLAMP.reference)
    problems = [CLAMP, broken, GOLDEN, silent]
    rows = {
        "demo/clamp": ["assert clamp(-1) == 0", "import no_such\nassert clamp(no_such.n) == 1"],
        "demo/broken": ["assert f() == 1"],
        "demo/golden": ["assert clamp(1) == 2", "assert clamp(-1) == 0", "assert clamp(5) == 5"],
    }
    samples = [SuiteSample(task, 0, {"tests": tests}) for task, tests in rows.items()]
    with Jobs(tmp_path, {}, resume=False) as folder:
        evaluation = opened(problems, Judge(sandbox, 2), folder)
        evaluation.judge_file(samples, evaluation.own.add)
    report = evaluation.report({"other": 2})
    value = {name: each["value"] for name, each in report["figures"].items()}
    assert value["pass@1"] == pytest.approx((1 + 0) / 2)
    assert value["pass@2"] == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert value["mut@1"] == pytest.approx((1 / 5 + 0) / 2)
    assert value["mut@1@pass"] == pytest.approx(1 / 5)
    assert value["mut@2"] == value["mut@2@pass"] == pytest.approx(1 / 5)
    assert value["Mul@1"] == pytest.approx(1 / 2 * 1 / 5)
    assert value["any-pass@2"] == 1
    assert value["all-pass@2"] == 0
    assert value["p_u"] == 0.5
    assert report["tests"] == {"right": 2, "unreadable": 1, "wrong value": 1}
    assert report["unreadable"] == 1
    assert report["late"] == 1
    assert report["scored"] == 2
    assert list(report["excluded"]) == ["demo/broken"]
    assert report["missing"] == ["demo/silent"]
    assert report["unknown"] == {"other": 2}
    assert report["mutants"] == 10
    assert report["wrong_programs"]["problems_unchecked"] == 1


RIGHT = TestVerdict("a", "kept")
WRONG = TestVerdict("b", "invalid", "why", fault=InvalidReason.WRONG_VALUE)
EMPTY = TestVerdict("c", "invalid", "why", fault=InvalidReason.NEVER_CALLS)


def score(
    *tests: TestVerdict, killed: tuple[int, ...], mutants: int = 10, **more: object
) -> SuiteScore:
    return SuiteScore("", tests, 0, "", mutants, killed, **more)  # type: ignore[arg-type]


def test_the_values_of_a_problem():
    first = score(WRONG, RIGHT, RIGHT, killed=(0, 4, 1), pool=PoolRuns(2, 4, 1, 2, 2))
    second = score(WRONG, EMPTY, killed=(0, 0, 0), pool=PoolRuns(2, 0, 0, 2, 0))
    values = values_of([first, second], [1, 3])
    assert values["pass@1"] == 0
    assert values["pass@3"] == pytest.approx((2 / 3 + 0) / 2)
    assert values["mut@1"] == 0
    assert values["mut@1@pass"] is None
    assert values["mut@3"] == pytest.approx(0.25)
    assert values["mut@3@pass"] == pytest.approx(0.5)
    assert values["any-pass@3"] == 0.5
    assert values["all-pass@3"] == 0
    assert values["p_u"] == pytest.approx(2 / 4)  # a test that never calls says nothing
    assert values["p_01"] == pytest.approx(1 / 4)
    assert values["p_00"] == pytest.approx(2 / 4)


def test_whole_suites_have_figures_of_their_own():
    short = score(RIGHT, killed=(3, 0, 0))
    mixed = score(WRONG, RIGHT, RIGHT, killed=(0, 4, 1))
    none = score(killed=(0, 0, 0))
    values = values_of([short, mixed, none], [1])  # whatever k is looked at
    assert values["all pass@1"] == pytest.approx(1 / 3)
    assert values["any pass@1"] == pytest.approx(2 / 3)
    assert values["mutation score"] == pytest.approx((0.3 + 0.5) / 3)
    assert set(values) >= set(names([1])) - {"Mul@1", "mu"}


def test_a_problem_without_mutants_has_no_score():
    values = values_of([score(RIGHT, killed=(0,), mutants=0)], [1])
    assert values["mut@1"] is None
    assert values["pass@1"] == 1


def test_figures_are_means_over_the_problems_that_have_a_value():
    problems = [
        {"pass@5": 0.4, "mut@5@pass": 0.5, "p_u": 0.4, "p_01": 0.5, "p_00": None},
        {"pass@5": 0.0, "mut@5@pass": None, "p_u": 0.0, "p_01": None, "p_00": 0.1},
    ]
    found = {name: estimate(problems, name) for name in ("pass@5", "mut@5@pass", "Mul@5", "mu")}
    assert all(found.values())
    values = {name: each.value for name, each in found.items() if each}
    assert values["pass@5"] == pytest.approx(0.2)
    assert values["mut@5@pass"] == pytest.approx(0.5)
    assert values["Mul@5"] == pytest.approx(0.1)
    assert values["mu"] == pytest.approx(0.2 * 0.5 - 0.8 * 0.1)
    mul = found["Mul@5"]
    assert mul
    # No problem with a right test, or only that.
    assert (mul.low, mul.high) == (0.0, pytest.approx(0.2))


def test_the_paper_multiplies_percentages():
    # Qwen2.5-Coder-1.5B-Instruct in the table of Code-A1: 16.29, 22.30 -> 3.63.
    found = estimate([{"pass@5": 0.1629, "mut@5@pass": 0.2230}], "Mul@5")
    assert found
    assert round(100 * found.value, 2) == 3.63


def test_figures_that_nothing_tells():
    assert estimate([], "pass@1") is None
    assert estimate([{"pass@1": None}], "pass@1") is None
    nothing_right = [{"pass@1": 0.0, "mut@1@pass": None}]
    assert estimate(nothing_right, "mut@1@pass") is None
    found = estimate(nothing_right, "Mul@1")
    assert found
    assert found.value == 0


def test_mu_without_wrong_tests_or_without_right_ones():
    for values, mu in (
        ({"p_u": 1.0, "p_01": 0.25, "p_00": None}, 0.75),
        ({"p_u": 0.0, "p_01": None, "p_00": 0.25}, -0.25),
    ):
        found = estimate([values], "mu")
        assert found
        assert found.value == mu


def test_differences_are_paired():
    rng = np.random.default_rng(2)
    ours = [{"pass@1": float(each), "mut@1@pass": 0.5} for each in rng.random(50) / 2]
    theirs = [{**each, "pass@1": each["pass@1"] + 0.1} for each in ours]
    found = difference(ours, theirs, "pass@1")
    assert found
    assert (found.value, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    mul = difference(ours, theirs, "Mul@1")
    assert mul
    assert mul.value == pytest.approx(0.05)
    assert difference(ours, [{}] * 50, "pass@1") is None
