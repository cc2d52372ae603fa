"""Makes the configuration of a trainer that imitates: fields of `trl.SFTConfig`, where the run leaves a choice."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from codea1_env.agents.llm.grpo_settings import DECIDED, UpdateShape, check_fields, common_fields

_ROWS = "nothing: each demonstration is a row, and its answer is what is learned"
_DECIDED: Mapping[str, str] = {
    **DECIDED,
    "max_length": "the sampling settings of the run",
    "truncation_mode": "the sampling settings of the run",
    **dict.fromkeys(("packing", "packing_strategy", "eval_packing"), _ROWS),
    **dict.fromkeys(("completion_only_loss", "assistant_only_loss"), _ROWS),
    **dict.fromkeys(("dataset_kwargs", "dataset_num_proc", "dataset_text_field"), _ROWS),
}
"""Fields that follow from the run -> what decides them."""


def imitation_config(
    fields: Mapping[str, Any], shape: UpdateShape, *, seed: int, folder: str
) -> Any:
    """Make the configuration of an SFTTrainer.

    The same settings serve a run with rewards and one that imitates, so fields that only a GRPOTrainer has are
    left out, and so is a `loss_type` of GRPO.

    Args:
        fields: Field -> value, as the user set them.
        shape: What one update learns from.
        seed: Seed of the trainer.
        folder: Where the trainer may write; nothing of it is kept.

    Raises:
        ValueError: A field is unknown or decided by the run, or the batch cannot be divided as asked.
    """
    from trl import GRPOConfig, SFTConfig

    check_fields(fields, SFTConfig, GRPOConfig, decided=_DECIDED)
    known = {field.name: field for field in dataclasses.fields(SFTConfig)}
    losses = known["loss_type"].metadata["choices"]
    taken = {
        name: value
        for name, value in fields.items()
        if name in known and (name != "loss_type" or value in losses)
    }
    return SFTConfig(
        **common_fields(taken, shape, passes=1, seed=seed, folder=folder),
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},  # rows come as tokens, with labels
    )
