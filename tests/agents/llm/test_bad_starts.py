"""Settings with which nothing could be learned are refused before a model is loaded, in one line that says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.cli.train_settings import PRESETS, SourcesAndFolder, base_settings
from codea1_env.training import PlayerConfig, TesterConfig, TrainConfig
from codea1_env.training.settings import replaced

MODELS = TrainConfig(
    coder=PlayerConfig("llm", learning_rate=1e-4), tester=TesterConfig("llm", learning_rate=1e-4)
)
NARROW = SamplingConfig(top_p=0.9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"coder.sampling": NARROW},
            r"coder\.sampling: Expect top_p=1 and top_k=0 .* actually: top_p=0\.9, top_k=0\. Leave",
        ),
        (
            {"tester.sampling": SamplingConfig(top_k=20), "backend": "vllm"},
            r"tester\.sampling: Expect top_p=1 and top_k=0 .* top_k=20",
        ),
        ({"coder.sampling": SamplingConfig(temperature=0)}, r"coder\.sampling: .* above 0"),
        ({"lora_rank": 0, "backend": "server"}, "or 'vllm' if all weights .* Set lora_rank"),
        (
            {"coder.learning_rate": 0.0},
            r"coder\.learning_rate to be greater than 0, actually: 0\.0\. .* coder\.freeze = true",
        ),
        (
            {"tester.trainer": {"learning_rate": 0}},
            r"tester\.trainer\.learning_rate to be greater than 0, .* tester\.freeze = true",
        ),
        ({"coder.learning_rate": float("nan")}, r"coder\.learning_rate to be greater than 0"),
        ({"coder.learning_rate": float("inf")}, r"coder\.learning_rate to be greater than 0"),
        ({"coder.trainer": {"learning_rate": "fast"}}, r"greater than 0, actually: 'fast'$"),
        ({"num_generations": 1}, r"num_generations to be at least 2 \(answers of a group are"),
        ({"num_suites": 1}, r"num_suites to be at least 2 \(answers of a group are compared"),
    ],
)
def test_settings_that_teach_nothing(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        replaced(MODELS, changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"coder.sampling": NARROW, "coder.freeze": True},
        {"tester.sampling": NARROW, "tester.objective": "golden-tests"},
        {"tester.sampling": NARROW, "tester.player": "golden"},
        {"coder.learning_rate": 0.0, "coder.freeze": True},
    ],
)
def test_who_learns_nothing_from_rewards_may_draw_as_it_likes(changes: dict[str, Any]) -> None:
    replaced(MODELS, changes)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_starts(preset: str) -> None:
    base_settings(SourcesAndFolder(preset=preset))


@pytest.mark.parametrize("field", ["repetition_penalty", "min_p", "vllm_mode", "top_p"])
def test_what_only_a_trainer_that_generates_would_heed_is_refused(
    tmp_path: Path, field: str
) -> None:
    from trl import GRPOConfig

    from codea1_env.agents.llm.trainer_settings import UpdateShape, trainer_config

    with pytest.raises(ValueError, match=f"Expect {field} not to be set .* of the run"):
        trainer_config(
            {field: 1},
            UpdateShape(1, 2, 1),
            config_cls=GRPOConfig,
            temperature=1.0,
            max_completion_length=8,
            seed=0,
            folder=str(tmp_path),
        )
