"""Waits for the frames of some children together, keeps their clocks, and notices why a run stops."""

from __future__ import annotations

import math
import select
import time

from .clocks import WallLimit, own_queue_time, queue_time_of, wait_for_processor
from .outcomes import Stop
from .results import WorkerDiedError
from .supervise import Supervised, is_readable

_LAST_BYTES_TIMEOUT = (
    0.5,
    2.0,
)  # at least and at most, for the end of the channel after the last reply
_SHORT = 0.5  # seconds that need no second look
_START_TIMEOUT = 30.0  # of a child, until its program begins


class Watch:
    """Waits for frames of some children together, within common limits."""

    def __init__(self, *children: Supervised) -> None:
        self.children = children
        self._pids = [child.pid for child in children]
        self._poll = select.poll()
        self._by_descriptor: dict[int, tuple[Supervised, str]] = {}
        for child in children:
            self._add(child.reply, child, "reply")
            for stream in child.streams:
                self._add(stream, child, "output")
            self._add(child.handle, child, "handle")
        self._cpu_before = 0.0
        self._queued = 0.0
        self._started = time.monotonic()

    def elapsed(self) -> float:
        """Seconds since the watch began."""
        return time.monotonic() - self._started

    def elapsed_unqueued(self) -> float:
        """Seconds since the watch began, less those in which the children waited for a processor."""
        elapsed = self.elapsed()
        if elapsed <= _SHORT:
            return elapsed
        return max(0.0, elapsed - sum(map(queue_time_of, self._pids)))

    def _add(self, descriptor: int, child: Supervised, what: str) -> None:
        self._by_descriptor[descriptor] = (child, what)
        self._poll.register(descriptor, select.POLLIN)

    def cpu_time(self) -> float:
        """Seconds of CPU time of the children together."""
        return sum(child.cpu_time() for child in self.children)

    def lap(self) -> float:
        """CPU seconds since the last lap."""
        now = self.cpu_time()
        spent, self._cpu_before = now - self._cpu_before, now
        return max(spent, 0.0)

    def is_idle(self, seconds: float, own_queued: float) -> bool:
        """Whether the children neither ran nor waited, for a processor or for us, for longer since the watch began."""

        def idle() -> float:
            queued = sum(map(queue_time_of, self._pids)) + own_queue_time()
            return self.elapsed() - self.cpu_time() - (queued - own_queued)

        if self.elapsed() - self.cpu_time() <= seconds or idle() <= seconds:
            return False
        # Again: what went on at the first look may have ended before the next, and is counted only now.
        return not wait_for_processor(self._pids) and idle() > seconds

    def frame(self, child: Supervised, cpu_limit: float, wall_limit: float) -> bytes | Stop:
        """Return the next frame of a child, or why none came.

        Args:
            child: Whose frame to wait for.
            cpu_limit: CPU seconds that the children may use since the last lap.
            wall_limit: Seconds that this may take. Time in which a busy machine gave the children no
                processor does not count: load must not make a verdict.

        Raises:
            WorkerDiedError: The machine is too busy to tell why none came, somebody has stopped a child, or its program
                has not begun.
        """
        # A child that waited in the queue before its job gets no less time: what counts is since they were forked,
        # or since somebody looked for another frame.
        wall = WallLimit(self._pids, wall_limit, self._queued)
        while not child.frames:
            stop = next((each.stop for each in self.children if each.stop is not None), None)
            spent = self.cpu_time() - self._cpu_before
            if stop is None and spent >= cpu_limit:
                stop = Stop.CPU
                child.ran_out_of_cpu_time()
            if stop is None and wall.is_over():
                self._queued = wall.queued
                # This process, too, may have had no processor while what it waits for lay in the pipe.
                if (self._step(0.0) and wall.put_off()) or child.frames:
                    continue
                for each in self.children:
                    each.check_is_not_stopped()
                if not child.ready:  # what it waits for is ours: its time has not begun
                    if self.elapsed() > _START_TIMEOUT:
                        raise WorkerDiedError("the program of a child did not begin")
                    wall = WallLimit(self._pids, wall_limit, self._queued)
                    continue
                stop = Stop.WALL
            if stop is not None:
                return stop
            self._step(min(wall.left(), cpu_limit - spent))
        return child.frames.popleft()

    def _step(self, timeout: float) -> bool:
        """Wait for what can be read or written, and do it. Whether a job or a reply got on."""
        writing = [child for child in self.children if child.wants_to_write]
        for child in writing:
            self._by_descriptor[child.job] = (child, "job")
            self._poll.register(child.job, select.POLLOUT)
        try:
            events = self._poll.poll(math.ceil(timeout * 1000))
        finally:
            for child in writing:
                self._poll.unregister(child.job)
        moved = False
        for descriptor, _ in events:
            if descriptor not in self._by_descriptor:  # closed by an event just before
                continue
            child, what = self._by_descriptor[descriptor]
            moved = moved or what != "output"
            if what == "job":
                child.write()
            elif what == "output":
                if not child.read_output(descriptor):
                    self._poll.unregister(descriptor)
            elif what == "handle":
                while child.read():  # what it wrote before it ended
                    if not is_readable(child.reply):
                        break
                self._closed(child)
            elif not child.read():
                self._closed(child)
        return moved

    def _closed(self, child: Supervised) -> None:
        for descriptor in (child.reply, child.handle):
            if descriptor in self._by_descriptor:
                del self._by_descriptor[descriptor]
                self._poll.unregister(descriptor)
        if child.stop is None:
            child.stop = Stop.CLOSED

    def wait_for_close(self, child: Supervised, seconds: float) -> None:
        """Wait until a child closes its channel, whatever it sends meanwhile, but not longer than some seconds."""
        poll = select.poll()
        poll.register(child.reply, 0)
        poll.poll(math.ceil(seconds * 1000))

    def closes_cleanly(self, child: Supervised) -> bool:
        """Whether a child, told that nothing more will come, ends without another byte."""
        child.close_job()
        least, most = _LAST_BYTES_TIMEOUT
        seconds = max(least, min(most, child.limits.call_wall_time))
        self.frame(child, self.cpu_time() - self._cpu_before + seconds, seconds)
        return child.stop is Stop.CLOSED and not child.unread
