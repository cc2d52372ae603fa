"""Evaluations of programs, in one process."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from in_one_process import InFolder, ignore
from problem_rows import LAYOUTS, judged, template
from programs_of import texts_of

from codea1_env.agents import MutantCoder
from codea1_env.cli.app import run
from codea1_env.evaluation.programs import CodeEvaluation
from codea1_env.evaluation.runner import EvaluationPlan
from codea1_env.evaluation.samples import read_samples
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import to_problem
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import InfraError, Outcome, Sandbox, TestResult
from codea1_env.support.jobs import FolderError, Jobs

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")


NEXT = Problem(
    "demo/next",
    'def next_number(n):\n    """Return n + 1."""\n',
    "next_number",
    "def next_number(n):\n    return n + 1\n",
    ("assert next_number(1) == 2", "assert next_number(-1) == 0"),
)
PLUS = Problem(
    "demo/double",
    'def double(n):\n    """Return 2 * n."""\n',
    "double",
    "def double(n):\n    return 2 * n\n",
    ("assert double(2) == 4", "assert double(-3) == -6"),
    base=1,
)


class Coder:
    """Gives prepared answers, and counts what it was asked for."""

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers = answers
        self.asked = 0
        self.seeds: list[int] = []

    def __call__(self, seed: int) -> Coder:
        self.seeds.append(seed)
        return self

    def act(self, observations):
        numbers = range(self.asked, self.asked + len(observations))
        self.asked += len(observations)
        return [self.answers[number % len(self.answers)] for number in numbers]


def opened(problems: Sequence[Problem], sandbox: Sandbox, folder: Jobs) -> InFolder:
    own = CodeEvaluation()
    own.load(problems)
    found = InFolder(own, sandbox, folder)
    found.check()
    return found


def judge(
    problems: Sequence[Problem], programs: Sequence[tuple[str, str]], sandbox: Sandbox, folder: Path
) -> tuple[list[dict], dict]:
    """Judge programs from a file; returns the rows of verdicts, and the report."""
    folder.mkdir(exist_ok=True)
    path = folder / "given.jsonl"
    rows = [{"task_id": task, "solution": code} for task, code in programs]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = read_samples(path, problems)
    with Jobs(folder / "results", {}, resume=False) as results:
        evaluation = opened(problems, sandbox, results)
        evaluation.judge_file(file.samples, evaluation.own.add)
        return results.rows("verdicts.jsonl"), evaluation.report(file.unknown)


def test_every_kind_of_end(sandbox, tmp_path):
    programs = [
        "def next_number(n):\n    return n + 1\n",
        "def next_number(n):\n    return abs(n) + 1\n",
        "def next_number(n):\n    return 1 / 0\n",
        "def next_number(n):\n",
        "def other(n):\n    return n + 1\n",
        "",
        "def next_number(n):\n    return '\0'\n",
        "x = '\ud800'",
        "import os\nos._exit(0)\n",
        "def next_number(n):\n    return object()\n",
    ]
    rows, report = judge([NEXT], [("demo/next", code) for code in programs], sandbox, tmp_path)
    assert [row["outcome"] for row in rows] == [
        "pass", "fail", "error", "syntax_error", "error", "error", "syntax_error", "syntax_error",
        "exited", "unencodable",
    ]  # fmt: skip
    assert rows[1]["message"] == "test 2 of 2: returned 2, not 0"
    assert "ZeroDivisionError" in rows[2]["message"]
    assert rows[7]["message"] == "the program has a lone surrogate (U+D800)"
    assert [row["sample"] for row in rows] == list(range(10))
    assert report["results"]["demo/next"]["passed"] == 1
    assert report["figures"]["all"]["pass@1"]["value"] == pytest.approx(0.1)
    assert report["figures"]["all"]["avg@10"] == report["figures"]["all"]["pass@1"]
    assert report["figures"]["all"]["pass@10"]["value"] == 1.0


def test_verdicts_do_not_depend_on_workers_or_time(tmp_path):
    problems = load_problems("starter")[:4]
    outputs = []
    for workers in (1, 3):
        with (
            Sandbox(workers) as sandbox,
            Jobs(tmp_path / str(workers), {}, resume=False) as folder,
        ):
            mutants = MutantCoder(problems, sandbox)
            evaluation = opened(problems, sandbox, folder)
            evaluation.judge_agent(lambda _, coder=mutants: coder, EvaluationPlan(3, 4, 0), ignore)
        outputs.append((tmp_path / str(workers) / "verdicts.jsonl").read_bytes())
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") == 12


def test_agents_are_asked_in_batches_with_a_seed_each(sandbox, tmp_path):
    fenced = f"Here:\n```python\n{NEXT.reference}```\n"
    coder = Coder([fenced])
    with Jobs(tmp_path, {}, resume=False) as folder:
        evaluation = opened([NEXT, PLUS], sandbox, folder)
        evaluation.judge_agent(coder, EvaluationPlan(num_samples=3, batch_size=4, seed=7), ignore)
        samples = folder.rows("samples.jsonl")
    assert coder.asked == 6
    assert len(set(coder.seeds)) == len(coder.seeds) == 2
    assert [row["task_id"] for row in samples] == ["demo/next"] * 3 + ["demo/double"] * 3
    assert samples[0] == {"task_id": "demo/next", "solution": NEXT.reference, "answer": fenced}


def test_verdicts_of_other_samples_are_refused(sandbox, tmp_path):
    with Jobs(tmp_path, {}, resume=False) as folder:
        opened([NEXT], sandbox, folder)  # verdicts without a judged reference are asked again
        folder.append("verdicts.jsonl", [{"task_id": "demo/next", "sample": 1}])
        evaluation = opened([NEXT], sandbox, folder)
        with pytest.raises(FolderError, match="go on with demo/next, sample 0"):
            evaluation.judge_agent(Coder(["x"]), EvaluationPlan(1, 1, 0), ignore)


def test_a_failing_sandbox_is_no_verdict(sandbox, tmp_path, monkeypatch):
    with Jobs(tmp_path, {}, resume=False) as folder:
        evaluation = opened([NEXT], sandbox, folder)
        own = Sandbox()
        own.close()
        evaluation.own.sandbox = own
        with pytest.raises((InfraError, RuntimeError)):
            evaluation.judge_agent(Coder(["x"]), EvaluationPlan(2, 2, 0), ignore)
        assert folder.rows("verdicts.jsonl") == []


def test_a_program_at_which_the_sandbox_fails_is_left_out_and_counted(tmp_path, monkeypatch):
    """And met no more when the evaluation goes on."""
    run = Sandbox._run

    def fail_at_it(self, attempt, kind, limits, unjudged):
        if any("hostile" in text for text in texts_of(attempt)):
            return unjudged(TestResult(Outcome.UNJUDGED, "killed three times"))
        return run(self, attempt, kind, limits, unjudged)

    monkeypatch.setattr(Sandbox, "_run", fail_at_it)
    right, wrong = NEXT.reference + "\n# right", "def next_number(n):\n    return n\n"
    programs = [("demo/next", code) for code in (right, f"{wrong}# hostile", wrong)]
    with Sandbox() as sandbox:
        rows, report = judge([NEXT], programs, sandbox, tmp_path)
        assert [row["outcome"] for row in rows] == ["pass", "unjudged", "fail"]
        assert report["figures"]["all"]["pass@1"]["value"] == pytest.approx(0.5)
        assert report["outcomes"] == {"fail": 1, "pass": 1, "unjudged": 1}
        with Jobs(tmp_path / "results", {}, resume=True) as results:
            evaluation = opened([NEXT], sandbox, results)
            samples = read_samples(tmp_path / "given.jsonl", [NEXT]).samples
            evaluation.judge_file(samples, ignore)
            assert results.rows("verdicts.jsonl") == rows


def test_what_a_problem_gives_is_there_once(sandbox: Sandbox, tmp_path: Path) -> None:
    """A preamble is put before programs when they are judged, the head of a prompt when they are read."""
    shown = Problem(
        "demo/shown",
        'import math\n\n\ndef half(n):\n    """Return half of n, rounded down."""\n',
        "half",
        "def half(n):\n    return n // 2\n",
        ("assert half(3) == 1",),
    )
    given = dataclasses.replace(shown, task_id="demo/given", preamble="import math")
    program = "def half(n):\n    return math.floor(n / 2)"
    seen = []
    with Jobs(tmp_path / "results", {}, resume=False) as results:
        evaluation = opened([shown, given], sandbox, results)
        evaluation.judge_agent(
            Coder([program]),
            EvaluationPlan(num_samples=1, batch_size=2, seed=0),
            lambda sample, verdict: seen.append((sample.code, verdict.outcome)),
        )
    assert seen == [(f"import math\n\n\n{program}", "pass"), (program, "pass")]


WITH_CARE = {
    "HumanEval/0",
    "HumanEval/15",  # replies of 64 MiB together
    "HumanEval/32",  # a root of a polynomial
    "HumanEval/83",  # an integer of more than 128 KiB
    "HumanEval/130",
    "MBPP/56",  # its function is called check, as that of the test
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "every"), [("humanevalplus", 80), ("mbppplus", 240)])
def test_references_are_right(name: str, every: int, shared_data: Path, tmp_path: Path, capsys):
    with gzip.open(shared_data / f"{name}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    kept = [row for i, row in enumerate(rows) if i % every == 0 or row["task_id"] in WITH_CARE]
    for row in kept:  # where twenty inputs are as large as each other, eight are enough
        row["test"] = re.sub(r"\[10000(0[1-9]|1\d)\], ", "", row["test"])
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    options = ["--problems", str(path), "--agent", "reference", "-n", "1", "--json"]
    code = run(["eval", "code", *options, "--output-dir", str(tmp_path / "results")])
    report = json.loads(capsys.readouterr().out)
    assert code == 0
    assert report["excluded"] == {}
    assert report["scored"] == len(kept)
    assert report["outcomes"] == {"pass": len(kept)}
    assert report["judged_inside"] == 0


def test_which_layouts_tell_base_tests_from_others():
    base = {name for name, row in LAYOUTS.items() if to_problem(Row(row, name)).base}
    assert base == {"mbpp+ hub"}


@pytest.mark.parametrize(
    ("expression", "passes"),
    [
        ("(2.0,) * x", True),
        ("(2.0 + 1e-9,) * x", True),
        ("(2.0 + 1e-3,) * x", False),
        ("(2.0,) * x or None", False),
        ("(2.0,) * x or 5.0", False),
        ("[2.0] * x", False),
        ("2.0 if x else ()", False),
    ],
)
def test_floats_are_compared_as_evalplus_does(expression, passes, sandbox):
    row = LAYOUTS["humaneval+ hub"] | {"test": template("[[2], [0]]", "[(2.0, 2.0), ()]")}
    problem = to_problem(Row(row, "here"))
    code = f"def double(x):\n    return {expression}\n"
    results = judged(problem, code, sandbox)
    assert all(result.passed for result in results) == passes, results


def test_rows_whose_tests_need_care_refuse_wrong_programs(shared_data, sandbox):
    """A root of a polynomial; a function called check; tests that compared without asserting."""
    wanted = ("HumanEval/32", "MBPP/56", "MBPP/737", "MBPP/787", "MBPP/794")
    files = [shared_data / f"{name}.jsonl.gz" for name in ("humanevalplus", "mbppplus")]
    rows = [each for file in files for each in load_problems(str(file)) if each.task_id in wanted]
    assert len(rows) == 5
    for problem in rows:
        assert all(each.passed for each in judged(problem, problem.reference, sandbox))
        wrong = f"def {problem.entry_point}(*args): return True"
        assert not all(each.passed for each in judged(problem, wrong, sandbox)), problem.task_id
