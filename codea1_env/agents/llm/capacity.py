"""Memory of this machine, and what a model takes of it.

A GPU says itself when its memory is full. On a processor the kernel ends a process without a word, so that what is free is
looked at before anything is loaded.
"""

from __future__ import annotations

import ctypes
import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import Any

from codea1_env.support.extras import require

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
    free = []
    with suppress(OSError):
        for line in os.fsdecode(groups.read_bytes()).splitlines():
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


def _configuration(model: str | Path) -> Any:
    """config.json of a model; None where it is missing or damaged: its loading will say so."""
    transformers: Any = require("transformers")
    with suppress(Exception):
        return transformers.AutoConfig.from_pretrained(model, local_files_only=True)
    return None
