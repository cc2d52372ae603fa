"""The examples run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, *arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_custom_agent(tmp_path: Path):
    output = run("custom_agent.py", cwd=tmp_path)
    assert "Docstring examples break" in output
    assert "10 steps" in output
    assert list(tmp_path.iterdir()) == []
    assert len((EXAMPLES / "custom_agent.py").read_text().splitlines()) < 60


def test_train_tabular(tmp_path: Path):
    output = run("train_tabular.py", "--max-steps", "1", cwd=tmp_path)
    assert "coder: pass_rate on what training held back, 0." in output
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
