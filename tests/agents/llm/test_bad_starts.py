"""Settings with which nothing could be learned are refused before a model is loaded, in one line that says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny import save_tiny

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.cli.train_settings import PRESETS, SourcesAndFolder, base_settings
from codea1_env.training import PlayerConfig, RunError, TesterConfig, TrainConfig
from codea1_env.training.language_models import LanguageModels
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
            r"coder\.learning_rate to be a finite number greater than 0, actually: 0\.0\. .* coder\.freeze = true",
        ),
        (
            {"tester.trainer": {"learning_rate": 0}},
            r"tester\.trainer\.learning_rate to be a finite number greater than 0, .* tester\.freeze = true",
        ),
        (
            {"coder.learning_rate": float("inf")},
            r"coder\.learning_rate to be a finite number",
        ),
        ({"coder.trainer": {"learning_rate": 1}}, r"trainer\.learning_rate to be far below 0\.1"),
        ({"tester.trainer": {"beta": -3.0}}, r"tester\.trainer\.beta to be from 0 to inf"),
        ({"coder.trainer": {"num_iterations": 0}}, r"coder\.trainer\.num_iterations to be from 1"),
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


@pytest.mark.parametrize("temperature", [float("nan"), float("inf"), -1.0, 1e-300, 0.001])
def test_temperatures_at_which_nothing_can_be_computed(temperature: float) -> None:
    with pytest.raises(ValueError, match=r"temperature to be 0, or from 0\.01 to 100, actually"):
        SamplingConfig(temperature=temperature)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coder.sampling": SamplingConfig(max_prompt_length=1)}, "coder: .* to hold the instr"),
        ({"tester.sampling": SamplingConfig(max_prompt_length=1)}, "tester: .* to hold the instr"),
        (
            {"tester.sampling": SamplingConfig(max_completion_length=10**9)},
            "tester: Expect max_completion_length to leave room for a prompt",
        ),
    ],
)
def test_lengths_are_looked_at_before_a_model_is_loaded(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    model = save_tiny(tmp_path)
    with pytest.raises(RunError, match=message):
        LanguageModels(replaced(MODELS, {"model": model, **changes}), 4).find()


class BadField:
    trainer = {"nope": 1}  # noqa: RUF012


class BadValue:
    trainer = {"epsilon": "abc"}  # noqa: RUF012


class ManyRounds:
    trainer = {}  # noqa: RUF012
    extra_rounds = "many"


class Decided:
    trainer = {"num_generations": 8}  # noqa: RUF012


class NoTable:
    trainer = ("epsilon",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coder.trainer": {"nope": 1}}, "coder: Expect the fields of GRPOConfig, .*'nope'"),
        ({"tester.trainer": {"temperature": 0.5}}, "tester: Expect temperature not to be set"),
        ({"coder.trainer": {"num_generations": 1}}, "coder: Expect num_generations not to be set"),
        ({"coder.trainer": {"optim": "nope"}}, "optim to be one of adamw_torch, .* 'nope'"),
        ({"coder.trainer": {"max_grad_norm": "abc"}}, "max_grad_norm to be a number, .*'abc'"),
        (
            {"coder.trainer": {"per_device_train_batch_size": 0}},
            "to be an integer of at least 1, .*: 0",
        ),
        ({"coder.trainer": {"per_device_train_batch_size": 7}}, "batch_size to divide the"),
        (
            {"coder.trainer": {"loss_type": "dapoo"}},
            "loss_type to be one of grpo, .*, actually: 'dapoo'",
        ),
        (
            {
                "tester.objective": "golden-tests",
                "tester.trainer": {"importance_sampling_level": "x"},
            },
            "tester: Expect importance_sampling_level to be one of token, sequence, actually: 'x'",
        ),
        ({"coder.algorithm": f"{__file__}:BadField"}, r"BadField\.trainer: Expect the fields of"),
        ({"algorithm": f"{__file__}:BadValue"}, r"BadValue\.trainer: Expect epsilon to be a num"),
        ({"algorithm": f"{__file__}:ManyRounds"}, "extra_rounds of .* 0 or more, actually: 'many'"),
        ({"algorithm": f"{__file__}:Decided"}, r"Decided\.trainer: Expect num_generations not to"),
        ({"coder.trainer": {"weight_decay": float("nan")}}, "weight_decay to be a finite number"),
        ({"coder.trainer": {"adam_beta2": 1.0}}, "adam_beta2 to be at least 0 and below 1"),
        (
            {"coder.trainer": {"top_entropy_quantile": 5}},
            "to be at least 0 and at most 1, actually",
        ),
        ({"coder.trainer": {"report_to": "wandb"}}, "it is decided by tracker of the run"),
        ({"algorithm": f"{__file__}:NoTable"}, "Expect trainer of .*NoTable to be a mapping"),
    ],
)
def test_trainers_are_checked_without_a_model(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        LanguageModels(replaced(MODELS, changes), 4).check_trainers()


@pytest.mark.parametrize("preset", PRESETS)
def test_trainers_of_every_preset_are_made(preset: str) -> None:
    config = base_settings(SourcesAndFolder(preset=preset))
    backend = replaced(config, {"backend": "transformers"})  # vLLM may not be installed
    LanguageModels(backend, 2**20).check_trainers()


@pytest.mark.parametrize("field", ["repetition_penalty", "min_p", "vllm_mode", "top_p"])
def test_what_only_a_trainer_that_generates_would_heed_is_refused(
    tmp_path: Path, field: str
) -> None:
    from trl import GRPOConfig

    from codea1_env.agents.llm.trainer_settings import UpdateShape, grpo_config

    with pytest.raises(ValueError, match=f"Expect {field} not to be set .* of the run"):
        grpo_config(
            {field: 1},
            UpdateShape(1, 2, 1),
            samplings=[SamplingConfig(max_completion_length=8)],
            config_cls=GRPOConfig,
            seed=0,
            folder=str(tmp_path),
        )
