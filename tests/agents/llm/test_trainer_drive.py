"""One update of a stock trainer: its loss and gradient against a calculation by hand; errors and limits."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import tiny_model, tiny_tokenizer
from trl import GRPOConfig, GRPOTrainer

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.trainer_drive import TrainerDrive, TrainingRow, UpdateError
from codea1_env.agents.llm.trainer_settings import UpdateShape, grpo_config
from codea1_env.agents.llm.training_state import load_trainer, save_trainer

EXACT = {"bf16": False, "gradient_checkpointing": False, "optim": "sgd", "max_grad_norm": 0.0}
TEMPERATURE, RATE, BETA = 0.7, 0.5, 0.3


def make_drive(
    folder: Path,
    *,
    updates: int = 3,
    shape: tuple[int, int] = (2, 4),
    model: Any = None,
    trainer_cls: Any = GRPOTrainer,
    peft_config: Any = None,
    engine_samples: bool = False,
    **fields: Any,
) -> TrainerDrive:
    args = grpo_config(
        {"lr_scheduler_type": "constant", "learning_rate": RATE, **EXACT, **fields},
        UpdateShape(*shape, updates),
        samplings=[SamplingConfig(temperature=TEMPERATURE, max_completion_length=8)],
        config_cls=GRPOConfig,
        seed=1,
        folder=str(folder),
    )
    return TrainerDrive(
        trainer_cls,
        tiny_model() if model is None else model,
        args,
        tiny_tokenizer(),
        peft_config=peft_config,
        engine_samples=engine_samples,
        name="coder",
    )


def make_rows(rewards: list[float | None], seed: int = 0) -> list[TrainingRow]:
    rng = np.random.default_rng(seed)
    rows = []
    for i, reward in enumerate(rewards):
        prompt = tuple(int(t) for t in np.random.default_rng(i // 4).integers(5, 261, 3 + i // 4))
        answer = tuple(int(t) for t in rng.integers(5, 261, 2 + i % 5))
        rows.append(TrainingRow(prompt, (*answer, 1), None, reward))
    return rows


REWARDS = [1.0, 0.0, None, 0.25, 0.5, 0.5, 0.75, 0.5]


def advantages_by_hand(rewards: list[float | None]) -> list[float]:
    found = []
    for start in (0, 4):
        group = [r for r in rewards[start : start + 4] if r is not None]
        mean, deviation = np.mean(group), np.std(group, ddof=1)
        for reward in rewards[start : start + 4]:
            found.append(0.0 if reward is None else float((reward - mean) / (deviation + 1e-4)))
    return found


def log_probs(model: Any, row: TrainingRow) -> torch.Tensor:
    """Of each token of the answer, one row at a time, without padding."""
    ids = torch.tensor([[*row.prompt_ids, *row.completion_ids]])
    logits = model(ids).logits[0, len(row.prompt_ids) - 1 : -1].float() / TEMPERATURE
    chosen = torch.tensor(row.completion_ids)
    return torch.log_softmax(logits, -1)[range(len(chosen)), chosen]


def step_by_hand(
    model: Any,
    reference: Any,
    rows: list[TrainingRow],
    loss_type: str,
    *,
    weigh_kl: bool,
    beta: float = BETA,
) -> float:
    """One step of gradient descent on the GRPO loss; returns the loss before it."""
    terms = []
    for row, advantage in zip(rows, advantages_by_hand([r.reward for r in rows]), strict=True):
        new = log_probs(model, row)
        with torch.no_grad():
            known = log_probs(reference, row)
        ratio = torch.exp(new - new.detach())
        clipped = ratio.clamp(1 - 0.2, 1 + 0.28)
        kl = torch.exp(known - new) - (known - new) - 1
        kl = ratio * kl if weigh_kl else kl
        terms.append(-torch.min(ratio * advantage, clipped * advantage) + beta * kl)
    if loss_type == "grpo":
        loss = torch.stack([term.mean() for term in terms]).mean()
    else:
        loss = torch.cat(terms).mean()
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter -= RATE * gradient
    return float(loss.detach())


@pytest.mark.parametrize("loss_type", ["dapo", "grpo"])
@pytest.mark.parametrize(("batch", "weigh_kl"), [(8, False), (2, True)])
def test_updates_are_those_calculated_by_hand(
    tmp_path: Path, loss_type: str, batch: int, weigh_kl: bool
) -> None:
    trained = tiny_model(seed=3)
    trained.save_pretrained(tmp_path / "reference")  # where TRL finds the model of the KL term
    trained.config._name_or_path = str(tmp_path / "reference")
    by_hand, reference = tiny_model(seed=3), tiny_model(seed=3)
    drive = make_drive(
        tmp_path,
        model=trained,
        loss_type=loss_type,
        beta=BETA,
        epsilon=0.2,
        epsilon_high=0.28,
        per_device_train_batch_size=batch,
        use_bias_correction_kl=weigh_kl,
    )
    for seed in range(3):
        rows = make_rows(REWARDS, seed)
        metrics = drive.update(rows)
        loss = step_by_hand(by_hand, reference, rows, loss_type, weigh_kl=weigh_kl)
        assert metrics["loss"] == pytest.approx(loss, abs=1e-5)
    start = dict(reference.named_parameters())
    for (name, found), wanted in zip(trained.named_parameters(), by_hand.parameters(), strict=True):
        moved = (wanted - start[name]).abs().max()
        assert moved > 1e-5
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-3)


def test_answers_without_reward_do_not_count(tmp_path: Path) -> None:
    drive = make_drive(tmp_path, updates=1, shape=(1, 4), loss_type="dapo")
    before = {name: p.clone() for name, p in drive.model.named_parameters()}
    metrics = drive.update(make_rows([None, 1.0, 1.0, 1.0]))
    assert metrics["grad_norm"] == 0.0
    assert all(torch.equal(p, before[name]) for name, p in drive.model.named_parameters())


def test_an_engines_probabilities_weigh_the_loss(tmp_path: Path) -> None:
    rows = make_rows(REWARDS)
    exact = tiny_model()
    rows = [
        TrainingRow(
            row.prompt_ids, row.completion_ids, tuple(log_probs(exact, row).tolist()), row.reward
        )
        for row in rows
    ]
    # The engine thought every token twice as likely as the model does: each counts half.
    off = [
        TrainingRow(
            r.prompt_ids, r.completion_ids, tuple(p + np.log(2) for p in r.logprobs), r.reward
        )
        for r in rows
    ]
    losses = []
    for given in (rows, off):
        drive = make_drive(
            tmp_path,
            engine_samples=True,
            vllm_importance_sampling_mode="token_truncate",
        )
        losses.append(drive.update(given))
    assert losses[0]["sampling/importance_sampling_ratio/mean"] == pytest.approx(1, abs=1e-4)
    assert losses[1]["sampling/importance_sampling_ratio/mean"] == pytest.approx(0.5, abs=1e-4)
    assert losses[1]["grad_norm"] == pytest.approx(losses[0]["grad_norm"] / 2, rel=1e-3)


def test_only_the_adapter_moves_and_in_float32(tmp_path: Path) -> None:
    from peft import LoraConfig

    model = tiny_model().to(torch.bfloat16)
    drive = make_drive(
        tmp_path,
        model=model,
        peft_config=LoraConfig(r=2, target_modules="all-linear"),
        bf16=True,
        optim="adamw_torch",
    )
    before = {name: p.clone() for name, p in drive.model.named_parameters()}
    drive.update(make_rows(REWARDS))
    drive.update(make_rows(REWARDS))
    for name, parameter in drive.model.named_parameters():
        trained = "lora" in name
        assert parameter.requires_grad == trained
        assert torch.equal(parameter, before[name]) != trained, name
        assert parameter.dtype == (torch.float32 if trained else torch.bfloat16)
    for state in drive.trainer.optimizer.state.values():
        assert state["exp_avg"].dtype == torch.float32


def test_the_schedule_spans_all_updates(tmp_path: Path) -> None:
    drive = make_drive(tmp_path, updates=4, lr_scheduler_type="linear", learning_rate=0.4)
    rates = [drive.update(make_rows(REWARDS))["learning_rate"] for _ in range(4)]
    assert rates == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=1e-6)


def test_another_number_of_answers(tmp_path: Path) -> None:
    drive = make_drive(tmp_path)
    with pytest.raises(ValueError, match=r"Expect 8 answers in an update, .* actually: 7"):
        drive.update(make_rows(REWARDS)[:7])
    drive.update(make_rows(REWARDS))  # nothing has happened


class Broken(GRPOTrainer):  # type: ignore[misc]
    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        raise ZeroDivisionError("in the loss")


def test_an_error_in_the_trainer_comes_out_with_its_cause(tmp_path: Path) -> None:
    drive = make_drive(tmp_path, trainer_cls=Broken)
    with pytest.raises(UpdateError, match="coder failed: ZeroDivisionError: in the loss") as caught:
        drive.update(make_rows(REWARDS))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(UpdateError, match="none after a failed one"):
        drive.update(make_rows(REWARDS))


class NaN(GRPOTrainer):  # type: ignore[misc]
    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, inputs) * float("nan")


class PerToken(GRPOTrainer):  # type: ignore[misc]
    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, inputs) * torch.ones(2, 3)


class Number(GRPOTrainer):  # type: ignore[misc]
    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, inputs).item()


class Steep(GRPOTrainer):  # type: ignore[misc]
    """The loss is 0, and its gradient infinite."""

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        loss = super()._compute_loss(model, inputs)
        return (loss - loss.detach()).abs().sqrt()


@pytest.mark.parametrize(
    ("trainer_cls", "message"),
    [
        (
            NaN,
            r"the loss of NaN \(loss_type='dapo'\) to be one finite number, .* step 1 of the coder: nan",
        ),
        (
            PerToken,
            r"the loss of PerToken .* step 1 of the coder: a tensor of shape \(2, 3\)\. Return its",
        ),
        (
            Number,
            r"the loss of Number .* step 1 of the coder: -?[0-9.e-]+, a float\. Return a tensor",
        ),
        (Steep, r"Expect Steep .* to have a finite gradient, actually in step 1 of the coder"),
    ],
)
def test_a_loss_that_is_no_number_is_named_and_spoils_nothing(
    tmp_path: Path, trainer_cls: Any, message: str
) -> None:
    drive = make_drive(tmp_path, trainer_cls=trainer_cls, loss_type="dapo")
    before = {name: p.clone() for name, p in drive.model.named_parameters()}
    with pytest.raises(UpdateError, match=message) as caught:
        drive.update(make_rows(REWARDS))
    assert "\n" not in str(caught.value)
    assert all(torch.equal(p, before[name]) for name, p in drive.model.named_parameters())


class NaNLater(GRPOTrainer):  # type: ignore[misc]
    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        factor = float("nan") if self.state.global_step else 1.0
        return super()._compute_loss(model, inputs) * factor


class Spoils(GRPOTrainer):  # type: ignore[misc]
    def create_optimizer(self, *given: Any) -> Any:
        optimizer = super().create_optimizer(*given)
        optimizer.register_step_post_hook(lambda *_: self.model.lm_head.weight.data.fill_(np.nan))
        return optimizer


def test_weights_that_the_optimizer_has_spoiled_are_named(tmp_path: Path) -> None:
    drive = make_drive(tmp_path, trainer_cls=Spoils)
    with pytest.raises(UpdateError, match=r"finite weights after step 1 of the coder, .* adam_eps"):
        drive.update(make_rows(REWARDS))
    assert drive.updates == 0


def test_what_is_set_for_the_optimizer_goes_before_a_checkpoint(tmp_path: Path) -> None:
    fields = {"optim": "adamw_torch", "lr_scheduler_type": "linear"}
    before = make_drive(tmp_path, weight_decay=0.25, **fields)
    before.update(make_rows(REWARDS))
    save_trainer(before, "model", tmp_path)
    after = make_drive(tmp_path, weight_decay=0.5, **fields)
    load_trainer(after, "model", tmp_path)
    now = after.trainer.optimizer.param_groups[0]
    assert (now["weight_decay"], now["initial_lr"]) == (0.5, RATE)
    assert (
        now["lr"] == before.trainer.optimizer.param_groups[0]["lr"] == pytest.approx(RATE * 2 / 3)
    )


def test_global_generators_are_left_alone(tmp_path: Path) -> None:
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)
    drawn = random.random(), np.random.random(), torch.rand(1).item()
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)
    make_drive(tmp_path).update(make_rows(REWARDS))
    assert (random.random(), np.random.random(), torch.rand(1).item()) == drawn


def test_two_trainers_take_turns(tmp_path: Path) -> None:
    alone = make_drive(tmp_path)
    expected = [alone.update(make_rows(REWARDS, seed))["loss"] for seed in range(3)]
    first, second = make_drive(tmp_path), make_drive(tmp_path)
    for seed in range(3):
        assert first.update(make_rows(REWARDS, seed))["loss"] == expected[seed]
        assert second.update(make_rows(REWARDS, seed))["loss"] == expected[seed]
