"""Sizes of a language model, from its configuration: enough to say how much memory it takes, without its weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.support.extras import require


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
        """Number of weights of a LoRA adapter for all matrices of the layers."""
        return self.layers * sum(rank * (rows + columns) for rows, columns in self._matrices)


KNOWN = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": ModelShape(576, 30, 1536, 9, 3, 49152),
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
        None where there is no config.json, neither in the folder nor in the hub's cache.
    """
    if str(model) in KNOWN:
        return KNOWN[str(model)]
    transformers: Any = require("transformers")
    try:
        config = transformers.AutoConfig.from_pretrained(model, local_files_only=True)
    except (OSError, ValueError):
        return None
    config = config.get_text_config()
    heads = config.num_attention_heads
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
    )
