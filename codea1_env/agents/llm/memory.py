"""How much memory there is, and how much a model needs: its weights, and what a process of a run holds, writes and learns with.

All that a run takes follows from the shape of the model and the lengths of texts. `benchmarks/memory.py` compares it with a run on a
processor; on a GPU nothing of it has been measured.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from dataclasses import dataclass
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
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    config = _configuration(folder) if stored else None
    if config is None:
        return 0.0
    # float32 where the configuration does not say.
    before = (config.dtype or torch.float32).itemsize
    return float(stored * getattr(torch, dtype).itemsize / before)


def _configuration(model: str | Path) -> Any:
    """Return what config.json of a model says; None where there is none, or a damaged one: its loading will say so."""
    transformers: Any = require("transformers")
    with suppress(Exception):  # whatever a damaged file makes of the code that reads it
        return transformers.AutoConfig.from_pretrained(model, local_files_only=True)
    return None


def _containers(root: Path, groups: Path) -> list[int]:
    """Return what the control groups of this process leave, version 1 and 2."""
    free = []
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        base, limit, used = root, "memory.max", "memory.current"
        if "memory" in controllers.split(","):
            base, limit, used = root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        elif controllers:
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


# ---- What a model needs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelShape:
    """What decides how much memory a decoder of the kind of Llama and Qwen takes.

    Example:
        >>> round(KNOWN["Qwen/Qwen2.5-Coder-1.5B-Instruct"].parameters / 1e9, 2)
        1.54
    """

    hidden: int
    layers: int
    inner: int
    """Width between the two halves of a layer's perceptron."""
    heads: int
    kv_heads: int
    vocabulary: int
    tied: bool = True
    """Whether the first matrix is the last one, too."""
    qkv_bias: bool = False
    head_dim: int | None = None
    """None for an equal share of `hidden`."""
    context: int = 32768
    """Tokens that a prompt and its answer may have together."""

    @property
    def queries(self) -> int:
        """Width of all heads together."""
        return self.heads * (self.head_dim or self.hidden // self.heads)

    @property
    def keys(self) -> int:
        """Width of the keys of a token in one layer; that of the values is the same."""
        return self.queries // self.heads * self.kv_heads

    @property
    def _matrices(self) -> list[tuple[int, int]]:
        """The matrices of a layer."""
        attention = [(self.hidden, self.queries), (self.queries, self.hidden)]
        return attention + 2 * [(self.hidden, self.keys)] + 3 * [(self.hidden, self.inner)]

    @property
    def parameters(self) -> int:
        """Number of weights."""
        layer = sum(rows * columns for rows, columns in self._matrices) + 2 * self.hidden
        if self.qkv_bias:
            layer += self.queries + 2 * self.keys
        return self.embedding * (1 if self.tied else 2) + self.layers * layer + self.hidden

    @property
    def embedding(self) -> int:
        """Number of weights of the first matrix, and of the last."""
        return self.vocabulary * self.hidden

    def adapter(self, rank: int) -> int:
        """Return number of weights of a LoRA adapter for all matrices of the layers."""
        return self.layers * sum(rank * (rows + columns) for rows, columns in self._matrices)


KNOWN = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": ModelShape(576, 30, 1536, 9, 3, 49152, context=8192),
    "Qwen/Qwen2.5-Coder-0.5B-Instruct": ModelShape(896, 24, 4864, 14, 2, 151936, qkv_bias=True),
    "Qwen/Qwen2.5-Coder-1.5B-Instruct": ModelShape(1536, 28, 8960, 12, 2, 151936, qkv_bias=True),
    "Qwen/Qwen2.5-Coder-3B-Instruct": ModelShape(2048, 36, 11008, 16, 2, 151936, qkv_bias=True),
    "Qwen/Qwen2.5-Coder-7B-Instruct": ModelShape(
        3584, 28, 18944, 28, 4, 152064, tied=False, qkv_bias=True
    ),
}
"""Models of the presets, by their published config.json: a plan needs no network."""


def shape_of(model: str | Path) -> ModelShape | None:
    """Return the sizes of a model: a known one, or one whose config.json is at hand.

    Args:
        model: An id of the hub, or a folder.

    Returns:
        None where there is no config.json that can be read, neither in the folder nor in the hub's cache.
    """
    if str(model) in KNOWN:
        return KNOWN[str(model)]
    config = _configuration(model)
    if config is None:
        return None
    config = config.get_text_config()
    heads = config.num_attention_heads
    if not heads:
        return None
    return ModelShape(
        config.hidden_size,
        config.num_hidden_layers,
        getattr(config, "intermediate_size", None) or 4 * config.hidden_size,
        heads,
        getattr(config, "num_key_value_heads", None) or heads,
        config.vocab_size,
        tied=bool(config.tie_word_embeddings),
        qkv_bias=config.model_type == "qwen2",
        head_dim=getattr(config, "head_dim", None),
        context=getattr(config, "max_position_embeddings", None) or ModelShape.context,
    )


