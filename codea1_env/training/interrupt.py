"""Ctrl-C that waits for the end of the step."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_NOTE = b"\nStopping after this step; once more to stop at once.\n"


class StopRequest:
    """Whether somebody asked the run to stop."""

    def __init__(self) -> None:
        self.requested = False


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a request, which the loop obeys between two steps.

    A step that is broken off would leave players, book and logs at different moments. The second signal has
    its usual effect: whoever cannot wait loses the steps since the last checkpoint, nothing else. Only the
    main thread can set signal handlers; elsewhere nothing is changed.
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: FrameType | None) -> None:
        stop.requested = True
        for each, handler in before.items():
            signal.signal(each, handler)
        # Not print(): the signal may have come in the middle of one, and buffers are not reentrant.
        with suppress(OSError, ValueError):
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _NOTE)

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
