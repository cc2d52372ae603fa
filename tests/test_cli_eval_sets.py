"""`codea1 eval code` on sets whose problems are not plain functions with a reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from problem_rows import CLASS, CONTEST, OWN, write_lines
from test_bigcodebench import FRAME

from codea1_env.agents import MutantCoder
from codea1_env.cli.app import run
from codea1_env.problems import load_problems
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

RIGHT = "print(int(input()) + int(input()))"
TURNED = "class Solution:\n    def turned(self, nums: List[int], k: int):\n        return [k * n for n in nums[::-1]]"
ABC, LEET = "LiveCodeBench/abc900_a", "LiveCodeBench/3900"


def report_of(capsys, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    assert run(["eval", "code", *map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_contest_problems_from_a_file_of_samples(tmp_path, capsys):
    problems = write_lines(tmp_path / "set.jsonl", CONTEST, CLASS)
    rows = [
        {"task_id": ABC, "solution": RIGHT},
        {"task_id": LEET, "solution": "def turned(nums, k): pass"},
        {"task_id": ABC, "solution": ""},  # not the reference: there is none
        {"task_id": LEET, "solution": TURNED},
        {"task_id": ABC, "solution": RIGHT.replace("+", "-")},
    ]
    samples = write_lines(tmp_path / "samples.jsonl", *rows)
    folder = tmp_path / "r"
    options = ["--problems", problems, "--samples", samples, "--output-dir", folder]
    report = report_of(capsys, *options)
    verdicts = [json.loads(line) for line in (folder / "verdicts.jsonl").open()]
    assert [row["outcome"] for row in verdicts] == ["pass", "error", "fail", "pass", "fail"]
    assert verdicts[4]["message"] == "test 1 of 3: line 1: printed '-1', expected '3'"
    assert {task: each["passed"] for task, each in report["results"].items()} == {ABC: 1, LEET: 1}
    references = [json.loads(line) for line in (folder / "references.jsonl").open()]
    assert references == [{"task_id": t, "fault": "", "time_limit": 6.0} for t in (ABC, LEET)]
    before = (folder / "verdicts.jsonl").read_bytes()
    (folder / "verdicts.jsonl").write_bytes(before[: before.find(b"\n") + 9])
    assert report_of(capsys, *options, "--resume") == report
    assert (folder / "verdicts.jsonl").read_bytes() == before


def test_an_agent_writes_programs_that_read_input(tmp_path, capsys):
    coder = tmp_path / "coder.py"
    coder.write_text(
        "class Coder:\n    def act(self, seen):\n"
        f"        return ['Sure:\\n```python\\n' + {RIGHT!r} + '\\n```' for each in seen]\n"
    )
    own = {
        "task_id": "demo/double",
        "prompt": "Read two numbers and print their sum.",
        "kind": "program",
        "reference": "print(sum(map(int, open(0))))",
        "cases": [{"stdin": "1\n2", "stdout": "3"}, {"stdin": "5\n5", "stdout": "10"}],
    }
    problems = write_lines(tmp_path / "set.jsonl", own)
    base = ["--problems", problems, "-n", "2", "--output-dir"]
    report = report_of(capsys, *base, tmp_path / "r", "--agent", f"{coder}:Coder")
    assert report["figures"]["all"]["pass@1"]["value"] == 1.0
    report = report_of(capsys, *base, tmp_path / "t", "--agent", "mutant")
    assert report["figures"]["all"]["pass@1"]["value"] < 1.0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train --preset tabular --split None", f"actually {ABC} has none"),
        ("play --seed 1", f"actually {ABC} has none"),
        ("eval code --agent mutant", f"for the coder 'mutant', actually {ABC} has none"),
    ],
)
def test_contest_problems_have_no_reference(command, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problems = write_lines(tmp_path / "set.jsonl", OWN, CONTEST)
    assert run([*command.split(), "--problems", problems]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "play",
        "eval tests --agent golden",
        "eval cross-play reference golden --split None",
        "train --coder reference --tester golden --split None --max-steps 1",
    ],
)
def test_who_only_hands_in_golden_tests_needs_some(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problems = write_lines(tmp_path / "set.jsonl", {**OWN, "tests": []})
    assert run([*command.split(), "--problems", problems]) == 2
    shown = capsys.readouterr().err
    assert "golden tests for the tester 'golden', actually none of 1" in shown
    assert f"problems='{problems}'" in shown or not command.startswith("train")
    assert not list(tmp_path.glob("runs/*"))


def test_cross_play_says_how_many_problems_have_no_golden_tests(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problems = write_lines(tmp_path / "set.jsonl", OWN, {**OWN, "task_id": "bare", "tests": []})
    play = ["eval", "cross-play", "reference", "golden", "--split", "None"]
    assert run([*play, "--num-samples", "1", "--problems", problems]) == 0
    assert "The tester golden has no tests for 1 of 2 problems" in capsys.readouterr().err


def test_packages_that_problems_need(tmp_path, capsys):
    unknown = {**FRAME, "task_id": "BigCodeBench/951", "libs": "['pandas', 'no_such_package']"}
    problems = write_lines(tmp_path / "set.jsonl", FRAME, unknown, OWN)
    options = ["--problems", problems, "--agent", "reference", "-n", "1", "--output-dir"]
    pytest.importorskip("pandas")
    report = report_of(capsys, *options, tmp_path / "r", code=1)
    assert report["excluded"] == {
        "BigCodeBench/950": "needs pandas, which programs may not use here: add --packages pandas",
        "BigCodeBench/951": "needs no_such_package, pandas; no_such_package is not installed: install, and add "
        "--packages no_such_package pandas",
    }
    report = report_of(capsys, *options, tmp_path / "s", "--packages", "pandas", code=1)
    assert list(report["excluded"]) == ["BigCodeBench/951"]
    assert report["scored"] == 2
    assert report["figures"]["all"]["pass@1"]["value"] == 1.0
    assert report["settings"]["packages"].keys() == {"pandas"}
    refused = [*options, str(tmp_path / "t"), "--packages", "pandas", "no_such_package"]
    assert run(["eval", "code", *map(str, refused)]) == 2
    assert "'no_such_package' is not" in capsys.readouterr().err


COUNT = 4
PROBLEMS = load_problems("starter")[:COUNT]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Programs of which half are right."""
    with Sandbox() as sandbox:
        mutants = MutantCoder(PROBLEMS, sandbox, seed=1)
        rows = [
            {
                "task_id": each.task_id,
                "solution": each.reference if i % 2 else mutants.act([observe(each)])[0],
            }
            for each in PROBLEMS
            for i in range(4)
        ]
    return write_lines(tmp_path_factory.mktemp("programs") / "samples.jsonl", *rows)


