"""Our own functions on hostile text, in helper processes that may die of it without harm."""

from __future__ import annotations

import functools
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .clocks import cpu_time_of, memory_of
from .inside import codec
from .inside.codec import frames
from .results import AnalysisError, InfraError, SandboxError, one_line
from .worker import start_helper

_TIMEOUT = 10.0
# On a busy machine a request may take that much longer than the processor time it needs.
_WALL_FACTOR = 5.0
_PROCESSES = 2
_MUCH = 128 << 20  # bytes of memory
_NEXT_LOOK = 100  # milliseconds
_TRIES = 3
# A process provokes these itself. Other signals come from outside, SIGKILL from the kernel that lacks memory.
_OWN_SIGNALS = frozenset({
    signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGSYS, signal.SIGTRAP,
})  # fmt: skip


class _LostError(Exception):
    """A helper process is gone, or silent, for a reason that the text need not have given."""


class _EndedError(_LostError):
    """A helper process has ended itself, or was killed with much memory: if that happens again, the text is the reason."""


class Analyst:
    """Helper processes that are started when they are needed, and replaced when they have died."""

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(_PROCESSES)
        self._lock = threading.Lock()
        self._idle: list[_Helper] = []
        self._closed = False

    def analyse(
        self, function: Callable[..., Any], *arguments: Any, timeout: float = _TIMEOUT
    ) -> Any:
        """Call a module-level function in a helper process, with plain data; it returns plain data.

        Args:
            function: Its module may import only the standard library, and modules here that do the same.
            arguments: Plain data.
            timeout: Seconds of CPU time, and a fifth of the seconds, that it may take.

        Raises:
            AnalysisError: It raised, took too long, or made the process crash.
            InfraError: The process was killed from outside, or got no time, each time that it was tried.
        """
        file = _file_of(function.__code__.co_filename)
        try:
            request = codec.encode((file, function.__name__, arguments), limit=frames.MAX_FRAME)
        except codec.SizeError as error:
            raise AnalysisError(f"too much to analyse: {error}") from None
        with self._places:
            reply = self._ask_again(request, timeout)
        try:
            outcome, value = codec.decode(reply)
        except codec.DecodeError as error:
            raise AnalysisError(f"an analysis that cannot be read: {error}") from None
        if outcome != "ok":
            raise AnalysisError(one_line(value))
        return value

    def _ask_again(self, request: bytes, timeout: float) -> bytes:
        """Ask, on a fresh helper if the last one was lost; nothing is concluded from a loss that is not the text's."""
        for attempt in range(_TRIES):
            try:
                return self._ask(request, timeout, fresh=attempt > 0)
            except _LostError as error:
                lost = error
        if isinstance(lost, _EndedError):
            raise AnalysisError(str(lost))
        raise InfraError(
            f"A text could not be analysed, though it was tried {_TRIES} times: {lost}. Is memory short, or "
            "the machine very busy?"
        )

    def _ask(self, request: bytes, timeout: float, fresh: bool) -> bytes:
        with self._lock:
            if self._closed:
                raise SandboxError("Expect an open sandbox, actually: close() was called meanwhile")
            helper = self._idle.pop() if self._idle and not fresh else None
        if helper is not None and not helper.alive:
            helper.stop()
            helper = None
        if helper is None:
            helper = _Helper()
        try:
            reply = helper.exchange(request, timeout)
        except TimeoutError as error:
            helper.stop()
            raise AnalysisError(f"the analysis process ended: {error}, killed") from None
        except (frames.ChannelClosedError, BlockingIOError, BrokenPipeError) as error:
            status = helper.stop()
            message = f"the analysis process ended: {error}, {_in_words(status)}"
            if status is not None and -status in _OWN_SIGNALS:
                raise AnalysisError(message) from None
            if status is not None and (status >= 0 or helper.memory > _MUCH):
                raise _EndedError(message) from None
            raise _LostError(message) from None
        except BaseException:  # a reply may still come: nobody would read the next one rightly
            helper.stop()
            raise
        with self._lock:
            self._idle.append(helper)
        return reply

    def close(self) -> None:
        """End the helper processes, when those that are at work have finished."""
        for _ in range(_PROCESSES):
            self._places.acquire()
        try:
            self._closed = True
            while self._idle:
                self._idle.pop().stop()
        finally:
            for _ in range(_PROCESSES):
                self._places.release()


@functools.lru_cache
def _file_of(name: str) -> str:
    return str(Path(name).resolve())


class _Helper:
    """One process, and the pipes to it."""

    def __init__(self) -> None:
        self.memory = 0  # bytes that it was seen to have
        their_receive, self._send = os.pipe()
        self._receive, their_send = os.pipe()
        os.set_blocking(self._send, False)
        try:
            self._process = start_helper("analysis.analyst", their_receive, their_send)
        except BaseException:
            os.close(self._send)
            os.close(self._receive)
            raise
        finally:
            os.close(their_receive)
            os.close(their_send)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def exchange(self, request: bytes, timeout: float) -> bytes:
        """Send a request and return its reply. TimeoutError: it has had its time; _LostError: it did not get it."""
        end = time.monotonic() + timeout * _WALL_FACTOR
        cpu_end = cpu_time_of(self._process.pid) + timeout

        def milliseconds_left() -> int:
            cpu_left = cpu_end - cpu_time_of(self._process.pid)
            left = end - time.monotonic()
            if cpu_left <= 0:
                raise TimeoutError(f"no answer within {timeout:g} s")
            if left <= 0:
                raise _LostError(f"no answer within {timeout * _WALL_FACTOR:g} s of a busy machine")
            return int(min(cpu_left, left) * 1000) + 1

        data = memoryview(frames.PREFIX.pack(len(request)) + request)
        received = bytearray()
        size: int | None = None
        poll = select.poll()
        poll.register(self._receive, select.POLLIN)
        poll.register(self._send, select.POLLOUT)
        while size is None or len(received) < size:
            ready = {each for each, _ in poll.poll(min(milliseconds_left(), _NEXT_LOOK))}
            if not ready:
                self.memory = max(self.memory, memory_of(self._process.pid))
            if self._send in ready:
                data = data[os.write(self._send, data[:65536]) :]
                if not data:
                    poll.unregister(self._send)
            if self._receive in ready:
                part = os.read(self._receive, 1 << 20)
                if not part:
                    raise frames.ChannelClosedError("end of file")
                received += part
                if size is None and len(received) >= frames.PREFIX.size:
                    size = frames.PREFIX.size + frames.PREFIX.unpack_from(received)[0]
        return bytes(received[frames.PREFIX.size :])

    def stop(self) -> int | None:
        """End the process and return how it had ended: status, minus a signal, or None if it was alive."""
        for descriptor in (self._send, self._receive):
            os.close(descriptor)
        try:
            status = self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None
        return status


def _in_words(status: int | None) -> str:
    if status is None:
        return "killed"
    return f"died from signal {-status}" if status < 0 else f"status {status}"
