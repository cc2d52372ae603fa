"""Shares out workers among jobs: starts them when needed, replaces those that die, tries again.

A slow machine is no verdict: what runs out of CPU time while the machine is slow gets another run, alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

from . import clocks
from .jobs import Limits, WorkerKind
from .levels import start_worker
from .results import InfraError, SandboxError, WorkerDiedError
from .supervise import Supervised, dismissed_on_error
from .worker import Worker

_ATTEMPTS = 3
_MOST_SEEDED = 8  # idle workers of other hash seeds than the usual one, or two for each place
_THREADS = 2  # for each worker: while it runs one job, the next one and the last one are seen to
T = TypeVar("T")
R = TypeVar("R")


class _Slot:
    """A child for a program and, connected to it, room for a child for a test.

    Args:
        worker: Forks the children.
        with_test: Whether to fork the test's child already.
    """

    def __init__(self, worker: Worker, *, with_test: bool) -> None:
        self._worker = worker
        (receive, to_program), (from_program, send) = os.pipe(), os.pipe()
        self._test_ends: tuple[int, ...] = (to_program, from_program)
        self._test: Supervised | None = None
        try:
            self.program = Supervised(worker, b"c", (receive, send))
        except BaseException:
            self._close_test_ends()
            raise
        finally:
            os.close(receive)
            os.close(send)
        if with_test:
            self.pair()

    def _close_test_ends(self) -> None:
        for descriptor in self._test_ends:
            os.close(descriptor)
        self._test_ends = ()

    def alone(self) -> Supervised:
        """Return the program's child, which no test will reach."""
        with dismissed_on_error([self.program]):
            try:
                if self._test is not None:
                    self._test.dismiss()
            finally:
                self._close_test_ends()
        return self.program

    def pair(self) -> tuple[Supervised, Supervised]:
        """Return the program's child and the test's child."""
        if self._test is None:
            with dismissed_on_error([self.program]):
                try:
                    self._test = Supervised(self._worker, b"t", self._test_ends)
                finally:
                    self._close_test_ends()
        return self.program, self._test


class Slots:
    """A worker and the children that it has ready.

    Args:
        worker: Forks the children. Where they have folders, these are new when none of the children is left.
    """

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._ready: _Slot | Supervised | None = None
        self._last_had_test = False

    def _take(self, *, with_test: bool) -> _Slot:
        # So that no process or file of the last run is there in this one, where it could have left any.
        if self.worker.kind.scratch or not self.worker.confines_signals:
            self.worker.wait_for_ends()
        self._last_had_test = with_test
        slot, self._ready = self._ready, None
        assert not isinstance(slot, Supervised)
        return slot if slot is not None else _Slot(self.worker, with_test=with_test)

    def take(self) -> Supervised:
        """Return a child for a program, usually one that is ready. The next one is made without one for a test, too."""
        return self._take(with_test=False).alone()

    def take_pair(self) -> tuple[Supervised, Supervised]:
        """Return a child for a program and one for a test, usually ready. The next ones are made likewise."""
        return self._take(with_test=True).pair()

    def take_callee(self) -> Supervised:
        """Return a child for calls, usually one that is ready."""
        child, self._ready = self._ready, None
        assert not isinstance(child, _Slot)
        return child if child is not None else Supervised(self.worker, b"v")

    def get_ready(self) -> None:
        """Has the next ones made, between two jobs: while one runs, it would only take its processor."""
        if self.worker.kind.scratch or self._ready is not None:
            return
        if self.worker.kind.calls_only:
            self._ready = Supervised(self.worker, b"v")
        else:
            self._ready = _Slot(self.worker, with_test=self._last_had_test)

    def close(self) -> None:
        """End the worker with all that it has forked."""
        with contextlib.suppress(WorkerDiedError):
            if isinstance(self._ready, Supervised):
                self._ready.dismiss()
            elif self._ready is not None:
                self._ready.alone().dismiss()
        self.worker.close()


class Run(Protocol):
    """Has a task done by a worker, again if the worker dies."""

    def __call__(self, task: Callable[[Slots], T]) -> T:
        """Return what the task returned."""


Attempt = Callable[[Run, Limits], R]
"""Something that is run in the sandbox within limits, and that can be run again. It may call the first several times."""


class WorkerPool:
    """Worker processes on this machine.

    Args:
        workers: How many tasks run at the same time.
        level: Chooses the level of confinement, when the first worker starts.
        packages: Allowed packages outside the standard library, with the folder that holds each.
        modules: See `Worker`.
    """

    def __init__(
        self,
        workers: int,
        level: Callable[[], str],
        packages: Mapping[str, str],
        modules: Sequence[str] | None,
    ) -> None:
        self.workers = workers
        self._level = level
        self._packages = dict(packages)
        self._modules = modules
        self._places = threading.BoundedSemaphore(workers)
        # Held while waiting for places, never while giving them back: two who want them all cannot hold
        # a half each, and those who want one cannot keep them waiting for ever.
        self._gate = threading.Lock()
        self._lock = threading.Lock()
        self._idle: defaultdict[WorkerKind, list[Slots]] = defaultdict(list)
        self._executor = ThreadPoolExecutor(_THREADS * workers, "codea1-sandbox")
        self.closed = False
        self._drained = False

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Call a function in a thread of its own, and return at once.

        It calls `run` for what needs a worker: what it does before and after keeps no worker waiting.

        Raises:
            SandboxError: The sandbox is closed.
        """
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

    def run(self, task: Callable[[Slots], T], kind: WorkerKind, *, alone: bool = False) -> T:
        """Run a task in this thread as soon as a place is free, or, `alone`, all are: no other runs then.

        Raises:
            InfraError: It failed three times because of the sandbox itself.
            SandboxError: The sandbox is closed.
        """
        failures = []
        with self._having(self.workers if alone else 1):
            for _ in range(_ATTEMPTS):
                slots: Slots | None = None
                try:
                    slots = self._take(kind)
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

    def _take(self, kind: WorkerKind) -> Slots:
        with self._lock:
            if self._drained:
                self.check_open()
            if self._idle[kind]:
                return self._idle[kind].pop()
        clocks.measure()  # while little else runs: what it takes at best is worth knowing
        return Slots(start_worker(kind, self._level(), self._packages, self._modules))

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

    def run_by_work(self, kind: WorkerKind, attempt: Attempt[R], limits: Limits) -> R:
        """Run something within limits that say how much of this machine at its best it may use.

        It is repeated at most once, so that what never ends has an end, and only where a limit of CPU time was
        reached: who sleeps is not slowed down.
        """
        ran_out = False

        def run(task: Callable[[Slots], T]) -> T:
            def noting(slots: Slots) -> T:
                nonlocal ran_out
                slots.worker.ran_out = False
                result = task(slots)
                ran_out = ran_out or slots.worker.ran_out
                return result

            return self.run(noting, kind)

        result = attempt(run, limits)
        slowness = clocks.slowness() if ran_out else 1.0
        if slowness <= clocks.ENOUGH:
            return result
        return attempt(lambda task: self.run(task, kind, alone=True), limits.times(slowness))

    def check_open(self) -> None:
        """Refuse work after `close`.

        Raises:
            SandboxError: The sandbox is closed.
        """
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
