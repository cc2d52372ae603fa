"""Long work ends by Ctrl-C where it can go on later: the first asks, the second does not wait."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_NOTE = "\nStopping after {}; once more to stop at once.\n"
_SHOW_CURSOR = b"\x1b[?25h"
_PATIENCE = 0.5
"""Seconds that a run has to end by itself after it was told to stop at once."""
_INTERRUPTED = 130
"""Exit code, as shells have it."""


class StopRequest:
    """Whether somebody asked the run to stop."""

    def __init__(self, waits: bool) -> None:
        self.requested = False
        self.waits = waits
        """Whether the first signal is a request; before, there is no step to wait for, and it ends the run."""
        self.step = "this step"
        """What is waited for, in words."""
        self.leave: Callable[[], object] = bool
        """What is done before the process is left because it does not end by itself."""


@contextmanager
def stop_request(waits: bool = True) -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a request, which the loop obeys between two steps.

    A step that is broken off would leave players, book and logs at different moments. The second signal, and the
    first one before `StopRequest.waits` is set, ends the run at once: by KeyboardInterrupt, and where Python does
    not get to it, because an update is computing, by leaving the process a second later. Only the main thread can
    set signal handlers; elsewhere nothing is changed.
    """
    stop = StopRequest(waits)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.waits and not stop.requested:
            stop.requested = True
            # Not print(): the signal may have come in the middle of one, and buffers are not reentrant.
            _write(_NOTE.format(stop.step).encode(errors="replace"))
            return
        stop.requested = True
        raise KeyboardInterrupt

    with _watchdog(stop):
        for number in before:
            signal.signal(number, handle)
        try:
            yield stop
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end a block as Ctrl-C does: by KeyboardInterrupt."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _watchdog(stop: StopRequest) -> Iterator[None]:
    """Leave the process if a signal that ends the run has not ended it after a moment.

    Python's handlers wait for the operation at work, such as backpropagation; a thread that reads this pipe does not.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def watch() -> None:
        asked = False
        while number := os.read(reader, 1):
            if number[0] not in (signal.SIGINT, signal.SIGTERM):
                continue
            if stop.waits and not asked:
                asked = True
                continue
            if not ended.wait(_PATIENCE):
                with suppress(Exception):  # the other threads go on
                    stop.leave()
                _write(_SHOW_CURSOR if sys.__stderr__ and sys.__stderr__.isatty() else b"")
                os._exit(_INTERRUPTED)

    ended = threading.Event()
    thread = threading.Thread(target=watch, name="interrupt", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(previous)
        os.close(writer)  # ends the thread
        thread.join()
        os.close(reader)


def _write(text: bytes) -> None:
    with suppress(OSError, ValueError):
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, text)
