"""Shares out workers among jobs: starts them when needed, replaces those that die, tries again.

A slow machine is no verdict: what runs out of CPU time while the machine is slow gets another run, alone. Neither is a
signal: whose process has died of one is run once more, since it may have come from outside; alone, if it had much memory.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

from . import clocks
from .jobs import Limits, WorkerKind
from .levels import start_worker
from .results import InfraError, SandboxError, WorkerDiedError
from .supervise import Supervised
from .worker import Worker

_ATTEMPTS = 3
_MOST_SEEDED = 8  # idle workers of other hash seeds than the usual one, or two for each place
_THREADS = 2  # for each worker: while it runs one job, the next one and the last one are seen to
T = TypeVar("T")
R = TypeVar("R")


class Slots:
    """A worker and the child that it has ready."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._role = b"v" if worker.kind.calls_only else b"c"
        self._ready: Supervised | None = None

    def take(self) -> Supervised:
        """Return a child, usually one that is ready."""
        # So that no process or file of the last run is there in this one, where it could have left any.
        if self.worker.kind.scratch or not self.worker.confines_signals:
            self.worker.wait_for_ends()
        child, self._ready = self._ready, None
        return child if child is not None else Supervised(self.worker, self._role)

    def get_ready(self) -> None:
        """Fork the next child between jobs; during a job the fork would compete for its core."""
        if not self.worker.kind.scratch and self._ready is None:
            self._ready = Supervised(self.worker, self._role)

    def close(self) -> None:
        """End the worker with all that it has forked."""
        with contextlib.suppress(WorkerDiedError):
            if self._ready is not None:
                self._ready.dismiss()
        self.worker.close()


class TaskRunner(Protocol):
    """Has a task done by a worker of some kind, again if the worker dies."""

    def __call__(self, kind: WorkerKind, task: Callable[[Slots], T]) -> T:
        """Run the task."""


Attempt = Callable[[TaskRunner, Limits], R]
"""Something that is run in the sandbox within limits, and that can be run again. It may call the first several times."""


class WorkerPool:
    """Worker processes on this machine."""

    def __init__(self, workers: int, level: Callable[[], str], packages: Mapping[str, str]) -> None:
        self.workers = workers
        self._level = level
        self._packages = packages
        self._places = threading.BoundedSemaphore(workers)
        # Held while waiting for places, never while giving them back: two who want them all cannot hold
        # a half each, and those who want one cannot keep them waiting for ever.
        self._gate = threading.Lock()
        self._lock = threading.Lock()
        self._idle: defaultdict[WorkerKind, list[Slots]] = defaultdict(list)
        self._executor = ThreadPoolExecutor(_THREADS * workers, "codea1-sandbox")
        self.runs = 0
        """Tasks that ended so far."""
        self.closed = False
        self._drained = False

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Call a function, which calls `run` for what needs a worker, in a thread of its own, and return at once."""
        with self._lock:
            self.check_open()
            return self._executor.submit(function)

    @contextlib.contextmanager
    def _having(self, places: int) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            with self._gate:
                for _ in range(places):
                    stack.enter_context(self._places)
            yield

    def run(
        self,
        task: Callable[[Slots], T],
        kind: WorkerKind,
        *,
        alone: bool = False,
        fresh: bool = False,
    ) -> T:
        """Run a task in this thread as soon as a place is free, or, `alone`, all are: no other runs then.

        It is tried three times, from the second time on, or with `fresh` from the first, with a fresh worker.

        Raises:
            InfraError: It failed three times because of the sandbox itself.
            SandboxError: The sandbox is closed.
        """
        failures = []
        with self._having(self.workers if alone else 1):
            for attempt in range(_ATTEMPTS):
                slots: Slots | None = None
                try:
                    slots = self._take(kind, fresh=fresh or attempt > 0)
                    result = task(slots)
                except (WorkerDiedError, OSError) as error:
                    failures.append(f"{type(error).__name__}: {error}")
                    self._discard(slots)
                except Exception:
                    self._give_back(slots, kind)
                    raise
                except BaseException:  # interrupted anywhere: the worker may be in any state
                    self._discard(slots)
                    raise
                else:
                    with self._lock:
                        self.runs += 1
                    try:
                        slots.get_ready()
                    except (WorkerDiedError, OSError):  # its last job is done all the same
                        self._discard(slots)
                    else:
                        self._give_back(slots, kind)
                    return result
        raise InfraError(
            f"a job failed {_ATTEMPTS} times because of the sandbox itself; check free memory, "
            f"processes and descriptors of this machine. What happened: {'; '.join(failures)}"
        )

    def _take(self, kind: WorkerKind, *, fresh: bool) -> Slots:
        with self._lock:
            if self._drained:
                self.check_open()
            idle = self._idle[kind].pop() if self._idle[kind] else None
        if idle is not None and not fresh:
            return idle
        self._discard(idle)
        clocks.measure()  # while little else runs: what it takes at best is worth knowing
        return Slots(start_worker(kind, self._level(), self._packages))

    def _give_back(self, slots: Slots | None, kind: WorkerKind) -> None:
        if slots is None:
            return
        with self._lock:
            self._idle[kind].append(slots)
            surplus = self._surplus() if kind.hash_seed else None
        self._discard(surplus)

    def _surplus(self) -> Slots | None:
        """Take one idle worker away if there are many that wait for another hash seed than the usual one."""
        seeded = [idle for kind, idle in self._idle.items() if kind.hash_seed]
        if sum(map(len, seeded)) <= max(_MOST_SEEDED, 2 * self.workers):
            return None
        return max(seeded, key=len).pop(0)

    def _discard(self, slots: Slots | None) -> None:
        if slots is not None:
            with contextlib.suppress(WorkerDiedError, OSError):
                slots.close()

    def run_by_work(self, attempt: Attempt[R], limits: Limits) -> R:
        """Run something within limits that say how much of this machine at its best it may use.

        It is repeated at most once, so that what never ends has an end, and only where a signal has ended a process or a
        limit of CPU time was reached: who sleeps is not slowed down.
        """
        ran_out = signalled = starved = False

        def run(kind: WorkerKind, task: Callable[[Slots], T]) -> T:
            def noting(slots: Slots) -> T:
                nonlocal ran_out, signalled, starved
                slots.worker.ran_out = slots.worker.signalled = slots.worker.starved = False
                result = task(slots)
                ran_out = ran_out or slots.worker.ran_out
                signalled = signalled or slots.worker.signalled
                starved = starved or slots.worker.starved
                return result

            return self.run(noting, kind)

        result = attempt(run, limits)
        slowness = clocks.slowness() if ran_out else 1.0
        if slowness <= clocks.ENOUGH and not starved:
            return attempt(lambda kind, task: self.run(task, kind), limits) if signalled else result
        return attempt(lambda kind, task: self.run(task, kind, alone=True), limits.times(slowness))

    def check_open(self) -> None:
        """Refuse work after `close`."""
        if self.closed:
            raise SandboxError(
                "Expect an open sandbox, actually: close() was called; make a new one"
            )

    def close(self) -> None:
        """Cancel what has not begun, waits for what has, and end all processes."""
        with self._lock:
            self.closed = True
        self._executor.shutdown(cancel_futures=True)
        with self._having(self.workers):  # also those of tasks in threads of our callers
            self._drained = True
            for idle in self._idle.values():
                while idle:
                    self._discard(idle.pop())
