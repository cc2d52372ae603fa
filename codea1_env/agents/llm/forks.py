"""Work on a processor divided among forks of this process, which share its memory, so that nothing is copied.

Threads wait for each other behind every product, hundreds of times for one token. Processes that have rows of their own
wait once, at the end.
"""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, Generic, NoReturn, TypeVar

from codea1_env.agents.llm.completions import BackendError
from codea1_env.sandbox.clocks import processor_ticks
from codea1_env.sandbox.inside.confine.privileges import PR_SET_PDEATHSIG, prctl
from codea1_env.sandbox.supervise import is_readable

_TRIES = 3
_STANDS_STILL = 60.0
"""Seconds without any processor time behind which a fork is taken for dead."""
_LEAST_ROWS = 2
"""Rows of a process: the weights are read once for all of them."""

T = TypeVar("T")


def shares(rows: Sequence[T], cores: int) -> list[Sequence[T]]:
    """Divide rows among processes, neighbours together; one share where forks cannot be had or do not pay."""
    count = max(1, min(cores, len(rows) // _LEAST_ROWS)) if sys.platform == "linux" else 1
    ends = [len(rows) * i // count for i in range(count + 1)]
    return [rows[begin:end] for begin, end in itertools.pairwise(ends)]


def side_by_side(works: Sequence[Callable[[], T]]) -> list[T]:
    """Do the first work here and each other one in a fork, at the same time; return what they return, in order.

    What a fork changes stays in it. It may compute with one thread only, as this process must have been set to before.

    Raises:
        BackendError: A fork has died, and the same work has killed two more.
        Exception: What a work raised.
    """
    forks: list[_Fork[T]] = []
    try:
        for work in works[1:]:
            forks.append(_Fork(work))
            forks[-1].begin()
        return [works[0](), *(fork.result() for fork in forks)]
    finally:
        for fork in forks:
            fork.end()


class _Fork(Generic[T]):
    """One work in a fork of this process."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._pid = 0
        self._answer = -1

    def begin(self) -> None:
        """Fork, unless the system has no process, memory or descriptor left for it."""
        with suppress(OSError):
            self._answer, answer = os.pipe()
            parent = os.getpid()
            # No signal comes between the fork and the moment when it is known here, and deaf there.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                with warnings.catch_warnings():
                    # Other threads of this process do not compute, and what they hold is not used in the fork.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    self._pid = os.fork()
                if self._pid == 0:
                    _work_in_fork(self._work, answer, parent, mask)
            finally:
                os.close(answer)
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def result(self) -> T:
        """Wait for what the work returns; the work of a fork that dies is done again by another, or here if there is none."""
        how = ""
        for left in reversed(range(_TRIES)):
            if self._pid == 0:
                return self._work()
            data = self._read()
            how = self.end()
            if data:
                done, found = pickle.loads(data)
                if not done:
                    raise found
                return found  # type: ignore[no-any-return]
            if left:
                self.begin()
        raise BackendError(
            f"A process that writes answers died {_TRIES} times, {how}. It often lacks memory: close other programs, "
            "write less at a time (--set generation_batch=8), or use one process (--threads 1)."
        )

    def end(self) -> str:
        """Kill the fork if it is there, and say how it ended."""
        if self._answer >= 0:
            os.close(self._answer)
        pid, self._pid, self._answer = self._pid, 0, -1
        if pid == 0:
            return ""
        try:
            os.kill(pid, signal.SIGKILL)  # nobody has waited for it: the number is still its own
            _, status = os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):  # who ignores SIGCHLD is told nothing
            return "and nobody knows how"
        code = os.waitstatus_to_exitcode(status)
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"

    def _read(self) -> bytes:
        """All that the fork writes; nothing if it dies before, or stands still."""
        found, used = [], -1
        while True:
            if not is_readable(self._answer, _STANDS_STILL):
                before, used = used, processor_ticks(self._pid)
                if used == before:
                    return b""
                continue
            data = os.read(self._answer, 1 << 20)
            if not data:
                break
            found.append(data)
        whole = b"".join(found)
        size = int.from_bytes(whole[:8], "little")
        return whole[8:] if len(whole) == 8 + size else b""


def _work_in_fork(
    work: Callable[[], Any], answer: int, parent: int, mask: Collection[int]
) -> NoReturn:
    """Do the work, write what it returns, and end without a trace in what is shared with the parent."""
    code = 1
    try:
        for each in signal.valid_signals():
            if callable(signal.getsignal(each)):  # sent to all of a group: the parent decides
                signal.signal(each, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            gc.freeze()  # what the parent has is the parent's to clean up
            data = _done(work)
            with open(answer, "wb", closefd=False) as pipe:
                pipe.write(len(data).to_bytes(8, "little") + data)
            code = 0
    finally:
        os._exit(code)


def _done(work: Callable[[], Any]) -> bytes:
    try:
        return pickle.dumps((True, work()))
    except Exception as error:
        error.add_note(f"In a process that writes answers: {traceback.format_exc()}")
        try:
            data = pickle.dumps((False, error))
            pickle.loads(data)
        except Exception:  # some have parts that cannot be sent, or made again
            data = pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
        return data
