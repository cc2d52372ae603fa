"""Exceptions as plain data, on their way from one process to another."""

from __future__ import annotations

MAX_MESSAGE = 500


class RemoteUnencodable(BaseException):
    """Something cannot cross. Not an `Exception`, so that a test does not swallow it by accident."""


def message_of(error: BaseException) -> str:
    """The text of an exception; the exception's own code may be hostile or broken."""
    try:
        text = str(error)
        return text[:MAX_MESSAGE] if type(text) is str else ""
    except BaseException:  # whatever it raises, there is no text
        return ""


def describe_error(error: BaseException) -> tuple[str, ...]:
    """The reply for an exception that a call or the program itself raised."""
    name = type(error).__name__
    if isinstance(error, MemoryError):
        return ("memory", message_of(error) or "the memory limit was reached")
    if isinstance(error, SystemExit):
        return ("exited", f"SystemExit({message_of(error)})")
    return ("raised", f"{name}: {message_of(error)}"[:MAX_MESSAGE])
