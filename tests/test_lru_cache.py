"""The bounded cache of the referee."""

from __future__ import annotations

from codea1_env.support.texts import ENTRY_CHARS, LRUCache


def test_what_was_not_used_for_longest_is_forgotten_first():
    cache = LRUCache[str, int](limit=3 * ENTRY_CHARS)
    for number, name in enumerate("abc"):
        cache.put(name, number, size=0)
    assert cache.get("a") == 0
    cache.put("d", 3, size=0)
    assert [cache.get(name) for name in "abcd"] == [0, None, 2, 3]


def test_long_texts_take_more_room():
    cache = LRUCache[str, int](limit=10 * ENTRY_CHARS)
    for name in "abc":
        cache.put(name, 1, size=0)
    cache.put("long", 1, size=8 * ENTRY_CHARS)
    assert [cache.get(name) for name in ("a", "b", "c", "long")] == [None, None, 1, 1]
    cache.put("huge", 1, size=99 * ENTRY_CHARS)  # the last one stays, whatever its size
    assert [cache.get(name) for name in ("c", "long", "huge")] == [None, None, 1]


def test_entering_again_replaces():
    cache = LRUCache[str, int](limit=2 * ENTRY_CHARS)
    cache.put("other", 7, size=0)
    for number in range(100):
        cache.put("a", number, size=0)
    assert (cache.get("a"), cache.get("other")) == (99, 7)
