"""Every baseline is a valid setting of the loop, and says what sets it apart."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from codea1_env.baselines import BASELINES
from codea1_env.sandbox import Sandbox
from codea1_env.training import TrainConfig, train


def test_code_a1_is_the_default() -> None:
    assert BASELINES["code-a1"].apply(TrainConfig()) == TrainConfig()


def test_baselines_differ_from_each_other() -> None:
    named = BASELINES.items()
    configs = [each.apply(TrainConfig()) for name, each in named if name != "alpha=0.5"]
    assert all(a != b for i, a in enumerate(configs) for b in configs[:i])


def last_row(name: str, folder: Path, sandbox: Sandbox) -> dict[str, Any]:
    """Train for two steps; the metrics of the second."""
    config = TrainConfig(
        max_problems=2, num_generations=4, num_suites=2, max_steps=2, eval_samples=1,
        output_dir=folder / name,
    )  # fmt: skip
    console = Console(file=io.StringIO())
    train(BASELINES[name].apply(config), sandbox=sandbox, console=console)
    rows = (folder / name / "metrics.jsonl").read_text().splitlines()
    return json.loads(rows[-1])


@pytest.mark.parametrize(
    ("name", "learners", "book"),
    [
        ("code-a1", {"coder", "tester"}, True),
        ("golden-tests", {"coder"}, False),
        ("self-play", {"model"}, True),
        ("self-play-white-box", {"model"}, True),
        ("self-collusion", {"model"}, True),
        ("code-a1-no-reference", {"coder", "tester"}, True),
        ("sft", {"tester"}, True),
        ("drop-wrong-oracle", {"coder", "tester"}, True),
        ("all-suites", {"coder", "tester"}, True),
        ("alpha=0", {"coder", "tester"}, True),
        ("frozen-tester", {"coder"}, True),
        ("copier", {"coder"}, True),
        ("frozen-coder", {"tester"}, True),
        ("no-book", {"coder", "tester"}, False),
        ("black-box", {"coder", "tester"}, True),
        ("past-opponents", {"tester"}, True),  # in this step the coder is of the past, by its seed
        ("repair", {"coder", "tester"}, True),
        ("sketch", {"coder", "tester"}, True),
    ],
)
def test_baseline_trains_whom_it_says(name, learners, book, tmp_path, sandbox) -> None:
    row = last_row(name, tmp_path, sandbox)
    losses = {"coder": "coder/loss", "tester": "tester/loss", "model": "model/programs/loss"}
    assert {player for player, loss in losses.items() if loss in row} == learners
    assert (row["book/size"] > 0) == book


def test_every_baseline_is_tried() -> None:
    (marks,) = test_baseline_trains_whom_it_says.pytestmark
    others = {name for name in BASELINES if name.startswith("alpha=")}  # one number more or less
    assert {name for name, *_ in marks.args[1]} | others == set(BASELINES)
