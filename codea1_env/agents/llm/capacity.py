"""Memory and speed of a device, and what a run takes of both at least.

A GPU says itself when its memory is full. On a processor the kernel ends a process without a word, so a run looks at
what is free before it loads anything.
"""

from __future__ import annotations

import ctypes
import math
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from codea1_env.support.extras import require

_LIBRARIES = 0.6e9
"""Bytes of Python, torch, transformers and TRL on a processor, before any weights."""
_PER_LOGIT = 16
"""Bytes for each score of a token while it is drawn: scores, softmax, sums and distribution in float32."""
_KEPT = (9, 4)
"""Numbers that a layer keeps of each token for its gradients: so many times those of a token outside and inside the MLP."""
_TILE, _TILES = (4096, 32768), 8
"""Answers' tokens and scores that TRL's loss looks at together, and such tiles that it has at once."""
_MMAP_THRESHOLD, _LARGE = -3, 1 << 20
"""Option of mallopt(3), and the bytes from which on a piece of memory is a mapping of its own."""
_GROUPS = (("", "memory.max", "memory.current"), ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"))  # fmt: skip
"""Folder, limit and usage in the control groups of version 2 and 1."""


def available_memory() -> int:
    """Return the bytes that this process may still take: of the machine, its container, and its own limit."""
    psutil: Any = require("psutil")
    free = [int(psutil.virtual_memory().available)]
    free += _containers(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        free.append(limit - int(psutil.Process().memory_info().vms))
    return max(0, min(free))


def _containers(root: Path, groups: Path) -> list[int]:
    """Bytes that the control groups of this process leave."""
    free = []
    with suppress(OSError):
        for line in groups.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            name, limit, used = _GROUPS[bool(controllers)]
            # A container may see its own group as the root, under another path.
            for folder in (root / name / path.lstrip("/"), root / name):
                if (folder / limit).is_file():
                    most, taken = (folder / limit).read_text(), (folder / used).read_text()
                    if most.strip() != "max":
                        free.append(int(most) - int(taken) + _reclaimable(folder))
                    break
    return free


def _reclaimable(folder: Path) -> int:
    """Bytes of files that the kernel gives back when they are wanted."""
    with suppress(OSError, ValueError):
        lines = (folder / "memory.stat").read_text().splitlines()
        rows = dict(line.split(" ", 1) for line in lines)
        return int(rows.get("total_inactive_file", rows.get("inactive_file", "0")))
    return 0


def own_memory() -> int:
    """Return the bytes that this process has taken already."""
    psutil: Any = require("psutil")
    return int(psutil.Process().memory_info().rss)


def give_back_at_once() -> None:
    """Let large pieces of memory go back to the system as soon as they are free; products take half as long again.

    By itself the C library keeps them in a heap, which grows to twice what is used.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_MMAP_THRESHOLD, _LARGE)


def weights_memory(folder: Path, dtype: str) -> float:
    """Return the bytes of a model's weights in a format; 0 where its files do not tell."""
    torch: Any = require("torch")
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    config = _configuration(folder) if stored else None
    if config is None:
        return 0.0
    before = (config.dtype or torch.float32).itemsize
    return float(stored * getattr(torch, dtype).itemsize / before)


def context_of(model: str | Path) -> int | None:
    """Return the tokens that a prompt and its answer may have together; None where config.json does not say."""
    config = _configuration(model)
    return config and getattr(config.get_text_config(), "max_position_embeddings", None)


@cache  # a run asks for each of its sizes
def least_memory(folder: Path, dtype: str, *, trained: int, lora: bool, rows: int) -> float:
    """Return the bytes that a run on a processor takes at least: weights, optimizer, and logits of a batch of so many rows.

    So many players learn with the model: all weights, or adapters, which take little.
    """
    weights = 2 * weights_memory(folder, dtype)  # as they are, and laid out for generation
    if not lora:  # in float32: weights, gradients and two moments of Adam
        weights = max(1, trained) * weights_memory(folder, "float32") * (4 if trained else 1)
    config = _configuration(folder) if weights else None
    vocabulary = getattr(config.get_text_config(), "vocab_size", 0) if config is not None else 0
    return _LIBRARIES + weights + rows * vocabulary * _PER_LOGIT


@cache
def update_memory(folder: Path, tokens: int, answers: int, *, again: bool) -> float:
    """Return the bytes that an update of so many tokens, `answers` of them, takes; 0 where the files do not tell.

    Of the layers it keeps all that they compute, or only what goes into them and one layer, if they are computed `again`.
    Scores of the vocabulary are made in tiles.
    """
    config = _configuration(folder)
    text = None if config is None else config.get_text_config()
    names = ("hidden_size", "num_hidden_layers", "vocab_size")
    sizes = [size for name in names if isinstance(size := getattr(text, name, None), int)]
    if len(sizes) < len(names):
        return 0.0
    hidden, layers, vocabulary = sizes
    inner = getattr(text, "intermediate_size", None) or 4 * hidden
    inner = max(inner) if isinstance(inner, (list, tuple)) else inner
    layer = _KEPT[0] * hidden + _KEPT[1] * inner
    head = _TILES * min(answers, _TILE[0]) * min(vocabulary, _TILE[1])
    return 4.0 * (tokens * (layers * hidden + layer if again else layers * layer) + head)


def _configuration(model: str | Path) -> Any:
    """config.json of a model; None where it is missing or damaged: its loading will say so."""
    transformers: Any = require("transformers")
    with suppress(Exception):
        return transformers.AutoConfig.from_pretrained(model, local_files_only=True)
    return None


@dataclass(frozen=True)
class DeviceRate:
    """Greatest speed of a device."""

    bytes_read: float
    """In a second."""
    products: float
    """Multiplications with additions in a second, as two operations each."""

    def __str__(self) -> str:
        """Return both for people."""
        return f"{self.bytes_read / 1e9:.0f} GB/s, {self.products / 1e12:.2g} TFLOP/s"


def measured_rate(device: str, dtype: str) -> DeviceRate:
    """Measure a device in a number format, with all its threads, for a second."""
    torch: Any = require("torch")
    kind = getattr(torch, dtype)
    size, side = 256 << 20, 2048  # more than caches hold
    numbers = torch.ones(size // kind.itemsize, dtype=kind, device=device)
    square = torch.ones(side, side, dtype=kind, device=device)
    read = _per_second(torch, device, numbers.sum)
    multiplied = _per_second(torch, device, lambda: square @ square)
    return DeviceRate(read * size, multiplied * 2 * side**3)


def _per_second(torch: Any, device: str, work: Callable[[], Any]) -> float:
    started, done = 0.0, -1  # the first time does not count
    while done < 1 or time.perf_counter() - started < 0.4:
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        done += 1
        started = started or time.perf_counter()
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
