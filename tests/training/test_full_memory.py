"""What is said when a GPU's memory is full. There is no GPU here: torch's own error is raised by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.training import PlayerError
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
