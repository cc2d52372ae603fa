"""Exceptions as plain data, on their way from one process to another."""

from __future__ import annotations

MAX_MESSAGE = 500
_MAX_NAME = 100


def message_of(error: BaseException) -> str:
    """Return the text of an exception; the exception's own code may be hostile or broken."""
    try:
        text = str(error)
        return text[:MAX_MESSAGE] if type(text) is str else ""
    except BaseException:  # whatever it raises, there is no text
        return ""


def name_in_text(name: object) -> str:
    """Return a class's name as it may cross beside its text; "" for what is no short identifier, which a metaclass can say."""
    return name if type(name) is str and len(name) <= _MAX_NAME and name.isidentifier() else ""


def missing_module(error: BaseException) -> str:
    """Return the top-level name of the module that was not found; "" where the exception does not say it."""
    try:
        if not isinstance(error, ModuleNotFoundError) or type(error.name) is not str:
            return ""
        return name_in_text(error.name.partition(".")[0])
    except BaseException:  # as in `message_of`
        return ""


def describe_error(error: BaseException) -> tuple[str, ...]:
    """Return the reply for an exception that a call or the program itself raised: kind, text, name, missing module."""
    name = type(error).__name__
    if isinstance(error, MemoryError):
        return ("memory", message_of(error) or "the memory limit was reached")
    if isinstance(error, SystemExit):
        return ("exited", f"SystemExit({message_of(error)})", "SystemExit")
    text = f"{name}: {message_of(error)}"[:MAX_MESSAGE]
    return ("raised", text, name_in_text(name), missing_module(error))
