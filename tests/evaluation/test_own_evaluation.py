"""Evaluations of one's own: the example, and what is refused."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codea1_env.cli.app import run
from codea1_env.evaluation import own_evaluation, runner
from codea1_env.evaluation.runner import EvaluationPlan, EvaluationRun, Stopped, build_report
from codea1_env.evaluation.task import EvaluationError, ProblemFault
from codea1_env.problems import load_problems
from codea1_env.sandbox import Sandbox, SandboxError
from codea1_env.support.jobs import Jobs

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_evaluation.py"
NAME = f"{EXAMPLE}:right_lines"
FEW = ["--max-problems", "3", "--num-samples", "2"]


def length(problem, tests):
    """Characters of answers."""
    return {"length": len(tests)}


def evaluation_of(judge) -> Any:
    return own_evaluation("mine", judge)()


@pytest.mark.slow
def test_the_example_runs_goes_on_and_compares(tmp_path, capsys):
    for agent in ("reference", "mutant"):
        folder = tmp_path / agent
        arguments = ["eval", "run", NAME, "--agent", agent, *FEW, "--output-dir", str(folder)]
        assert run(arguments) == 0
        shown = capsys.readouterr().out
        assert "6 programs for 3 of 128 problems" in shown
        assert f"Command: codea1 eval run {NAME} --agent {agent}" in shown
    names = ("samples.jsonl", "verdicts.jsonl", "report.json")
    files = {name: (folder / name).read_bytes() for name in names}
    verdicts = files["verdicts.jsonl"].splitlines(keepends=True)
    (folder / "verdicts.jsonl").write_bytes(b"".join(verdicts[:3]) + verdicts[3][:5])
    (folder / "report.json").unlink()
    assert run([*arguments, "--resume"]) == 0
    assert files == {name: (folder / name).read_bytes() for name in names}
    report = json.loads((tmp_path / "reference" / "report.json").read_text())
    assert report["kind"] == report["settings"]["evaluates"] == "right_lines"
    assert report["figures"]["right"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    problems = load_problems("starter")[:3]
    lines = [sum(bool(line.strip()) for line in p.reference.splitlines()) for p in problems]
    values = [each["values"]["lines"] for each in report["results"].values()]
    assert values == lines
    assert report["figures"]["lines"]["value"] == pytest.approx(sum(lines) / 3)
    capsys.readouterr()
    folders = [str(tmp_path / name) for name in ("reference", "mutant")]
    assert run(["eval", "compare", *folders, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    by_name = {each["figure"]: each["difference"]["value"] for each in found["differences"]}
    assert by_name["right"] < 0


@pytest.mark.slow
def test_its_text_is_the_help(capsys):
    with pytest.raises(SystemExit):
        run(["eval", "run", NAME, "--help"])
    assert "Count the lines of right programs." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "actually"),
    [
        (lambda problem: {}, r"\(problem\)"),
        (lambda problem, sample: {}, r"\(problem, sample\)"),
        (lambda problem, program, k: {}, r"\(problem, program, k\)"),
        (dict, "<class 'dict'>"),
    ],
)
def test_what_is_no_evaluation_is_named(wrong, actually):
    with pytest.raises(TypeError, match=f"Expect the evaluation 'mine' .*actually: {actually}$"):
        own_evaluation("mine", wrong)


def test_what_a_check_refuses_is_left_out(tmp_path, sandbox):
    problems = load_problems("starter")[:2]

    class Choosy(own_evaluation("mine", length)):
        def check(self, problem):
            return ProblemFault(problem.task_id, "not wanted" if problem is problems[0] else "")

    class Tester:
        def act(self, observations):
            return ["x" * (i + 1) for i, _ in enumerate(observations)]

    own = Choosy()
    own.load(problems)
    own.begin(sandbox)
    with Jobs(tmp_path / "a", {}, resume=False) as folder:
        at_work = EvaluationRun(own, folder)
        at_work.check()
        at_work.judge_agent(lambda _: Tester(), EvaluationPlan(1, 2, 0), own.add)
    report = build_report(own, {}, {})
    assert report["excluded"] == {problems[0].task_id: "not wanted"}
    assert report["results"][problems[1].task_id]["values"] == {"length": 1.0}
    assert report["figures"]["length"]["value"] == 1.0


def judged_by(own, folder: Jobs, **options: Any) -> None:
    class Tester:
        def act(self, observations):
            return ["x"] * len(observations)

    own.load(load_problems("starter")[:1])
    with Sandbox() as sandbox:
        own.begin(sandbox)
        at_work = EvaluationRun(own, folder, **options)
        at_work.judge_agent(lambda _: Tester(), EvaluationPlan(1, 1, 0), own.add)


def test_who_stops_does_not_wait_for_a_sample_and_a_broken_off_one_has_no_verdict(tmp_path):
    begun = threading.Event()

    def endless(problem, tests, sandbox):
        try:
            while True:
                sandbox.run_tests("x = 1", ["assert x == 1"])
                begun.set()
        except SandboxError:
            return {"length": 0}

    with Jobs(tmp_path / "a", {}, resume=False) as folder:
        with pytest.raises(Stopped):
            judged_by(evaluation_of(endless), folder, stop=begun.is_set)
        assert (len(folder.rows("samples.jsonl")), folder.rows("verdicts.jsonl")) == (1, [])


def test_work_without_a_verdict_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_QUIET", 0.0)
    told: list[str] = []
    heard = threading.Event()

    def slow(problem, tests, sandbox):
        for _ in range(3):
            sandbox.run_tests("x = 1", ["assert x == 1"])
        assert heard.wait(60), "nobody said that work goes on"
        return {"length": 1}

    def say(text: str) -> None:
        told.append(text)
        if "; 3 runs of programs so far" in text:
            heard.set()

    with Jobs(tmp_path / "a", {}, resume=False) as folder:
        judged_by(evaluation_of(slow), folder, say=say)
        assert len(folder.rows("verdicts.jsonl")) == 1
    assert all(text.startswith("no new verdict for ") for text in told)


OWN = """
import math
import numpy as np

