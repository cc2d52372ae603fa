"""The examples that play the suite with other libraries, for a few episodes each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *words: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *words, "--episodes", "512"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout


def test_reinforce_in_numpy() -> None:
    words = ["--ids", "rare-faults/0", "reading/2", "--seeds", "1", "--first-seed", "1000"]
    assert run("suite_bandit.py", *words).count("played") == 2


@pytest.mark.slow
def test_ppo_in_torch() -> None:
    pytest.importorskip("torch")
    words = ["--ids", "validity/1", "kinds/0", "--first-seed", "1000"]
    assert run("suite_cleanrl.py", *words).count("played") == 2


@pytest.mark.slow
def test_stable_baselines3() -> None:
    pytest.importorskip("stable_baselines3")
    for side in ("coder", "tester"):
        assert "played" in run("suite_sb3.py", "rare-faults/0", "--side", side, "--seed", "1000")
