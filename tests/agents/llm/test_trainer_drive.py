"""One update of a stock trainer: its loss and gradient against a calculation by hand; errors and limits."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from tiny import descend, tiny_model, tiny_tokenizer
from trl import GRPOTrainer

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.trainer_drive import TrainerDrive, TrainingRow, UpdateError
from codea1_env.agents.llm.trainer_settings import TrainerSetup, UpdateShape
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
    setup = TrainerSetup(
        UpdateShape(*shape, updates),
        SamplingConfig(temperature=TEMPERATURE, max_completion_length=8),
        {"lr_scheduler_type": "constant", "learning_rate": RATE, **EXACT, **fields},
    )
    return TrainerDrive(
        trainer_cls,
        tiny_model() if model is None else model,
        setup.config(1, str(folder)),
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


def advantages_by_hand(rewards: list[float | None], name: str = "grpo") -> list[float]:
    known = [reward for reward in rewards if reward is not None]
    found = []
    for i, reward in enumerate(rewards):
        group = [r for r in rewards[i // 4 * 4 :][:4] if r is not None]
        if reward is None:
            found.append(0.0)
        elif name == "rloo":
            found.append(reward - (sum(group) - reward) / (len(group) - 1))
        elif name == "reinforce++":
            found.append((reward - np.mean(known)) / (np.std(known, ddof=1) + 1e-4))
        else:
            scale = 1.0 if name == "dr_grpo" else np.std(group, ddof=1) + 1e-4
            found.append((reward - np.mean(group)) / scale)
    return [float(each) for each in found]


def log_probs(model: Any, row: TrainingRow) -> torch.Tensor:
    return tiny.log_probs(model, row.prompt_ids, row.completion_ids, TEMPERATURE)


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
    return descend(model, loss, RATE)


@pytest.mark.parametrize(
    ("loss_type", "batch", "weigh_kl"), [("dapo", 2, True), ("grpo", 8, False)]
)
def test_updates_are_those_calculated_by_hand(tmp_path, loss_type, batch, weigh_kl) -> None:
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


def test_a_mini_batch_on_a_processor_holds_whole_groups(tmp_path: Path) -> None:
    prompts: list[int] = []

    class Watched(GRPOTrainer):  # type: ignore[misc]
        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            prompts.append(len({tuple(row) for row in inputs["prompt_ids"].tolist()}))
            return super()._compute_loss(model, inputs)

    # Ten groups of 4 answers: 8 together, of which a mini-batch of 10 would divide groups.
    drive = make_drive(tmp_path, shape=(10, 4), trainer_cls=Watched)
    drive.update(make_rows(REWARDS * 5))
    assert prompts == [2] * 5
    prompts.clear()
    # Several steps of the optimizer in an update: the trainer shuffles as it does by itself.
    divided = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 1}
    make_drive(tmp_path, shape=(10, 4), trainer_cls=Watched, **divided).update(
        make_rows(REWARDS * 5)
    )
    assert len(prompts) == 10
    assert max(prompts) > 1


def test_an_engines_probabilities_weigh_the_loss(tmp_path: Path) -> None:
    exact, losses = tiny_model(), []
    # An engine that thinks every token twice as likely as the model does: each counts half.
    for factor in (1, 2):
        rows = [
            replace(row, logprobs=tuple((log_probs(exact, row) + np.log(factor)).tolist()))
            for row in make_rows(REWARDS)
        ]
        mode = {"vllm_importance_sampling_mode": "token_truncate"}
        losses.append(make_drive(tmp_path, engine_samples=True, **mode).update(rows))
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


def trainer_with(name: str, change: Any) -> Any:
    """A trainer with another loss."""

    def compute(self: Any, model: Any, inputs: Any) -> Any:
        return change(self, GRPOTrainer._compute_loss(self, model, inputs))

    return type(name, (GRPOTrainer,), {"_compute_loss": compute})


def steep(trainer: Any, loss: Any) -> Any:
    """It is 0, and its gradient infinite."""
    return (loss - loss.detach()).abs().sqrt()


NAN_LATER = (1.0, float("nan"))
NaN = trainer_with("NaN", lambda self, loss: loss * float("nan"))
NaNLater = trainer_with(
    "NaNLater", lambda self, loss: loss * NAN_LATER[bool(self.state.global_step)]
)
PerToken = trainer_with("PerToken", lambda self, loss: loss * torch.ones(2, 3))
Steep = trainer_with("Steep", steep)


def test_an_error_in_the_trainer_comes_out_with_its_cause(tmp_path: Path) -> None:
    drive = make_drive(tmp_path, trainer_cls=trainer_with("Broken", lambda *_: 1 / 0))
    with pytest.raises(UpdateError, match="coder failed: ZeroDivisionError: division") as caught:
        drive.update(make_rows(REWARDS))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(UpdateError, match="none after a failed one"):
        drive.update(make_rows(REWARDS))


@pytest.mark.parametrize(
    ("trainer_cls", "message"),
    [
        (NaN, r"the loss of NaN to be one finite number, actually in step 1 of the coder: nan"),
        (PerToken, r"the loss of PerToken .* a tensor of \(2, 3\)"),
        (Steep, r"Expect Steep to have a finite gradient, actually in step 1 of the coder"),
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


class Spoils(GRPOTrainer):  # type: ignore[misc]
    def create_optimizer(self, *given: Any) -> Any:
        optimizer = super().create_optimizer(*given)
        optimizer.register_step_post_hook(lambda *_: self.model.lm_head.weight.data.fill_(np.nan))
        return optimizer


def test_weights_that_the_optimizer_has_spoiled_are_named(tmp_path: Path) -> None:
    drive = make_drive(tmp_path, trainer_cls=Spoils)
    with pytest.raises(
        UpdateError, match=r"finite weights, actually in step 1 of the coder: .* adam_eps"
    ):
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
    assert now["lr"] == before.trainer.optimizer.param_groups[0]["lr"]


def test_global_generators_are_left_alone(tmp_path: Path) -> None:
    drawn = []
    for update in (False, True):
        random.seed(7)
        np.random.seed(7)
        torch.manual_seed(7)
        if update:
            make_drive(tmp_path).update(make_rows(REWARDS))
        drawn.append((random.random(), np.random.random(), torch.rand(1).item()))
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("rewards", "fields", "still"),
    [
        ([0.7] * 8, {}, True),
        ([0.1 + 0.2, 0.3, None, 0.3, *[1 / 3] * 4], {}, True),
        ([0.7] * 8, {"loss_type": "dr_grpo", "scale_rewards": "none"}, True),
        ([0.7, 0.7, 0.7, 0.7 + 1e-6, *[0.7] * 4], {}, False),
    ],
)
def test_equal_rewards_teach_nothing(
    tmp_path: Path, rewards: list[float | None], fields: dict[str, Any], still: bool
) -> None:
    """In float32 the mean of 0.7 is another number, by which all answers would move one way."""
    drive = make_drive(tmp_path, **fields)
    before = [weights.detach().clone() for weights in drive.model.parameters()]
    drive.update(make_rows(rewards))
    after = drive.model.parameters()
    assert all(torch.equal(*pair) for pair in zip(before, after, strict=True)) == still
