"""`codea1 eval code --select` from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from problem_rows import CONTEST, write_lines

from codea1_env.agents import MutantCoder
from codea1_env.cli.app import run
from codea1_env.problems import load_problems
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

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


def test_programs_that_read_input_cannot_be_tested_so(tmp_path: Path, capsys: Any) -> None:
    problems = write_lines(tmp_path / "set.jsonl", CONTEST)
    rows = [{"task_id": "LiveCodeBench/abc900_a", "solution": ""}] * 2
    words = ["--problems", problems, "--samples", write_lines(tmp_path / "s.jsonl", *rows)]
    out = ["--output-dir", str(tmp_path / "r")]
    assert run(["eval", "code", *words, "--select", "boundary", *out]) == 2
    assert "the programs of LiveCodeBench/abc900_a read standard input" in capsys.readouterr().err
