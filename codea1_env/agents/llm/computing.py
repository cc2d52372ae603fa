"""How a model computes on this machine: number formats and threads, chosen by measuring.

Some processors compute bfloat16 many times faster than float32, others several times slower; and beside other work two
threads can be slower than one. So both are tried for a moment on matrices of the model's own shapes, for the two kinds
of work: writing, with a few rows at a time by each core, and updates, with hundreds.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from codea1_env.agents.llm.packed import MadeOfWeights, can_pack, pack, product
from codea1_env.support.extras import require
from codea1_env.support.machine import usable_cores

Dtype = Literal["float32", "bfloat16", "float16"]
"""What matrices are multiplied in. Trained parameters are float32 in any case."""
_Way = tuple[Dtype, int]
"""Format and threads."""
_Times = dict[_Way, float]

_ROWS = {"writing": (32,) * 8 + (256,), "updates": (512,)}
"""Rows of the products, one after the other: answers that grow at the same time and their prompts; tokens of an update."""
_BYTES = 64 << 20
"""Matrices of so many bytes: more than caches hold, as a model's are."""
_SECONDS, _ROUNDS = 0.03, 5
_HOPELESS = 2.0
"""What takes so many times as long as the best is not tried again."""
_WORTH = 1.1
"""A second thread must make it so much faster to be taken: other work may want the core."""


@dataclass(frozen=True)
class Computing:
    """Number formats and threads of one model."""

    dtype: Dtype
    """Number format of updates."""
    generation_dtype: Dtype
    """Number format of generation."""
    threads: int
    """Threads of updates."""
    generation_threads: int
    """Processes that generate, one thread each, where there are answers enough."""

    def __str__(self) -> str:
        """Return one line for people."""
        one = f"{self.dtype} on {_threads(self.threads)}"
        if self.generation_dtype != self.dtype:
            one += f" for updates, {self.generation_dtype} on {_threads(self.generation_threads)} for writing"
        elif self.generation_threads != self.threads:
            one += f" for updates, on {_threads(self.generation_threads)} for writing"
        return one


def check_threads(*numbers: int | None) -> int:
    """Raise a ValueError if this process may not use so many cores; returns how many it may."""
    cores = len(os.sched_getaffinity(0))
    for number in numbers:
        if number is not None and not 1 <= number <= cores:
            raise ValueError(
                f"Expect threads to be from 1 to {cores}, as many as this process may use cores, actually: {number}. "
                f"Give --threads {cores} (and --generation-threads {cores} if a file has it), or leave it out to "
                "have it measured."
            )
    return cores


