"""The learner: it moves what it should, learns, and goes on from a checkpoint as if nothing had happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents import Experience
from codea1_env.agents.llm.completions import Completion, SamplingConfig
from codea1_env.agents.llm.learners import GRPOLearner, share_weights
from codea1_env.agents.llm.trainer_settings import TrainerSetup, UpdateShape
from codea1_env.agents.llm.training_state import save_weights
from codea1_env.problems import Problem
from codea1_env.spaces import observe

PROBLEMS = [Problem(name, f"def {name}(n):", name, f"def {name}(n): return n") for name in "fg"]
SHORT = SamplingConfig(max_completion_length=6, max_prompt_length=2000)


FIELDS = {"lr_scheduler_type": "constant", "gradient_checkpointing": False, "bf16": False}


def adapter(rank: int = 4) -> Any:
    from peft import LoraConfig

    return LoraConfig(r=rank, target_modules="all-linear", lora_alpha=2 * rank)


def make_learner(
    *,
    role: Any = "coder",
    model: Any = None,
    peft_config: Any = None,
    updates: int = 20,
    group_size: int = 8,
    engine: Any = None,
    sampling: SamplingConfig = SHORT,
    **fields: Any,
) -> GRPOLearner:
    defaults = FIELDS | {"learning_rate": 2e-2}
    return GRPOLearner(
        role,
        tiny_model() if model is None else model,
        tiny_tokenizer(),
        TrainerSetup(UpdateShape(2, group_size, updates), sampling, defaults | fields),
        peft_config=peft_config,
        engine=engine,
        seed=5,
    )


def play(learner: GRPOLearner, group_size: int = 8) -> tuple[list[Experience], float]:
    """One step of a game that pays for capital letters."""
    observations = [observe(problem) for problem in PROBLEMS for _ in range(group_size)]
    answers = learner.act(observations)
    rewards = [sum(letter.isupper() for letter in answer) / 6 for answer in answers]
    experience = [
        Experience(seen, answer, reward, seen["entry_point"])
        for seen, answer, reward in zip(observations, answers, rewards, strict=True)
    ]
    return experience, sum(rewards) / len(rewards)


def train(learner: GRPOLearner, steps: int) -> list[dict[str, float]]:
    history = []
    for _ in range(steps):
        experience, mean = play(learner)
        history.append({**learner.learn(experience), "mean": mean})
    return history


def weights(learner: GRPOLearner) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in learner.drive.model.named_parameters()}


def saved_bytes(learner: Any, folder: Path) -> dict[Path, bytes]:
    folder.mkdir()
    learner.save(folder)
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_reward_rises() -> None:
    # Larger weights than usual, so that what the layers do can change what is said.
    model = tiny_model(initializer_range=0.3)
    learner = make_learner(model=model, peft_config=adapter(8), learning_rate=3e-2)
    history = [row["mean"] for row in train(learner, 14)]
    assert sum(history[-4:]) / 4 > sum(history[:4]) / 4 + 0.2


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path) -> None:
    """With all weights; with adapters whole runs are compared."""
    whole, resumed = (make_learner(updates=3, lr_scheduler_type="cosine") for _ in range(2))
    first = train(whole, 1)
    saved_bytes(whole, tmp_path / "saved")
    rest = train(whole, 2)
    resumed.load(tmp_path / "saved")
    assert train(resumed, 2) == rest
    assert first != rest
    assert saved_bytes(whole, tmp_path / "whole") == saved_bytes(resumed, tmp_path / "resumed")


def test_two_players_share_a_base_but_no_adapter() -> None:
    base = tiny_model().to(torch.bfloat16)
    coder = make_learner(model=share_weights(base), peft_config=adapter(), bf16=True)
    tester = make_learner(role="tester", model=share_weights(base), peft_config=adapter())
    shared = {p.data_ptr() for p in base.parameters()}
    for learner in (coder, tester):
        frozen = {n: p for n, p in learner.drive.model.named_parameters() if "lora" not in n}
        assert {p.data_ptr() for p in frozen.values()} == shared
    before, base_before = weights(tester), {n: p.clone() for n, p in base.named_parameters()}
    train(coder, 2)
    assert all(torch.equal(p, before[n]) for n, p in weights(tester).items())
    assert all(torch.equal(p, base_before[n]) for n, p in base.named_parameters())
    assert any(torch.any(p != 0) for n, p in weights(coder).items() if "lora_B" in n)
    train(tester, 1)  # still can


@pytest.mark.parametrize("lora", [True, False])
def test_peft_and_transformers_load_what_is_saved(tmp_path: Path, lora: bool) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    ids = torch.tensor([[5, 6, 7, 8]])
    learner = make_learner(peft_config=adapter() if lora else None)
    train(learner, 2)
    learner.save(tmp_path)
    if lora:
        loaded = PeftModel.from_pretrained(tiny_model(), tmp_path / "adapter")
    else:
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype="float32")
    own = learner.drive.model.eval()
    with torch.no_grad():
        assert torch.equal(loaded(ids).logits, own(ids).logits)
        assert not torch.equal(own(ids).logits, tiny_model()(ids).logits)


class Engine:
    """An engine beside the model, which answers with fixed tokens."""

    context_length = 512

    def __init__(self) -> None:
        self.updates: list[tuple[str | None, list[str]]] = []

    def count_tokens(self, messages: Any) -> int:
        return 10

    def generate(self, prompts: Any, sampling: Any, seed: int, adapter: Any) -> list[Completion]:
        assert adapter == self.updates[-1][0]
        return [
            Completion((5, 6), (7 + i % 8, 1), (-5.0, -5.0), f"answer {i}", False, 2, 2)
            for i in range(len(prompts))
        ]

    def update(self, folder: Path, adapter: str | None = None) -> None:
        self.updates.append((adapter, sorted(path.name for path in folder.iterdir())))

    def close(self) -> None:
        pass


ADAPTER_FILES = {"adapter_config.json", "adapter_model.safetensors"}


@pytest.mark.parametrize("lora", [True, False])
def test_an_engine_gets_the_weights_after_each_update(lora: bool) -> None:
    files = ADAPTER_FILES if lora else {"config.json", "model.safetensors"}
    engine = Engine()
    learner = make_learner(engine=engine, peft_config=adapter() if lora else None)
    experience, _ = play(learner)
    rewarded = [
        Experience(e.observation, e.action, float(i), e.group) for i, e in enumerate(experience)
    ]
    metrics = learner.learn(rewarded)
    assert [name for name, _ in engine.updates] == ["coder" if lora else None] * 2
    assert all(files <= set(found) for _, found in engine.updates)
    assert "sampling/importance_sampling_ratio/mean" in metrics


def test_a_checkpoint_that_cannot_be_loaded(tmp_path: Path) -> None:
    learner, folder = make_learner(peft_config=adapter()), tmp_path / "saved"
    content = saved_bytes(make_learner(peft_config=adapter()), folder)
    state = json.loads(content[Path("trainer.json")])
    for name, damage, message in (
        (
            "trainer.json",
            json.dumps(state | {"version": 99}).encode(),
            "with format 1, actually: 99",
        ),
        ("trainer.json", None, "Expect"),
        ("optimizer.safetensors", None, "Expect"),
        ("adapter/adapter_model.safetensors", None, "Expect"),
    ):
        whole = content[Path(name)]
        (folder / name).write_bytes(whole[: len(whole) // 2] if damage is None else damage)
        with pytest.raises(ValueError, match=message):
            learner.load(folder)
        (folder / name).write_bytes(whole)
    saved_bytes(make_learner(model=tiny_model(seed=9), peft_config=adapter()), tmp_path / "other")
    with pytest.raises(ValueError, match=r"Expect .* to be saved with the same model"):
        learner.load(tmp_path / "other")


def test_experience_of_somebody_else() -> None:
    learner = make_learner(peft_config=adapter())
    experience, _ = play(learner)
    strange = [Experience(e.observation, "not mine", 1.0, e.group) for e in experience]
    with pytest.raises(ValueError, match=r"answers that this player gave .* 'not mine'"):
        learner.learn(strange)
    with pytest.raises(ValueError, match=r"groups of 8 answers, actually 4 in group 'f'"):
        learner.learn(play(learner, group_size=4)[0])


@pytest.mark.parametrize("trained", ["adapter", "model"])
def test_a_full_disk_is_an_error_of_the_system(trained, tmp_path, monkeypatch):
    """safetensors has an error class of its own, which nobody catches."""

    def full(*_: Any, **__: Any) -> None:
        raise SafetensorError("Error while serializing: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    model = tiny_model()
    if trained == "adapter":
        from peft import get_peft_model

        model = get_peft_model(model, adapter())
    monkeypatch.setattr(type(model), "save_pretrained", full)
    with pytest.raises(OSError, match=r"cannot write to .*: .*No space left on device"):
        save_weights(model, tiny_tokenizer(), tmp_path)
