"""What is of this side and stands for something of the other: generators, coroutines, and the answer to `type(x)`."""

from __future__ import annotations

import datetime as datetime_module
from collections.abc import Coroutine, Generator, Iterator
from datetime import date, datetime
from typing import Any

from .handles import Handle


def type_of(value: Any) -> Any:
    """What a test finds as `type`, where it only calls it with one argument."""
    if type(value) is Handle:
        return value._codea1_peer.ask("type", value)
    kind = type(value)
    # A test finds settled classes in the module; their values are ordinary ones.
    return vars(datetime_module).get(kind.__name__, kind) if kind in (date, datetime) else kind


class _Driven:
    """A generator of the other side, as `yield from` drives it."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def _ask(self, name: str, *operands: Any) -> Any:
        return self._handle._codea1_peer.ask(name, self._handle, *operands)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._ask("next")

    def send(self, value: Any) -> Any:
        return self._ask("send", value)

    def throw(self, *error: Any) -> Any:
        return self._ask("throw", error[1] if len(error) > 1 and error[1] is not None else error[0])

    def close(self) -> None:
        self._ask("close")


def generator(handle: Handle) -> Generator[Any, Any, Any]:
    """A generator of this side that stands for one of the other."""
    return (yield from _Driven(handle))


async def _awaited(handle: Handle) -> Any:
    return await handle


def coroutine(handle: Handle) -> Coroutine[Any, Any, Any]:
    """A coroutine of this side that stands for one of the other."""
    return _awaited(handle)