def choose_computing(
    folder: Path,
    device: str,
    *,
    dtype: Dtype | None = None,
    generation_dtype: Dtype | None = None,
    threads: int | None = None,
    generation_threads: int | None = None,
) -> Computing:
    """Choose what is left open (None) by measuring it; on a GPU nothing is measured.

    The model's folder has the shapes of its matrices. What is asked for updates holds for writing, too, unless that has a
    format or number of its own. Raises a ValueError for what this device has not.
    """
    torch: Any = require("torch")
    generation_dtype = generation_dtype or dtype
    generation_threads = generation_threads or threads
    for each in (dtype, generation_dtype):
        _check_dtype(each, device)
    cores = check_threads(threads, generation_threads)
    if not device.startswith("cpu"):
        supported = torch.cuda.is_bf16_supported(including_emulation=False)
        best: Dtype = "bfloat16" if supported else "float32"
        return Computing(
            dtype or best,
            generation_dtype or best,
            threads or torch.get_num_threads(),
            generation_threads or torch.get_num_threads(),
        )
    if dtype and generation_dtype and threads and generation_threads:
        return Computing(dtype, generation_dtype, threads, generation_threads)
    counts = {1, max(1, cores // 2), cores, threads or 1}
    seconds = _measure(torch, folder, sorted(counts), {dtype, generation_dtype})
    update = _best(seconds["updates"], dtype, threads)
    write, _ = _best(seconds["writing"], generation_dtype, None)
    # Each core writes answers of its own, so that none waits for another.
    return Computing(update[0], write, update[1], generation_threads or usable_cores())


@contextmanager
def thread_number(number: int | None) -> Iterator[None]:
    """Compute with so many threads; None for as many as before."""
    torch: Any = require("torch")
    before = torch.get_num_threads()
    if number is None or number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_COPIES = MadeOfWeights()


@contextmanager
def frozen_weights_in(model: Any, dtype: Dtype | None) -> Iterator[None]:
    """Have the weights that are not trained in another format inside. Copies are kept, and shared like the weights."""
    torch: Any = require("torch")
    wanted = None if dtype is None else getattr(torch, dtype)
    own: list[tuple[Any, Any]] = []
    for weight in model.parameters():
        if wanted is None or weight.requires_grad or weight.dtype == wanted:
            continue
        if not weight.is_floating_point():
            continue
        copy = _COPIES.of([weight], wanted, partial(weight.detach().to, wanted))
        own.append((weight, weight.data))
        weight.data = copy
    try:
        yield
    finally:
        for weight, data in own:
            weight.data = data


def _check_dtype(dtype: str | None, device: str) -> None:
    if dtype is not None and dtype not in get_args(Dtype):
        raise ValueError(
            f"Expect dtype to be one of auto, {', '.join(get_args(Dtype))}, actually: {dtype!r}"
        )
    if dtype == "float16" and device.startswith("cpu"):
        raise ValueError(
            "Expect dtype to be float32 or bfloat16 on a processor, actually: 'float16', which only GPUs train "
            "in. Leave dtype out to take the faster of the two."
        )
    if dtype == "bfloat16" and not device.startswith("cpu"):
        torch: Any = require("torch")
        if not torch.cuda.is_bf16_supported(including_emulation=False):
            raise ValueError(
                f"Expect a GPU that computes in bfloat16, actually: {torch.cuda.get_device_name()} does not. "
                "Choose float32 or float16."
            )


def _measure(
    torch: Any, folder: Path, counts: list[int], asked: Collection[Dtype | None]
) -> dict[str, _Times]:
    """Kind of work -> format and threads -> seconds of one layer's products."""
    matrices = _matrices(torch, folder)
    hidden = len(matrices[0])
    formats: tuple[Dtype, ...] = ("float32", "bfloat16")
    seconds: dict[str, _Times] = {}
    for kind, rows in _ROWS.items():
        numbers = counts if kind == "updates" else [1]
        ways = [(name, number) for name in formats for number in numbers]
        states = [torch.ones(number, hidden) for number in rows]
        given = {
            name: [[each.to(getattr(torch, name)) for each in some] for some in (states, matrices)]
            for name in formats
        }
        multiply = dict.fromkeys(formats, torch.matmul)
        for name in formats if kind == "writing" else ():
            if can_pack(getattr(torch, name)):
                multiply[name] = product
                given[name][1] = [pack(each.t()) for each in given[name][1]]
        times: dict[_Way, list[float]] = {way: [] for way in ways}
        # By turns, so that other work of the machine meets all alike.
        for _ in range(_ROUNDS):
            for way in ways:
                best = min((min(each) for each in times.values() if each), default=0.0)
                if not times[way] or min(times[way]) < _HOPELESS * best:
                    with thread_number(way[1]), torch.no_grad():
                        times[way].append(_seconds(multiply[way[0]], *given[way[0]]))
        found = seconds[kind] = {way: statistics.median(each) for way, each in times.items()}
        # What is emulated takes seconds for a single product of many rows.
        quick = {way[0] for way in ways if found[way] < 4 * min(found.values())}
        formats = tuple(name for name in formats if name in quick or name in asked)
    return seconds


def _matrices(torch: Any, folder: Path) -> list[Any]:
    """Three random matrices of the model's shapes for each layer, hidden states first."""
    transformers: Any = require("transformers")
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    config = config.get_text_config()
    hidden = int(config.hidden_size)
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    shapes = ((hidden, hidden), (hidden, inner), (inner, hidden))
    layers = max(1, min(_BYTES // (4 * sum(a * b for a, b in shapes)), config.num_hidden_layers))
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator) for _ in range(layers) for shape in shapes]


def _seconds(
    multiply: Callable[[Any, Any], Any], states: Sequence[Any], factors: Sequence[Any]
) -> float:
    """Mean time of the products of a layer, over a moment."""
    done, started = 0, time.perf_counter()
    layers = [factors[i : i + 3] for i in range(0, len(factors), 3)]
    while done == 0 or time.perf_counter() - started < _SECONDS:
        for place, found in enumerate(states):
            for factor in layers[(done + place) % len(layers)]:
                found = multiply(found, factor)
        done += len(states)
    return (time.perf_counter() - started) / done


def _best(seconds: _Times, dtype: Dtype | None, threads: int | None) -> _Way:
    """Fastest of what may be chosen; more threads only where they pay."""
    left = {
        way: value
        for way, value in seconds.items()
        if dtype in (None, way[0]) and threads in (None, way[1])
    }
    counts = sorted({number for _, number in left})
    return min(left, key=lambda way: left[way] * _WORTH ** counts.index(way[1]))


def _threads(number: int) -> str:
    return f"{number} thread{'s' if number > 1 else ''}"
