"""What the presets of the paper's runs do, without a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from problem_rows import LAYOUTS, write_lines

from codea1_env.cli.train_settings import PRESETS, SourcesAndFolder, base_settings
from codea1_env.problems import ProblemsError, load_problems

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
    return write_lines(
        path,
        *(
            {**LAYOUTS["kodcode"], "question_id": f"Q{i}", "gpt_difficulty": level}
            for i, level in enumerate(("hard", "easy", "hard", "medium", "hard"))
        ),
    )


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