def test_golden_tests_choose_well(samples: str, tmp_path: Path, capsys: Any) -> None:
    words = ["eval", "code", "--samples", samples, "--max-problems", str(COUNT), "--select", "golden"]  # fmt: skip
    folder = ["--output-dir", str(tmp_path / "a")]
    assert run([*words, *folder, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    chosen = report["selection"]
    assert report["settings"]["select"] == {"agent": "golden", "seed": 0}
    figures = {name: each["value"] for name, each in chosen["figures"].items()}
    assert figures["random"] == report["figures"]["all"]["pass@1"]["value"] == 0.5
    assert (figures["first"], figures["agreement"]) == (0.0, 1.0)
    assert chosen["gains"]["agreement"]["low"] > 0
    names = ("verdicts.jsonl", "selection.jsonl", "report.json")
    files = {name: (tmp_path / "a" / name).read_bytes() for name in names}
    for name in names[:2]:  # killed, and resumed
        lines = files[name].splitlines(keepends=True)
        (tmp_path / "a" / name).write_bytes(b"".join(lines[:2]) + b'{"task')
    assert run([*words, *folder, "--resume"]) == 0
    shown = capsys.readouterr().out
    assert "chosen by agreement" in shown
    assert "over random [95%, paired]" in shown
    assert files == {name: (tmp_path / "a" / name).read_bytes() for name in names}
    assert run([*words[:-1], "boundary", *folder, "--resume"]) == 2
    assert "select was {'agent': 'golden'" in capsys.readouterr().err
    pytest.importorskip("altair")
    assert run(["report", str(tmp_path / "a"), "-o", str(tmp_path / "page.html")]) == 0
    assert "chosen by agreement" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agent", "mutant", "--select", "reference"], "it is a coder. Name golden or boundary or copier"),
        (["--agent", "mutant", "--select", "golde"], "Did you mean 'golden'"),
        (["--agent", "mutant", "--select", "golden", "-n", "1"], "Expect two samples or more with --select"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(words: list[str], message: str, tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "new"
    assert run(["eval", "code", "--max-problems", "1", *words, "--output-dir", str(folder)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not folder.exists()
