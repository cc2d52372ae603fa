"""What a run says of references that fail tests of their own."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from codea1_env.problem_sets.schemas import row_of
from codea1_env.problems import Problem
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.training import TrainConfig, train
from codea1_env.training.problems_of_run import failing_references, warning_of

RIGHT = Problem(
    "inc", "def inc(n):", "inc", "def inc(n):\n    return n + 1", ("assert inc(1) == 2",)
)
WRONG = Problem(
    "dbl",
    "def dbl(n):",
    "dbl",
    "def dbl(n):\n    return 2 * n",
    ("assert dbl(1) == 2", "assert dbl(2) == 5", "assert dbl(3) == 6", "assert dbl(4) == 8"),
)


def test_only_failing_references_are_named(sandbox: Sandbox) -> None:
    assert failing_references([RIGHT, WRONG], sandbox, Limits()) == [WRONG]
    many = warning_of([WRONG] * 12)
    assert "in 12 problems: dbl, dbl" in many
    assert "and 2 more" in many


def test_a_run_says_it_once(tmp_path: Path, sandbox: Sandbox) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_text(json.dumps(row_of(WRONG)) + "\n")
    said = []
    for steps in (1, 2):
        out = io.StringIO()
        config = TrainConfig(
            problems=str(path), split=None, num_generations=2, num_suites=2, max_steps=steps,
            eval_samples=1, output_dir=tmp_path / "run",
        )  # fmt: skip
        train(config, resume=steps == 2, sandbox=sandbox, console=Console(file=out, width=200))
        said.append("fails tests of its own in 1 problem: dbl." in out.getvalue())
    assert said == [True, False]
