"""What a dry run says of the time that a step takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tiny import save_tiny

from codea1_env.cli.app import run


def test_a_dry_run_says_how_long_a_step_takes_at_least(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--model", save_tiny(tmp_path), "--time-budget", "None", "--max-steps", "100"]
    said = {}
    for length in ("8", "2000"):
        lengths = [
            f"--{role}.sampling.max-completion-length={length}" for role in ("coder", "tester")
        ]
        assert run(["train", "--preset", "smollm2-cpu", *options, *lengths, "--dry-run"]) == 0
        text = " ".join(capsys.readouterr().err.split())
        found = re.search(r"at least ([\d:]+) where .*; 100 steps take ([\d:]+)\.", text)
        assert found is not None, text
        said[length] = [
            sum(60**place * int(part) for place, part in enumerate(reversed(each.split(":"))))
            for each in found.groups()
        ]
    assert said["8"] < said["2000"]
