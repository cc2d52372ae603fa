"""Random variations of arguments, close enough to the originals to mean something to the same function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Call = tuple[tuple[Any, ...], dict[str, Any]]


def vary_calls(calls: Sequence[Call], count: int, rng: np.random.Generator) -> list[Call]:
    """Return up to `count` distinct new calls, made from the given ones.

    Each takes a call and changes one or more of its arguments: numbers by little or to a boundary, texts
    and containers by an item inserted, removed, repeated, moved or varied; or it takes an argument from
    the same position of another call. Types stay what they are in some given call at that position.

    Example:
        >>> vary_calls([((3, "ab"), {})], 2, np.random.default_rng(0))
        [((3, 'aab'), {}), ((3, ''), {})]
    """
    known = {in_order(call) for call in calls}
    new: list[Call] = []
    for _ in range(20 * count if calls else 0):  # functions of few arguments run out of variations
        if len(new) == count:
            break
        arguments, keywords = _pick(calls, rng)
        changed: dict[int | str, Any] = {**dict(enumerate(arguments)), **keywords}
        for _ in range(1 + int(rng.integers(3) == 0) + int(rng.integers(6) == 0) if changed else 0):
            place = _pick(list(changed), rng)
            others = _seen(calls, place)
            if rng.integers(4) == 0:
                changed[place] = _pick(others, rng)
            else:
                changed[place] = vary(changed[place], rng, others)
        varied = tuple(changed[i] for i in range(len(arguments)))
        call = varied, {name: changed[name] for name in keywords}
        if in_order(call) not in known:
            known.add(in_order(call))
            new.append(call)
    return new


def vary(value: Any, rng: np.random.Generator, others: Sequence[Any] = ()) -> Any:
    """Return a variation of one value, of the same type."""
    alike = [other for other in others if type(other) is type(value)] or [value]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near = value + int(rng.integers(-10, 11))
        return _pick([value + 1, value - 1, near, 2 * value, value // 2, 0, 1, -value], rng)
    if isinstance(value, float):
        return float(_pick([value + 1, value - 1, value + 0.5, value / 2, 0.0, -value], rng))
    if isinstance(value, str):
        letters = list("".join(alike)) if rng.integers(6) else list(" aZ0-.")
        text = "".join(_vary_items(list(value), rng, letters, deep=False))
        return text.swapcase() if rng.integers(12) == 0 else text
    if isinstance(value, (list, tuple, set, frozenset)):
        items = list(value) if isinstance(value, (list, tuple)) else sorted(value, key=in_order)
        pool = [item for other in alike for item in other]
        return type(value)(_vary_items(items, rng, pool, deep=True))
    if isinstance(value, dict):
        pairs = list(value.items())
        pool = [pair for other in alike for pair in other.items()]
        if pairs and rng.integers(2):
            key = _pick(pairs, rng)[0]
            return {**value, key: vary(value[key], rng, [inner for _, inner in pool])}
        return dict(_vary_items(pairs, rng, pool, deep=False))
    return value


def in_order(value: Any) -> str:
    """Return the text of a value, as `repr`; but with the items of sets in an order that is the same in every process.

    Example:
        >>> in_order([{"b", "a"}, frozenset({2, 1})])
        "[{'a', 'b'}, frozenset({1, 2})]"
    """
    if not isinstance(value, (set, frozenset, list, tuple, dict)) or not value:
        return repr(value)
    if isinstance(value, dict):
        pairs = (f"{in_order(key)}: {in_order(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    items = [in_order(item) for item in value]
    if isinstance(value, list):
        return f"[{', '.join(items)}]"
    if isinstance(value, tuple):
        return f"({', '.join(items)}{',' * (len(items) == 1)})"
    text = f"{{{', '.join(sorted(items))}}}"
    return text if isinstance(value, set) else f"frozenset({text})"


def _vary_items(
    items: list[Any], rng: np.random.Generator, pool: Sequence[Any], *, deep: bool
) -> list[Any]:
    """Return a variation of a list; `deep` allows to vary an item in it."""
    items = list(items)
    index = int(rng.integers(len(items))) if items else 0
    action = int(rng.integers(9 if deep else 7))
    if action <= 1 and pool:
        items.insert(int(rng.integers(len(items) + 1)), _pick(pool, rng))
    elif not items:
        pass
    elif action == 2:
        del items[index]
    elif action == 3:
        items.insert(index, items[index])
    elif action == 4 and pool:
        items[index] = _pick(pool, rng)
    elif action == 5:
        items = [items[i] for i in rng.permutation(len(items))]
    elif action == 6:
        items = items[:index] if rng.integers(2) else items[index:]
    else:
        items[index] = vary(items[index], rng, pool)
    return items


def _seen(calls: Sequence[Call], place: int | str) -> list[Any]:
    if isinstance(place, str):
        return [keywords[place] for _, keywords in calls if place in keywords]
    return [arguments[place] for arguments, _ in calls if place < len(arguments)]


def _pick(items: Sequence[Any], rng: np.random.Generator) -> Any:
    return items[int(rng.integers(len(items)))]
