"""The public sets: their own references score 100%, but for faults that are known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from problem_rows import LAYOUTS, judged, template

from codea1_env.cli.app import run
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import to_problem
from codea1_env.problems import load_problems

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

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
@pytest.mark.parametrize(("name", "every"), [("humanevalplus", 40), ("mbppplus", 120)])
def test_references_are_right(name: str, every: int, shared_data: Path, tmp_path: Path, capsys):
    with gzip.open(shared_data / f"{name}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    kept = [row for i, row in enumerate(rows) if i % every == 0 or row["task_id"] in WITH_CARE]
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
