"""Suites for the problems of a set: right, few, and as strong as all tests that were written."""

from __future__ import annotations

import json

import pytest

from codea1_env.evaluation.report import build_report
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.runner import EvaluationPlan, EvaluationRun
from codea1_env.mutation import generate_mutants
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Outcome
from codea1_env.testgen.problem_suites import ProblemSuites, with_suite

CLAMP = Problem(
    "own/clamp",
    'def clamp(x, low, high):\n    """Limit x."""\n',
    "clamp",
    "def clamp(x, low, high):\n    if x < low:\n        return low\n    return min(x, high)\n",
)
ANSWERS = [
    "assert clamp(5, 0, 3) == 3\nassert clamp(-5, 0, 3) == 0\nassert clamp(1, 0, 3) == 7",
    "assert clamp(5,0,3)==3\nassert clamp(1, 0, 3) == 1\nassert 1 == 1\nassert clamp(",
    "I cannot write tests.",
]


class Fixed:
    """Gives the same answers in turn."""

    def __init__(self, answers):
        self.answers = answers

    def act(self, observations):
        return [self.answers[n % len(self.answers)] for n in range(len(observations))]


def written(folder, problems, sandbox, answers=ANSWERS, samples=None, batch=64):
    own = ProblemSuites()
    own.load(problems)
    own.begin(sandbox)
    with ResultFolder(folder, {}, resume=False) as results:
        writing = EvaluationRun(own, results)
        writing.check()
        if samples is None:
            plan = EvaluationPlan(len(answers), batch, 0)
            writing.judge_agent(lambda seed: Fixed(answers), plan, own.add)
        else:
            writing.judge_file(own.read_file(samples, problems).samples, own.add)
    return own


def test_a_suite_is_right_small_and_as_strong(tmp_path, sandbox):
    tally = written(tmp_path / "r", [CLAMP], sandbox)
    suite = tally.suites["own/clamp"]
    assert suite.written == 6  # what is no Python is a test, and 1 == 1 is none
    assert (suite.right, suite.corrected) == (4, 1)
    assert suite.distinct == 3
    assert suite.killed == suite.killed_before > 0
    assert 1 <= len(suite.tests) < 3
    results = sandbox.run_tests(CLAMP.reference, suite.tests)
    assert {result.outcome for result in results} == {Outcome.PASS}
    mutants = generate_mutants(CLAMP.reference, sandbox)
    dead = [
        any(not result.passed for result in sandbox.run_tests(mutant.code, suite.tests))
        for mutant in mutants
    ]
    assert (sum(dead), len(dead)) == (suite.killed, suite.mutants)


def test_a_wrong_value_is_put_right_and_kept(tmp_path, sandbox):
    tally = written(tmp_path / "r", [CLAMP], sandbox, ["assert clamp(-5, 0, 3) == 9"])
    suite = tally.suites["own/clamp"]
    assert (suite.right, suite.corrected) == (0, 1)
    assert suite.tests == ("assert clamp(-5, 0, 3) == 0",)


def test_suites_made_elsewhere_need_not_be_in_order(tmp_path, sandbox):
    other = Problem("own/one", "def one():", "one", "def one():\n    return 1\n")
    rows = [
        (other, "assert one() == 1"),
        (CLAMP, "assert clamp(5, 0, 3) == 3"),
        (other, "assert one() > 0"),
    ]
    samples = tmp_path / "samples.jsonl"
    texts = [{"task_id": problem.task_id, "tests": [text]} for problem, text in rows]
    samples.write_text("".join(json.dumps(row) + "\n" for row in texts))
    tally = written(tmp_path / "r", [CLAMP, other], sandbox, samples=samples)
    assert list(tally.suites) == ["own/clamp", "own/one"]
    assert tally.suites["own/one"].written == 2


def test_problems_that_cannot_be_used_are_named(tmp_path, sandbox):
    broken = Problem("own/broken", "def f():", "f", "def g(): pass")
    unparsable = Problem("own/text", "def f():", "f", "def f(:")
    tally = written(tmp_path / "r", [broken, CLAMP, unparsable], sandbox, ["no tests"])
    assert "does not define 'f'" in tally.faults()["own/broken"]
    assert "syntax_error" in tally.faults()["own/text"]
    report = build_report(tally, {}, {})
    assert list(report["excluded"]) == ["own/broken", "own/text", "own/clamp"]
    assert report["excluded"]["own/clamp"] == "no test was written"
    assert report["scored"] == 0


def test_rows_can_be_read_again_as_problems(tmp_path):
    path = tmp_path / "problems.jsonl"
    [first, *_] = load_problems("starter")
    path.write_text(json.dumps(with_suite(first, ["assert add_numbers(1, 2) == 3"], "me")) + "\n")
    [read] = load_problems(str(path))
    assert read.tests == ("assert add_numbers(1, 2) == 3",)
    assert read.test_module == ""
    assert (read.prompt, read.reference) == (first.prompt, first.reference)
    assert read.metadata == {**first.metadata, "tests_by": "me"}


@pytest.mark.parametrize("batch", [1, 2])
def test_batches_do_not_part_the_answers_of_a_problem(tmp_path, sandbox, batch):
    other = Problem("own/two", "def clamp(x, low, high):", "clamp", CLAMP.reference)
    answers = ["assert clamp(5, 0, 3) == 3"] * 2 + ["assert clamp(1, 2, 3) == 2"]
    tally = written(tmp_path / "r", [CLAMP, other], sandbox, answers, batch=batch)
    assert [suite.written for suite in tally.suites.values()] == [3, 3]
