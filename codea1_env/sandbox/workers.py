"""Shares out workers among jobs: starts them when needed, replaces those that die, tries again."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol, TypeVar

from . import pace
from .levels import start_worker
from .results import InfraError, SandboxError
from .slots import Slots
from .worker import WorkerDiedError

_ATTEMPTS = 3
_THREADS = 2  # for each worker: while it runs one job, the next one and the last one are seen to
T = TypeVar("T")


class WorkerKind(NamedTuple):
    """What a job needs of a worker.

    Attributes:
        hash_seed: See `Job.hash_seed`.
        with_packages: Whether it mentions a package outside the standard library. Workers without them
            fork faster.
        calls_only: Whether its program's function is only called, which needs a smaller worker still.
        scratch: See `Job.scratch`.
    """

    hash_seed: int
    with_packages: bool
    calls_only: bool = False
    scratch: bool = False


class WorkerPool(Protocol):
    """Where jobs run. The one pool here is of processes on this machine."""

    closed: bool
    """Whether `close` was called."""

    def run(self, task: Callable[[Slots], T], kind: WorkerKind, *, alone: bool = False) -> T:
        """Run a task as soon as a worker is free, or, `alone`, while no other runs; returns its result."""

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Call a function in a thread of its own, and return at once.

        It calls `run` for what needs a worker: what it does before and after keeps no worker waiting.
        """

    def check_open(self) -> None:
        """Refuse work after `close`."""

    def close(self) -> None:
        """Cancel what has not begun, waits for what has, and free everything."""


class LocalPool:
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
        modules: Sequence[str] | None = None,
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
        self._executor: ThreadPoolExecutor | None = None
        self.closed = False
        self._drained = False

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Call a function in a thread, and return at once. See `WorkerPool.submit`.

        Raises:
            SandboxError: The sandbox is closed.
        """
        with self._lock:
            self.check_open()
            if self._executor is None:
                threads = _THREADS * self.workers
                self._executor = ThreadPoolExecutor(threads, "codea1-sandbox")
            return self._executor.submit(function)

    @contextlib.contextmanager
    def _having(self, places: int) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            with self._gate:
                for _ in range(places):
                    stack.enter_context(self._places)
            yield

    def run(self, task: Callable[[Slots], T], kind: WorkerKind, *, alone: bool = False) -> T:
        """Run a task in this thread as soon as a place is free, or all are. See `WorkerPool.run`.

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
                    self._get_ready(slots, kind)
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
        pace.measure()  # while little else runs: what it takes at best is worth knowing
        worker = start_worker(
            kind.hash_seed, self._level(), self._packages, *kind[1:], modules=self._modules
        )
        return Slots(worker, calls_only=kind.calls_only, scratch=kind.scratch)

    def _give_back(self, slots: Slots | None, kind: WorkerKind) -> None:
        if slots is not None:
            with self._lock:
                self._idle[kind].append(slots)

    def _get_ready(self, slots: Slots, kind: WorkerKind) -> None:
        try:
            slots.get_ready()
        except (WorkerDiedError, OSError):  # its last job is done all the same
            self._discard(slots)
        else:
            self._give_back(slots, kind)

    def _discard(self, slots: Slots | None) -> None:
        if slots is not None:
            with contextlib.suppress(WorkerDiedError, OSError):
                slots.close()

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
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(cancel_futures=True)
        with self._having(self.workers):  # also those of tasks in threads of our callers
            self._drained = True
            for idle in self._idle.values():
                while idle:
                    self._discard(idle.pop())
