"""A referee that judges in several processes, for when one Python process is the limit.

Both ends of a pipe are this package's own code, which may trust the other; what is not to be trusted runs in the sandbox
that each process has.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import subprocess
import sys
import threading
from typing import IO, Any

from codea1_env.judging.answers import AttackAnswers
from codea1_env.judging.spread import Reply, SpreadReferee, answer
from codea1_env.judging.verdicts import RefereeConfig
from codea1_env.referee import Referee
from codea1_env.sandbox import InfraError, Sandbox, SandboxError

_ATTEMPTS = 3
_PATIENCE = 10.0  # seconds that a process has to end by itself
_PROTOCOL = 5
_COMMAND = "import sys; sys.path[:] = {}; from codea1_env.judging.processes import serve; serve()"
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
    """What a judging process does: answer requests until nobody is there to ask."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # only answers go there
    limits, level, packages, config = pickle.load(requests)
    gc.freeze()
    with Sandbox(1, limits, level=level, packages=packages) as sandbox:
        referee = Referee(sandbox, config)
        with contextlib.suppress(EOFError, BrokenPipeError):
            while True:
                _send(answers, answer(referee, pickle.load(requests)))
