"""How much memory there is, and how much a language model needs to write and to learn on a processor."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.agents.llm.computing import Dtype
from codea1_env.support.extras import require

_LIBRARIES = 1.1e9
"""Bytes of Python, torch, transformers and TRL, before any weights."""
_SIZES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Work:
    """What is held in memory at one time."""

    writing_rows: int
    """Answers that grow at the same time."""
    writing_length: int
    """Tokens of a prompt with its answer."""
    learning_tokens: int
    """Tokens of an update that are computed together: prompts of groups, and answers."""
    answer_tokens: int
    """Of these, tokens of answers."""


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


def needed_memory(folder: Path, dtype: Dtype, work: Work) -> float:
    """Estimate the bytes of a whole process in which a model writes and learns with an adapter.

    Args:
        folder: The model's.
        dtype: Format that it computes in.
        work: What it does. The estimate was within 5% of a run of SmolLM2-135M in float32 (5.8 GB).
    """
    transformers: Any = require("transformers")
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    config = config.get_text_config()
    size, hidden, layers = _SIZES[dtype], config.hidden_size, config.num_hidden_layers
    inner = getattr(config, "intermediate_size", None) or 4 * hidden
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or hidden // heads
    kept = 2 * layers * (getattr(config, "num_key_value_heads", None) or heads) * width * size
    logits = 4 * config.vocab_size
    writing = work.writing_rows * (1.5 * work.writing_length * kept + 4 * logits)
    # What each layer keeps for the way back: inputs of products, of norms, of the activation, of adapters.
    learning = work.learning_tokens * layers * (20 * hidden + 10 * inner) * size
    learning += 2 * work.answer_tokens * logits
    return _LIBRARIES + weights_memory(folder, dtype) + float(max(writing, learning))


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
