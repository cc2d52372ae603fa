"""How many bytes a process of a run takes: what it holds all the time, and what writing and learning add.

All of it follows from the shape of the model and the lengths of texts. `benchmarks/memory.py` compares it with a run on a
processor; on a GPU nothing of it has been measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.agents.llm.model_shape import ModelShape

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
    shape: ModelShape, numbers: Numbers, learners: int, players: int, *, reference: bool
) -> dict[str, float]:
    """Return what is held all the time.

    Args:
        shape: The model of all players.
        numbers: How it is trained.
        learners: Players that learn.
        players: All that are this model; those that do not learn share one that is not trained.
        reference: Whether learning stays close to the model at the start (`beta` above 0).

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
        kept = 4 * shape.parameters * learners if reference else 0
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
