"""How much memory there is, and how much the weights of a model need."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

from codea1_env.support.extras import require


def available_memory() -> int:
    """Return the bytes that this process may still take: of the machine, its container, and its own limit."""
    psutil: Any = require("psutil")
    free = [int(psutil.virtual_memory().available)]
    free += _containers(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        free.append(limit - int(psutil.Process().memory_info().vms))
    return max(0, min(free))


def own_memory() -> int:
    """Return the bytes that this process has taken already."""
    psutil: Any = require("psutil")
    return int(psutil.Process().memory_info().rss)


def weights_memory(folder: Path, dtype: str) -> float:
    """Return the bytes of a model's weights in a format; 0 where its files do not tell."""
    torch: Any = require("torch")
    transformers: Any = require("transformers")
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    if not stored:
        return 0.0
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    # float32 where the configuration does not say.
    before = (config.dtype or torch.float32).itemsize
    return float(stored * getattr(torch, dtype).itemsize / before)


def _containers(root: Path, groups: Path) -> list[int]:
    """What the control groups of this process leave, version 1 and 2."""
    free = []
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, limit, used = root, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            base, limit, used = root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # A container may see its own group as the root, under another path.
        for folder in (base / path.lstrip("/"), base):
            try:
                most, taken = (folder / limit).read_text().strip(), (folder / used).read_text()
            except OSError:
                continue
            if most != "max":
                free.append(int(most) - int(taken) + _reclaimable(folder))
            break
    return free


def _reclaimable(folder: Path) -> int:
    """Bytes of files that the kernel gives back when they are wanted."""
    try:
        rows = dict(
            line.split(" ", 1) for line in (folder / "memory.stat").read_text().splitlines()
        )
    except (OSError, ValueError):
        return 0
    return int(rows.get("total_inactive_file", rows.get("inactive_file", "0")))
