"""`max_minutes`: when a run ends, at a checkpoint, and what it is when it goes on."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from codea1_env.sandbox import Sandbox
from codea1_env.support.logs import read_rows
from codea1_env.training import TrainConfig, TrainResult, train
from codea1_env.training import run as run_module
from codea1_env.training.checkpoints import checkpoints, step_of
from codea1_env.training.run_folder import METRICS
from codea1_env.training.settings import replaced

SMALL = TrainConfig(
    max_problems=2,
    problems_per_step=2,
    num_generations=2,
    num_suites=2,
    max_steps=6,
    eval_steps=6,
    eval_samples=1,
    save_steps=6,
    workers=1,
)


def run(folder: Path, sandbox: Sandbox, **changes: Any) -> tuple[TrainResult, str]:
    out = io.StringIO()
    resume = changes.pop("resume", False)
    config = replaced(SMALL, {"output_dir": folder, **changes})
    result = train(config, resume=resume, sandbox=sandbox, console=Console(file=out, width=120))
    return result, out.getvalue()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """One second passes whenever a run looks at its clock: before and after each step, and each measurement."""
    seconds = itertools.count(1)
    monkeypatch.setattr(run_module, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    monkeypatch.setattr(
        "codea1_env.training.loop.time", SimpleNamespace(monotonic=lambda: next(seconds))
    )


def test_it_ends_at_a_checkpoint_and_goes_on_to_the_same_bytes(
    tmp_path: Path, sandbox: Sandbox, clock: None
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run(whole, sandbox)[0].step == 6
    # It begins at 0, measures until 2, and three steps end at 5, 8 and 11: one more, and a measurement, are late.
    result, said = run(parts, sandbox, max_minutes=11 / 60)
    assert (result.finished, result.step) == (True, 3)
    assert "The time is over after step 3. To go on: codea1 train --resume" in said
    assert step_of(checkpoints(parts)[-1]) == 3
    rows = list(read_rows(parts / METRICS))
    assert [row["step"] for row in rows if "held_out/pass_rate" in row] == [0, 3]
    # Minutes count anew.
    result, said = run(parts, sandbox, max_minutes=5.0, resume=True)
    assert (result.finished, result.step) == (True, 6)
    assert "To go on" not in said
    for name in ("coder/tabular.json", "tester/tabular.json", "book.jsonl", "past.jsonl"):
        last = Path("checkpoints/step_6") / name
        assert (parts / last).read_bytes() == (whole / last).read_bytes(), name


def test_a_launch_takes_a_step_however_little_time_there_is(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    for step in (1, 2):
        result, _ = run(tmp_path / "run", sandbox, max_minutes=1e-3, resume=step > 1)
        assert (result.finished, result.step) == (True, step)


def test_steps_may_end_it_before(tmp_path: Path, sandbox: Sandbox) -> None:
    result, said = run(tmp_path / "run", sandbox, max_minutes=5.0, max_steps=1)
    assert (result.finished, result.step) == (True, 1)
    assert "To go on" not in said
