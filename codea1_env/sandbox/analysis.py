"""Our own functions on hostile text, in a helper process that may die of it without harm."""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .inside import codec, frames
from .results import AnalysisError
from .worker import environment, interpreter

_TIMEOUT = 10.0


class Analyst:
    """A helper process that is started at the first request, and again after it has died."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._send = self._receive = -1

    def analyse(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a module-level function of this package in the helper process.

        Args:
            function: Its module may import only the standard library. Only its file and name are sent.
            arguments: Plain data.

        Returns:
            What the function returned: plain data.

        Raises:
            AnalysisError: It raised, took longer than ten seconds, or killed the process.
        """
        file = str(Path(function.__code__.co_filename).resolve())
        request = codec.encode((file, function.__name__, arguments), limit=frames.MAX_FRAME)
        with self._lock:
            if self._process is None:
                self._start()
            try:
                reply = self._exchange(request)
            except (frames.ChannelClosedError, BlockingIOError, BrokenPipeError) as error:
                status = self._stop()
                raise AnalysisError(f"the analysis process ended: {error}, {status}") from None
            except BaseException:  # a reply may still come: nobody would read the next one rightly
                self._stop()
                raise
        outcome, value = codec.decode(reply)
        if outcome != "ok":
            raise AnalysisError(value)
        return value

    def _exchange(self, request: bytes) -> bytes:
        deadline = time.monotonic() + _TIMEOUT
        data = memoryview(frames.PREFIX.pack(len(request)) + request)
        received = bytearray()
        size: int | None = None
        while size is None or len(received) < size:
            writing = [self._send] if data else []
            left = deadline - time.monotonic()
            readable, writable, _ = select.select([self._receive], writing, [], max(left, 0.0))
            if not readable and not writable:
                raise frames.ChannelClosedError(f"no answer within {_TIMEOUT:g} s")
            if writable:
                data = data[os.write(self._send, data[:65536]) :]
            if readable:
                part = os.read(self._receive, 1 << 20)
                if not part:
                    raise frames.ChannelClosedError("end of file")
                received += part
                if size is None and len(received) >= frames.PREFIX.size:
                    size = frames.PREFIX.size + frames.PREFIX.unpack_from(received)[0]
        return bytes(received[frames.PREFIX.size :])

    def _start(self) -> None:
        their_receive, self._send = os.pipe()
        self._receive, their_send = os.pipe()
        os.set_blocking(self._send, False)
        try:
            self._process = subprocess.Popen(
                interpreter("start.py", "analyst", str(their_receive), str(their_send)),
                pass_fds=[their_receive, their_send],
                env=environment(0),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(their_receive)
            os.close(their_send)

    def _stop(self) -> str:
        assert self._process is not None
        process, self._process = self._process, None
        for descriptor in (self._send, self._receive):
            os.close(descriptor)
        try:
            status = process.wait(0.2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return "killed"
        return f"died from signal {-status}" if status < 0 else f"status {status}"

    def close(self) -> None:
        """Ends the helper process."""
        with self._lock:
            if self._process is not None:
                self._stop()
