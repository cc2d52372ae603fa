"""How much memory there is, how much weights take, and what is said when it is full."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import save_tiny

from codea1_env.agents import models as capacity
from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.agents.models import available_memory, weights_memory
from codea1_env.training import (
    PlayerError,
)
from codea1_env.training.checkpoints import explained_failures


def test_what_is_free_is_less_than_what_there_is() -> None:
    import psutil

    assert 0 < available_memory() < psutil.virtual_memory().total


def test_a_limit_of_the_process_counts(monkeypatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1, 0))
    assert available_memory() == 0


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
