"""A cache of keys and values with room to grow.

That of transformers joins old and new tensors, and so copies everything for each token: with 64 answers more than a
third of the time. Here a token is written into its place.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from codea1_env.support.extras import require

if TYPE_CHECKING:
    from torch import Tensor


def growing_cache(model: Any, length: int) -> Any | None:
    """Make an empty cache for a model; None for one with other layers than those that look back at everything.

    Args:
        model: A causal language model of transformers.
        length: Tokens that there is room for at first; more make it grow.

    Returns:
        A `transformers.DynamicCache`, or None.
    """
    transformers: Any = require("transformers")
    cache_utils: Any = require("transformers.cache_utils")
    cache = transformers.DynamicCache(config=model.config)
    if not all(type(layer) is cache_utils.DynamicLayer for layer in cache.layers):
        return None
    cache.layers = [_layer_class()(length) for _ in cache.layers]
    return cache


@lru_cache(maxsize=1)
def _layer_class() -> Any:
    """The class of the layers; made when transformers is there."""
    cache_utils: Any = require("transformers.cache_utils")

    class GrowingLayer(cache_utils.DynamicLayer):  # type: ignore[misc]  # its module is not known to mypy
        """Keys and values of one layer, [rows, heads, tokens, size], as views of larger tensors."""

        def __init__(self, room: int) -> None:
            super().__init__()
            self._room = room
            self._length = 0

        def update(self, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
            start, self._length = self._length, self._length + keys.shape[-2]
            if not self.is_initialized:
                self.lazy_initialization(keys, values)
                self._stores = [self._store(keys), self._store(values)]
            elif self._length > self._stores[0].shape[-2]:
                self._room = 2 * self._length
                self._stores = [self._moved(old, start) for old in self._stores]
            for store, new in zip(self._stores, (keys, values), strict=True):
                store[:, :, start : self._length] = new
            self._look()
            return self.keys, self.values

        def get_seq_length(self) -> int:
            return self._length

        def batch_select_indices(self, indices: Tensor) -> None:
            self._stores = [self._moved(old, self._length, indices) for old in self._stores]
            self._look()

        def _store(self, like: Tensor, rows: int | None = None) -> Tensor:
            shape = (like.shape[0] if rows is None else rows, like.shape[1])
            return like.new_empty((*shape, max(self._room, self._length), like.shape[3]))

        def _moved(self, old: Tensor, length: int, rows: Tensor | None = None) -> Tensor:
            new = self._store(old, None if rows is None else len(rows))
            kept = old[:, :, :length]
            new[:, :, :length] = kept if rows is None else kept.index_select(0, rows)
            return new

        def _look(self) -> None:
            self.keys, self.values = (store[:, :, : self._length] for store in self._stores)

    return GrowingLayer
