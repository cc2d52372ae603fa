"""Number formats and threads: measured, or as asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import save_tiny, tiny_model

from codea1_env.agents.llm import computing
from codea1_env.agents.llm.computing import (
    Computing,
    choose_computing,
    frozen_weights_in,
)
from codea1_env.support.machine import usable_cores
from codea1_env.support.start import spin_briefly

CORES = len(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(save_tiny(tmp_path_factory.mktemp("model")))


def test_what_is_measured_can_be_had(folder: Path) -> None:
    chosen = choose_computing(folder, "cpu")
    assert {chosen.dtype, chosen.generation_dtype} <= {"float32", "bfloat16"}
    assert {chosen.threads, chosen.generation_threads} <= set(range(1, CORES + 1))


def test_what_is_asked_for_is_not_measured(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "_measure", None)  # would fail if it were called
    asked = choose_computing(folder, "cpu", dtype="bfloat16", threads=1)
    assert asked == Computing("bfloat16", "bfloat16", 1, 1)


SECONDS = {
    ("float32", 1): 2.0,
    ("float32", 2): 1.0,
    ("bfloat16", 1): 0.5,
    ("bfloat16", 2): 0.48,
}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ("bfloat16", 1)),  # a second thread that hardly helps is left to others
        ({"dtype": "float32"}, ("float32", 2)),
        ({"dtype": "float32", "generation_threads": 1}, ("float32", 2)),
    ],
)
def test_the_fastest_of_what_is_left_open(folder, monkeypatch, asked, expected) -> None:
    if CORES < 2:
        pytest.skip("needs two cores")
    other = dict.fromkeys(SECONDS, 1.0) | {("float32", 1): 0.1}
    both = {"writing": other, "updates": SECONDS}  # each phase has its own best
    monkeypatch.setattr(computing, "_measure", lambda *_: both)
    chosen = choose_computing(folder, "cpu", **asked)
    assert (chosen.dtype, chosen.threads) == expected
    assert chosen.generation_dtype == "float32"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"dtype": "float16"}, "float32 or bfloat16 on a processor.*float16"),
        ({"threads": CORES + 1}, f"from 1 to {CORES}"),
    ],
)
def test_what_this_machine_does_not_have(folder: Path, asked: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_computing(folder, "cpu", **asked)


def test_frozen_weights_change_their_format_and_come_back() -> None:
    model = tiny_model()
    model.requires_grad_(False)
    model.model.norm.weight.requires_grad_(True)
    before = {name: weight.data_ptr() for name, weight in model.named_parameters()}
    copies = set()
    for _ in range(2):
        with frozen_weights_in(model, "bfloat16"):
            kinds = {name: weight.dtype for name, weight in model.named_parameters()}
            copies.add(model.lm_head.weight.data_ptr())
            assert kinds.pop("model.norm.weight") == torch.float32
            assert set(kinds.values()) == {torch.bfloat16}
        assert {n: w.data_ptr() for n, w in model.named_parameters()} == before
    assert len(copies) == 1  # made once
    with torch.no_grad():
        model.lm_head.weight.fill_(2.0)
    with frozen_weights_in(model, "bfloat16"):
        assert (model.lm_head.weight == 2).all()
    with frozen_weights_in(model, None):
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("said", ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY", None])
def test_threads_wait_briefly_unless_the_user_has_said_how(monkeypatch, said) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "7")  # which is undone at the end, whatever happens
        if name != said:
            monkeypatch.delenv(name)
    spin_briefly()
    assert os.environ.get("GOMP_SPINCOUNT") == {"GOMP_SPINCOUNT": "7", None: "1000"}.get(said)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "max 100000\n"}, CORES),
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "20000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, CORES),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu.max": "nonsense"}, CORES),
        ({}, CORES),
    ],
)
def test_a_container_has_processor_time_for_so_many_cores(tmp_path, files, cores) -> None:
    (tmp_path / "cpu").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert usable_cores(tmp_path) == cores
