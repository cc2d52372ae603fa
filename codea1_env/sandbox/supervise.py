"""One process of a run, and the pipes to it: moves its bytes, and sees to its end."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from .clocks import WallLimit, counted_cpu_time_of, cpu_time_of, is_stopped
from .inside.codec import frames
from .jobs import Limits
from .outcomes import Stop, cpu_backstop
from .results import WorkerDiedError
from .worker import ChildProcess, Ended, Worker, WorkerAnswer

_READ = 1 << 18
_size_at = frames.PREFIX.unpack_from
_EXIT_TIMEOUT = 1.0  # from the end of a process's channel to its own end
_MUCH = 32 << 20  # bytes: where memory is short, the kernel ends who has most


def _pipe(*, to_child: bool) -> tuple[int, int]:
    """Return a pipe: the end that stays here, which never blocks, and the end that the child gets."""
    receive, send = os.pipe()
    ours, theirs = (send, receive) if to_child else (receive, send)
    os.set_blocking(ours, False)
    return ours, theirs


def is_readable(descriptor: int, timeout: float = 0.0) -> bool:
    """Whether a descriptor becomes readable within some seconds. For descriptors of any number."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(math.ceil(timeout * 1000)))


class Supervised:
    """One child and the pipes to it. It is asked for at once, and waited for by `start`.

    Attributes:
        streams: Where its standard output and its standard error come out.
        ready: Whether foreign code has begun: what happened before is no fault of it.
        handle: From the start on, a descriptor that becomes readable when it has ended.
        pid: From the start on, its process number.
    """

    handle: int
    pid: int

    def __init__(self, worker: Worker, role: bytes) -> None:
        self._worker = worker
        pipes = [_pipe(to_child=True), _pipe(to_child=False)]
        if role != b"v":
            pipes += [_pipe(to_child=False), _pipe(to_child=False)]
        ours, theirs = zip(*pipes, strict=True)
        self.job, self.reply, *streams = ours
        self.streams = tuple(streams)
        self._open = set(ours)
        self._process: ChildProcess | None = None
        self.frames: deque[bytes] = deque()
        self.stop: Stop | None = None
        self.frames_left = 0
        self.ready = False
        self._unsent = bytearray()
        self._received = bytearray()
        self._printed: dict[int, bytearray] = {}
        try:
            self._asked = worker.ask(role, list(theirs))
        except BaseException:
            self.close_pipes()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def start(self, limits: Limits, *job: bytes, may_send: int) -> None:
        """Wait for the child and queue its first frames. More than it may send, by one byte, is a flood."""
        self.limits = limits
        self.frames_left = may_send
        try:
            self._process = self._worker.forked(self._asked)
        except BaseException:
            self.close_pipes()
            raise
        self.handle, self.pid = self._process.pidfd, self._process.pid
        self._cpu_at_start = cpu_time_of(self.pid)
        self.send(*job)

    def cpu_time(self) -> float:
        """Seconds of CPU time since it was started."""
        return max(0.0, cpu_time_of(self.pid) - self._cpu_at_start)

    def ran_out_of_cpu_time(self) -> None:
        """Note that a limit of CPU time ended it."""
        self._worker.ran_out = True

    # Bytes

    def send(self, *payloads: bytes) -> None:
        """Queue frames for the child."""
        for payload in payloads:
            self._unsent += frames.PREFIX.pack(len(payload))
            self._unsent += payload
        self.write()

    @property
    def wants_to_write(self) -> bool:
        """Whether queued bytes are left."""
        return bool(self._unsent)

    def write(self) -> None:
        """Write what fits into the pipe now."""
        try:
            while self._unsent:
                sent = os.write(self.job, self._unsent[:65536])
                del self._unsent[:sent]
        except BlockingIOError:
            return
        except OSError:  # the child is gone; its reply pipe will say so
            self._unsent.clear()

    def read(self) -> bool:
        """Read replies; False at the end of the channel, or where nothing more may come."""
        try:
            data = os.read(self.reply, _READ)
        except BlockingIOError:
            return True
        if not data:
            return False
        received: bytes | bytearray = data
        if self._received:
            self._received += data
            received = self._received
        start, prefix, there = 0, frames.PREFIX.size, len(received)
        # An error message may come on top of the value itself.
        longest = self.limits.result + 65536
        left, keep = self.frames_left, self.frames.append
        while left and (begin := start + prefix) <= there:
            (size,) = _size_at(received, start)
            end = begin + size
            if not size and not self.ready:  # frames.READY
                self.ready = True
            elif size > longest:
                self.stop = Stop.TOO_LONG
                return False
            elif end > there:
                break
            else:
                left -= 1
                keep(bytes(received[begin:end]))
            start = end
        self.frames_left = left
        if received is self._received:
            del self._received[:start]
        else:
            self._received += received[start:]
        if self._received and not self.frames_left:
            self.stop = Stop.FLOOD
            return False
        return True

    def keep_output(self) -> None:
        """Keep what the child prints for `printed`; more on standard output than the limit allows stops it."""
        self._printed = {stream: bytearray() for stream in self.streams}

    def read_output(self, stream: int) -> bool:
        """Read some of what the child has printed; False at the end of it.

        It is forgotten, unless somebody wants it. Never more than a piece at once, since a program may print as
        quickly as we read.
        """
        try:
            data = os.read(stream, _READ)
        except BlockingIOError:
            return True
        kept = self._printed.get(stream)
        if kept is not None:
            kept += data[: int(self.limits.output) + 1 - len(kept)]
            too_much = stream == self.streams[0] and len(kept) > self.limits.output
            if too_much and self.stop is not Stop.FLOOD:
                self.stop = Stop.OUTPUT
        return bool(data)

    def read_all_output(self) -> None:
        """Read what a child that has answered had printed before, as far as it is kept."""
        for stream, kept in self._printed.items():
            while len(kept) <= self.limits.output and is_readable(stream):
                if not self.read_output(stream):
                    break

    def printed(self) -> tuple[str, str]:
        """Its standard output and its standard error."""
        most = int(self.limits.output)
        kept = [bytes(self._printed.get(stream, b""))[:most] for stream in self.streams]
        return kept[0].decode("utf-8", "replace"), kept[1].decode("utf-8", "replace")

    @property
    def unread(self) -> bool:
        """Whether bytes came that nobody has asked for."""
        return bool(self.frames or self._received)

    def ended_by_itself(self, timeout: float = 0.0) -> bool:
        """Whether the process is no longer running although nobody has ended it."""
        if not is_readable(self.handle) and timeout:
            wall = WallLimit(self.pid, timeout)
            most = cpu_time_of(self.pid) + min(timeout, self.limits.call_cpu_time)
            while not wall.is_over() and cpu_time_of(self.pid) < most:
                if is_readable(self.handle, wall.left()):
                    return True
        return is_readable(self.handle)

    # The end

    def close_job(self) -> None:
        """Tell the child that nothing more will come."""
        if self.job in self._open and not self._unsent and self.stop is None:
            self.send(frames.END)
        self._unsent.clear()
        self._close(self.job)

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)

    def close_pipes(self) -> None:
        """Close our ends of all pipes."""
        for descriptor in list(self._open):
            self._close(descriptor)

    def used(self, ended: Ended) -> float:
        """Seconds of CPU time from its start to its end."""
        return max(0.0, ended.cpu_time - self._cpu_at_start)

    def dismiss(self) -> WorkerAnswer:
        """End a child whose end does not matter; does not wait for it."""
        self.close_pipes()
        if self._process is None:
            self._process = self._worker.forked(self._asked)
        return self._worker.end(self._process)

    def end(self) -> Ended:
        """Kill the child if it still runs, frees everything, and say how it had ended.

        Raises:
            WorkerDiedError: The worker is gone, or the child has ended for a reason that is not the program's.
        """
        self.read_all_output()
        if self.stop is Stop.CLOSED and not self.ended_by_itself(
            min(_EXIT_TIMEOUT, self.limits.call_wall_time)
        ):
            self.stop = Stop.LEFT
        counted = counted_cpu_time_of(self.pid)
        ended = self._worker.ended(self.dismiss())
        if (
            self.stop is Stop.CLOSED
            and ended.code == -signal.SIGKILL
            and counted >= cpu_backstop(self.limits)
        ):
            self.ran_out_of_cpu_time()
            ended = replace(ended, reached_backstop=True)
        elif self.stop is Stop.CLOSED:
            self._check_is_own_end(ended)
        return ended

    def _check_is_own_end(self, ended: Ended) -> None:
        if not self.ready:
            how = f"signal {-ended.code}" if ended.code < 0 else f"status {ended.code}"
            raise WorkerDiedError(f"a child ended before its program began, with {how}")
        if ended.code == -signal.SIGKILL and self._worker.confines_signals and not self._received:
            if ended.grown < _MUCH:
                raise WorkerDiedError("a child was killed from outside, or for want of memory")
            self._worker.starved = True
            self.stop = Stop.MEMORY
        elif ended.code < 0:  # by itself, or from outside: nobody can tell
            self._worker.signalled = True

    def check_is_not_stopped(self) -> None:
        """Refuse to call a child slow that somebody has stopped."""
        if is_stopped(self.pid):
            if self._worker.confines_signals:
                raise WorkerDiedError("a child was stopped from outside")
            self._worker.signalled = True


@contextlib.contextmanager
def dismissed_on_error(child: Supervised) -> Iterator[None]:
    """Free a child whatever is raised meanwhile."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(WorkerDiedError):
            child.dismiss()
        raise
