"""How fast a device is at most, measured in a second, and the time that a step of a language model takes by that."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.agents.llm.memory import weights_memory
from codea1_env.support.extras import require

_SECONDS = 0.4
_BYTES = 256 << 20
"""More than caches hold."""
_SIDE = 2048
"""Of the matrices that are multiplied."""


@dataclass(frozen=True)
class DeviceRate:
    """What a device does in a second."""

    bytes_read: float
    products: float
    """Multiplications with additions, as two operations each."""

    def __str__(self) -> str:
        """Return both for people."""
        return f"{self.bytes_read / 1e9:.0f} GB/s, {self.products / 1e12:.2g} TFLOP/s"


def measured_rate(device: str, dtype: str) -> DeviceRate:
    """Measure a device in a number format, with all its threads."""
    torch: Any = require("torch")
    kind = getattr(torch, dtype)
    numbers = torch.ones(_BYTES // kind.itemsize, dtype=kind, device=device)
    square = torch.ones(_SIDE, _SIDE, dtype=kind, device=device)
    read = _per_second(torch, device, numbers.sum)
    multiplied = _per_second(torch, device, lambda: square @ square)
    return DeviceRate(read * _BYTES, multiplied * 2 * _SIDE**3)


def _per_second(torch: Any, device: str, work: Callable[[], Any]) -> float:
    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    work()
    wait()
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < _SECONDS:
        work()
        wait()
        done += 1
    return done / (time.perf_counter() - started)


def writing_seconds(
    folder: Path, dtype: str, rate: DeviceRate, *, rows: int, length: int, batch: int
) -> float:
    """Return the seconds that answers take at least: each pass reads all weights, and multiplies with them for each row."""
    weights = weights_memory(folder, dtype)
    one = weights / rate.bytes_read
    of_row = 2 * weights_memory(folder, "float32") / 4 / rate.products
    return length * (math.ceil(rows / batch) * one + rows * of_row)


def learning_seconds(folder: Path, rate: DeviceRate, tokens: int) -> float:
    """Return the seconds that an update takes at least: six operations for each weight and token."""
    return 6 * tokens * weights_memory(folder, "float32") / 4 / rate.products
