"""`codea1 train --dry-run`: what a step does, and what is refused before anything is loaded."""

from __future__ import annotations

import tomllib
from contextlib import nullcontext

import pytest

from codea1_env.cli.app import run
from codea1_env.cli.train import SourcesAndFolder, base_settings
from codea1_env.training import RunError
from codea1_env.training.settings import PRESETS, replaced
from codea1_env.training.trainer_arguments import check_batches, tokens_of_step


def test_every_preset_is_read() -> None:
    for preset in PRESETS:
        assert base_settings(SourcesAndFolder(preset=preset)).max_steps > 0


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["tabular", "smollm2-cpu", "qwen2.5-coder-7b"])
def test_a_dry_run_says_what_a_step_writes_and_learns(preset, capsys) -> None:
    assert run(["train", "--preset", preset, "--dry-run"]) == 0
    shown = capsys.readouterr()
    settings = tomllib.loads(shown.out)
    models = "llm" in (settings["coder"]["player"], settings["tester"]["player"])
    assert shown.err.startswith("A step writes at most") == models
    if preset == "tabular":  # which writes out the defaults, but for one
        assert run(["train", "--dry-run", "--num-tests", "4"]) == 0
        assert tomllib.loads(capsys.readouterr().out) == settings


def test_the_tokens_of_a_step_are_those_of_its_answers() -> None:
    config = replaced(
        base_settings(SourcesAndFolder(preset="smollm2-cpu")),
        {
            "problems_per_step": 3,
            "num_generations": 4,
            "num_suites": 2,
            "coder.sampling.max_completion_length": 100,
            "tester.sampling.max_completion_length": 10,
        },
    )
    # 12 programs and 24 suites are written; of each problem the suites of one program teach.
    assert tokens_of_step(config) == (12 * 100 + 24 * 10, 12 * 100 + 6 * 10)
    frozen = replaced(config, {"coder.freeze": True})
    assert tokens_of_step(frozen) == (12 * 100 + 24 * 10, 6 * 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--threads", "1000000"], "Expect --threads to be from 1 to "),
        (
            ["--coder.sampling.max-completion-length", "1000000000"],
            "in the model's context of 8192 tokens, actually: 1000000000. Lower it.",
        ),
    ],
)
def test_what_this_machine_or_the_model_cannot_do(options, message, capsys) -> None:
    assert run(["train", "--preset", "smollm2-cpu", "--dry-run", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_batch_must_divide_the_answers_of_a_step() -> None:
    preset = base_settings(SourcesAndFolder(preset="smollm2-cpu"))  # two groups of four
    for size, taken in ((4, True), (8, True), (5, False), (16, False)):
        config = replaced(preset, {"coder.trainer": {"per_device_train_batch_size": size}})
        with nullcontext() if taken else pytest.raises(RunError, match="to divide the 8 answers"):
            check_batches(config, 12, 1, gpu=False)
    config = replaced(preset, {"coder.trainer": {"per_device_train_batch_size": 4}})
    check_batches(config, 1, 1, gpu=False)  # a step has no more problems than there are
