"""How a model computes on this machine: number format and threads.

Processors with instructions for bfloat16 multiply it twice as fast as float32 or more; others emulate it, several times
slower. So the format follows from the processor's flags.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from codea1_env.support.extras import Lazy
from codea1_env.support.machine import usable_cores

torch: Any = Lazy("torch")
Dtype = Literal["float32", "bfloat16", "float16"]
"""What matrices are multiplied in. Trained parameters are float32 in any case."""
_MULTIPLY_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}
"""Flags of /proc/cpuinfo, of x86 and ARM."""


@dataclass(frozen=True)
class Computing:
    """Number format and threads of a model."""

    dtype: Dtype
    threads: int

    def __str__(self) -> str:
        """Return one line for people."""
        return f"{self.dtype} on {self.threads} thread{'s' if self.threads > 1 else ''}"


def check_threads(number: int | None) -> None:
    """Raise a ValueError if this process may not use so many cores."""
    cores = len(os.sched_getaffinity(0))
    if number is not None and not 1 <= number <= cores:
        raise ValueError(
            f"Expect threads to be from 1 to {cores}, as many as this process may use cores, actually: {number}. "
            f"Give --threads {cores}, or leave it out."
        )


def choose_computing(
    device: str, *, dtype: Dtype | None = None, threads: int | None = None
) -> Computing:
    """Choose what is left open (None).

    Raises a ValueError for what this device has not.
    """
    if dtype is not None and dtype not in get_args(Dtype):
        raise ValueError(
            f"Expect dtype to be one of auto, {', '.join(get_args(Dtype))}, actually: {dtype!r}"
        )
    check_threads(threads)
    if device.startswith("cpu"):
        if dtype == "float16":
            raise ValueError(
                "Expect dtype to be float32 or bfloat16 on a processor, actually: 'float16', which only GPUs train "
                "in. Leave dtype out to take the faster of the two."
            )
        return Computing(dtype or fastest_format(), threads or usable_cores())
    supported = torch.cuda.is_bf16_supported(including_emulation=False)
    if dtype == "bfloat16" and not supported:
        raise ValueError(
            f"Expect a GPU that computes in bfloat16, actually: {torch.cuda.get_device_name()} does not. "
            "Choose float32 or float16."
        )
    best: Dtype = "bfloat16" if supported else "float32"
    return Computing(dtype or best, threads or torch.get_num_threads())


def fastest_format(cpuinfo: Path = Path("/proc/cpuinfo")) -> Dtype:
    """Return the format that this processor multiplies fastest, by its flags."""
    try:
        flags = set(cpuinfo.read_text(errors="replace").split())
    except OSError:
        return "float32"
    return "bfloat16" if flags & _MULTIPLY_BFLOAT16 else "float32"


@contextmanager
def thread_number(number: int | None) -> Iterator[None]:
    """Compute with so many threads; None for as many as before."""
    before = torch.get_num_threads()
    if number is None or number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
