"""A referee whose answers are judged in several places at once, each of which remembers its problems' references.

What is judged where decides nothing but the time: a verdict depends on its round alone. A place may be a process of its
own, for when one Python process is the limit. Both ends of its pipe are this package's own code, which may trust the
other; what is not to be trusted runs in the sandbox that each process has.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import subprocess
import sys
import threading
import traceback
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from threading import Lock, Thread
from typing import IO, Any, Protocol, Self

from codea1_env.judging.verdicts import AttackAnswers, Counters, Judged, RefereeConfig
from codea1_env.oracle import gather
from codea1_env.referee import Referee
from codea1_env.sandbox import InfraError, Sandbox, SandboxError

_LOOK = 2.0  # seconds between looks at whether places have joined

Reply = tuple[list[Judged], Counters]
"""What came of the answers to one problem, and what it took."""


class Place(Protocol):
    """Where answers are judged, one problem at a time."""

    def ask(self, part: AttackAnswers) -> Reply:
        """Have answers judged.

        Raises:
            InfraError: Nobody could, though it was tried again.
        """

    def ready(self) -> bool:
        """Prepare to be asked, where that takes long; whether it can be."""

    def hang_up(self) -> None:
        """Say that nothing more will be asked."""

    def close(self) -> None:
        """Wait for the end."""


class SpreadReferee(Referee):
    """A referee whose `judge_answers` is done in several places. All else happens here, as with any `Referee`.

    Each problem has a place that it goes to; one that has nothing left to do takes what waits for another. Who judges
    and is lost three times is an InfraError.

    Args:
        sandbox: Reads what has to be read here.
        config: How rounds are judged.
        places: Where answers are judged.
    """

    def __init__(
        self, sandbox: Sandbox, config: RefereeConfig | None, places: Sequence[Place]
    ) -> None:
        super().__init__(sandbox, config)
        self._places = list(places)
        self._joining = Lock()

    def join(self) -> list[Place]:
        """Add places that can be had since the last time, where there may be such; which ones."""
        return []

    def judge_parts(self, parts: Sequence[AttackAnswers]) -> list[Judged]:
        """Have them judged in the places."""
        places = list(self._places)
        homes = _homes([part.problem.task_id for part in parts], len(places))
        work = _Work(parts, homes)
        with ThreadPoolExecutor(len(places), "judging") as threads:
            for number in sorted(set(homes)):
                threads.submit(work.do, number, places[number])
            work.wait(self.join)
            answers = gather(work.futures)
        with self._counting:
            for _, counters in answers:
                self.counters += counters
        return [item for found, _ in answers for item in found]

    def close(self) -> None:
        """End all places."""
        for place in self._places:
            place.hang_up()
        for place in self._places:
            place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answer(referee: Referee, part: AttackAnswers) -> Reply | Exception:
    """Judge answers, in the place itself."""
    referee.counters = Counters()
    try:
        return referee.judge_parts([part]), referee.counters
    except Exception as error:
        error.add_note(f"Where it was judged:\n{traceback.format_exc()}")
        return error


def _homes(names: Sequence[str], places: int) -> list[int]:
    """Return the place of each problem: always the same one, unless that has its share of problems already."""
    most = -(-len(names) // places)
    number = [0] * places
    homes = []
    for name in names:
        home = zlib.crc32(name.encode(errors="replace")) % places
        if number[home] >= most:
            home = number.index(min(number))
        number[home] += 1
        homes.append(home)
    return homes


class _Work:
    """Answers that wait for a place.

    Args:
        parts: The answers.
        homes: Which place each is for.
    """

    def __init__(self, parts: Sequence[AttackAnswers], homes: Sequence[int]) -> None:
        self.futures: list[Future[Reply]] = [Future() for _ in parts]
        self._parts = parts
        self._waiting = dict(enumerate(homes))
        self._lock = Lock()

    def do(self, number: int, place: Place) -> None:
        """Let a place work until nothing waits any more."""
        while (next_one := self._take(number)) is not None:
            future = self.futures[next_one]
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(place.ask(self._parts[next_one]))
            except BaseException as error:
                future.set_exception(error)

    def wait(self, join: Callable[[], Iterable[Place]]) -> None:
        """Wait until all is answered, or something cannot be. Places that join meanwhile help."""
        try:
            while True:
                for place in join():
                    # Nobody waits for one that is not ready before the others have done it all.
                    Thread(target=self._help, args=(place,), name="judging", daemon=True).start()
                done, rest = wait(self.futures, _LOOK, FIRST_EXCEPTION)
                if not rest or any(each.exception() for each in done):
                    return
        except BaseException:
            for future in self.futures:
                future.cancel()
            raise

    def _help(self, place: Place) -> None:
        if place.ready():
            self.do(-1, place)  # nobody's home

    def _take(self, number: int) -> int | None:
        with self._lock:
            if not self._waiting:
                return None
            mine = (index for index, home in self._waiting.items() if home == number)
            chosen = next(mine, next(reversed(self._waiting)))
            del self._waiting[chosen]
            return chosen


_ATTEMPTS = 3
_PATIENCE = 10.0  # seconds that a process has to end by itself
_PROTOCOL = 5
_COMMAND = "import sys; sys.path[:] = {}; from codea1_env.judging.spread import serve; serve()"
# Judging uses no array of numbers; a library that is imported all the same must not start threads.
_NO_THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}


class JudgingProcesses(SpreadReferee):
    r"""A referee whose `judge_answers` is done by processes of its own, each with a sandbox of one worker.

    Each problem has a process that it goes to, which then remembers its reference's values; one that has nothing
    left to do takes what waits for another. All else happens in this process, as with any `Referee`.

    The processes start with the first answers. They are new interpreters, not copies of this one, and end with it.

    Args:
        sandbox: Reads what has to be read in this process. The sandboxes of the others are like it.
        config: How rounds are judged.
        processes: How many.

    Raises:
        ValueError: `processes` is not a positive number.

    Example:
        >>> from codea1_env.problems import Problem
        >>> from codea1_env.responses import Program
        >>> problem = Problem("inc", "def inc(n):", "inc", "def inc(n):\n    return n + 1")
        >>> with Sandbox() as sandbox, JudgingProcesses(sandbox, processes=2) as judges:
        ...     program = Program("def inc(n): return 2")
        ...     [(_, verdict)] = judges.judge_answers([problem], [program], ["assert inc(2) == 3"], {})
        >>> verdict.failed
        ('assert inc(2) == 3',)
    """

    def __init__(
        self, sandbox: Sandbox, config: RefereeConfig | None = None, *, processes: int
    ) -> None:
        if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
            raise ValueError(f"Expect processes to be a positive integer, actually: {processes!r}")
        config = RefereeConfig() if config is None else config
        super().__init__(sandbox, config, [_Place(sandbox, config) for _ in range(processes)])


class _Place:
    """A place for one process: it starts when it is needed, and again when it has died."""

    def __init__(self, sandbox: Sandbox, config: RefereeConfig) -> None:
        self._sandbox = sandbox
        self._config = config
        self._lock = threading.Lock()
        self._closed = False
        self.process: _Process | None = None

    def ask(self, part: AttackAnswers) -> Reply:
        """Has answers judged.

        Raises:
            InfraError: The process ended, and so did two more.
        """
        failures = []
        with self._lock:
            for _ in range(_ATTEMPTS):
                if self._closed:
                    raise SandboxError("Expect open judges, actually: close() was called")
                try:
                    if self.process is None:
                        like = self._sandbox
                        settings = (like.limits, like.level, like.packages, self._config)
                        self.process = _Process(settings)
                    reply = self.process.ask(part)
                except (OSError, EOFError, pickle.UnpicklingError) as error:
                    failures.append(f"{type(error).__name__}: {error}")
                    self._discard()
                except BaseException:
                    self._discard()
                    raise
                else:
                    if isinstance(reply, BaseException):
                        raise reply
                    return reply
        raise InfraError(
            f"AttackAnswers could not be judged: the process that judges ended {_ATTEMPTS} times. Check the free memory "
            f"of this machine, and standard error. What happened: {'; '.join(failures)}"
        )

    def ready(self) -> bool:
        """Whether it can be asked: always."""
        return True

    def _discard(self, patience: float = 0) -> None:
        if self.process is not None:
            self.process.end(patience)
            self.process = None

    def hang_up(self) -> None:
        """Tell the process to end. Waits until it has answered."""
        self._closed = True
        with self._lock:
            if self.process is not None:
                self.process.hang_up()

    def close(self) -> None:
        """Wait for its end."""
        with self._lock:
            self._discard(_PATIENCE)


class _Process:
    """A judging process as its parent sees it."""

    def __init__(self, settings: tuple[Any, ...]) -> None:
        paths = [os.path.abspath(path) for path in sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _COMMAND.format(paths)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_NO_THREADS},
            start_new_session=True,  # Ctrl-C is for its parent, which ends it
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._replies = self._process.stdin, self._process.stdout
        self.pid = self._process.pid
        _send(self._requests, settings)

    def ask(self, part: AttackAnswers) -> Reply | Exception:
        _send(self._requests, part)
        reply: Reply | Exception = pickle.load(self._replies)
        return reply

    def hang_up(self) -> None:
        with contextlib.suppress(OSError):  # what cannot be sent any more
            self._requests.close()

    def end(self, patience: float) -> None:
        self.hang_up()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._replies.close()


def _send(pipe: IO[bytes], message: Any) -> None:
    pickle.dump(message, pipe, _PROTOCOL)
    pipe.flush()


def serve() -> None:
    """Be a judging process: answer requests until nobody is there to ask."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # only answers go there
    limits, level, packages, config = pickle.load(requests)
    gc.freeze()
    with Sandbox(1, limits, level=level, packages=packages) as sandbox:
        referee = Referee(sandbox, config)
        with contextlib.suppress(EOFError, BrokenPipeError):
            while True:
                _send(answers, answer(referee, pickle.load(requests)))
