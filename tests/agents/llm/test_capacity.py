"""How much memory there is, how much is needed, and what is said when it is full, or would be; how long a step takes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from tiny import save_tiny

from codea1_env.agents.llm import capacity
from codea1_env.agents.llm.capacity import available_memory, own_memory, weights_memory
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.agents.models import load_model, resolve
from codea1_env.training import (
    PlayerConfig,
    PlayerError,
    RunError,
    TesterConfig,
    TrainConfig,
    memory,
)
from codea1_env.training.batches import sizes
from codea1_env.training.failures import explained_failures


def test_what_is_free_is_less_than_what_there_is() -> None:
    import psutil

    assert 0 < available_memory() < psutil.virtual_memory().total
    assert 1e7 < own_memory() < 1e11


def test_a_limit_of_the_process_counts(monkeypatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (own_memory(), 0))
    assert available_memory() < 1e7


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def test_containers_of_version_2(tmp_path: Path) -> None:
    write(tmp_path, groups="0::/job/one")
    write(tmp_path / "root" / "job" / "one", memory__max=4000, memory__current=1500)
    (tmp_path / "root" / "job" / "one" / "memory.stat").write_text("anon 1000\ninactive_file 300\n")
    assert capacity._containers(tmp_path / "root", tmp_path / "groups") == [4000 - 1500 + 300]
    write(tmp_path / "root" / "job" / "one", memory__max="max")
    assert capacity._containers(tmp_path / "root", tmp_path / "groups") == []


def test_a_container_that_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    write(tmp_path, groups="3:cpu,memory:/docker/abc\n0::/docker/abc")
    write(tmp_path / "root" / "memory", memory__limit_in_bytes=5000, memory__usage_in_bytes=1000)
    assert capacity._containers(tmp_path / "root", tmp_path / "groups") == [4000]


def test_weights_in_another_format(tmp_path: Path) -> None:
    folder = Path(save_tiny(tmp_path))
    assert weights_memory(folder, "bfloat16") * 2 == weights_memory(folder, "float32")


FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ...")


def test_a_full_memory_names_what_to_lower(tmp_path: Path) -> None:
    said = r"Lower generation_batch.*CUDA out of memory"
    with pytest.raises(PlayerError, match=said) as caught, explained_failures(tmp_path):
        raise FULL
    assert "GPU 0 has" not in str(caught.value)
    said = "per_device_train_batch_size"
    with pytest.raises(PlayerError, match=said), explained_failures(tmp_path):
        raise UpdateError("the trainer failed") from FULL


def test_a_processor_refuses_what_does_not_fit(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(capacity, "weights_memory", lambda folder, dtype: 4e9)
    monkeypatch.setattr(capacity, "_configuration", lambda folder: None)
    whole = TrainConfig(
        coder=PlayerConfig("llm", learning_rate=1e-5),
        tester=TesterConfig("llm", learning_rate=1e-5),
        lora_rank=0,
    )
    # Weights, gradients and two moments of both players, and the libraries.
    with pytest.raises(RunError, match=r"at least 32\.6 GB of free memory.*actually: 20\.0 GB"):
        memory.check_memory(whole, "float32", tmp_path, int(20e9))
    memory.check_memory(whole, "float32", tmp_path, int(33e9))
    adapters = dataclasses.replace(whole, lora_rank=8)
    # The weights as they are, and laid out for generation.
    memory.check_memory(adapters, "float32", tmp_path, int(9e9))


def budgeted(**more: object) -> TrainConfig:
    sampling = SamplingConfig(max_prompt_length=512, max_completion_length=96)
    fields = {
        "learning_rate": 1e-5,
        "sampling": sampling,
        "trainer": {"gradient_checkpointing": False},
    }
    return TrainConfig(
        coder=PlayerConfig("llm", **fields),
        tester=TesterConfig("llm", **fields),
        problems_per_step=4,
        num_generations=4,
        num_suites=4,
        time_budget=10,
        **more,
    )


def test_little_memory_is_spared_and_less_is_refused(tmp_path: Path, monkeypatch) -> None:
    given_back: list[None] = []
    monkeypatch.setattr(memory, "give_back_at_once", lambda: given_back.append(None))
    folder, said = save_tiny(tmp_path), []
    config = budgeted(model=str(folder))

    def spare(config: TrainConfig, available: float) -> TrainConfig:
        return memory.spared(config, 12, available, lambda _: True, said.append)

    small = memory.needed(sizes(config, 12)[-1])
    assert spare(config, small) == config
    assert not said
    spared = spare(config, small - 1)
    assert [spared.player(role).trainer for role in ("coder", "tester")] == [
        {"gradient_checkpointing": True}
    ] * 2
    assert "layers are computed again" in said[0]
    least = memory.needed(sizes(spared, 12)[-1])
    assert least < small
    with pytest.raises(RunError, match="GB of free memory"):
        spare(config, least - 1)
    # Without a budget a run does what it was told.
    decided = sizes(config, 12)[-1]
    assert spare(decided, small) == spare(decided, small - 1) == decided
    assert "given back at once" in said[-1]
    assert len(given_back) == 2
    with pytest.raises(RunError, match="GB of free memory"):
        spare(decided, least - 1)
    assert spare(config, float("inf")) == config


def test_the_smallest_size_is_one_that_can_be_divided(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(memory, "give_back_at_once", lambda: None)
    config = budgeted(model=str(save_tiny(tmp_path)))

    def large(config: TrainConfig) -> bool:
        return config.problems_per_step == 4

    available = memory.needed(sizes(config, 12)[-1])
    spared = memory.spared(config, 12, available, large, print)
    assert spared.coder.trainer == {"gradient_checkpointing": True}


def test_what_an_update_keeps_is_what_it_takes() -> None:
    """Estimated for the default model, beside what torch says that a forward pass keeps."""
    model = load_model(resolve("smollm2-135m"), dtype="float32")
    tokens, kept = 64, {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    weights = {each.untyped_storage().data_ptr() for each in model.parameters()}
    model.requires_grad_(False)
    model.model.embed_tokens.weight.requires_grad_(True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        states = model.model(input_ids=torch.arange(tokens)[None]).last_hidden_state
    found = sum(size for place, size in kept.items() if place not in weights)
    states.sum()
    said = capacity.update_memory(resolve("smollm2-135m"), tokens, 0, again=False)
    assert 0.6 < found / said < 1.2


def test_models_that_do_not_tell_their_sizes(tmp_path: Path) -> None:
    folder = Path(save_tiny(tmp_path))
    config = json.loads((folder / "config.json").read_text())
    assert capacity.update_memory(folder, 100, 50, again=True) > 0
    del config["model_type"]
    write(tmp_path / "other", config__json=json.dumps(config))
    assert capacity.update_memory(tmp_path / "other", 100, 50, again=True) == 0
