"""The public sets: their own references score 100%, but for faults that are known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from problem_rows import LAYOUTS

from codea1_env.cli.app import run
from codea1_env.evaluation.program_verdicts import has_base
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import to_problem
from codea1_env.problems import load_problems

KNOWN = {
    "HumanEval/0": "",
    "HumanEval/32": "",  # its published test is corrected by the loader
    "MBPP/56": "",  # its function is called check, as that of the test
    "MBPP/255": "its own reference fails: unencodable",
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "every"), [("humanevalplus", 2), ("mbppplus", 6)])
def test_references_are_right(name: str, every: int, shared_data: Path, tmp_path: Path, capsys):
    with gzip.open(shared_data / f"{name}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    known = {row["task_id"]: KNOWN[row["task_id"]] for row in rows if row["task_id"] in KNOWN}
    kept = [row for i, row in enumerate(rows) if i % every == 0 or row["task_id"] in known]
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    options = ["--problems", str(path), "--agent", "reference", "-n", "1", "--json"]
    code = run(["eval", "code", *options, "--output-dir", str(tmp_path / "results")])
    report = json.loads(capsys.readouterr().out)
    faults = {task: fault for task, fault in known.items() if fault}
    assert code == (1 if faults else 0)
    assert report["excluded"].keys() == faults.keys()
    assert all(report["excluded"][task].startswith(fault) for task, fault in faults.items())
    assert report["scored"] == len(kept) - len(faults)
    excluded = {"excluded": len(faults)} if faults else {}
    assert report["outcomes"] == {**excluded, "pass": report["scored"]}


def test_which_layouts_tell_base_tests_from_others():
    base = {name for name, row in LAYOUTS.items() if has_base(to_problem(Row(row, name)))}
    assert base == {"mbpp+ hub"}


PUBLISHED = """
import numpy as np

def is_floats(x) -> bool:
    if isinstance(x, float):
        return True
    if isinstance(x, (list, tuple)):
        return all(isinstance(i, float) for i in x)
    return False


def assertion(out, exp, atol):
    exact_match = out == exp

    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert exact_match


def check(candidate):
    inputs = [[2], [0]]
    results = [(2.0, 2.0), ()]
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(candidate(*inp), exp, 0)
"""
"""The tests of HumanEval+ have this form."""


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
    row = LAYOUTS["humaneval+ hub"] | {"test": PUBLISHED}
    problem = to_problem(Row(row, "here"))
    code = f"def double(x):\n    return {expression}\n"
    (result,) = sandbox.run_tests(code, problem.all_tests, entry_point="double")
    assert result.passed == passes, result


@pytest.mark.parametrize("task_id", ["MBPP/737", "MBPP/787", "MBPP/794"])
def test_tests_that_compared_without_asserting(task_id, shared_data, sandbox):
    problems = {
        each.task_id: each for each in load_problems(str(shared_data / "mbppplus.jsonl.gz"))
    }
    problem = problems[task_id]
    for code, passes in (
        (problem.reference, True),
        (f"def {problem.entry_point}(text):\n    return True\n", False),
    ):
        (result,) = sandbox.run_tests(code, problem.all_tests, entry_point=problem.entry_point)
        assert result.passed == passes
