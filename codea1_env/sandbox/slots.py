"""Children that are forked before they are needed, so that no job waits for a fork."""

from __future__ import annotations

import contextlib
import os

from .supervise import Supervised
from .worker import Worker, WorkerDiedError


class Slot:
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
            self.with_test()

    def _close_test_ends(self) -> None:
        for descriptor in self._test_ends:
            os.close(descriptor)
        self._test_ends = ()

    def _without_program(self) -> None:
        with contextlib.suppress(WorkerDiedError):
            self.program.dismiss()

    def without_test(self) -> Supervised:
        """The program's child, which no test will reach."""
        try:
            if self._test is not None:
                self._test.dismiss()
        except BaseException:
            self._without_program()
            raise
        finally:
            self._close_test_ends()
        return self.program

    def with_test(self) -> tuple[Supervised, Supervised]:
        """The program's child and the test's child."""
        if self._test is None:
            try:
                self._test = Supervised(self._worker, b"t", self._test_ends)
            except BaseException:
                self._without_program()
                raise
            finally:
                self._close_test_ends()
        return self.program, self._test

    def dismiss(self) -> None:
        """End the children of a slot that nobody needs."""
        self.without_test().dismiss()


class Slots:
    """A worker and the slot that it has ready.

    Args:
        worker: Forks the children.
        calls_only: Whether it is a worker for calls.
        scratch: Whether its children have folders, which are new when none of them is left.
    """

    def __init__(self, worker: Worker, *, calls_only: bool = False, scratch: bool = False) -> None:
        self.worker = worker
        self._scratch = scratch
        self._calls_only = calls_only
        self._ready: Slot | Supervised | None = None
        self._last_had_test = False

    def take(self, *, with_test: bool) -> Slot:
        """A slot, usually one that is ready.

        Args:
            with_test: Whether a test's child will be needed; the next slot is made likewise.
        """
        # So that no process or file of the last run is there in this one, where it could have left any.
        if self._scratch or not self.worker.confines_signals:
            self.worker.wait_for_ends()
        self._last_had_test = with_test
        slot, self._ready = self._ready, None
        assert not isinstance(slot, Supervised)
        return slot if slot is not None else Slot(self.worker, with_test=with_test)

    def take_callee(self) -> Supervised:
        """A child for calls, usually one that is ready."""
        child, self._ready = self._ready, None
        assert not isinstance(child, Slot)
        return child if child is not None else Supervised(self.worker, b"v", ())

    def get_ready(self) -> None:
        """Has the next slot made, between two jobs: while one runs, it would only take its processor."""
        if self._scratch:
            return
        if self._ready is None and self._calls_only:
            self._ready = Supervised(self.worker, b"v", ())
        elif self._ready is None:
            self._ready = Slot(self.worker, with_test=self._last_had_test)

    def close(self) -> None:
        """End the worker with all that it has forked."""
        if self._ready is not None:
            with contextlib.suppress(WorkerDiedError):
                self._ready.dismiss()
        self.worker.close()
