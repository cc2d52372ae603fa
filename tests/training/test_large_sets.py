"""The problems of a run: many, with references that fail, and those of the paper's presets."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from problem_rows import LAYOUTS, write_lines
from rich.console import Console

from codea1_env.cli.train import PRESETS, SourcesAndFolder, base_settings
from codea1_env.evaluation import hold_out, pass_rate
from codea1_env.problems import Problem, ProblemsError, load_problems
from codea1_env.sandbox import Sandbox
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


def test_mutants_are_made_of_the_measured_problems_alone(tmp_path, sandbox, monkeypatch) -> None:
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
        config = replace(SETTINGS, problems=str(problems), output_dir=tmp_path / folder)
        train(config, sandbox=sandbox, console=Console(file=io.StringIO()))
        rows = list(read_rows(tmp_path / folder / HELD_OUT))
        assert [row["step"] for row in rows] == [0, 0, 0, 1, 1, 1]
        assert all(row["pass_rate"] == 1.0 for row in rows)
        measured.append([row["task_id"] for row in rows])
    assert measured[0] == measured[1]
    assert len(made) == 2 * SETTINGS.eval_trained
    assert measured[0][:3] != [f"add/{i}" for i in range(3)], "not simply the first ones"


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


PAPER = [name for name in PRESETS if name.startswith("qwen")]


@pytest.mark.parametrize("preset", PAPER)
def test_every_problem_comes_three_times(preset: str) -> None:
    config = base_settings(SourcesAndFolder(preset=preset))
    assert (config.problems, config.difficulty) == ("kodcode", "hard")
    assert config.max_problems is not None
    epoch = config.max_problems // config.problems_per_step
    assert (epoch, config.max_steps) == (37, 111)
    assert config.coder.trainer["delta"] == config.tester.trainer["delta"] == 10.0


def rows(path: Path) -> str:
    levels = enumerate(("hard", "easy", "hard", "medium", "hard"))
    made = [{"question_id": f"Q{i}", "gpt_difficulty": level} for i, level in levels]
    return write_lines(path, *(LAYOUTS["kodcode"] | each for each in made))


def test_the_hard_part_of_a_set(tmp_path: Path) -> None:
    source = rows(tmp_path / "kodcode.jsonl")
    hard = load_problems(source, difficulty="hard")
    assert [problem.task_id for problem in hard] == ["KodCode/Q0", "KodCode/Q2", "KodCode/Q4"]
    assert hard[0].metadata["pass_percentage"] == "0.4"
    with pytest.raises(ProblemsError, match=r"one of easy, hard, medium, actually: 'harder'"):
        load_problems(source, difficulty="harder")


def test_the_release_does_not_say_how_hard_its_problems_are(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "release.jsonl", LAYOUTS["release"])
    with pytest.raises(ProblemsError, match=r"one of none .*--difficulty None"):
        load_problems(source, difficulty="hard")
    assert len(load_problems(source)) == 1
