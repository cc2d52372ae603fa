"""Each named algorithm's update against a calculation by hand, algorithms of one's own, and what of TRL they touch."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_trainer_drive import (
    BETA,
    RATE,
    REWARDS,
    advantages_by_hand,
    log_probs,
    make_drive,
    make_rows,
)
from tiny import descend, tiny_model
from trl import GRPOTrainer

from codea1_env.agents import ALGORITHMS, make_algorithm
from codea1_env.agents.algorithms import teaches
from codea1_env.agents.llm.trainer_drive import TrainingRow
from codea1_env.agents.llm.trl_internals import with_algorithm
from codea1_env.agents.policy import AlgorithmError
from codea1_env.training import PlayerConfig, TrainConfig
from codea1_env.training.config import algorithm_of
from codea1_env.training.settings import replaced

RUN = {"epsilon": 0.2, "epsilon_high": 0.28, "loss_type": "dapo"}
"""What a run says by default."""
PASSES = 2
"""The second has ratios that are not 1."""


def drive_of(folder: Path, algorithm: Any, **fields: Any) -> Any:
    trainer = getattr(algorithm, "trainer", {})
    return make_drive(
        folder,
        trainer_cls=with_algorithm(GRPOTrainer, algorithm),
        **{**RUN, **trainer, **fields},
    )


def rows_with_one_cut_off() -> list[TrainingRow]:
    rows = make_rows(REWARDS)
    cut = dataclasses.replace(rows[1], completion_ids=rows[1].completion_ids[:-1], truncated=True)
    return [rows[0], cut, *rows[2:]]


def clipped(ratio: torch.Tensor, advantage: float, low: float, high: float) -> torch.Tensor:
    return -torch.min(ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage)


def loss_by_hand(
    name: str, rows: list[TrainingRow], new: list[torch.Tensor], old: list[torch.Tensor]
) -> torch.Tensor:
    terms = []
    for row, now, before, advantage in zip(
        rows, new, old, advantages_by_hand(REWARDS, name), strict=True
    ):
        ratio, whole = torch.exp(now - before), torch.exp((now - before).mean())
        if name == "dapo" and row.truncated:
            continue
        if name == "gspo":
            terms.append(clipped(whole, advantage, 3e-4, 4e-4))
        elif name == "cispo":
            terms.append(-ratio.detach().clamp(max=5.0) * advantage * now)
        elif name == "rloo":
            terms.append(-advantage * now.sum())
        else:
            high = 0.2 if name == "reinforce++" else 0.28
            terms.append(clipped(ratio, advantage, 0.2, high))
    if name in ("gspo", "rloo"):
        return torch.stack(terms).mean()
    if name == "dr_grpo":
        return torch.cat(terms).sum() / (len(rows) * 8)  # the greatest length of an answer
    return torch.cat(terms).mean()


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if teaches(ALGORITHMS[name], "llm")])
def test_an_update_is_that_calculated_by_hand(tmp_path: Path, name: str) -> None:
    """In mini-batches of two."""
    # RLOO is the plain policy gradient, which knows no ratio.
    passes = 1 if name == "rloo" else PASSES
    trained, by_hand, start = (tiny_model(seed=3) for _ in range(3))
    algorithm = make_algorithm(name, {**RUN, "learning_rate": 1.0}, "llm")
    drive = drive_of(
        tmp_path,
        algorithm,
        model=trained,
        num_iterations=passes,
        per_device_train_batch_size=2,
    )
    rows = rows_with_one_cut_off()
    metrics = drive.update(rows)
    with torch.no_grad():
        old = [log_probs(by_hand, row) for row in rows]
    losses = []
    for _ in range(passes):
        loss = loss_by_hand(name, rows, [log_probs(by_hand, row) for row in rows], old)
        losses.append(descend(by_hand, loss, RATE))
    if name != "rloo":  # whose loss here has the same slope and another value
        assert metrics["loss"] == pytest.approx(np.mean(losses), abs=1e-5)
    both = zip(trained.parameters(), by_hand.parameters(), start.parameters(), strict=True)
    for found, wanted, before in both:
        assert (wanted - before).abs().max() > 1e-5
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-3)


class Own:
    """GRPO, written anew."""

    def advantages(self, rewards: Any) -> Any:
        centred = rewards - np.nanmean(rewards, axis=1, keepdims=True)
        return centred / (np.nanstd(rewards, axis=1, ddof=1, keepdims=True) + 1e-4)

    def loss(self, new: Any, old: Any, advantages: Any, mask: Any) -> Any:
        ratio = torch.exp(new - old)
        each = torch.min(ratio * advantages, ratio.clamp(0.8, 1.28) * advantages)
        return -((each * mask).sum(1) / mask.sum(1)).mean()


@pytest.mark.parametrize(("batch", "engine"), [(8, False), (2, True)])
def test_an_algorithm_of_ones_own_is_put_into_the_trainer(tmp_path, batch, engine) -> None:
    """Its KL term, passes, mini-batches and the correction for an engine stay the trainer's."""
    rows = make_rows(REWARDS)
    if engine:  # it thought the first tokens of some answers likelier than the model does
        exact = tiny_model(seed=3)
        thought = [log_probs(exact, row).detach() + 0.1 * (i % 3) for i, row in enumerate(rows)]
        rows = [
            dataclasses.replace(row, logprobs=tuple(each.tolist()))
            for row, each in zip(rows, thought, strict=True)
        ]
    weights, found = [], []
    for algorithm in (Own(), object()):
        model = tiny_model(seed=3)
        model.save_pretrained(tmp_path / "reference")
        model.config._name_or_path = str(tmp_path / "reference")
        drive = drive_of(
            tmp_path,
            algorithm,
            model=model,
            loss_type="grpo",
            beta=BETA,
            num_iterations=PASSES,
            per_device_train_batch_size=batch,
            engine_samples=engine,
        )
        found.append(drive.update(rows))
        weights.append([parameter.detach() for parameter in model.parameters()])
    own, plain = found
    assert own["loss"] == pytest.approx(plain["loss"], abs=1e-6)
    assert own["kl"] == pytest.approx(plain["kl"], abs=1e-6)
    assert own.keys() == {name for name in plain if not name.startswith("clip_ratio")}
    for ours, theirs in zip(*weights, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    ("function", "returned", "message"),
    [
        ("advantages", lambda rewards: rewards[:, :1], r"shape \(2, 4\), actually: .*\(2, 1\)\."),
        ("advantages", lambda rewards: np.full_like(rewards, np.inf), r"actually: NaN or infinite values for answers"),
        ("loss", lambda new, *_: new.detach().sum(), r"Wrong\.loss to depend on log_probs"),
    ],
)  # fmt: skip
def test_what_is_no_advantage_and_no_loss_is_named_and_spoils_nothing(
    tmp_path: Path, function: str, returned: Any, message: str
) -> None:
    wrong = type("Wrong", (), {function: staticmethod(returned)})()
    drive = drive_of(tmp_path, wrong)
    before = [parameter.clone() for parameter in drive.model.parameters()]
    with pytest.raises(AlgorithmError, match=f"{message}.* It was in step 1 of the coder"):
        drive.update(make_rows(REWARDS))
    assert all(map(torch.equal, before, drive.model.parameters()))


MODEL = TrainConfig(coder=PlayerConfig("llm", learning_rate=1e-4), beta=0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "gspo"}, r"tester\.algorithm: Expect an algorithm for tabular players: grpo, dapo.* actually: 'gspo'"),
        ({"coder.algorithm": "gspo", "epsilon": 0.1}, r"coder\.algorithm: Expect epsilon to be left to the algorithm 'gspo', which says 0\.0003, actually: 0\.1"),
    ],
)  # fmt: skip
def test_settings_that_contradict_the_algorithm(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replaced(MODEL, changes)


def test_an_algorithm_of_ones_own_is_made_from_what_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "class Own:\n    def __init__(self, beta=0.5):\n        self.made = beta\n    loss = print\n"
    )
    # The beta of the run is another thing: of its trainer.
    config = replaced(MODEL, {"coder.algorithm": f"{path}:Own"})
    assert algorithm_of(config, "coder").made == 0.5
    assert algorithm_of(replaced(config, {"algorithm_args": {"beta": 0.25}}), "coder").made == 0.25
