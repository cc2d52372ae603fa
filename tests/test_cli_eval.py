"""`codea1 eval` from the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codea1_env.cli.app import run
from codea1_env.problems import load_problems

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

STARTER = {problem.task_id: problem for problem in load_problems("starter")}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def references(tasks: list[str]) -> list[dict[str, Any]]:
    return [{"task_id": task, "solution": STARTER[task].reference} for task in tasks]


def report_of(arguments: list[str], capsys, code: int = 0) -> dict[str, Any]:
    assert run(["eval", "code", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_references_are_right_and_mutants_are_not(tmp_path, capsys):
    every = ["--problems", "starter", "--max-problems", "4", "-n", "1"]
    right, wrong = (
        report_of([*every, "--agent", name, "--output-dir", str(tmp_path / name)], capsys)
        for name in ("reference", "mutant")
    )
    assert right["scored"] == right["problems"] == 4
    assert right["figures"]["all"]["pass@1"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert wrong["figures"]["all"]["pass@1"]["value"] < 0.5  # golden tests kill most mutants
    assert wrong["samples"] == 4
    assert run(["eval", "compare", str(tmp_path / "mutant"), str(tmp_path / "reference")]) == 0
    shown = capsys.readouterr().out
    assert "4 problems in both" in shown
    assert "Worse in B: no problem" in shown


def test_a_file_of_samples(tmp_path, capsys):
    tasks = list(STARTER)[:3]
    rows = references(tasks)
    rows[1]["solution"] = "def wrong(): pass"
    rows.append({"task_id": tasks[0], "completion": "    return None\n"})
    rows.append({"task_id": "HumanEval/0", "solution": ""})
    path = write(tmp_path / "samples.jsonl", rows)
    arguments = ["--samples", str(path), "--max-problems", "3", "--output-dir", str(tmp_path / "r")]
    assert run(["eval", "code", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "pass@1" in shown
    assert "Ignored, not in the problem set: HumanEval/0 (1)" in shown
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    assert [each["passed"] for each in report["results"].values()] == [1, 0, 1]
    assert report["figures"]["all"]["pass@1"]["value"] == pytest.approx((0.5 + 0 + 1) / 3)
    # What is kept is what evalplus reads, without the tasks that it does not know.
    kept = [json.loads(line) for line in (tmp_path / "r" / "samples.jsonl").open()]
    assert kept == rows[:-1]


def test_missing_tasks_are_refused_or_left_out(tmp_path, capsys):
    tasks = list(STARTER)[:3]
    path = write(tmp_path / "samples.jsonl", references(tasks[:2]))
    arguments = ["--samples", str(path), "--max-problems", "3", "--output-dir", str(tmp_path / "r")]
    assert run(["eval", "code", *arguments]) == 2
    error = capsys.readouterr().err
    assert f"none for 1: {tasks[2]}" in error
    assert "--partial" in error
    report = report_of([*arguments, "--partial"], capsys)
    assert report["missing"] == [tasks[2]]
    assert report["scored"] == 2
    # the reference of a problem without samples is not run
    references_run = (tmp_path / "r" / "references.jsonl").read_text().splitlines()
    assert [json.loads(line)["task_id"] for line in references_run] == tasks[:2]
    assert report["figures"]["all"]["pass@1"]["value"] == 1.0


def test_a_broken_reference_is_listed_and_gives_exit_code_1(tmp_path, capsys):
    own = {"prompt": "def f():", "entry_point": "f", "reference": "def f(): return 1"}
    good = {"task_id": "good", **own, "tests": ["assert f() == 1"]}
    bad = {"task_id": "bad", **own, "tests": ["assert f() == 2"]}
    path = write(tmp_path / "problems.jsonl", [good, bad, {"task_id": "none", **own, "tests": []}])
    arguments = ["--problems", str(path), "--agent", "reference", "-n", "1"]
    report = report_of([*arguments, "--output-dir", str(tmp_path / "r")], capsys, code=1)
    assert list(report["excluded"]) == ["bad", "none"]
    assert report["excluded"]["none"] == "it has no tests"
    assert report["outcomes"] == {"excluded": 2, "pass": 1}
    assert report["scored"] == 1
    write(path, [bad])
    assert run(["eval", "code", *arguments, "--output-dir", str(tmp_path / "s")]) == 2
    assert "actually none can: its own reference fails" in capsys.readouterr().err


def test_an_evaluation_goes_on_with_the_same_problems_only(tmp_path, capsys):
    row = {"task_id": "one", "prompt": "def f():", "entry_point": "f", "tests": ["assert f() == 1"]}
    path = write(tmp_path / "problems.jsonl", [{**row, "reference": "def f(): return 1"}])
    arguments = ["--problems", str(path), "--agent", "reference", "-n", "1"]
    arguments += ["--output-dir", str(tmp_path / "r")]
    before = report_of(arguments, capsys)
    assert report_of([*arguments, "--resume"], capsys) == before
    for change in ({"tests": ["assert f() == 2"]}, {"reference": "def f(): return 1 + 0"}):
        write(path, [{**row, "reference": "def f(): return 1", **change}])
        assert run(["eval", "code", *arguments, "--resume"]) == 2
        assert "problems changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["code", "--samples", "none.jsonl"], "actually there is no none.jsonl"),
        (["code", "--samples", "broken.jsonl"], "broken.jsonl, line 2: Expect one JSON object"),
        (
            ["code", "--samples", "one.jsonl", "--max-problems", "1", "--k", "2"],
            "k=2, and starter/",
        ),
    ],
)
def test_bad_input(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = references(list(STARTER)[:1])
    write(tmp_path / "one.jsonl", rows)
    (write(tmp_path / "broken.jsonl", rows).open("a")).write('{"task_id": ')
    assert run(["eval", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_used_folder_is_not_overwritten(tmp_path, capsys):
    arguments = ["--agent", "reference", "-n", "1", "--output-dir", str(tmp_path)]
    report_of([*arguments, "--max-problems", "2"], capsys)
    assert run(["eval", "code", *arguments, "--max-problems", "2"]) == 2
    assert "Add --resume to go on" in capsys.readouterr().err
    assert run(["eval", "code", *arguments, "--max-problems", "3", "--resume"]) == 2
    assert "--max-problems was 2, now 3" in capsys.readouterr().err
    before = (tmp_path / "report.json").read_bytes()
    report_of([*arguments, "--max-problems", "2", "--resume"], capsys)
    assert (tmp_path / "report.json").read_bytes() == before


LONG = ["--agent", "mutant", "-n", "4", "--max-problems", "5", "--batch-size", "4", "--workers", "2"]  # fmt: skip


def test_an_interrupted_evaluation_ends_with_the_same_bytes(tmp_path, capsys):
    """A killed one: test_cli_eval_tests.py."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    report_of([*LONG, "--output-dir", str(whole)], capsys)
    command = [sys.executable, "-m", "codea1_env.cli", "eval", "code", *LONG]
    command += ["--output-dir", str(parts)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    verdicts = parts / "verdicts.jsonl"
    while not verdicts.exists() or verdicts.read_bytes().count(b"\n") < 5:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert not (parts / "report.json").exists()
    done = verdicts.read_bytes()
    assert (whole / "verdicts.jsonl").read_bytes().startswith(done[: done.rfind(b"\n") + 1])
    report_of([*LONG, "--output-dir", str(parts), "--resume"], capsys)
    for name in ("samples.jsonl", "verdicts.jsonl", "report.json"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()
