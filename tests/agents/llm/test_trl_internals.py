"""The private parts of TRL that we touch: each test says what a new version has changed, and what breaks by it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from trl import GRPOTrainer, SFTTrainer
from trl.trainer import grpo_trainer, utils

SOURCE = inspect.getsource(GRPOTrainer)


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("_calculate_rewards", []),
        ("_generate_and_score_completions", ["inputs"]),
        ("_get_per_token_logps_and_entropies", []),
        ("_compute_loss", ["model", "inputs"]),
    ],
)
def test_methods_that_an_algorithm_of_ones_own_overrides(method: str, parameters: Any) -> None:
    """`with_algorithm`: its advantages or its loss would never be asked for."""
    found = list(inspect.signature(getattr(GRPOTrainer, method)).parameters)
    assert all(name in found for name in parameters), found
    assert SOURCE.count(f"self.{method}(") > 0, "defined, but never called"


@pytest.mark.parametrize(
    "name", ["advantages", "importance_sampling_ratio", "old_per_token_logps", "completion_mask"]
)
def test_inputs_of_the_loss(name: str) -> None:
    """`with_algorithm`: the loss would miss them."""
    assert f'"{name}"' in SOURCE


@pytest.mark.parametrize("name", ["use_vllm", "vllm_generation", "_last_loaded_step"])
def test_the_switch_of_importance_sampling(name: str) -> None:
    """`correct_for_engine`: answers of another engine would be learned from as if the model had drawn them."""
    assert f"self.{name}" in SOURCE
    assert "sync_weights" in SOURCE


def test_the_switch_that_computes_answers_only() -> None:
    """`answers_only`: updates on processors would take twice as long, in silence."""
    assert callable(utils._use_triton)
    assert "_use_triton(" in inspect.getsource(utils)


@pytest.mark.parametrize("name", ["_step", "_last_world_entropy", "entropy_coef"])
def test_counters_of_checkpoints(name: str) -> None:
    """`counters_of`: a resumed run would differ from an uninterrupted one."""
    assert f"self.{name}" in SOURCE


def test_counted_tokens_of_imitation() -> None:
    """`tokens_counted`: the metric num_tokens would begin anew after each resume."""
    assert "self._total_train_tokens" in inspect.getsource(SFTTrainer)


def test_what_is_silenced() -> None:
    """`quiet`: each step would print all prompts."""
    assert "All reward functions returned None" in inspect.getsource(grpo_trainer)
    assert grpo_trainer.logger.name == "trl.trainer.grpo_trainer"
