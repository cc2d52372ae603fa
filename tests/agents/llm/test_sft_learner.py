"""Imitation: the loss is that of the answer's tokens, only what is trained moves, and demonstrations become likelier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from test_grpo_learner import FIELDS, PROBLEMS, adapter, weights
from test_trainer_drive import EXACT, REWARDS, make_drive, make_rows
from tiny import descend, log_probs, tiny_model, tiny_tokenizer

from codea1_env.agents import Experience, Imitator
from codea1_env.agents.llm.completions import SamplingConfig, encode_chat
from codea1_env.agents.llm.learners import SFTLearner
from codea1_env.agents.llm.prompts import DEFAULT
from codea1_env.agents.llm.trainer_drive import SFTDrive, TrainingRow
from codea1_env.agents.llm.trainer_settings import UpdateShape, imitation_config
from codea1_env.problems import Problem
from codea1_env.spaces import Observation, observe

ROOM = SamplingConfig(max_completion_length=90, max_prompt_length=2000)
RATE = 0.5


def make_sft_drive(
    folder: Path, model: Any = None, peft_config: Any = None, **fields: Any
) -> SFTDrive:
    args = imitation_config(
        {"lr_scheduler_type": "constant", "learning_rate": RATE, **EXACT, **fields},
        UpdateShape(2, 4, 3),
        seed=1,
        folder=str(folder),
    )
    return SFTDrive(
        model or tiny_model(), args, tiny_tokenizer(), 8, peft_config=peft_config, name="tester"
    )


def step_by_hand(model: Any, rows: list[TrainingRow]) -> float:
    """One step of gradient descent on the mean cross entropy of the answers' tokens; the loss before it."""
    known = [log_probs(model, row.prompt_ids, row.completion_ids) for row in rows]
    return descend(model, -torch.cat(known).mean(), RATE)


@pytest.mark.parametrize("batch", [8, 2])
def test_updates_are_those_calculated_by_hand(tmp_path: Path, batch: int) -> None:
    trained, by_hand, start = (tiny_model(seed=3) for _ in range(3))
    drive = make_sft_drive(tmp_path, trained, per_device_train_batch_size=batch)
    for seed in range(3):
        rows = make_rows([None] * 8, seed)
        loss = step_by_hand(by_hand, rows)
        assert drive.update(rows)["loss"] == pytest.approx(loss, abs=1e-5)
    both = zip(trained.parameters(), by_hand.parameters(), start.parameters(), strict=True)
    for found, wanted, before in both:
        assert (wanted - before).abs().max() > 1e-5
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-3)


def test_a_coder_that_learns_from_rewards_takes_turns_with_it(tmp_path: Path) -> None:
    alone, alone_too = make_sft_drive(tmp_path), make_drive(tmp_path)
    expected = [alone.update(make_rows(REWARDS, seed)) for seed in range(3)]
    expected_too = [alone_too.update(make_rows(REWARDS, seed))["loss"] for seed in range(3)]
    coder, tester = make_drive(tmp_path), make_sft_drive(tmp_path)
    for seed in range(3):
        assert coder.update(make_rows(REWARDS, seed))["loss"] == expected_too[seed]
        assert tester.update(make_rows(REWARDS, seed)) == expected[seed]


def make_learner(
    *, peft_config: Any = None, sampling: SamplingConfig = ROOM, learning_rate: float = 1e-2
) -> SFTLearner:
    return SFTLearner(
        tiny_model(),
        tiny_tokenizer(),
        shape=UpdateShape(2, 2, 4),
        sampling=sampling,
        fields=FIELDS | {"learning_rate": learning_rate},
        peft_config=peft_config,
        seed=5,
    )


def seen(problem: Problem) -> Observation:
    return observe(problem, code=problem.reference, turn=1)


def demonstrations(step: int = 0) -> list[Experience]:
    return [
        Experience(
            seen(problem),
            f"assert {problem.task_id}({step}) == {step}\n\nassert {problem.task_id}({i}) == {i}",
            None,
            problem.task_id,
        )
        for problem in PROBLEMS
        for i in (10, 20)
    ]


