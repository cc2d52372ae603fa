"""Generators and coroutines of the other side as they are driven here, and ours as they are awaited for it.

That is done a little at a time, so that the other side's own coroutines get their turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterator
from typing import Any

from .handles import Handle

_PATIENCE = 0.005  # seconds until the other side gets a turn

# A test finds another `id` in the builtins; here it is the real one.
_id = id


async def _awaited(value: Any) -> Any:
    return await value


class Awaiting:
    """The tasks of one process that the other one awaits."""

    def __init__(self) -> None:
        self._loops: list[asyncio.AbstractEventLoop] = []
        self._tasks: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = {}

    def step(self, value: Any, cancel: bool) -> tuple[bool, Any]:
        """Run until an awaitable is done or its time is over.

        Args:
            value: The awaitable; the caller keeps it alive.
            cancel: Whether it has been cancelled since the last step.

        Returns:
            Whether it is done, and its result.

        Raises:
            BaseException: What it has raised.
        """
        # The other side's coroutine may be waiting for us inside a running loop of this process.
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            if _id(value) not in self._tasks:
                loop = self._free_loop()
                task = loop.create_task(_awaited(value))
                self._tasks[_id(value)] = (loop, task)
                # As in one event loop: it begins, and at its first wait the others have their turns.
                loop.call_soon(loop.stop)
                loop.run_forever()
            else:
                loop, task = self._tasks[_id(value)]
                if cancel:
                    task.cancel()
                if not task.done() and not loop.is_running():
                    self._run(loop, task)
        finally:
            asyncio._set_running_loop(outer)
        if not task.done():
            return False, None
        del self._tasks[_id(value)]
        return True, task.result()

    def _run(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        def stop(_: Any = None) -> None:
            loop.stop()

        task.add_done_callback(stop)
        timer = loop.call_later(_PATIENCE, stop)
        try:
            loop.run_forever()
        finally:
            timer.cancel()
            task.remove_done_callback(stop)

    def _free_loop(self) -> asyncio.AbstractEventLoop:
        for loop in self._loops:
            if not loop.is_running():
                return loop
        self._loops.append(asyncio.new_event_loop())
        return self._loops[-1]


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
    """Yield a generator of this side that stands for one of the other."""
    return (yield from _Driven(handle))


def coroutine(handle: Handle) -> Coroutine[Any, Any, Any]:
    """Return a coroutine of this side that stands for one of the other."""
    return _awaited(handle)
