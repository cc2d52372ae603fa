"""What is said when memory is full, or would be. There is no GPU here: torch's own error is raised by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from codea1_env.agents.llm import memory
from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.training import (
    PlayerConfig,
    PlayerError,
    RunError,
    TesterConfig,
    TrainConfig,
    engine,
)
from codea1_env.training.failures import explained_failures

torch = pytest.importorskip("torch")
FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ...")


def test_a_full_memory_names_what_to_lower(tmp_path: Path) -> None:
    with pytest.raises(PlayerError, match=r"Lower generation_batch.*CUDA out of memory") as caught:  # noqa: SIM117
        with explained_failures(tmp_path):
            raise FULL
    assert "GPU 0 has" not in str(caught.value)


def test_also_where_a_trainer_met_it(tmp_path: Path) -> None:
    with pytest.raises(PlayerError, match="per_device_train_batch_size"):  # noqa: SIM117
        with explained_failures(tmp_path):
            raise UpdateError("the trainer failed") from FULL


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="another"), explained_failures(tmp_path):
        raise RuntimeError("another")


def test_a_processor_refuses_what_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "weights_memory", lambda folder, dtype: 4e9)
    monkeypatch.setattr(memory, "_configuration", lambda folder: None)
    whole = TrainConfig(
        coder=PlayerConfig("llm", learning_rate=1e-5),
        tester=TesterConfig("llm", learning_rate=1e-5),
        lora_rank=0,
    )
    # Weights, gradients and two moments of both players, and the libraries.
    with pytest.raises(RunError, match=r"at least 32\.6 GB of free memory.*actually: 20\.0 GB"):
        engine._check_memory(whole, "float32", tmp_path, int(20e9))
    engine._check_memory(whole, "float32", tmp_path, int(33e9))
    adapters = dataclasses.replace(whole, lora_rank=8)
    # The weights as they are, and laid out for generation.
    engine._check_memory(adapters, "float32", tmp_path, int(9e9))
