"""Containers that both sides have: a call gets copies, and what it changes in them changes the originals.

A message numbers the containers in it (`codec.encode` with `containers`), so that both sides have the same
table of them. After a call the contents of those that have changed are sent back, in which a container of
the table stands as a reference to it. So nesting, aliases and identity survive, as in one process.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Sequence
from itertools import chain
from operator import is_
from typing import Any

from .. import codec

_MAPPINGS = (dict, OrderedDict, Counter, defaultdict)

Table = list[Any]
Changes = list[tuple[int, Any]]


def content(container: Any) -> Any:
    """What is in a container, as a tuple or bytes."""
    kind = type(container)
    if kind is list:
        return tuple(container)
    if kind in _MAPPINGS:
        return tuple(chain.from_iterable(container.items()))
    if kind in (deque, set):
        return tuple(container)
    return bytes(container) if kind is bytearray else container.tobytes()


def snapshot(table: Table) -> list[Any]:
    """The contents of all containers of a table."""
    return [content(container) for container in table]


def _is_same(left: Any, right: Any) -> bool:
    if type(left) is bytes:
        return bool(left == right)
    # Identity, since `==` could run foreign code; what is put back in its place counts as unchanged.
    return len(left) == len(right) and all(map(is_, left, right))


def changes(table: Table, before: Sequence[Any]) -> Changes:
    """Which containers have changed since a snapshot, with what is in them now."""
    found = []
    for index, old in enumerate(before):
        container = table[index]
        # The usual case needs no copy.
        if type(container) is list and len(container) == len(old) and all(map(is_, old, container)):
            continue
        new = content(container)
        if not _is_same(old, new):
            found.append((index, new))
    return found


def apply(table: Table, changed: Any, numpy: codec.Numpy | None) -> None:
    """Changes containers as the other side has changed its copies.

    Raises:
        DecodeError: The changes do not fit the table.
    """
    if type(changed) is not tuple:
        raise codec.DecodeError("malformed changes")
    try:
        for index, new in changed:
            if type(index) is not int or index < 0:
                raise codec.DecodeError("a change of a container that is not there")
            _replace(table[index], new, numpy)
    except (LookupError, TypeError, ValueError) as error:
        raise codec.DecodeError(f"a change that does not fit: {error}") from None


def _replace(container: Any, new: Any, numpy: codec.Numpy | None) -> None:
    kind = type(container)
    if type(new) is not (tuple if kind in (*_MAPPINGS, list, deque, set) else bytes):
        raise codec.DecodeError("a change of another type")
    if kind in _MAPPINGS:
        pairs = list(zip(new[::2], new[1::2], strict=True))
        codec.check_hashes([key for key, _ in pairs])
        container.clear()
        (OrderedDict if kind is OrderedDict else dict).update(container, pairs)
    elif kind is set:
        codec.check_hashes(new)
        container.clear()
        container.update(new)
    elif kind is deque:
        container.clear()
        container.extend(new)
    elif kind in (list, bytearray):
        container[:] = new
    elif numpy is not None:
        container[...] = numpy.frombuffer(new, dtype=container.dtype).reshape(container.shape)
