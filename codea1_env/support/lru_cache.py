"""A cache that is bounded by the length of the texts in it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

REMEMBERED_CHARS = 32_000_000
ENTRY_CHARS = 500
"""What an entry costs beside its text."""

K = TypeVar("K")
V = TypeVar("V")


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
        """The value, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

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