def answer_loss(model: Any, texts: list[str]) -> float:
    """Mean cross entropy of whole answers, to the prompts of `demonstrations`."""
    tokenizer = tiny_tokenizer()
    asked = [encode_chat(tokenizer, DEFAULT(seen(problem))) for problem in PROBLEMS for _ in "ab"]
    with torch.no_grad():
        known = [
            log_probs(model, prompt, tokenizer(text)["input_ids"])
            for prompt, text in zip(asked, texts, strict=True)
        ]
    return -float(torch.cat(known).mean())


ANSWERS = [
    f"```python\nassert {name}(0) == 0\nassert {name}({i}) == {i}\n```<|end|>"
    for name in "fg"
    for i in (10, 20)
]


def test_what_is_imitated_is_a_whole_answer_to_the_players_own_prompt() -> None:
    learner = make_learner()
    loss = answer_loss(learner.drive.model, ANSWERS)
    learner.act([seen(PROBLEMS[0])])
    (completion,) = learner.agent.completions
    assert completion.prompt_ids == encode_chat(tiny_tokenizer(), DEFAULT(seen(PROBLEMS[0])))
    metrics = learner.imitate(demonstrations())
    assert metrics["loss"] == pytest.approx(loss, abs=1e-5)
    assert metrics["tests_left_out"] == 0


def test_tests_for_which_an_answer_has_no_room() -> None:
    short = ["\n".join(answer.split("\n")[:2]) + "\n```<|end|>" for answer in ANSWERS]
    room = SamplingConfig(max_completion_length=len(short[0]) - len("<|end|>") + 1)
    learner = make_learner(sampling=room)
    loss = answer_loss(learner.drive.model, short)
    metrics = learner.imitate(demonstrations())
    assert metrics["loss"] == pytest.approx(loss, abs=1e-5)
    assert metrics["tests_left_out"] == 0.5
    # One token less, and no test fits.
    none = SamplingConfig(max_completion_length=room.max_completion_length - 1)
    learner = make_learner(sampling=none)
    before = weights(learner)
    metrics = learner.imitate(demonstrations())
    assert (metrics["loss"], metrics["tests_left_out"]) == (0.0, 1.0)
    assert all(torch.equal(p, before[name]) for name, p in weights(learner).items())


@pytest.mark.parametrize("lora", [True, False])
def test_demonstrations_become_likelier(lora: bool) -> None:
    learner = make_learner(
        peft_config=adapter(8) if lora else None, learning_rate=1e-2 if lora else 1e-3
    )
    before = weights(learner)
    losses = [answer_loss(learner.drive.model, ANSWERS)]
    for _ in range(4):
        learner.imitate(demonstrations())
        losses.append(answer_loss(learner.drive.model, ANSWERS))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] - 0.05
    moved = [name for name, p in weights(learner).items() if not torch.equal(p, before[name])]
    assert moved == [name for name in before if not lora or "lora" in name]
    assert isinstance(learner, Imitator)


def config(folder: Path, **fields: Any) -> Any:
    return imitation_config(fields, UpdateShape(2, 4, 3), seed=1, folder=str(folder))


def test_warm_up_counts_steps_of_the_game(tmp_path: Path) -> None:
    two = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    made = config(tmp_path, **two, warmup_steps=2)
    assert (made.max_steps, made.warmup_steps) == (2 * 3, 2 * 2)
    assert config(tmp_path, **two, warmup_steps=0.5).warmup_steps == 0.5, "a share of the run"
    assert config(tmp_path, warmup_steps=2).warmup_steps == 2


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"betta": 0.1}, r"fields of SFTConfig or GRPOConfig, actually: 'betta'. Did you mean"),
        ({"max_length": 10}, "max_length not to be set .* decided by the sampling settings"),
        ({"per_device_train_batch_size": 3}, "divide the 8 answers .* actually: 3. 2 would"),
    ],
)
def test_bad_settings(tmp_path: Path, field: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(tmp_path, **field)