SIZES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number."""
_TILE = 4096 * 32768
"""Logits that an update of TRL computes at a time, of the answers alone: tokens x vocabulary."""
_PER_HIDDEN, _PER_INNER = 10, 4
"""What a layer keeps of a token for the way back, in numbers of the size of `hidden` and `inner`: inputs of norms, of
the activation and of adapters, what attention keeps. Counted by torch's hooks for saved tensors: 11.1 to 11.7 thousand
numbers in a layer of SmolLM2-135M, here 11.9."""
_SCATTERED = 1.8
"""On a processor an update takes so many times as much as its tensors: glibc leaves holes between them.
Measured on ten layers of the shape of SmolLM2-135M: 1.56 GB of memory for 0.87 GB of tensors, which take 0.88 GB if each has
pages of its own (MALLOC_MMAP_THRESHOLD_)."""

_SCATTERED_CACHE = 1.5
"""Likewise of the KV cache, from one run that wrote 16 answers."""


@dataclass(frozen=True)
class Numbers:
    """What a model computes and learns with."""

    dtype: str
    """Of updates."""
    generation_dtype: str
    """Of writing."""
    lora_rank: int
    """0 for all weights."""
    processes: int = 1
    gpu: bool = True


def resident(
    shape: ModelShape, numbers: Numbers, learners: int, players: int, *, references: int
) -> dict[str, float]:
    """Return what is held all the time.

    Args:
        shape: The model of all players.
        numbers: How it is trained.
        learners: Players that learn.
        players: All that are this model; those that do not learn share one that is not trained.
        references: Players whose learning stays close to the model at the start (`beta` above 0).

    Returns:
        Part -> bytes.
    """
    trained = trained_weights(shape, numbers)
    if numbers.lora_rank:
        formats = {numbers.dtype, numbers.generation_dtype}
        weights = shape.parameters * sum(SIZES[each] for each in formats) + 4 * trained * learners
        kept = 0  # the base without its adapter is the reference
    else:
        frozen = shape.parameters * SIZES[numbers.generation_dtype] * (players > learners)
        weights = 4 * trained * learners + frozen
        kept = 4 * shape.parameters * references
    found = {
        "weights": weights,
        "optimizer (two moments)": 8 * trained * learners,
        "reference model": kept,
        "exchange of gradients": 4 * trained * learners * (numbers.processes > 1),
    }
    return {name: float(size) for name, size in found.items() if size}


def trained_weights(shape: ModelShape, numbers: Numbers) -> int:
    """Return the number of weights that one player trains."""
    return shape.adapter(numbers.lora_rank) if numbers.lora_rank else shape.parameters


def serving(shape: ModelShape, length: int) -> float:
    """Return the bytes that an engine of vLLM does not start without: weights, and the cache of one sequence, in bfloat16."""
    return 2.0 * (shape.parameters + 2 * shape.keys * shape.layers * length)


def learning(
    shape: ModelShape,
    numbers: Numbers,
    *,
    rows: int,
    length: int,
    tokens: int,
    answers: int,
    checkpointing: bool,
) -> dict[str, float]:
    """Return what an update of one player adds.

    Args:
        shape: The model.
        numbers: How it is trained.
        rows: Sequences that are computed together.
        length: Tokens of a sequence.
        tokens: Tokens of all sequences.
        answers: Of these, tokens of answers.
        checkpointing: Whether layers are computed again on the way back, instead of being kept.

    Returns:
        Part -> bytes.
    """
    size = SIZES[numbers.dtype]
    trained = trained_weights(shape, numbers)
    stream = size if numbers.lora_rank else 4  # a model that is trained whole adds up in float32
    layer = tokens * (_PER_HIDDEN * shape.hidden + _PER_INNER * shape.inner) * size
    # On the way back, what comes from behind stands beside what was kept.
    back = tokens * (2 * shape.hidden + 3 * shape.inner) * size
    if checkpointing:
        kept = shape.layers * tokens * shape.hidden * stream + layer + back
    else:
        kept = shape.layers * layer + back
    masks = rows * length**2 * (1 + size)
    if not numbers.gpu:  # there each layer keeps its own
        masks *= 1 if checkpointing else shape.layers
        kept, masks = int(_SCATTERED * kept), int(_SCATTERED * masks)
    # A matrix that is cast to a smaller format is kept in it for the way back.
    copies = shape.parameters * size if not numbers.lora_rank and size < 4 else 0
    tile = min(_TILE, answers * min(32768, shape.vocabulary)) * (size + 4)
    last = 4 * (shape.embedding if not numbers.lora_rank else 0) + 12 * answers * shape.hidden
    return {
        "gradients": 4.0 * trained,
        "activations": float(kept + masks + copies),
        "logits": float(tile + last),
    }


def writing(
    shape: ModelShape, numbers: Numbers, *, rows: int, prompts: int, prompt: int, answer: int
) -> dict[str, float]:
    """Return what writing adds.

    Args:
        shape: The model.
        numbers: How it computes.
        rows: Answers that grow at the same time.
        prompts: Different prompts among theirs.
        prompt: Tokens of a prompt.
        answer: Tokens of an answer.

    Returns:
        Part -> bytes.
    """
    size = SIZES[numbers.generation_dtype]
    places = 2 * shape.keys * size * (prompt + answer)
    cache = rows * shape.layers * places * (1.0 if numbers.gpu else _SCATTERED_CACHE)
    # Keys and values of a layer, once for each head.
    spread = rows * places * (shape.heads // shape.kv_heads)
    copies = shape.parameters * size if not numbers.lora_rank and size < 4 else 0
    reading = prompts * prompt * (6 * shape.hidden + 3 * shape.inner) * size
    reading += prompts * prompt**2 * (1 + size)
    logits = rows * shape.vocabulary * 4 * 4  # scores, their softmax, its sums, the distribution
    return {
        "KV cache": cache,
        "activations": float(copies + max(reading, spread)),
        "logits": float(logits),
    }
