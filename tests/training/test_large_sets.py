"""A run on many problems looks at few of them before its first step."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from codea1_env import Sandbox
from codea1_env.evaluation import hold_out, pass_rate, train_tests
from codea1_env.problems import Problem, load_problems
from codea1_env.support.logs import read_rows
from codea1_env.training import PlayerConfig, TesterConfig, TrainConfig, train
from codea1_env.training.run_folder import HELD_OUT

NUMBER = 40
SETTINGS = TrainConfig(
    split=None, coder=PlayerConfig("reference"), tester=TesterConfig("golden"), problems_per_step=2, num_generations=2,
    num_suites=2, max_steps=1, eval_samples=1, eval_trained=3,
)  # fmt: skip


def write_set(path: Path, number: int = NUMBER) -> Path:
    """A problem again and again, under other names."""
    rows = [
        {
            "task_id": f"add/{i}",
            "prompt": "def add(a: int, b: int) -> int:",
            "entry_point": "add",
            "reference": f"def add(a, b):\n    return a + b + {i} - {i}",
            "tests": [f"assert add({i}, {j}) == {i + j}" for j in range(3)],
        }
        for i in range(number)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_mutants_are_made_of_the_measured_problems_alone(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from codea1_env.evaluation import held_out as module

    made: list[str] = []
    generate = module.generate_mutants

    def counting(source: str, used: Sandbox) -> object:
        made.append(source)
        return generate(source, used)

    monkeypatch.setattr(module, "generate_mutants", counting)
    problems = write_set(tmp_path / "many.jsonl")
    measured = []
    for folder in ("run", "again"):
        config = {"problems": str(problems), "output_dir": tmp_path / folder}
        train(
            TrainConfig(**{**vars(SETTINGS), **config}),
            sandbox=sandbox,
            console=Console(file=io.StringIO()),
        )
        rows = list(read_rows(tmp_path / folder / HELD_OUT))
        assert [row["step"] for row in rows] == [0, 0, 0, 1, 1, 1]
        assert all(row["pass_rate"] == 1.0 for row in rows)
        measured.append([row["task_id"] for row in rows])
    assert measured[0] == measured[1]
    assert len(made) == 2 * SETTINGS.eval_trained
    assert measured[0][:3] != [f"add/{i}" for i in range(3)], "not simply the first ones"


def test_tests_for_training_are_those_of_the_split(sandbox: Sandbox) -> None:
    for split in hold_out(load_problems("starter", "train")[:3], sandbox, 5):
        assert train_tests(split.problem, 5) == split.train_tests


def test_a_test_module_measures_nothing(sandbox: Sandbox) -> None:
    """Programs can forge its verdicts."""
    reference, module = (
        "def inc(n):\n    return n + 1",
        "from solution import *\ndef test_it(): pass\n",
    )
    problem = Problem("inc", "def inc(n):", "inc", reference, test_module=module)
    held_out = hold_out([problem], sandbox)
    assert (held_out[0].train_cases, held_out[0].cases) == ((), ())

    class Writes:
        def act(self, observations: object) -> list[str]:
            return [reference] * len(observations)  # type: ignore[arg-type]

    assert pass_rate(Writes(), held_out, sandbox, 1) is None
