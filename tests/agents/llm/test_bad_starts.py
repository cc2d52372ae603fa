"""Settings with which nothing could be learned are refused before a model is loaded, in one line that says what to do."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import save_tiny

from codea1_env.agents.llm.completions import SamplingConfig
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
        ({"coder.sampling": SamplingConfig(temperature=0)}, r"coder\.sampling: .* above 0"),
        ({"lora_rank": 0, "backend": "server"}, "or 'vllm' if all weights .* Set lora_rank"),
        (
            {"coder.learning_rate": 0.0},
            r"coder\.learning_rate to be a finite number greater than 0, .* coder\.freeze = true",
        ),
        ({"coder.trainer": {"learning_rate": 1}}, r"trainer\.learning_rate to be far below 0\.1"),
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
        {"tester.sampling": NARROW, "tester.freeze": True},
        {"coder.learning_rate": 0.0, "coder.freeze": True},
    ],
)
def test_who_learns_nothing_from_rewards_may_draw_as_it_likes(changes: dict[str, Any]) -> None:
    replaced(MODELS, changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coder.sampling": SamplingConfig(max_prompt_length=1)}, "coder: .* to hold the instr"),
        (
            {"tester.sampling": SamplingConfig(max_completion_length=10**9)},
            "tester: Expect max_completion_length to leave room for a prompt",
        ),
    ],
)
def test_lengths_are_looked_at_before_a_model_is_loaded(changes, message, tmp_path) -> None:
    model = save_tiny(tmp_path)
    with pytest.raises(RunError, match=message):
        LanguageModels(replaced(MODELS, {"model": model, **changes}), 4).find()


class BadValue:
    trainer = {"optim": "abc"}  # noqa: RUF012


class ManyRounds:
    trainer = {}  # noqa: RUF012
    extra_rounds = "many"


class Decided:
    trainer = {"num_generations": 8}  # noqa: RUF012


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"coder.trainer": {"nope": 1}},
            "coder: GRPOConfig refuses its fields: TypeError: .*'nope'",
        ),
        ({"tester.trainer": {"temperature": 0.5}}, "tester: Expect temperature not to be set"),
        ({"coder.trainer": {"optim": "nope"}}, "ValueError: nope is not a valid OptimizerNames"),
        ({"algorithm": f"{__file__}:BadValue"}, "abc is not a valid OptimizerNames"),
        ({"algorithm": f"{__file__}:ManyRounds"}, "extra_rounds of .* 0 or more, actually: 'many'"),
        ({"algorithm": f"{__file__}:Decided"}, r"Decided\.trainer: Expect num_generations not to"),
        ({"coder.trainer": {"min_p": 1}}, "Expect min_p not to be set .* of the run"),
        ({"coder.trainer": {"report_to": "wandb"}}, "it is decided by tracker of the run"),
    ],
)
def test_trainers_are_checked_without_a_model(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message) as caught:
        LanguageModels(replaced(MODELS, changes), 4).check_trainers()
    assert "\n" not in str(caught.value)
