"""Work that follows other work, without a thread that waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

_A = TypeVar("_A")
_B = TypeVar("_B")


def done(value: _A) -> Future[_A]:
    """Return the future of what is known already."""
    future: Future[_A] = Future()
    future.set_result(value)
    return future


def then(first: Future[_A], start: Callable[[_A], Future[_B]]) -> Future[_B]:
    """Return the future of what is started with the result of another one.

    Example:
        >>> then(done(2), lambda n: done(n + 1)).result()
        3
    """
    last: Future[_B] = Future()
    last.set_running_or_notify_cancel()

    def pass_on(done: Future[_B]) -> None:
        try:
            last.set_result(done.result())
        except BaseException as error:  # a cancelled one included
            last.set_exception(error)

    def begin(done: Future[_A]) -> None:
        try:
            start(done.result()).add_done_callback(pass_on)
        except BaseException as error:
            last.set_exception(error)

    first.add_done_callback(begin)
    return last


def all_of(futures: Sequence[Future[_A]]) -> Future[list[_A]]:
    """Return the future of the results of several, in order.

    Example:
        >>> all_of([done(1), done(2)]).result()
        [1, 2]
    """
    last: Future[list[_A]] = Future()
    last.set_running_or_notify_cancel()
    left, lock = len(futures), threading.Lock()

    def count(_: Future[_A]) -> None:
        nonlocal left
        with lock:
            left -= 1
            if left:
                return
        try:
            last.set_result([each.result() for each in futures])
        except BaseException as error:
            last.set_exception(error)

    if not futures:
        last.set_result([])
    for future in futures:
        future.add_done_callback(count)
    return last
