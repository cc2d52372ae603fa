"""The learner: it moves what it should, learns, and goes on from a checkpoint as if nothing had happened."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import tiny_model, tiny_tokenizer
from trl import GRPOTrainer

from codea1_env.agents import Experience
from codea1_env.agents.llm.completions import Completion, SamplingConfig
from codea1_env.agents.llm.learners import GRPOLearner, share_weights
from codea1_env.agents.llm.trainer_settings import UpdateShape
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.llm.trl_internals import with_algorithm
from codea1_env.problems import Problem
from codea1_env.spaces import observe

PROBLEMS = [Problem(name, f"def {name}(n):", name, f"def {name}(n): return n") for name in "fg"]
SHORT = SamplingConfig(max_completion_length=6, max_prompt_length=2000)


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
    taught: bool = False,
    trainer_cls: Any = None,
    **fields: Any,
) -> GRPOLearner:
    defaults = {
        "learning_rate": 2e-2,
        "lr_scheduler_type": "constant",
        "gradient_checkpointing": False,
        "bf16": False,
    }
    return GRPOLearner(
        role,
        tiny_model() if model is None else model,
        tiny_tokenizer(),
        shape=UpdateShape(2, group_size, updates),
        sampling=sampling,
        fields=defaults | fields,
        peft_config=peft_config,
        engine=engine,
        seed=5,
        taught=taught,
        trainer_cls=trainer_cls,
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


@pytest.mark.parametrize("lora", [True, False])
def test_the_reward_rises(lora: bool) -> None:
    learner = make_learner(
        # Larger weights than usual, so that what the layers do can change what is said.
        model=tiny_model(initializer_range=0.3),
        peft_config=adapter(8) if lora else None,
        learning_rate=3e-2 if lora else 1e-2,
    )
    history = [row["mean"] for row in train(learner, 20)]
    assert sum(history[-5:]) / 5 > sum(history[:5]) / 5 + 0.2


@pytest.mark.parametrize("lora", [True, False])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path, lora: bool) -> None:
    def make() -> GRPOLearner:
        return make_learner(
            peft_config=adapter() if lora else None, updates=4, lr_scheduler_type="cosine"
        )

    whole = make()
    first = train(whole, 2)
    folder = tmp_path / "saved"
    folder.mkdir()
    whole.save(folder)
    rest = train(whole, 2)
    resumed = make()
    resumed.load(folder)
    assert train(resumed, 2) == rest
    assert first != rest
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(resumed)[name]), name
    assert saved_bytes(whole, tmp_path / "whole") == saved_bytes(resumed, tmp_path / "resumed")


class MovingBaseline:
    """Rewards minus a moving average of all steps, which the learner must remember."""

    def __init__(self) -> None:
        self.mean = torch.zeros(1)

    def advantages(self, rewards: Any) -> Any:
        self.mean = 0.5 * self.mean + 0.5 * float(rewards.mean())
        return rewards - self.mean.item()

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self.mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.mean = torch.tensor(state["mean"])


def test_what_an_algorithm_remembers_is_resumed(tmp_path: Path) -> None:
    def make() -> GRPOLearner:
        trainer_cls = with_algorithm(GRPOTrainer, MovingBaseline())
        return make_learner(peft_config=adapter(), updates=2, trainer_cls=trainer_cls)

    whole, resumed = make(), make()
    train(whole, 1)
    saved = tmp_path / "saved"
    saved_bytes(whole, saved)
    resumed.load(saved)
    assert train(resumed, 1) == train(whole, 1)
    assert saved_bytes(whole, tmp_path / "whole") == saved_bytes(resumed, tmp_path / "resumed")
    forgetful = make()
    forgetful.drive.trainer.own_algorithm.load_state_dict = lambda state: None
    forgetful.load(saved)
    train(forgetful, 1)
    assert saved_bytes(forgetful, tmp_path / "f") != saved_bytes(whole, tmp_path / "whole-again")


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


def test_peft_and_transformers_load_what_is_saved(tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    ids = torch.tensor([[5, 6, 7, 8]])
    (tmp_path / "lora").mkdir()
    (tmp_path / "full").mkdir()
    learner = make_learner(peft_config=adapter())
    train(learner, 2)
    learner.save(tmp_path / "lora")
    loaded = PeftModel.from_pretrained(tiny_model(), tmp_path / "lora" / "adapter")
    own = learner.drive.model.eval()
    with torch.no_grad():
        assert torch.equal(loaded(ids).logits, own(ids).logits)
        assert not torch.equal(own(ids).logits, tiny_model()(ids).logits)
    learner = make_learner()
    train(learner, 2)
    learner.save(tmp_path / "full")
    whole = AutoModelForCausalLM.from_pretrained(tmp_path / "full" / "model", dtype="float32")
    with torch.no_grad():
        assert torch.equal(whole(ids).logits, learner.drive.model.eval()(ids).logits)


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


@pytest.mark.parametrize(
    ("peft_config", "name", "files"),
    [(adapter(), "coder", ADAPTER_FILES), (None, None, {"config.json", "model.safetensors"})],
)
def test_an_engine_gets_the_weights_after_each_update(
    peft_config: Any, name: str | None, files: set[str]
) -> None:
    engine = Engine()
    learner = make_learner(engine=engine, peft_config=peft_config)
    experience, _ = play(learner)
    rewarded = [
        Experience(e.observation, e.action, float(i), e.group) for i, e in enumerate(experience)
    ]
    metrics = learner.learn(rewarded)
    assert [adapter for adapter, _ in engine.updates] == [name] * 2
    assert all(files <= set(found) for _, found in engine.updates)
    assert "sampling/importance_sampling_ratio/mean" in metrics


def saved(tmp_path: Path, **changes: Any) -> Path:
    folder = tmp_path / "saved"
    folder.mkdir()
    make_learner(peft_config=adapter(), **changes).save(folder)
    return folder


def test_a_checkpoint_of_another_model(tmp_path: Path) -> None:
    folder = saved(tmp_path, model=tiny_model(seed=9))
    with pytest.raises(ValueError, match=r"Expect .* to be saved with the same model"):
        make_learner(peft_config=adapter()).load(folder)


def test_a_checkpoint_of_another_version(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    state = json.loads((folder / "trainer.json").read_text())
    (folder / "trainer.json").write_text(json.dumps(state | {"version": 99}))
    with pytest.raises(ValueError, match="with format 1, actually: 99"):
        make_learner(peft_config=adapter()).load(folder)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("trainer.json", "half"),
        ("optimizer.safetensors", "half"),
        ("adapter/adapter_model.safetensors", "half"),
        ("agent.json", "missing"),
    ],
)
def test_a_broken_checkpoint(tmp_path: Path, name: str, how: str) -> None:
    folder = saved(tmp_path)
    if how == "missing":
        (folder / name).unlink()
    else:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="Expect"):
        make_learner(peft_config=adapter()).load(folder)


def test_experience_of_somebody_else() -> None:
    learner = make_learner(peft_config=adapter())
    experience, _ = play(learner)
    strange = [Experience(e.observation, "not mine", 1.0, e.group) for e in experience]
    with pytest.raises(ValueError, match=r"answers that this player gave .* 'not mine'"):
        learner.learn(strange)
    with pytest.raises(ValueError, match=r"groups of 8 answers, actually 4 in group 'f'"):
        learner.learn(play(learner, group_size=4)[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rat": 1.0}, r"fields of GRPOConfig, actually: 'learning_rat'. Did you mean"),
        ({"temperature": 0.5}, "temperature not to be set .* sampling settings of the run"),
        ({"per_device_train_batch_size": 5}, "divide the 16 answers .* actually: 5. 4 would"),
        (
            {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 3},
            "gradient_accumulation_steps to divide the 2",
        ),
        ({"sampling": SamplingConfig(temperature=0)}, "temperature above 0"),
        ({"model": "bf16"}, "model in float32"),
    ],
)
def test_bad_settings(changes: dict[str, Any], message: str) -> None:
    if changes.get("model"):
        changes = {"model": tiny_model().to(torch.bfloat16)}
    with pytest.raises(ValueError, match=message):
        make_learner(**changes)


def test_answers_of_older_weights_are_corrected_for() -> None:
    """As a player learns whose next answers are written while it learns (max_staleness=1)."""
    model = tiny_model(initializer_range=0.3)
    writer = TransformersBackend(copy.deepcopy(model), tiny_tokenizer())
    learner = make_learner(
        model=model,
        taught=True,
        vllm_importance_sampling_mode="sequence_truncate",
        vllm_importance_sampling_clip_max=100.0,
    )
    seen = [observe(problem) for problem in PROBLEMS for _ in range(8)]
    chats = [learner.agent.chat(each) for each in seen]
    for step in range(2):
        written = writer.generate(chats, SHORT, seed=step)
        learner.remember(seen, written)
        experience = [
            Experience(each, answer.text, i % 8 / 8, each["entry_point"])
            for i, (each, answer) in enumerate(zip(seen, written, strict=True))
        ]
        ratios = [
            likelihood(learner, answer) / math.exp(sum(answer.logprobs)) for answer in written
        ]
        metrics = learner.learn(experience)
        mean = metrics["sampling/importance_sampling_ratio/mean"]
        assert mean == pytest.approx(sum(ratios) / len(ratios), rel=1e-3)
        assert (mean == pytest.approx(1, abs=1e-3)) is (step == 0)


def likelihood(learner: GRPOLearner, answer: Completion) -> float:
    with torch.no_grad():
        logits = learner.drive.model(
            torch.tensor([answer.prompt_ids + answer.completion_ids])
        ).logits
    drawn = torch.tensor(answer.completion_ids)
    scores = logits[0, len(answer.prompt_ids) - 1 : -1].log_softmax(-1)
    return math.exp(scores.gather(1, drawn[:, None]).sum())
