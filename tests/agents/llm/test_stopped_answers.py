"""Answers that a stop text ended: to a stock GRPOTrainer they have ended, and the end token they lack is not learned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from test_grpo_learner import adapter, make_learner, play
from test_trainer_drive import (
    REWARDS,
    log_probs,
    make_drive,
    make_rows,
    step_by_hand,
)
from tiny import tiny_model

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.trainer_drive import TrainingRow, rollout_of

END = 1


def rows_of_three_kinds() -> list[TrainingRow]:
    """Of each group of four: two ended by a stop text, one by the end token, one cut off."""
    rows = []
    for i, row in enumerate(make_rows(REWARDS)):
        if i % 4 == 1:
            rows.append(row)
        else:
            rows.append(replace(row, completion_ids=row.completion_ids[:-1], truncated=i % 4 == 3))
    return rows


def with_probabilities(rows: list[TrainingRow]) -> list[TrainingRow]:
    model = tiny_model()
    return [replace(row, logprobs=tuple(log_probs(model, row).tolist())) for row in rows]


def test_only_what_a_stop_text_ended_gets_an_end_token_and_that_is_masked() -> None:
    rows = with_probabilities(rows_of_three_kinds())[:4]
    given = rollout_of(rows, [END], END)
    for i, row in enumerate(rows):
        added = i in (0, 2)
        assert given["completion_ids"][i] == [*row.completion_ids, *[END] * added]
        assert given["env_mask"][i] == [1] * len(row.completion_ids) + [0] * added
        assert len(given["logprobs"][i]) == len(given["completion_ids"][i])
    assert "env_mask" not in rollout_of(make_rows(REWARDS), [END], END)


def test_the_trainer_counts_those_that_were_cut_off(tmp_path: Path) -> None:
    rows = rows_of_three_kinds()
    metrics = make_drive(tmp_path).update(rows)
    assert metrics["completions/clipped_ratio"] == 2 / 8
    lengths = [len(row.completion_ids) for row in rows]
    assert metrics["completions/mean_length"] == pytest.approx(sum(lengths) / 8)
    ended = [len(row.completion_ids) for row in rows if not row.truncated]
    assert metrics["completions/mean_terminated_length"] == pytest.approx(sum(ended) / 6)


@pytest.mark.parametrize(("loss_type", "batch"), [("dapo", 2), ("grpo", 8)])
def test_the_end_token_is_not_learned(tmp_path: Path, loss_type: str, batch: int) -> None:
    trained, by_hand = tiny_model(seed=3), tiny_model(seed=3)
    rows = rows_of_three_kinds()
    drive = make_drive(
        tmp_path,
        model=trained,
        loss_type=loss_type,
        epsilon_high=0.28,
        per_device_train_batch_size=batch,
    )
    loss = drive.update(rows)["loss"]
    # Of the answers as they were drawn: TRL's KL term is off.
    wanted = step_by_hand(by_hand, tiny_model(seed=3), rows, loss_type, weigh_kl=False, beta=0.0)
    assert loss == pytest.approx(wanted, abs=1e-5)
    for found, expected in zip(trained.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


def test_the_end_token_has_no_part_in_importance_sampling(tmp_path: Path) -> None:
    mode = "sequence_mask"
    rows = with_probabilities(rows_of_three_kinds())
    drive = make_drive(tmp_path, engine_samples=True, vllm_importance_sampling_mode=mode)
    metrics = drive.update(rows)
    assert metrics["sampling/importance_sampling_ratio/min"] == pytest.approx(1, abs=1e-4)
    assert metrics["sampling/importance_sampling_ratio/max"] == pytest.approx(1, abs=1e-4)
    assert metrics["sampling/sampling_logp_difference/max"] == pytest.approx(0, abs=1e-4)


def test_a_player_with_stop_texts() -> None:
    stops = tuple("abcdefghijklmnopqrstuvwxyz")
    sampling = SamplingConfig(max_completion_length=6, max_prompt_length=2000, stop=stops)
    learner = make_learner(
        sampling=sampling,
        peft_config=adapter(),
        mask_truncated_completions=True,
    )
    experience, _ = play(learner)
    answers = learner.agent.completions
    cut = sum(answer.truncated for answer in answers) / len(answers)
    stopped = [answer for answer in answers if answer.text.endswith(stops)]
    assert stopped
    assert 0 < cut < 1
    assert all(answer.completion_ids[-1] != END for answer in stopped)
    metrics = learner.learn(experience)
    assert metrics["completions/clipped_ratio"] == pytest.approx(cut)
    assert metrics["grad_norm"] > 0
