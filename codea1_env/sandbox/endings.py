"""How something ended in the sandbox: fields with closed meanings, and texts that are only for people."""

from __future__ import annotations

import enum

MAX_MESSAGE = 500
_MAX_NAME = 100
NEVER_CALLED = "the program was never called"
"""Message of an ERROR where a test would hold for any program."""
RUN_LIMIT = "the limit of the whole run was reached"
"""Message of a TIMEOUT where a test had no time left because of others of its job."""


class Outcome(enum.StrEnum):
    """How a test or a call ended. The list is closed: nothing else can be reported.

    Each is its text as well, so that `json.dumps(dataclasses.asdict(result))` works.

    Example:
        >>> Outcome("timeout") is Outcome.TIMEOUT
        True
    """

    PASS = "pass"
    """The test held; for a call: it returned."""
    FAIL = "fail"
    """An assertion was false."""
    ERROR = "error"
    """An exception was raised, the program does not define what was asked for, or a test never called it."""
    TIMEOUT = "timeout"
    """The CPU or wall-clock limit was reached."""
    MEMORY = "memory"
    """The memory limit was reached."""
    OUTPUT_LIMIT = "output_limit"
    """A larger value was returned than the limits allow; for a script, more was printed."""
    EXITED = "exited"
    """The process ended by itself before it had answered."""
    SIGNALLED = "signalled"
    """The process died from a signal (a crash, or a signal it sent to itself)."""
    UNENCODABLE = "unencodable"
    """The value is not plain data, so that it cannot leave the process."""
    SYNTAX_ERROR = "syntax_error"
    """The text cannot be compiled."""
    FORBIDDEN = "forbidden"
    """It tried something that the sandbox does not allow."""
    INFRA_ERROR = "infra_error"
    """Our own failure. It is raised as `InfraError`, and never turned into a reward."""


class Limit(enum.StrEnum):
    """Which limit was reached. The list is closed.

    Example:
        >>> Limit("wall_time") is Limit.WALL_TIME
        True
    """

    CPU_TIME = "cpu_time"
    """CPU time: of the call or the test, or what the run had left for it when it began."""
    WALL_TIME = "wall_time"
    """The same of wall-clock time."""
    RUN = "run"
    """Others of the job had used what all may use together, so that this one had less time, or none."""
    MEMORY = "memory"
    """`Limits.memory`."""
    OUTPUT = "output"
    """`Limits.output`: more was printed."""
    RESULT = "result"
    """`Limits.result`, or what may be kept of a run's values, or what reading one may cost."""


def identifier(text: object) -> str | None:
    """A name that a hostile process gave, if it can be one; to be compared and shown, never looked up.

    Example:
        >>> identifier("KeyError"), identifier("a b"), identifier(b"KeyError"), identifier("x" * 101)
        ('KeyError', None, None, None)
    """
    if type(text) is not str or len(text) > _MAX_NAME or not text.isidentifier():
        return None
    return text


def one_line(text: str) -> str:
    r"""A text of hostile origin as one short line of printable characters, that can be encoded.

    Example:
        >>> one_line("a\nb\x1b[2J\ud800")
        'a\\nb\\x1b[2J\\ud800'
    """
    text = text[:MAX_MESSAGE]
    if not text.isprintable():
        text = "".join(
            each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
        )
    return text[:MAX_MESSAGE]
