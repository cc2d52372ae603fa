from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from codea1_env.agents.llm.agent import Usage
from codea1_env.training.summary import Throughput, peak_memory


def test_tokens_per_second() -> None:
    speed = Throughput({})
    usages = {"coder": Usage(completion_tokens=100, seconds=4.0), "tester": Usage()}
    first = speed.of_step(
        usages, {"coder/num_tokens": 600.0}, {"coder": 5.0, "learn_coder": 2.0, "learn_tester": 1.0}
    )
    assert first == {"speed/coder/generation": 25.0, "speed/coder/update": 300.0}
    second = speed.of_step(usages, {"coder/num_tokens": 1000.0}, {"learn_coder": 2.0})
    assert second["speed/coder/update"] == 200.0


def test_a_resumed_run_counts_from_where_it_was() -> None:
    speed = Throughput({"step": 7, "model/num_tokens": 600.0})
    found = speed.of_step({"model": Usage()}, {"model/num_tokens": 700.0}, {"learn_model": 2.0})
    assert found == {"speed/model/update": 50.0}


def test_memory() -> None:
    """It is that of this process, and never falls."""
    program = (
        "from codea1_env.training.summary import peak_memory\n"
        "before = peak_memory()['memory/process_peak']\n"
        "data = b'x' * (200 << 20); del data\n"
        "print(before, peak_memory()['memory/process_peak'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    before, after = map(float, done.stdout.split())
    assert after - before == pytest.approx(200, abs=30)
    assert "memory/gpu_peak" not in peak_memory()


def test_memory_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that computes is asked; one that is only there is not."""
    for used in (False, True):
        cuda = SimpleNamespace(
            is_initialized=lambda used=used: used, max_memory_allocated=lambda: 3 << 20
        )
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
        assert peak_memory().get("memory/gpu_peak") == (3.0 if used else None)
