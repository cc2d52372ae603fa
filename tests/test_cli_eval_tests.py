"""`codea1 eval tests` from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codea1_env.cli.app import run
from codea1_env.problem_sets import schemas
from codea1_env.problems import load_problems

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

STARTER = {problem.task_id: problem for problem in load_problems("starter")}
NAMES = list(STARTER)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def golden(tasks: list[str]) -> list[dict[str, Any]]:
    return [{"task_id": task, "tests": list(STARTER[task].tests)} for task in tasks]


def row_of(task: str) -> dict[str, Any]:
    """A problem as a row of a file."""
    return schemas.row_of(STARTER[task])


def report_of(arguments: list[str], capsys, code: int = 0) -> dict[str, Any]:
    assert run(["eval", "tests", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def value(report: dict[str, Any], name: str) -> float:
    return report["figures"][name]["value"]


def test_golden_tests_are_right_and_guesses_mostly_not(tmp_path, capsys):
    few = ["--problems", "starter", "--max-problems", "3"]
    folders = {name: str(tmp_path / name) for name in ("golden", "boundary")}
    right, guessed = (
        report_of([*few, "--agent", name, "--output-dir", folders[name]], capsys)
        for name in folders
    )
    assert right["figures"]["pass@5"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert value(right, "all-pass@5") == 1
    assert value(right, "mut@1") <= value(right, "mut@2") <= value(right, "mut@5")
    assert value(right, "mut@5") > 0.85
    assert right["tests"] == {"right": 15}
    assert "p_00" not in right["figures"]
    assert right["wrong_programs"]["problems_unchecked"] == 0
    assert value(guessed, "pass@5") < 0.6
    assert value(guessed, "mut@5") <= value(guessed, "mut@5@pass")
    assert value(guessed, "Mul@5") == pytest.approx(
        value(guessed, "pass@5") * value(guessed, "mut@5@pass")
    )
    assert value(guessed, "p_01") < 1
    assert sum(guessed["tests"].values()) == 15
    assert run(["eval", "compare", folders["boundary"], folders["golden"]]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "3 problems in both" in shown
    assert "Worse in B: no problem" in shown
    assert "share of right tests in A and B" in shown


def test_a_scripted_tester_needs_golden_tests(tmp_path, capsys):
    rows = [row_of(task) | {"tests": []} for task in NAMES[:2]]
    for row in rows:
        row.pop("cases", None)
    path, folder = write(tmp_path / "problems.jsonl", rows), tmp_path / "r"
    options = ["--problems", str(path), "--agent", "golden", "--output-dir", str(folder)]
    assert run(["eval", "tests", *options]) == 2
    assert "actually none of 2 has one" in capsys.readouterr().err
    assert not folder.exists()


def test_a_file_of_suites(tmp_path, capsys):
    rows = golden(NAMES[:3])
    name = STARTER[NAMES[1]].entry_point
    answer = f"```python\nimport nowhere\nassert {name}(nowhere.x)\n```"
    rows[1] = {"task_id": NAMES[1], "answer": answer}
    rows[2]["tests"] = [rows[2]["tests"][0]] * 2
    rows += [{"task_id": NAMES[0], "answer": ""}, {"task_id": "ULT/1", "tests": []}]
    path = write(tmp_path / "suites.jsonl", rows)
    options = ["--samples", str(path), "--max-problems", "3", "--output-dir", str(tmp_path / "r")]
    assert run(["eval", "tests", *options, "--num-tests", "4", "--k", "1", "4"]) == 0
    shown = capsys.readouterr().out
    assert "Ignored, not in the problem set: ULT/1 (1)" in shown
    assert "1 test unreadable: no call with the value that it returns (wrong)" in shown
    assert "1 right test repeating an earlier one of the suite (counted)" in shown
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    assert [each["values"]["pass@4"] for each in report["results"].values()] == [0.5, 0, 0.5]
    assert report["tests"] == {"missing": 9, "right": 6, "unreadable": 1}
    kept = [json.loads(line) for line in (tmp_path / "r" / "samples.jsonl").open()]
    assert kept == rows[:-1]


def test_wrong_programs_of_a_file(tmp_path, capsys):
    task = STARTER["starter/is_even"]
    problems = write(tmp_path / "problems.jsonl", [row_of(task.task_id)])
    programs = ["return True", task.reference.partition("\n")[2].strip(), "return n == 0"]
    code = [f"def is_even(n):\n    {body}\n" for body in programs]
    rows = [{"task_id": task.task_id, "solution": each} for each in code]
    rows.append({"task_id": "elsewhere", "solution": ""})
    given = write(tmp_path / "programs.jsonl", rows)
    tests = ["assert is_even(4) == True", "assert is_even(3) == True"]
    samples = write(tmp_path / "suites.jsonl", [{"task_id": task.task_id, "tests": tests}])
    options = ["--problems", str(problems), "--samples", str(samples)]
    more = ["--wrong-programs", str(given), "--output-dir", str(tmp_path / "r")]
    report = report_of([*options, *more], capsys)
    assert report["wrong_programs"] == {"programs": 2, "problems": 1, "problems_unchecked": 0}
    assert report["unknown"] == {"elsewhere": 1}
    assert value(report, "p_01") == value(report, "p_00") == 0.5
    assert value(report, "mu") == pytest.approx(0.5 * 0.5 - 0.5 * 0.5)


def test_one_test_at_a_time(tmp_path, capsys):
    path = tmp_path / "own.py"
    path.write_text(
        "class Counting:\n    def act(self, observations):\n"
        '        return [f\'```python\\nassert {o["entry_point"]}({o["tests"].count("assert")}) is True\\n```\'\n'
        "                for o in observations]\n"
    )
    asked = ["--agent", f"{path}:Counting", "--protocol", "rounds", "--num-tests", "3", "-n", "2"]
    few = ["--problems", str(write(tmp_path / "problems.jsonl", [row_of("starter/is_even")]))]
    report = report_of([*asked, *few, "--output-dir", str(tmp_path / "r")], capsys)
    rows = [json.loads(line) for line in (tmp_path / "r" / "samples.jsonl").open()]
    blocks = [f"```python\nassert is_even({n}) is True\n```" for n in range(3)]
    assert rows == [{"task_id": "starter/is_even", "tests": blocks}] * 2
    assert report["tests"] == {"right": 4, "wrong value": 2}
    assert report["repeated_suites"] == 1
    assert report["settings"]["protocol"] == "rounds"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expect either --samples FILE.jsonl or --agent NAME"),
        (["--agent", "golden", "--k", "6"], "k=6, and 5 tests"),
        (["--agent", "mutant", "--max-problems", "1"], "unknown player 'mutant'"),
        (["--agent", "golden", "--wrong-programs", "broken.jsonl"], "broken.jsonl, line 1: Expect"),
    ],
)
def test_bad_input(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (write(tmp_path / "broken.jsonl", golden(NAMES[:1])).open("a")).write('{"task_id": ')
    assert run(["eval", "tests", *arguments]) == 2
    assert message in capsys.readouterr().err


LONG = ["--agent", "boundary", "-n", "2", "--num-tests", "2", "--max-problems", "2", "--batch-size", "2"]  # fmt: skip


def test_a_killed_evaluation_ends_with_the_same_bytes(tmp_path, capsys):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run(["eval", "tests", *LONG, "--workers", "3", "--output-dir", str(whole)]) == 0
    capsys.readouterr()
    command = [sys.executable, "-m", "codea1_env.cli", "eval", "tests", *LONG]
    command += ["--workers", "1", "--output-dir", str(parts)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    verdicts = parts / "verdicts.jsonl"
    while not verdicts.exists() or verdicts.read_bytes().count(b"\n") < 1:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait(60)
    assert not (parts / "report.json").exists()
    done = verdicts.read_bytes()
    assert (whole / "verdicts.jsonl").read_bytes().startswith(done[: done.rfind(b"\n") + 1])
    report_of([*LONG, "--output-dir", str(parts), "--resume"], capsys)
    for name in ("samples.jsonl", "verdicts.jsonl", "report.json"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()


def test_the_tests_that_come_with_unleakedtestbench(shared_data, tmp_path, capsys):
    file = str(shared_data / "ult_lite.jsonl.gz")
    options = ["--problems", file, "--samples", file, "--max-problems", "2"]
    report = report_of([*options, "--output-dir", str(tmp_path / "r")], capsys)
    assert report["scored"] == 2
    assert len(report["unknown"]) == 198  # the rest of the file
    assert sum(report["tests"].values()) == 10
    assert 0 < value(report, "pass@5") < 0.5  # few of them hold
    assert 0 < value(report, "mut@5") < value(report, "mut@5@pass") < 1
    assert report["wrong_programs"]["problems_unchecked"] == 2
