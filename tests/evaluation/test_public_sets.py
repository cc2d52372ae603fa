"""The public sets: their own references score 100%, but for faults that are known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from problem_rows import LAYOUTS

from codea1_env.cli.app import run
from codea1_env.data.schemas import Row, to_problem
from codea1_env.evaluation.code_judging import has_base

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
    assert report["outcomes"] == {"pass": report["scored"]}


def test_which_layouts_tell_base_tests_from_others():
    base = {name for name, row in LAYOUTS.items() if has_base(to_problem(Row(row, name)))}
    assert base == {"mbpp+ hub"}
