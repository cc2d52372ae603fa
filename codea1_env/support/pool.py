"""Runs jobs a few at a time, each in a process of its own, and hears what they find.

A job that raises, or whose process dies, is started again once. Processes are forked from a server that has imported
what they need. Each has a session of its own, so that Ctrl-C is for the parent, which sends SIGTERM to them.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

Work = Callable[[Callable[[Any], None]], object]
"""What the process of a job does; it tells its argument what it finds. It crosses to the process by pickle."""

_ATTEMPTS = 2
_LOOK = 0.2
"""Seconds between two calls of `tick`."""
_TO_LEAVE = 5.0
"""Seconds that a process has to leave when its work has ended."""
_J = TypeVar("_J")


class DiedError(RuntimeError):
    """The process of a job died. The message says how."""


class _Running(NamedTuple):
    job: Any
    attempt: int
    process: ForkServerProcess


class _End(NamedTuple):
    """The last message of a process."""

    error: Exception | None


def run_jobs(
    jobs: Iterable[_J],
    begin: Callable[[_J], Work],
    hear: Callable[[_J, Any], None],
    lost: Callable[[_J, Exception], None],
    *,
    processes: int,
    imports: Sequence[str] = (),
    log: Callable[[_J], Path | None] = lambda job: None,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Run jobs until all have ended. If it is left by an exception, their processes get SIGTERM, and it waits for them.

    Args:
        jobs: What to do, in this order.
        begin: Job -> its work, asked for when it starts, and again for a second attempt.
        hear: Is told of each thing that a job finds.
        lost: Is told of a job that failed twice, and how: its exception, or a `DiedError`.
        processes: Jobs at the same time.
        imports: Modules that processes have imported before they begin.
        log: Job -> the file to which its process prints; None for where this process does.
        tick: Called now and then.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(imports))
    waiting = deque((job, 1) for job in jobs)
    running: dict[Any, _Running] = {}  # by what is heard of each
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                job, attempt = waiting.popleft()
                reader, writer = context.Pipe(duplex=False)
                with writer:
                    process = context.Process(target=_serve, args=(begin(job), log(job), writer))
                    process.start()
                running[reader] = _Running(job, attempt, process)
            for heard in wait(list(running), _LOOK):
                job, attempt, _ = running[heard]
                message = _message(running, heard)
                if not isinstance(message, _End):
                    hear(job, message)
                    continue
                del running[heard]
                if message.error is not None and attempt < _ATTEMPTS:
                    waiting.appendleft((job, attempt + 1))
                elif message.error is not None:
                    lost(job, message.error)
            tick()
    finally:
        _stop(running, hear)


def _message(running: Mapping[Any, _Running], reader: Any) -> Any:
    """Wait for a process to say something, or to end."""
    process = running[reader].process
    try:
        message = reader.recv()
    except (EOFError, OSError):
        process.join()
        code = process.exitcode or 0
        message = _End(DiedError(f"by signal {-code}" if code < 0 else f"with exit code {code}"))
    if isinstance(message, _End):
        process.join(_TO_LEAVE)
        process.kill()  # threads of somebody else may keep it
        reader.close()
    return message


def _stop(running: Mapping[Any, _Running], hear: Callable[[Any, Any], None]) -> None:
    for each in running.values():
        each.process.terminate()
    try:
        for reader, each in running.items():
            while not isinstance(message := _message(running, reader), _End):
                hear(each.job, message)
    except BaseException:  # Ctrl-C again
        for each in running.values():
            each.process.terminate()
        raise


def _serve(work: Work, log: Path | None, writer: Connection) -> None:
    """Do the work in this process."""
    os.setsid()
    if log is not None:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    error: Exception | None = None
    try:
        work(writer.send)
    except Exception as raised:
        if log is not None:
            traceback.print_exc()
        error = DiedError(f"{type(raised).__name__}: {raised}")
        with suppress(Exception):  # not all can be pickled
            error = pickle.loads(pickle.dumps(raised))
    writer.send(_End(error))


def _end_with_parent() -> None:
    """Stop as by SIGTERM when the parent is gone: nobody would wait for the work."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
