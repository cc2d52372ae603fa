"""Waits for the frames of a child, keeps its clocks, and notices why its run stops."""

from __future__ import annotations

import math
import select
import time

from .clocks import WallLimit, own_queue_time, queue_time_of, wait_for_processor
from .outcomes import Stop
from .results import WorkerDiedError
from .supervise import Supervised, is_readable

# Seconds, at least and at most, for the end of the channel after the last reply.
_LAST_BYTES_TIMEOUT = (0.5, 2.0)
_SHORT = 0.5  # seconds that need no second look, and the longest wait
_PROMPT = 0.1  # seconds between two looks in which it need not
_START_TIMEOUT = 30.0  # of a child, until its program begins


class Watch:
    """Waits for frames of a child, within limits."""

    def __init__(self, child: Supervised) -> None:
        self.child = child
        self._poll = select.poll()
        self._by_descriptor = {child.reply: "reply", child.handle: "handle"}
        self._by_descriptor |= dict.fromkeys(child.streams, "output")
        for descriptor in self._by_descriptor:
            self._poll.register(descriptor, select.POLLIN)
        self._cpu_before = 0.0
        self._queued = 0.0
        self._started = time.monotonic()
        self._looked = self._started - time.thread_time()  # to compute here is no excuse
        self._held_up = 0.0  # seconds in which this thread should have looked, and could not run

    def elapsed(self) -> float:
        """Seconds since the watch began."""
        return time.monotonic() - self._started

    def elapsed_unqueued(self, short: float = _SHORT) -> float:
        """Seconds since the watch began, less those in which the child waited for a processor, or for us.

        Where it is short, the kernel is not asked.
        """
        elapsed = self.elapsed() - self._held_up
        return elapsed if elapsed <= short else max(0.0, elapsed - queue_time_of(self.child.pid))

    def lap(self) -> float:
        """CPU seconds since the last lap."""
        now = self.child.cpu_time()
        spent, self._cpu_before = now - self._cpu_before, now
        return max(spent, 0.0)

    def is_idle(self, seconds: float, own_queued: float) -> bool:
        """Whether the child neither ran nor waited, for a processor or for us, for longer since the watch began.

        `own_queued` is what `own_queue_time()` was then.
        """

        def idle() -> float:
            queued = queue_time_of(self.child.pid) + own_queue_time()
            elapsed = self.elapsed() - self._held_up
            return elapsed - self.child.cpu_time() - (queued - own_queued)

        if self.elapsed() - self.child.cpu_time() <= seconds or idle() <= seconds:
            return False
        # Again: what went on at the first look may have ended before the next, and is counted only now.
        return not wait_for_processor(self.child.pid) and idle() > seconds

    def frame(self, cpu_limit: float, wall_limit: float) -> bytes | Stop:
        """Return the next frame, or why none came within so many seconds (see `WallLimit`), or of CPU time since the last lap.

        Raises:
            WorkerDiedError: The machine is too busy to tell why, somebody has stopped the child, or its program has not begun.
        """
        try:
            return self._frame(cpu_limit, wall_limit)
        except (WorkerDiedError, OSError):
            raise
        except Exception as error:
            if not self.child.ready:
                raise WorkerDiedError(f"{type(error).__name__}: {error}") from error
            self.child.stop = Stop.FAULT
            return Stop.FAULT

    def _frame(self, cpu_limit: float, wall_limit: float) -> bytes | Stop:
        child = self.child
        # A child that waited in the queue before its job gets no less time: what counts is since it was forked,
        # or since somebody looked for another frame.
        wall, held_up = WallLimit(child.pid, wall_limit, self._queued), self._held_up
        while not child.frames:
            stop, spent = child.stop, child.cpu_time() - self._cpu_before
            if stop is None and spent >= cpu_limit:
                # We may come late: each frame that came meanwhile has answered a call with a limit of its own, and the
                # time may be that of a call which is not answered yet.
                self._step(0.0)
                may_be = child.frames_left > 0 or spent < cpu_limit * len(child.frames)
                if child.stop is not None or (child.frames and may_be):
                    continue
                stop = Stop.CPU
                child.ran_out_of_cpu_time()
            if stop is None and wall.is_over():
                self._queued = wall.queued
                # This process, too, may have had no processor while what it waits for lay in the pipe.
                if (self._step(0.0) and wall.put_off()) or child.frames:
                    continue
                if self._held_up > held_up:
                    wall = WallLimit(child.pid, self._held_up - held_up, self._queued)
                    held_up = self._held_up
                    continue
                child.check_is_not_stopped()
                if not child.ready:  # what it waits for is ours: its time has not begun
                    if self.elapsed() > _START_TIMEOUT:
                        raise WorkerDiedError("the program of a child did not begin")
                    wall = WallLimit(child.pid, wall_limit, self._queued)
                    continue
                stop = Stop.WALL
            if stop is not None:
                return stop
            self._step(min(wall.left(), cpu_limit - spent, _SHORT))
        return child.frames.popleft()

    def _step(self, timeout: float) -> bool:
        """Wait for what can be read or written, and do it. Whether the job or a reply got on."""
        child = self.child
        writes = child.wants_to_write
        if writes:
            self._by_descriptor[child.job] = "job"
            self._poll.register(child.job, select.POLLOUT)
        try:
            events = self._poll.poll(math.ceil(timeout * 1000))
        finally:
            if writes:
                self._poll.unregister(child.job)
            before, self._looked = self._looked, time.monotonic() - time.thread_time()
            self._held_up += max(0.0, self._looked - before - timeout - _PROMPT)
        moved = False
        for descriptor, _ in events:
            what = self._by_descriptor.get(descriptor)
            if what is None:  # closed by an event just before
                continue
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
                self._closed()
            elif not child.read():
                self._closed()
        return moved

    def _closed(self) -> None:
        for descriptor in (self.child.reply, self.child.handle):
            if self._by_descriptor.pop(descriptor, None) is not None:
                self._poll.unregister(descriptor)
        if self.child.stop is None:
            self.child.stop = Stop.CLOSED

    def wait_for_close(self, seconds: float) -> None:
        """Wait until the child closes its channel, whatever it sends meanwhile, but not longer than some seconds."""
        poll = select.poll()
        poll.register(self.child.reply, 0)
        poll.poll(math.ceil(seconds * 1000))

    def closes_cleanly(self) -> bool:
        """Whether the child, told that nothing more will come, ends without another byte."""
        child = self.child
        child.close_job()
        least, most = _LAST_BYTES_TIMEOUT
        seconds = max(least, min(most, child.limits.call_wall_time))
        self.frame(child.cpu_time() - self._cpu_before + seconds, seconds)
        return child.stop is Stop.CLOSED and not child.unread
