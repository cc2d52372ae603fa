"""`codea1 eval best-of-n` from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from problem_rows import CONTEST, OWN, write_lines

from codea1_env.agents import MutantCoder
from codea1_env.cli.app import run
from codea1_env.problems import load_problems
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe

COUNT = 4
PROBLEMS = load_problems("starter")[:COUNT]


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """An evaluation of programs of which about half are right."""
    folder = tmp_path_factory.mktemp("programs")
    with Sandbox() as sandbox:
        mutants = MutantCoder(PROBLEMS, sandbox, seed=1)
        rows = [
            {
                "task_id": problem.task_id,
                "solution": problem.reference if i % 2 else mutants.act([observe(problem)])[0],
            }
            for problem in PROBLEMS
            for i in range(4)
        ]
    samples = write_lines(folder / "samples.jsonl", *rows)
    options = ["--samples", samples, "--max-problems", str(COUNT)]
    assert run(["eval", "code", *options, "--output-dir", str(folder / "code")]) == 0
    return folder / "code"


def report_of(capsys, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["eval", "best-of-n", *map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_golden_tests_choose_well_and_boundary_tests_less_so(programs, tmp_path, capsys):
    options = ["--programs", programs, "-n", "2"]
    golden = report_of(capsys, *options, "--agent", "golden", "--output-dir", tmp_path / "g")
    assert golden["settings"]["problems"] == "starter"
    assert golden["settings"]["max_problems"] == COUNT
    assert (golden["scored"], golden["programs"]) == (COUNT, 4 * COUNT)
    figures = {name: each["value"] for name, each in golden["figures"].items()}
    code = json.loads((programs / "report.json").read_text())["figures"]["all"]
    assert figures["random"] == pytest.approx(code["pass@1"]["value"])
    assert figures["random"] < figures["codet"] <= figures["best"] == 1.0
    assert golden["gains"]["codet"]["low"] > 0
    assert (tmp_path / "g" / "report.json").is_file()
    boundary = [*options, "--agent", "boundary", "--white-box", "--output-dir", tmp_path / "b"]
    assert report_of(capsys, *boundary)["figures"]["codet"]["value"] <= figures["best"]
    assert run(["eval", "best-of-n", *map(str, boundary), "--resume"]) == 0
    shown = capsys.readouterr().out
    assert "by CodeT" in shown
    assert "gain [95%, paired]" in shown
    assert "Command: codea1 eval best-of-n --programs" in shown
    assert run(["eval", "compare", str(tmp_path / "g"), str(tmp_path / "b"), "--json"]) == 0
    comparison = json.loads(capsys.readouterr().out)
    by_name = {each["figure"]: each for each in comparison["differences"]}
    assert by_name["codet"]["a"] == golden["figures"]["codet"]
    assert by_name["random"]["difference"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert run(["eval", "compare", str(programs), str(tmp_path / "b")]) == 2
    assert "one of programs, and" in capsys.readouterr().err


def test_a_resumed_evaluation_has_the_same_report(programs, tmp_path, capsys):
    options = ["--programs", programs, "--agent", "golden", "-n", "2", "--batch-size", "4"]
    report = report_of(capsys, *options, "--output-dir", tmp_path)
    files = {
        name: (tmp_path / name).read_bytes()
        for name in ("samples.jsonl", "verdicts.jsonl", "report.json")
    }
    lines = files["verdicts.jsonl"].splitlines(keepends=True)
    (tmp_path / "verdicts.jsonl").write_bytes(b"".join(lines[:5]) + b'{"task')
    (tmp_path / "samples.jsonl").write_bytes(
        b"".join(files["samples.jsonl"].splitlines(keepends=True)[:9])
    )
    (tmp_path / "report.json").unlink()
    assert report_of(capsys, *options, "--output-dir", tmp_path, "--resume") == report
    assert files == {name: (tmp_path / name).read_bytes() for name in files}
    changed = [*map(str, options), "--num-tests", "2", "--output-dir", str(tmp_path), "--resume"]
    assert run(["eval", "best-of-n", *changed]) == 2
    assert "--num-tests was 8, now 2" in capsys.readouterr().err


def test_tests_from_a_file(programs, tmp_path, capsys):
    rows = [{"task_id": each.task_id, "tests": list(each.tests)} for each in PROBLEMS[1:]]
    rows.append({"task_id": "other", "tests": []})
    samples = write_lines(tmp_path / "tests.jsonl", *rows)
    options = ["--programs", str(programs), "--samples", samples]
    options += ["--output-dir", str(tmp_path / "r")]
    assert run(["eval", "best-of-n", *options]) == 2
    assert f"actually none for 1: {PROBLEMS[0].task_id}" in capsys.readouterr().err
    report = report_of(capsys, *options, "--partial")
    assert report["missing"] == [PROBLEMS[0].task_id]
    assert report["unknown"] == {"other": 1}
    assert report["scored"] == COUNT - 1
    assert "white_box" not in report["settings"]


def test_folders_that_are_of_no_use(programs, tmp_path, capsys):
    def error_of(folder: Path) -> str:
        options = ["--agent", "golden", "--output-dir", str(tmp_path / "out")]
        assert run(["eval", "best-of-n", "--programs", str(folder), *options]) == 2
        return capsys.readouterr().err

    assert "there is no such folder" in error_of(tmp_path / "none")
    cut = Path(copytree(programs, tmp_path / "cut"))
    lines = (cut / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "verdicts.jsonl").write_bytes(b"".join(lines[:-1]))
    assert "to have a verdict on every program" in error_of(cut)
    other = Path(copytree(programs, tmp_path / "other"))
    report = json.loads((other / "report.json").read_text())
    report["results"][PROBLEMS[2].task_id]["digest"] = "0"
    (other / "report.json").write_text(json.dumps(report))
    assert f"1 have changed since, such as {PROBLEMS[2].task_id}" in error_of(other)
    assert not (tmp_path / "out").exists()


def test_the_problem_file_is_found_from_another_folder(tmp_path, capsys, monkeypatch):
    write_lines(tmp_path / "set.jsonl", OWN)
    write_lines(tmp_path / "s.jsonl", {"task_id": OWN["task_id"], "solution": OWN["reference"]})
    monkeypatch.chdir(tmp_path)
    code = ["--problems", "set.jsonl", "--samples", "s.jsonl", "--output-dir", "code"]
    assert run(["eval", "code", *code]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    report = report_of(capsys, "--programs", "../code", "--agent", "golden", "-n", "1")
    assert report["scored"] == 1


def test_programs_that_read_input_cannot_be_tested_so(tmp_path, capsys):
    problems = write_lines(tmp_path / "set.jsonl", CONTEST)
    row = {"task_id": "LiveCodeBench/abc900_a", "solution": ""}
    samples = write_lines(tmp_path / "s.jsonl", row)
    code = ["--problems", problems, "--samples", samples, "--output-dir", str(tmp_path / "code")]
    assert run(["eval", "code", *code]) == 0
    options = ["--programs", str(tmp_path / "code"), "--agent", "golden"]
    assert run(["eval", "best-of-n", *options, "--output-dir", str(tmp_path / "r")]) == 2
    assert "the programs of LiveCodeBench/abc900_a read standard input" in capsys.readouterr().err
