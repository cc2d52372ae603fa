"""Many hostile texts, read by a parser that some of them may break."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from codea1_env.sandbox import AnalysisError

_BATCH_CHARS = 1 << 15
_TEXT_CHARS = 200
"""What a text costs in a batch, beside its length."""

T = TypeVar("T")
R = TypeVar("R")


def in_batches(
    items: Sequence[T],
    size: Callable[[T], int],
    read: Callable[[list[T]], list[R]],
    unread: Callable[[T, AnalysisError], R],
) -> list[R]:
    """Read items in batches, two at a time; one that breaks the parser harms only itself.

    Args:
        items: What is to be read.
        size: Characters of an item.
        read: Reads a batch.
        unread: What stands for an item that breaks the parser.

    Example:
        >>> in_batches(["a", "b", "c" * 99_999], len, lambda batch: [len(batch)] * len(batch), max)
        [2, 2, 1]
    """

    def halving(batch: list[T]) -> list[R]:
        try:
            return read(batch)
        except AnalysisError as error:
            if len(batch) == 1:
                return [unread(batch[0], error)]
            half = len(batch) // 2
            return halving(batch[:half]) + halving(batch[half:])

    batches = list(_batches(items, size))
    if len(batches) < 2:
        return [each for batch in batches for each in halving(batch)]
    with ThreadPoolExecutor(2) as pool:
        return [each for found in pool.map(halving, batches) for each in found]


def _batches(items: Sequence[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    batch: list[T] = []
    total = 0
    for item in items:
        chars = size(item) + _TEXT_CHARS
        if batch and total + chars > _BATCH_CHARS:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += chars
    if batch:
        yield batch
