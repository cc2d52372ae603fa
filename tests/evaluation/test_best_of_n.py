"""Choices among programs by tests that nobody has checked, in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from in_one_process import InFolder, ignore

from codea1_env.evaluation.best_of_n import BestOfN
from codea1_env.evaluation.programs import JudgedProgram
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.runner import EvaluationPlan
from codea1_env.evaluation.samples import digest
from codea1_env.evaluation.suites.samples import SuiteSample
from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox

NEXT = Problem(
    "demo/next", "def step(n):\n", "step", "def step(n): return n + 1", ("assert step(0) == 1",)
)
SIGN = Problem(
    "demo/sign",
    "def sign(n):\n",
    "sign",
    "def sign(n): return (n > 0) - (n < 0)",
    ("assert sign(0) == 0",),
)
RIGHT, ABS, TWICE, HANGS = (
    "def step(n): return n + 1",
    "def step(n): return abs(n) + 1",
    "def step(n): return 2 * n",
    "def step(n):\n    while True: pass",
)  # fmt: skip
PROGRAMS = {
    "demo/next": [
        JudgedProgram(RIGHT, True), JudgedProgram(ABS, False), JudgedProgram(TWICE, False),
        JudgedProgram(RIGHT, True),
    ],
    "demo/sign": [JudgedProgram("def sign(n): return 1", False), JudgedProgram("", False)],
}  # fmt: skip
TESTS = {
    "demo/next": [
        "assert step(1) == 2\nassert step(-1) == 0\nassert step(0) == 0",  # the last is wrong
        "assert step(1) == 2\nassert other(1) == 2\nassert step(",
    ],
    "demo/sign": ["assert sign(3) == 1\nassert sign(-3) == -1", "assert sign(3) == 1"],
}


class Writer:
    """Gives prepared answers for each problem, and keeps what it was shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.counts = dict.fromkeys(TESTS, 0)

    def __call__(self, seed: int) -> Writer:
        return self

    def act(self, observations):
        answers = []
        for each in observations:
            task = "demo/next" if each["entry_point"] == "step" else "demo/sign"
            assert each["turn"] == 1
            self.seen.append((task, each["code"]))
            answers.append(TESTS[task][self.counts[task] % 2])
            self.counts[task] += 1
        return answers


def evaluation(
    sandbox: Sandbox,
    folder: ResultFolder,
    problems: Sequence[Problem] = (NEXT, SIGN),
    programs: Mapping[str, Sequence[JudgedProgram]] = PROGRAMS,
    **options: Any,
) -> InFolder:
    own = BestOfN(programs=Path(), **{"num_tests": 4, **options})
    own.take(problems, programs)
    return InFolder(own, sandbox, folder)


def test_matrix_and_figures(sandbox, tmp_path):
    with ResultFolder(tmp_path, {}, resume=False) as folder:
        found = evaluation(sandbox, folder)
        found.judge_agent(Writer(), EvaluationPlan(2, 3, 0), found.own.add)
        rows = folder.rows("verdicts.jsonl")
        answers = folder.rows("samples.jsonl")
    # Tests of step, in the order in which they were written: step(1) == 2 (twice), step(-1) == 0, step(0) == 0.
    assert rows == [
        {"task_id": "demo/next", "sample": 0, "passed": "110"},
        {"task_id": "demo/next", "sample": 1, "passed": "100"},
        {"task_id": "demo/next", "sample": 2, "passed": "101"},
        {"task_id": "demo/next", "sample": 3, "passed": "110"},
        {"task_id": "demo/sign", "sample": 0, "passed": "10"},
        {"task_id": "demo/sign", "sample": 1, "passed": "00"},
    ]
    assert [row["answer"] for row in answers] == [*TESTS["demo/next"], *TESTS["demo/sign"]]
    report = found.report()
    assert report["results"]["demo/next"] == {
        "programs": 4,
        "right": 2,
        "tests": 4,
        "random": 0.5,
        "codet": 1.0,  # 2 programs x 3 tests, against 1 x 2 and 1 x 3
        "codet_released": 1.0,
        "most_tests": pytest.approx(
            2 / 3
        ),  # three programs pass 3 of the 4 tests, counted as written
        "best": 1.0,
        "digest": digest(NEXT),
    }
    assert report["results"]["demo/sign"]["codet"] == 0.0
    assert {name: each["value"] for name, each in report["figures"].items()} == {
        "random": 0.25, "codet": 0.5, "codet_released": 0.5, "most_tests": pytest.approx(1 / 3), "best": 0.5,
    }  # fmt: skip
    assert report["gains"]["codet"]["value"] == 0.25
    assert (report["gains"]["codet"]["low"], report["gains"]["codet"]["high"]) == (0.0, 0.5)
    assert list(report["gains"]) == ["codet", "codet_released", "most_tests", "best"]
    assert (report["tests"], report["distinct_tests"], report["undecided"]) == (7, 5, 1)
    assert report["unusable_tests"] == 2  # one that is no Python, one of another function


def test_white_box_testers_see_the_programs_in_turn(sandbox, tmp_path):
    tester = Writer()
    with ResultFolder(tmp_path, {}, resume=False) as folder:
        own = evaluation(sandbox, folder, white_box=True)
        own.judge_agent(tester, EvaluationPlan(6, 4, 0), ignore)
    codes = [each.code for each in PROGRAMS["demo/next"]]
    assert tester.seen[:6] == [("demo/next", code) for code in (*codes, *codes[:2])]
    assert [code for _, code in tester.seen[6:]] == ["def sign(n): return 1", ""] * 3
    blind = Writer()
    with ResultFolder(tmp_path / "blind", {}, resume=False) as folder:
        evaluation(sandbox, folder).judge_agent(blind, EvaluationPlan(2, 4, 0), ignore)
    assert {code for _, code in blind.seen} == {""}


def test_programs_that_never_end_pass_nothing(sandbox, tmp_path):
    programs = {"demo/next": [JudgedProgram(HANGS, False), JudgedProgram(RIGHT, True)]}
    passed: list[str] = []
    with ResultFolder(tmp_path, {}, resume=False) as folder:
        own = evaluation(sandbox, folder, problems=[NEXT], programs=programs, num_tests=3)
        tests = [
            SuiteSample(
                "demo/next", 0, {"tests": [f"assert step({n}) == {n + 1}" for n in range(3)]}
            )
        ]
        own.judge_file(tests, lambda _, verdict: passed.append(verdict["passed"]))
    assert passed == ["000", "111"]
