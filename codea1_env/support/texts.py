"""Many hostile texts: read by a parser that some of them may break, and remembered up to a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from codea1_env.sandbox import AnalysisError

_BATCH_CHARS = 1 << 15
_TEXT_CHARS = 200
"""What a text costs in a batch, beside its length."""
REMEMBERED_CHARS = 32_000_000
ENTRY_CHARS = 500
"""What an entry costs beside its text."""

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K")
V = TypeVar("V")


def in_batches(
    items: Sequence[T],
    size: Callable[[T], int],
    read: Callable[[list[T]], list[R]],
    unread: Callable[[T, AnalysisError], R],
) -> list[R]:
    """Read items in batches, two at a time; for one that breaks the parser there is what `unread` returns.

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


class LRUCache(Generic[K, V]):
    """A dict that forgets what was not used for longest when its texts get too long. Thread-safe.

    Example:
        >>> cache = LRUCache[str, int](limit=1_100)
        >>> for name in "abc":
        ...     cache.put(name, 1, size=10)
        >>> cache.get("a"), cache.get("c")
        (None, 1)
    """

    def __init__(self, limit: int = REMEMBERED_CHARS) -> None:
        self._limit = limit
        self._size = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """Return the value, or None."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: K, value: V, size: int) -> None:
        """Enter a value, with the length of the text that it holds."""
        size += ENTRY_CHARS
        with self._lock:
            old = self._entries.pop(key, None)
            self._entries[key] = (value, size)
            self._size += size - (old[1] if old else 0)
            while self._size > self._limit and len(self._entries) > 1:
                _, (_, forgotten) = self._entries.popitem(last=False)
                self._size -= forgotten