def own(problem, program):
    "Judge somehow."
    return {returned}
"""


def run_own(tmp_path, capsys, returned: str, *more: str) -> tuple[int, str]:
    path = tmp_path / "own.py"
    path.write_text(OWN.format(returned=returned))
    out = ["--agent", "reference", *FEW, "--output-dir", str(tmp_path / "out"), *more]
    code = run(["eval", "run", f"{path}:own", *out])
    captured = capsys.readouterr()
    return code, " ".join((captured.out + captured.err).split())


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (3, "a mapping of names to values, actually, for sample 0 of a: 3"),
        ({"a": np.inf}, "actually, for sample 0 of a: 'a': inf"),
        ({1: 2}, "expect judge to return finite numbers"),
        (np.ones((2, 2)), "actually, for sample 0 of a: array([[1., 1.], [1., 1.]])"),
        ({"a": np.arange(3)}, "actually, for sample 0 of a: 'a': array([0, 1, 2])"),
    ],
)
def test_what_is_no_verdict_is_named_with_its_sample(verdict: Any, message: str) -> None:
    with pytest.raises(EvaluationError, match=re.escape(message)):
        runner._plain(verdict, "sample 0 of a")


def test_numbers_of_numpy_are_numbers(tmp_path, capsys):
    code, shown = run_own(
        tmp_path, capsys, "{'a': np.int64(9), 'b': np.float32(0.5), 'c': np.bool_(True), 'd': None}"
    )
    assert code == 0
    assert "a 9.000" in shown
    assert "d -" in shown
    assert "first figure so far 9.000" in shown


def test_an_error_says_on_which_sample(tmp_path, capsys):
    with pytest.raises(ZeroDivisionError) as caught:
        run_own(tmp_path, capsys, "1 / 0")
    assert "own judged sample 0 of starter/add_numbers" in caught.value.__notes__[0]


@pytest.mark.slow
def test_it_goes_on_with_the_same_file_only(tmp_path, capsys):
    for returned, resume, expected in (("{'a': 1}", [], 0), ("{'a': 2}", ["--resume"], 2)):
        code, shown = run_own(tmp_path, capsys, returned, *resume)
        assert code == expected
    assert "evaluation changed" in shown
